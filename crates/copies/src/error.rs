//! Why work on copies failed.

use std::io;
use std::path::{Path, PathBuf};

use stead_core::id::{Digest, SlotName, TaskId};
use stead_files::{FolderError, LockError, ManifestError, RelPath, TreeError};
use stead_git::GitError;
use stead_store::StoreError;

/// Why work on copies failed, other than by a refusal.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The system refused one act.
    #[error("cannot {act} {}: {source}", path.display())]
    System {
        /// What was tried: `read`, `create`, `rename`, ….
        act: &'static str,
        /// What it was tried for.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A tree could not be walked, captured, copied or removed; or the work was cancelled.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Git gave no answer.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A blob could not be stored or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A lock could not be tried.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// One of stead's own folders is not private.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Entries that make no manifest.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A layout file that cannot be read as one.
    #[error("the layout file {}: {reason}", path.display())]
    Layout {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A base, snapshot or file content that is gone, damaged or from a newer program.
    #[error("the blob {digest}: {reason}")]
    Blob {
        /// Its name.
        digest: Digest,
        /// What is wrong with it.
        reason: String,
    },
    /// The content of a file of a base or snapshot is in neither the blobs nor Git.
    #[error("the content of {path} is gone{}", digest.map(|d| format!(" ({d})")).unwrap_or_default())]
    Content {
        /// The file.
        path: RelPath,
        /// Its content's digest, if it is a file that has one.
        digest: Option<Digest>,
    },
    /// No slot of that name in the layout.
    #[error("there is no slot {slot}; the task has {}", slots.iter().map(SlotName::as_str).collect::<Vec<_>>().join(", "))]
    UnknownSlot {
        /// What was asked for.
        slot: SlotName,
        /// Those that there are.
        slots: Vec<SlotName>,
    },
    /// A record of the trash that cannot be written.
    #[error("the record {}: {reason}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The machine stopped, or the disk failed, before a task's copies were on it.
    #[error("the copies of task {task} were cut off: the machine stopped before the disk had them")]
    CutOff {
        /// The task.
        task: TaskId,
    },
    /// Somebody holds a lock that had to be waited for too long.
    #[error("{} is locked by {holder}", path.display())]
    Busy {
        /// The lock's file.
        path: PathBuf,
        /// Who said last that they hold it.
        holder: String,
    },
}

impl CopyError {
    /// What helps, where a command does.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::CutOff { task } => Some(format!(
                "the originals have everything that was copied: `stead task discard {task}`, and \
                 begin it again"
            )),
            _ => None,
        }
    }

    pub(crate) fn system(act: &'static str, path: &Path, source: io::Error) -> Self {
        Self::System { act, path: path.to_owned(), source }
    }
}

/// Makes a [`CopyError::System`] of the system's reason.
pub(crate) fn failed(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CopyError {
    let path = path.to_owned();
    move |source| CopyError::System { act, path, source }
}
