//! Review, apply and discard on the wire.

use serde::{Deserialize, Serialize};
use stead_core::delegated::{ApplyOutcome, Checkout};
use stead_core::event::Outcome;
use stead_core::id::{Digest, SlotName, TaskId};
use stead_core::layout::{AbsoluteDir, Access};
use stead_core::path::AgentPath;
use stead_files::RelPath;

/// A task with an agent of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegatedView {
    /// Its number.
    pub task: TaskId,
    /// The agent that works on it.
    pub owner: AgentPath,
    /// One line.
    pub title: String,
    /// Whether its copies are complete.
    pub admitted: bool,
    /// How its agent's last turn ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Outcome>,
    /// Its slots, the primary first.
    pub slots: Vec<SlotView>,
    /// What admission said of its copies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One slot of a delegated task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotView {
    /// Its name.
    pub slot: SlotName,
    /// What the task may do in it.
    pub access: Access,
    /// The original.
    pub original: AbsoluteDir,
    /// The private copy; none before admission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<AbsoluteDir>,
    /// How far it is on its way into the original.
    pub state: CopyState,
    /// What was shown last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Digest>,
    /// How the last apply ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ApplyOutcome>,
}

/// How far a copy is on its way into the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyState {
    /// Its copies are being made.
    Preparing,
    /// It was not reviewed since it was made or applied.
    NotReviewed,
    /// A snapshot was shown and can be applied.
    Reviewed,
    /// An apply is under way, or its outcome is not known yet.
    Applying,
    /// The snapshot shown last was applied.
    Applied,
    /// It is in the trash.
    Discarded,
}

/// Which copy to freeze and show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewParams {
    /// Which copy.
    pub slot: SlotName,
    /// The most lines of the diff that are wanted; none: all.
    #[serde(default)]
    pub most_lines: Option<usize>,
}

/// A frozen snapshot against its base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewResponse {
    /// The task.
    pub task: TaskId,
    /// The slot.
    pub slot: SlotName,
    /// The private copy, as people see its path.
    pub copy: String,
    /// Where an apply would write.
    pub destination: AbsoluteDir,
    /// Whether it may.
    pub access: Access,
    /// The snapshot's name.
    pub snapshot: Digest,
    /// What the original has checked out.
    pub checkout: Option<Checkout>,
    /// Every eligible change, in the order of paths.
    pub changes: Vec<ChangeView>,
    /// What no apply can bring: with any of it every apply is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub barred: Vec<BarredView>,
    /// A headline for every change and a unified diff of each text file, as text for people.
    pub diff: String,
    /// Whether some of it was left out.
    pub cut: bool,
    /// What else differs and is never applied: topmost folder and number of files.
    pub beside: Vec<(String, u64)>,
    /// Of these, the folders that became repositories of their own in the copy: what the original
    /// has there stays as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<String>,
    /// How many commits were made in the copy; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits: Option<u64>,
}

/// One eligible change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeView {
    /// Where, below the root: text, or the digits of its bytes where they are no UTF-8.
    pub path: RelPath,
    /// What becomes of it, in one line.
    pub what: String,
}

/// One change that no apply can bring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BarredView {
    /// Where, below the root.
    pub path: RelPath,
    /// Why not, in one line.
    pub why: String,
}

/// Which copy to apply or to give up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyParams {
    /// Which copy.
    pub slot: SlotName,
}

/// How an apply ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyResponse {
    /// The task.
    pub task: TaskId,
    /// The slot.
    pub slot: SlotName,
    /// Where it wrote.
    pub destination: AbsoluteDir,
    /// How.
    pub outcome: ApplyOutcome,
    /// Whether it had ended so before, and nothing was done now.
    pub before: bool,
}

/// Which copies to give up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiscardParams {
    /// Which copy; none: all of the task.
    #[serde(default)]
    pub slot: Option<SlotName>,
}

/// What was given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscardResponse {
    /// The task.
    pub task: TaskId,
    /// The slots whose copies are in the trash now.
    pub slots: Vec<SlotName>,
    /// The slots whose copies somebody had removed before.
    #[serde(default)]
    pub gone: Vec<SlotName>,
}

/// Where a registered root is from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RebindParams {
    /// The folder.
    pub directory: AbsoluteDir,
}
