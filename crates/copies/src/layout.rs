//! The layout file: stead's record beside a task's copies.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
pub use stead_core::delegated::Checkout;
use stead_core::id::{Digest, RootId, SessionId, SlotName, TaskId, Timestamp};
use stead_core::layout::{AbsoluteDir, Access, RootIdentity};
use stead_git::{Git, Head, Repository};

use crate::error::CopyError;
use crate::flush::{Reached, reached};
use crate::home::Home;

/// The name of the layout file in a task's folder; no slot can have it.
pub(crate) const LAYOUT_FILE: &str = "layout.json";

/// The form that this program writes and the newest that it reads.
pub(crate) const LAYOUT_VERSION: u32 = 1;

/// What a task may use: its copies, and where each came from. Written once, at admission; what
/// changes later (the base, after an apply) is in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// The form of this file.
    pub version: u32,
    /// The root session that owns it.
    pub session: SessionId,
    /// The task.
    pub task: TaskId,
    /// When the copies were complete.
    pub admitted: Timestamp,
    /// The slot whose copy is the agent's directory.
    pub primary: SlotName,
    /// The slots, in the order in which they were given.
    pub slots: Vec<Slot>,
}

/// One slot of a layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Its name, and the name of the copy's folder.
    pub slot: SlotName,
    /// The root it is a copy of.
    pub root: RootId,
    /// What the task may do in it.
    pub access: Access,
    /// The original, canonical.
    pub source: AbsoluteDir,
    /// What the original was at admission.
    pub identity: RootIdentity,
    /// What sort of folder it is.
    pub kind: RootKind,
    /// The base at admission: the blob of its encoded form.
    pub base: Digest,
}

/// What sort of folder a root is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RootKind {
    /// A folder without a repository of its own.
    Plain,
    /// The top level of a Git work tree.
    Git {
        /// The Git directory that the work trees share, in the original.
        common_directory: PathBuf,
        /// What was checked out.
        checkout: Checkout,
    },
}

impl Slot {
    /// The same slot of the folder that the person bound its root to since (`stead roots rebind`).
    ///
    /// # Errors
    /// Git's, when it cannot say which repository the folder is the top of.
    pub fn bound_to(
        self,
        git: &Git,
        directory: &AbsoluteDir,
        identity: RootIdentity,
    ) -> Result<Self, CopyError> {
        if self.source == *directory && self.identity == identity {
            return Ok(self);
        }
        let kind = match self.kind {
            RootKind::Git { common_directory, checkout } => {
                let found = Repository::discover(git, directory.as_path())?;
                let found = found.map_or(common_directory, |found| found.common_directory);
                RootKind::Git { common_directory: found, checkout }
            }
            RootKind::Plain => RootKind::Plain,
        };
        Ok(Self { source: directory.clone(), identity, kind, ..self })
    }
}

/// What a work tree has checked out. A branch whose name is no text is told apart by its bytes.
pub fn checked_out(head: &Head) -> Checkout {
    match head {
        Head::Branch { name, .. } => Checkout::Branch(match name.to_str() {
            Some(name) => name.to_owned(),
            None => name.as_encoded_bytes().escape_ascii().to_string(),
        }),
        Head::Detached(commit) => Checkout::Detached(commit.to_string()),
    }
}

impl Layout {
    /// The layout of a task whose copies can be used; none where it has no copies.
    ///
    /// # Errors
    /// [`CopyError::Layout`] when the file is there and cannot be read as one: damaged, or from a
    /// newer program. [`CopyError::CutOff`] when the copies never reached the disk.
    pub fn load(home: &Home, session: &SessionId, task: TaskId) -> Result<Option<Self>, CopyError> {
        let folder = home.task(session, task);
        if reached(&folder)? == Reached::Nothing {
            return Err(CopyError::CutOff { task });
        }
        Self::load_from(&folder)
    }

    /// The layout beside the copies in `folder`, whatever the disk has of them.
    pub(crate) fn load_from(folder: &Path) -> Result<Option<Self>, CopyError> {
        let path = folder.join(LAYOUT_FILE);
        let bytes = match stead_files::read_file(&path) {
            Ok(bytes) => bytes,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(CopyError::system("read", &path, error)),
        };
        let refused = |reason: String| CopyError::Layout { path: path.clone(), reason };
        // The version first: what a newer program added is no reason to call the file damaged.
        let form: Form = serde_json::from_slice(&bytes).map_err(|e| refused(e.to_string()))?;
        if form.version > LAYOUT_VERSION {
            return Err(refused(format!("it has version {}", form.version)));
        }
        serde_json::from_slice(&bytes).map(Some).map_err(|e| refused(e.to_string()))
    }

    /// The slot of that name.
    pub fn slot(&self, name: &SlotName) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.slot == *name)
    }
}

#[derive(Deserialize)]
struct Form {
    version: u32,
}
