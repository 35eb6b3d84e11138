//! What faces get.

use serde::{Deserialize, Serialize};
use stead_core::event::{Outcome, Sender};
use stead_core::id::{
    CallId, Label, PermissionId, Position, RoleName, RootId, SessionId, Timestamp, TurnId,
};
use stead_core::layout::{AbsoluteDir, Placement, Root};
use stead_core::mail::Receipt;
use stead_core::path::AgentPath;
use stead_core::permission::{Mode, Request};
use stead_core::task::Task;

use super::copies::DelegatedView;

/// Who serves a home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineResponse {
    /// The API's version.
    pub protocol: u32,
    /// The program's version.
    pub version: String,
    /// The build: a digest of the program's sources.
    pub build: String,
    /// The engine's process.
    pub pid: u32,
    /// Sessions with a running turn.
    pub busy: Vec<SessionId>,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionView {
    /// Its id.
    pub session: SessionId,
    /// Its label.
    pub label: Option<Label>,
    /// Its primary root.
    pub directory: AbsoluteDir,
    /// When it started.
    pub started: Timestamp,
    /// When its newest event was decided.
    pub newest: Timestamp,
    /// How many events it has.
    pub events: Position,
    /// How many of its agents are at work.
    pub active: usize,
}

/// What one agent is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// Reserved, not published.
    Preparing,
    /// A turn runs.
    Running,
    /// Its turn waits for mail.
    Waiting,
    /// Its turn waits for the person's leave.
    PermissionBlocked,
    /// No turn runs.
    Idle,
}

/// One agent in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentView {
    /// Its address.
    pub path: AgentPath,
    /// Its id.
    pub agent: SessionId,
    /// Its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleName>,
    /// What it is doing.
    pub activity: Activity,
    /// Its running turn.
    pub turn: Option<TurnId>,
    /// When that turn began; not known of one that began before its engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// How many turns it began.
    pub turns: u32,
    /// How its last turn ended.
    pub outcome: Option<Outcome>,
    /// Why its last turn did not complete.
    pub reason: Option<String>,
    /// How many unread mails it has.
    pub unread: usize,
    /// Its directory.
    pub directory: AbsoluteDir,
    /// What runs its turns.
    pub driver: String,
    /// Its open tasks.
    pub open_tasks: usize,
    /// The note about its work.
    pub note: Option<String>,
}

/// A session as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeResponse {
    /// Its id.
    pub session: SessionId,
    /// Its label.
    pub label: Option<Label>,
    /// Its roots.
    pub roots: Vec<Root>,
    /// Where its agents work.
    pub placement: Placement,
    /// How much is asked.
    pub mode: Mode,
    /// Whether the plan ceiling is on.
    pub plan_ceiling: bool,
    /// How many agents may be active.
    pub capacity: u16,
    /// The position of its newest event.
    pub tip: Position,
    /// Its agents in the order of their paths.
    pub agents: Vec<AgentView>,
    /// The open permission requests, oldest first.
    pub permissions: Vec<Request>,
}

/// The task list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TasksResponse {
    /// The tasks by number.
    pub tasks: Vec<Task>,
    /// Those that have an agent of their own, also where a rewind left the task behind.
    #[serde(default)]
    pub delegated: Vec<DelegatedView>,
    /// The notes by owner.
    pub notes: Vec<(String, String)>,
}

/// A session was started, or had been by the same request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartResponse {
    /// Its id.
    pub session: SessionId,
    /// The position of its first event's batch end.
    pub tip: Position,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendResponse {
    /// The receipt.
    pub receipt: Receipt,
}

/// What the interrupted agent was doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptResponse {
    /// Its address.
    pub path: AgentPath,
    /// What it was doing; idle: nothing was changed.
    pub was: Activity,
}

/// The result of an agent's last turn, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultResponse {
    /// Its address.
    pub path: AgentPath,
    /// How the turn ended.
    pub outcome: Outcome,
    /// Why it did not complete.
    pub reason: Option<String>,
    /// The text.
    pub text: String,
}

/// One line of a stream of events, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Notification {
    /// A durable event with its texts.
    Event(Box<EventNotification>),
    /// An agent began or ended waiting; not stored.
    Activity {
        /// Whose.
        path: AgentPath,
        /// What it does now.
        activity: Activity,
    },
    /// How far the copies of a reserved agent are; not stored.
    Copying {
        /// Whose.
        path: AgentPath,
        /// Files copied so far.
        files: u64,
        /// Bytes of them.
        bytes: u64,
        /// Files and bytes there will be, where that is known.
        of: Option<(u64, u64)>,
    },
    /// Everything stored so far was sent; what follows is live.
    CaughtUp {
        /// The newest position.
        tip: Position,
    },
    /// The stream cannot go on.
    Failed {
        /// Why.
        line: String,
    },
}

/// A durable event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventNotification {
    /// Its place in the session.
    pub position: Position,
    /// When it was decided.
    pub at: Timestamp,
    /// The stream's agent; none: the control stream.
    pub conversation: Option<AgentPath>,
    /// Its kind.
    pub kind: String,
    /// Its body as stored.
    pub body: serde_json::Value,
    /// The text it refers to: what was said, a mail, a result; cut to 4,096 characters.
    pub text: Option<String>,
    /// The calls in what was said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallView>,
    /// Whether the call that has its result here was refused or failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Who sent or wrote it.
    pub by: Option<Sender>,
}

/// How much is asked now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeResponse {
    /// The mode.
    pub mode: Mode,
    /// Whether the plan ceiling is on.
    pub plan_ceiling: bool,
}

/// A registered working root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootView {
    /// Its id.
    pub id: RootId,
    /// How layouts name it.
    pub uri: String,
    /// Where it is.
    pub directory: AbsoluteDir,
    /// Whether the folder there is the one that was registered.
    pub state: RootState,
}

/// Whether a registered folder is what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RootState {
    /// It is.
    Same,
    /// Another folder is there.
    Changed,
    /// No folder is there.
    Gone,
}

/// A call of a tool, as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallView {
    /// Its id.
    pub id: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments, every text in them cut to 1,024 characters.
    pub arguments: serde_json::Value,
}

/// An open permission request was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermitResponse {
    /// Which.
    pub id: PermissionId,
}
