//! The index file: what is tracked, and by which stat data Git knows that a file is unchanged.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use crate::error::GitError;
use crate::object::{ObjectFormat, ObjectId};
use crate::repository::Repository;

mod decode;
mod encode;
mod stat;
mod tree;

pub use stat::{Stat, Time};

/// Why an index cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The file is cut short, or does not follow the format.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// The checksum at its end is not that of its bytes.
    #[error("its checksum does not match")]
    Checksum,
    /// A format that is not known here.
    #[error("its version {0} is not known")]
    Version(u32),
    /// Something that a reader must understand and this one does not.
    #[error("it has an extension that is not known: {0}")]
    Extension(String),
    /// It is only the difference to another file (`core.splitIndex`), so its entries are not all.
    #[error("it is a split index")]
    Split,
    /// It has folders in place of the files in them (`index.sparse`).
    #[error("it is a sparse index")]
    Sparse,
    /// An entry's path leads out of the tree, or into a Git directory.
    #[error("it has the path {}", .0.display())]
    Path(PathBuf),
}

/// What an entry stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A file that may be executed.
    Executable,
    /// A symbolic link.
    Link,
    /// A commit of another repository: a submodule.
    Gitlink,
}

impl EntryKind {
    /// The mode that Git writes for it.
    pub fn mode(self) -> u32 {
        match self {
            Self::File => 0o100_644,
            Self::Executable => 0o100_755,
            Self::Link => 0o120_000,
            Self::Gitlink => 0o160_000,
        }
    }
}

/// One tracked path, or one side of a conflict over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path below the top level.
    pub path: PathBuf,
    /// What it stands for.
    pub kind: EntryKind,
    /// The content; that of a gitlink is a commit of another repository.
    pub id: ObjectId,
    /// 0, or 1 to 3 for the sides of a conflict: base, ours, theirs.
    pub stage: u8,
    /// A person has told Git to take the file for unchanged.
    pub is_assumed_unchanged: bool,
    /// The file need not be in the work tree, as outside a sparse checkout.
    pub is_skipped: bool,
    /// Only the path is tracked as yet (`add --intent-to-add`): the content does not exist.
    pub is_intended: bool,
    /// The file as Git last found it equal to the content; all zero when Git has to look.
    pub stat: Stat,
}

/// An index, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// The hash of the objects, and of the checksum.
    pub format: ObjectFormat,
    /// The entries in Git's order.
    pub entries: Vec<Entry>,
    /// When the file was written: entries with that time or a later one may have changed after
    /// they were recorded without any trace in their stat data.
    pub written: Time,
    /// The trees that parts of the entries make (extension `TREE`), as they were found.
    tree: Option<Vec<u8>>,
}

/// How a file is now: the source's, and the copy's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The file in the work tree that the index is from.
    pub source: Stat,
    /// The same file in the copy, with the same bytes.
    pub copy: Stat,
}

impl Index {
    /// An index without entries.
    pub fn empty(format: ObjectFormat) -> Self {
        Self { format, entries: Vec::new(), written: Time::default(), tree: None }
    }

    /// The index of `repository`; without a file it is empty. Runs nothing.
    ///
    /// # Errors
    /// [`GitError::File`] and [`GitError::Index`].
    pub fn of(repository: &Repository) -> Result<Self, GitError> {
        Self::read(&repository.index_file, repository.object_format)
    }

    /// The index at `path`; without a file it is empty.
    ///
    /// # Errors
    /// [`GitError::File`] and [`GitError::Index`].
    pub fn read(path: &Path, format: ObjectFormat) -> Result<Self, GitError> {
        let failed = || GitError::file("read", path);
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::empty(format)),
            Err(error) => return Err(failed()(error)),
        };
        let found: fs::Metadata = file.metadata().map_err(failed())?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed())?;
        let written = Stat::from(&found).mtime;
        Self::decode(&bytes, format, written)
            .map_err(|source| GitError::Index { path: path.to_owned(), source })
    }

    /// Paths with sides of a conflict, each once.
    pub fn unmerged(&self) -> impl Iterator<Item = &Path> {
        let mut last: Option<&Path> = None;
        self.entries.iter().filter(|entry| entry.stage != 0).filter_map(move |entry| {
            let is_new = last != Some(entry.path.as_path());
            last = Some(&entry.path);
            is_new.then_some(entry.path.as_path())
        })
    }

    /// The submodules: path and commit.
    pub fn gitlinks(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.kind == EntryKind::Gitlink)
    }

    /// Gives every entry the stat data of the copy's file, but only where that file is surely the
    /// content: where the source's file still has the very stat data of the entry, and these are
    /// older than the index itself. All others get none, so that Git in the copy looks at their
    /// bytes. `look` gives none for what is not in both trees.
    ///
    /// The copy's stat data must be final: whatever changes a mode or a time comes before. Gives
    /// the number of entries that Git will not have to look at.
    pub fn settle(&mut self, mut look: impl FnMut(&Path) -> Option<Pair>) -> usize {
        let mut settled = 0;
        for entry in &mut self.entries {
            let is_racy = entry.stat.mtime >= self.written;
            let can_match = entry.stage == 0 && entry.kind != EntryKind::Gitlink && !is_racy;
            let pair = if can_match { look(&entry.path) } else { None };
            // Git takes a size of 0 for "look at the bytes" unless the content is empty, and files
            // of a multiple of 4 GiB have that size here: they are looked at.
            match pair.filter(|pair| pair.source == entry.stat) {
                Some(pair) if pair.source.size == pair.copy.size => {
                    entry.stat = pair.copy;
                    settled += 1;
                }
                _ => entry.stat = Stat::default(),
            }
        }
        settled
    }
}
