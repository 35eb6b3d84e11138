//! Questions to the objects of a repository.

use std::path::PathBuf;

use crate::error::GitError;
use crate::git::{failed, unreadable};
use crate::index::EntryKind;
use crate::object::ObjectId;
use crate::path::{line, path_of, paths};
use crate::repository::Repository;

/// A path of a commit's tree that is no folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// The path below the top level.
    pub path: PathBuf,
    /// What it stands for.
    pub kind: EntryKind,
    /// Its content; of a gitlink, a commit of another repository.
    pub id: ObjectId,
}

impl Repository {
    /// Which of `objects` are not there, neither here nor where this repository borrows; they are
    /// looked up, not read. One process, none for no objects.
    ///
    /// # Errors
    /// Whatever kept Git from answering. In a partial clone, Git before 2.45 ends at the first
    /// missing object because it may not fetch it; nothing is fetched by any.
    pub fn missing_objects(
        &self,
        objects: impl IntoIterator<Item = ObjectId>,
    ) -> Result<Vec<ObjectId>, GitError> {
        let mut input = String::new();
        for object in objects {
            input.push_str(&object.to_string());
            input.push('\n');
        }
        if input.is_empty() {
            return Ok(Vec::new());
        }
        let arguments = ["cat-file", "--batch-check=%(objectname)", "--buffer"];
        let output =
            self.git.tool(self.folder(), &arguments).input(input.clone().into_bytes()).run()?;
        if !output.status.success() {
            return Err(failed("cat-file", self.folder(), &output));
        }
        // A line for each: the name alone, or with a word behind it that says what is wrong.
        let answers = output.stdout.split(|byte| *byte == b'\n');
        let mut missing = Vec::new();
        let mut count = 0;
        for (asked, answer) in input.lines().zip(answers) {
            count += 1;
            if answer != asked.as_bytes() {
                missing.extend(ObjectId::from_hex(asked.as_bytes()));
            }
        }
        if count == input.lines().count() {
            Ok(missing)
        } else {
            Err(unreadable("cat-file", self.folder()))
        }
    }

    /// All paths of a commit's tree, in Git's order. One process.
    ///
    /// # Errors
    /// Whatever kept Git from answering, such as a missing object.
    pub fn tree(&self, commit: ObjectId) -> Result<Vec<TreeEntry>, GitError> {
        let arguments = ["ls-tree", "-r", "-z", "--full-tree", &commit.to_string()];
        let answer = self.git.ask(self.folder(), "ls-tree", &arguments)?;
        let entries: Option<Vec<_>> = paths(&answer).map(tree_entry).collect();
        entries.ok_or_else(|| unreadable("ls-tree", self.folder()))
    }

    /// How many commits `to` has that `from` has not. One process.
    ///
    /// # Errors
    /// Whatever kept Git from answering, such as a missing object.
    pub fn count_commits(&self, from: Option<ObjectId>, to: ObjectId) -> Result<u64, GitError> {
        let mut arguments = vec!["rev-list".to_owned(), "--count".to_owned(), to.to_string()];
        arguments.extend(from.map(|from| format!("^{from}")));
        let answer = self.git.ask(self.folder(), "rev-list", &arguments)?;
        line(&answer)
            .and_then(|text| std::str::from_utf8(text).ok()?.parse().ok())
            .ok_or_else(|| unreadable("rev-list", self.folder()))
    }
}

/// Mode, kind and name of the object, and behind a tabulator the path.
fn tree_entry(text: &[u8]) -> Option<TreeEntry> {
    let mut halves = text.splitn(2, |byte| *byte == b'\t');
    let mut words = halves.next()?.split(|byte| *byte == b' ');
    let path = path_of(halves.next()?);
    let kind = match words.next()? {
        b"120000" => EntryKind::Link,
        b"160000" => EntryKind::Gitlink,
        b"100755" => EntryKind::Executable,
        // Old commits have files with other bits, which Git takes for these.
        mode if mode.starts_with(b"100") => EntryKind::File,
        _ => return None,
    };
    Some(TreeEntry { path, kind, id: ObjectId::from_hex(words.nth(1)?)? })
}
