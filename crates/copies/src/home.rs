//! Where in stead's home copies and what belongs to them are kept.

use std::path::{Path, PathBuf};

use stead_core::id::{RootId, SessionId, SlotName, TaskId};
use stead_store::Blobs;

/// A home, as far as copies are concerned. Makes nothing by itself.
///
/// No name that stead gives here can be a slot's: those begin with a letter or a digit, and
/// stead's own files in a task's folder with a dot. So no slot name is reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// The home at `path`, absolute.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The home itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Every root's depot.
    pub fn depots(&self) -> PathBuf {
        self.0.join("objects")
    }

    /// The depot of one root: a bare repository without refs, whose object files its copies' Git
    /// directories borrow from.
    pub fn depot(&self, root: &RootId) -> PathBuf {
        self.depots().join(root.as_str())
    }

    /// The tasks' folders, by session.
    pub fn copies(&self) -> PathBuf {
        self.0.join("copies")
    }

    /// The folder of one task: the layout file, and one copy for each slot.
    pub fn task(&self, session: &SessionId, task: TaskId) -> PathBuf {
        self.copies().join(session.as_str()).join(task.to_string())
    }

    /// The private copy of one slot.
    pub fn copy(&self, session: &SessionId, task: TaskId, slot: &SlotName) -> PathBuf {
        self.task(session, task).join(slot.as_str())
    }

    /// Where copies are made before they are renamed to their task's folder as a whole.
    pub fn staging(&self) -> PathBuf {
        self.copies().join(".staging")
    }

    /// What was removed but could be wanted back.
    pub fn trash(&self) -> PathBuf {
        self.0.join("trash")
    }

    /// Journals and locks of applies, by root.
    pub fn applies(&self) -> PathBuf {
        self.0.join("applies")
    }

    /// What applies that were cut short or edited meanwhile left for a person.
    pub fn rescued(&self) -> PathBuf {
        self.applies().join("rescue")
    }

    /// File contents and manifests of bases and snapshots, by digest.
    pub fn blobs(&self) -> Blobs {
        Blobs::of(&self.0)
    }
}
