//! What a journal says of an apply.

use serde::{Deserialize, Serialize};
use stead_core::id::{Digest, RequestId, RootId, SessionId, SlotName, TaskId};
use stead_core::layout::{AbsoluteDir, RootIdentity};
use stead_files::RelPath;

use crate::changes::State;

/// The form that this program writes.
pub(crate) const VERSION: u32 = 1;

/// What a journal says first: enough to tell a person whose apply it is, without its paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The form of the journal.
    pub version: u32,
    /// The apply.
    pub apply: RequestId,
    /// The root session.
    pub session: SessionId,
    /// The task.
    pub task: TaskId,
    /// The slot.
    pub slot: SlotName,
    /// The root that is written.
    pub root: RootId,
    /// Where it is.
    pub source: AbsoluteDir,
    /// What it is.
    pub identity: RootIdentity,
    /// The snapshot that is applied.
    pub snapshot: Digest,
    /// The digest of the review that it was applied under.
    pub review: Digest,
    /// The folder of the destination's index, where `index.lock` is held; none for a plain folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<AbsoluteDir>,
    /// How many paths follow.
    pub paths: u64,
    /// The digest of what follows this line.
    pub rest: Digest,
    /// How it was finished without its outcome being recorded; the engine appends that later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Finished>,
}

/// How a journal was finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "finished", rename_all = "kebab-case")]
pub enum Finished {
    /// The old tree is back: the outcome is *rolled back*.
    Back,
    /// The new tree is there: the outcome is *applied*.
    Forward,
    /// Some paths are neither the old nor the new: the outcome is *recovery needed*.
    Neither {
        /// What was kept.
        rescue: Rescue,
    },
}

/// What a person changed while an apply wrote, and what was kept for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rescue {
    /// Paths that are as the person left them, in the order of paths.
    pub paths: Vec<RelPath>,
    /// The folder in the home with the files that stead had beside those paths, by the same names;
    /// none when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<AbsoluteDir>,
}

/// One path of an apply: the old state, the new one, and where the other of the two waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) path: RelPath,
    pub(crate) old: Option<State>,
    pub(crate) new: Option<State>,
    /// Where the new one is staged before it is put in place, and the old one is kept after that.
    pub(crate) beside: RelPath,
}

impl Step {
    /// Whether a new file or link is made beside the target: for every one but a file of which only
    /// the mode changes.
    pub(crate) fn is_staged(&self) -> bool {
        let new = self.new.as_ref().filter(|new| new.is_leaf());
        new.is_some_and(|new| !self.old.as_ref().is_some_and(|old| old.has_bytes_of(new)))
    }

    /// Whether a name comes, goes or stands for something else; if not, only a mode changes.
    pub(crate) fn changes_name(&self) -> bool {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => {
                !(old.is_folder() && new.is_folder() || old.has_bytes_of(new))
            }
            _ => true,
        }
    }
}
