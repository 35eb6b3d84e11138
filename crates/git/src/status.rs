//! What of a work tree is not tracked, by the ignore rules that hold now.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::error::GitError;
use crate::git::failed;
use crate::path::{joined, path_of, paths};
use crate::repository::Repository;

/// What is not in the index; paths below the top level, in Git's order.
///
/// Together with the index this says what is eligible for review: its entries but for gitlinks,
/// and [`untracked`](Self::untracked).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Untracked {
    /// Files and symbolic links that no rule ignores, each by itself.
    pub untracked: Vec<PathBuf>,
    /// Repositories that no rule ignores and no gitlink names: their folders.
    pub nested: Vec<PathBuf>,
    /// What is ignored, by the topmost: folders that are ignored as a whole, or hold nothing else,
    /// and single files.
    pub ignored: Vec<Ignored>,
}

/// Something that is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// Its path.
    pub path: PathBuf,
    /// Whether it is a folder, with everything in it.
    pub is_folder: bool,
}

impl Repository {
    /// What is not tracked. Two processes, which read folders and ignore files and no other file:
    /// no filter is run.
    ///
    /// # Errors
    /// Whatever kept Git from answering; there is no answer without a work tree.
    pub fn untracked(&self) -> Result<Untracked, GitError> {
        let ask = |arguments: &[&str]| self.git.ask(self.folder(), "ls-files", arguments);
        let others = ask(&["ls-files", "-z", "--others", "--exclude-standard"])?;
        let ignored = ask(&[
            "ls-files",
            "-z",
            "--others",
            "--ignored",
            "--exclude-standard",
            "--directory",
        ])?;
        let mut found = Untracked::default();
        for path in paths(&others) {
            match path.strip_suffix(b"/") {
                Some(folder) => found.nested.push(path_of(folder)),
                None => found.untracked.push(path_of(path)),
            }
        }
        found.ignored = paths(&ignored)
            .map(|path| {
                let folder = path.strip_suffix(b"/");
                Ignored { path: path_of(folder.unwrap_or(path)), is_folder: folder.is_some() }
            })
            .collect();
        Ok(found)
    }

    /// Which of `candidates`, paths below the top level, the rules ignore; a tracked one never is.
    /// A candidate need not exist; to be taken for a folder where none is, it ends with `/`. One
    /// process, none for no candidates.
    ///
    /// # Errors
    /// Git refuses a candidate that lies in a submodule or behind a symbolic link, and with it all.
    pub fn ignored_among<'a>(
        &self,
        candidates: impl IntoIterator<Item = &'a Path>,
    ) -> Result<BTreeSet<PathBuf>, GitError> {
        let input = joined(candidates);
        if input.is_empty() {
            return Ok(BTreeSet::new());
        }
        let tool = self.git.tool(self.folder(), &["check-ignore", "-z", "--stdin"]);
        let output = tool.input(input).run()?;
        match output.status.code() {
            Some(0 | 1) => Ok(paths(&output.stdout).map(path_of).collect()),
            _ => Err(failed("check-ignore", self.folder(), &output)),
        }
    }
}
