//! Questions to the objects of a repository.

use std::fmt::Write as _;
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
        let asked: Vec<ObjectId> = objects.into_iter().collect();
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let arguments = ["cat-file", "--batch-check=%(objectname)", "--buffer"];
        let answer = self.batch(&arguments, &asked)?;
        // A line for each: the name alone, or with a word behind it that says what is wrong.
        let answers = answer.split(|byte| *byte == b'\n');
        let mut missing = Vec::new();
        let mut count = 0;
        for (object, answer) in asked.iter().zip(answers) {
            count += 1;
            if answer != object.to_string().as_bytes() {
                missing.push(*object);
            }
        }
        if count == asked.len() { Ok(missing) } else { Err(unreadable("cat-file", self.folder())) }
    }

    /// How many bytes each of `objects` has, in their order; none for one that is not there or is
    /// no file's content. They are looked up, not read. One process, none for no objects.
    ///
    /// # Errors
    /// As [`missing_objects`](Self::missing_objects).
    pub fn blob_sizes(&self, objects: &[ObjectId]) -> Result<Vec<Option<u64>>, GitError> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let arguments = ["cat-file", "--batch-check=%(objecttype) %(objectsize)", "--buffer"];
        let answer = self.batch(&arguments, objects)?;
        let lines = answer.split(|byte| *byte == b'\n');
        let sizes: Vec<Option<u64>> = lines
            .take(objects.len())
            .map(|line| std::str::from_utf8(line.strip_prefix(b"blob ")?).ok()?.parse().ok())
            .collect();
        if sizes.len() == objects.len() {
            Ok(sizes)
        } else {
            Err(unreadable("cat-file", self.folder()))
        }
    }

    /// The bytes of each of `objects`, in their order, as they are stored: no filter is run, no
    /// line end converted. None for one that is not there or is no file's content. One process,
    /// none for no objects; the answers of all are in memory at once.
    ///
    /// # Errors
    /// As [`missing_objects`](Self::missing_objects).
    pub fn blobs(&self, objects: &[ObjectId]) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let arguments = ["cat-file", "--batch=%(objecttype) %(objectsize)", "--buffer"];
        let answer = self.batch(&arguments, objects)?;
        let blobs = read_batch(&answer, objects.len());
        blobs.ok_or_else(|| unreadable("cat-file", self.folder()))
    }

    fn batch(&self, arguments: &[&str], objects: &[ObjectId]) -> Result<Vec<u8>, GitError> {
        let mut input = String::new();
        for object in objects {
            // Into text there is no way to fail.
            let _ = writeln!(input, "{object}");
        }
        let output = self.git.tool(self.folder(), arguments).input(input.into_bytes()).run()?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(failed("cat-file", self.folder(), &output))
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

/// For each object a line with its kind and its size, its bytes, and a line feed; or one line that
/// says what is wrong.
fn read_batch(mut answer: &[u8], count: usize) -> Option<Vec<Option<Vec<u8>>>> {
    let mut blobs = Vec::with_capacity(count);
    for _ in 0..count {
        let end = answer.iter().position(|byte| *byte == b'\n')?;
        let (head, rest) = answer.split_at_checked(end)?;
        answer = rest.get(1..)?;
        let head = std::str::from_utf8(head).ok()?;
        let mut words = head.split(' ');
        let (kind, size) = (words.next()?, words.next()?);
        let Ok(size) = size.parse::<usize>() else {
            blobs.push(None);
            continue;
        };
        let (bytes, rest) = answer.split_at_checked(size)?;
        blobs.push((kind == "blob").then(|| bytes.to_vec()));
        answer = rest.strip_prefix(b"\n")?;
    }
    Some(blobs)
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
