//! What the log holds: envelopes around versioned events.
//!
//! An event is of the *world* (a rewind never forgets it) or of a *branch* (a rewind leaves it
//! behind). The two are two types, so that the fold of the world cannot read branch state.

mod branch;
mod stored;
mod world;

use serde::{Deserialize, Serialize};

use crate::id::{BodyRef, Label, Position, RequestId, SessionId, Timestamp};
use crate::layout::{AbsoluteDir, Placement, Root, RootIdentity};
use crate::lineage::Forked;
use crate::path::AgentPath;
use crate::permission::Mode;
use crate::usage::Reports;

pub use branch::{BranchEvent, Frozen};
pub use stored::{EVENT_VERSION, StoredEvent, Unreadable};
pub use world::WorldEvent;

/// One stream of a root session's log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// Roster, mail, tasks, permissions: one a root session.
    Control,
    /// One agent's conversation.
    Conversation(SessionId),
}

/// An event in its place in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The stream it stands in.
    pub stream: Stream,
    /// Its number within the stream, from 1, without gaps.
    pub seq: u64,
    /// Its number within the root session, from 1, without gaps.
    pub position: Position,
    /// When it was decided.
    pub at: Timestamp,
    /// The request that it answers, on the first event of that request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestId>,
    /// What happened.
    pub event: Event,
}

/// What happened, by scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// Holds whatever branch the session is on.
    World(WorldEvent),
    /// Holds on the branch it was decided on.
    Branch(BranchEvent),
}

/// What is frozen about how an agent's turns are run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverSpec {
    /// The kind of driver: `playbook`, later `model` and `acp`.
    pub kind: String,
    /// What people see: the playbook's file name, the model's or the agent's name.
    pub name: String,
    /// What the driver was configured with, when it must outlive the file it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<BodyRef>,
    /// What it says of what its answers use.
    #[serde(default, skip_serializing_if = "Reports::is_nothing")]
    pub reports: Reports,
}

/// A worktree outside the session's roots in which an agent works: what is compared before each
/// of its turns (A12.4, A12.9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// The top of the worktree.
    pub top: AbsoluteDir,
    /// What the top was.
    pub identity: RootIdentity,
    /// The repository's common Git directory.
    pub common: AbsoluteDir,
    /// What that was.
    pub common_identity: RootIdentity,
}

/// The first event of every root session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStarted {
    /// The root session's id, which is the id of `/root` as well.
    pub session: SessionId,
    /// A person's label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// The working roots; the first is the primary.
    pub roots: Vec<Root>,
    /// Where its agents work.
    pub placement: Placement,
    /// How many agents besides `/root` may be active at once.
    pub capacity: u16,
    /// How much is asked.
    pub mode: Mode,
    /// Whether the plan ceiling is on.
    pub plan_ceiling: bool,
    /// What it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<Forked>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The agent said it is done.
    Completed,
    /// A provider, a tool or a limit ended it.
    Errored,
    /// A person, an agent or a crash ended it.
    Interrupted,
}

/// What sort of mail a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum MailKind {
    /// From agent to agent.
    Mail,
    /// A turn's result to the spawn parent.
    Result,
    /// From the person.
    User,
    /// A finished background shell.
    Execution,
    /// What stead adds to a turn: of a hook, or a reminder. It never waits in a mailbox.
    Note,
}

/// Who sent or wrote something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sender {
    /// The person who owns the session.
    Person,
    /// An agent.
    Agent(AgentPath),
    /// stead itself.
    Stead,
}

/// What is known of a call without a result. *Unknown* is never called *failed*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallFate {
    /// It was not started; calling again is safe.
    NotStarted,
    /// It was started or may have been; what it did must be looked up.
    Unknown,
}
