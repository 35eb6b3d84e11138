//! What a person has begun in a work tree and not ended, and who holds its index.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::GitError;
use crate::repository::{RefFormat, Repository};

/// Something that Git will go on with when it is told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `git merge`, with conflicts or before its commit.
    Merge,
    /// `git rebase`, by either of its ways.
    Rebase,
    /// `git am`.
    ApplyMail,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
    /// `git bisect`.
    Bisect,
}

impl Operation {
    /// Git's command for it, which also finishes or aborts it.
    pub fn command(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Rebase => "rebase",
            Self::ApplyMail => "am",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
            Self::Bisect => "bisect",
        }
    }
}

impl Repository {
    /// What is in progress in this work tree: often nothing, seldom more than one thing. Runs
    /// nothing; with reftables two processes, because there such marks are refs.
    ///
    /// # Errors
    /// [`GitError::File`], or whatever kept Git from answering.
    pub fn operations(&self) -> Result<Vec<Operation>, GitError> {
        let mut found = Vec::new();
        if self.has("rebase-merge")? {
            found.push(Operation::Rebase);
        } else if self.has("rebase-apply/applying")? {
            found.push(Operation::ApplyMail);
        } else if self.has("rebase-apply")? {
            found.push(Operation::Rebase);
        }
        if self.has("MERGE_HEAD")? {
            found.push(Operation::Merge);
        }
        // Between two commits of a series there is no head, only the list of what is to come.
        let next = self.next_of_series()?;
        let picks = next.is_some_and(|next| next == b'p') && found.is_empty();
        if picks || self.has_mark("CHERRY_PICK_HEAD")? {
            found.push(Operation::CherryPick);
        }
        let reverts = next.is_some_and(|next| next == b'r') && found.is_empty();
        if reverts || self.has_mark("REVERT_HEAD")? {
            found.push(Operation::Revert);
        }
        if self.has("BISECT_LOG")? {
            found.push(Operation::Bisect);
        }
        Ok(found)
    }

    /// The file whose existence locks the index. Who creates it, and only then, may write the
    /// index; Git leaves it behind when it is killed.
    pub fn index_lock(&self) -> PathBuf {
        let mut name = self.index_file.clone().into_os_string();
        name.push(".lock");
        name.into()
    }

    /// Whether somebody holds the index, or left its lock behind. Runs nothing.
    ///
    /// # Errors
    /// [`GitError::File`].
    pub fn is_index_locked(&self) -> Result<bool, GitError> {
        exists(&self.index_lock())
    }

    /// All of these are kept for each work tree.
    fn has(&self, name: &str) -> Result<bool, GitError> {
        exists(&self.git_directory.join(name))
    }

    fn has_mark(&self, name: &str) -> Result<bool, GitError> {
        if self.ref_format == RefFormat::Files {
            return self.has(name);
        }
        let arguments = ["rev-parse", "-q", "--verify", name];
        Ok(self.git.ask_whether(self.folder(), "rev-parse", &arguments)?.is_some())
    }

    /// The first letter of the next command of a series: `pick` or `revert`.
    fn next_of_series(&self) -> Result<Option<u8>, GitError> {
        let path = self.git_directory.join("sequencer/todo");
        match fs::read(&path) {
            Ok(text) => Ok(text.first().copied()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(GitError::file("read", &path)(error)),
        }
    }
}

fn exists(path: &Path) -> Result<bool, GitError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(GitError::file("examine", path)(error)),
    }
}
