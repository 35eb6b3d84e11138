//! What the log holds: envelopes around versioned events.
//!
//! An event is of the *world* (a rewind never forgets it) or of a *branch* (a rewind leaves it
//! behind). The two are two types, so that the fold of the world cannot read branch state.

mod stored;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::delegated::{AdmittedCopy, ApplyOutcome, Review};
use crate::id::{
    ApplyId, BodyRef, CallId, Digest, Label, MailId, PermissionId, Position, RequestId, RoleName,
    SessionId, SlotName, TaskId, Timestamp, TurnId,
};
use crate::layout::{AbsoluteDir, Placement, Root};
use crate::path::AgentPath;
use crate::permission::{Answer, Grant, Mode};
use crate::task::{Owner, Task};

pub use stored::{EVENT_VERSION, StoredEvent, Unreadable};

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
}

/// Events that hold on every branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "body", rename_all = "kebab-case")]
pub enum WorldEvent {
    /// The session began.
    SessionStarted(SessionStarted),
    /// Task numbers up to this one are used, for ever.
    TasksNumbered {
        /// The highest number used.
        last: TaskId,
    },
    /// The person chose how much is asked.
    ModeSet {
        /// The mode.
        mode: Mode,
        /// Whether the plan ceiling is on.
        plan_ceiling: bool,
    },
    /// The person allowed something for the whole session.
    Granted {
        /// What was allowed.
        grant: Grant,
    },
    /// A delegated task's number is taken and what it needs is being made; nobody sees it yet.
    TaskReserved {
        /// Its number.
        task: TaskId,
        /// The agent that will work on it.
        owner: AgentPath,
        /// One line.
        title: String,
        /// The tasks that must be completed first.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        blocked_by: BTreeSet<TaskId>,
        /// What it is given, the primary first; none: it works in the session's roots.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        roots: Vec<Root>,
    },
    /// The copies are complete, all of them.
    TaskAdmitted {
        /// Which task.
        task: TaskId,
        /// Its copies, in the order of its roots.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        copies: Vec<AdmittedCopy>,
        /// What the person and the agent should know of them: what was left out, what is carried
        /// and not reviewed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// The task will not be; nothing of it remains but its number.
    TaskRefused {
        /// Which.
        task: TaskId,
        /// Why.
        reason: String,
    },
    /// A turn of the agent that works on the task ended.
    TaskSettled {
        /// Which.
        task: TaskId,
        /// How.
        outcome: Outcome,
    },
    /// The person was shown a frozen snapshot of a copy.
    CopyReviewed {
        /// Which task.
        task: TaskId,
        /// Which of its copies.
        slot: SlotName,
        /// What was shown.
        review: Review,
    },
    /// A reviewed snapshot is being applied; until its end the outcome is unknown. The apply's id
    /// is this event's position.
    ApplyBegun {
        /// Which task.
        task: TaskId,
        /// Which of its copies.
        slot: SlotName,
        /// Which snapshot.
        snapshot: Digest,
    },
    /// An apply ended, once.
    ApplyEnded {
        /// Which task.
        task: TaskId,
        /// Which of its copies.
        slot: SlotName,
        /// Which apply.
        apply: ApplyId,
        /// Which snapshot.
        snapshot: Digest,
        /// How.
        outcome: ApplyOutcome,
    },
    /// A copy was moved to the trash, by the person.
    CopyDiscarded {
        /// Which task.
        task: TaskId,
        /// Which of its copies.
        slot: SlotName,
    },
    /// The branch goes on from `to`; what came after it is left behind.
    Rewound {
        /// The position that the next branch event follows.
        to: Position,
    },
}

/// Events that hold on the branch they were decided on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "body", rename_all = "kebab-case")]
pub enum BranchEvent {
    /// A path and a slot of capacity are taken; nobody sees the agent yet.
    AgentReserved {
        /// The agent's id, which is its session's id.
        agent: SessionId,
        /// Its path.
        path: AgentPath,
        /// Its role.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<RoleName>,
        /// How its turns are run, frozen.
        driver: DriverSpec,
        /// Its directory, canonical, frozen.
        directory: AbsoluteDir,
        /// The whole first assignment.
        message: BodyRef,
        /// The spawning call, for idempotence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The task whose layout it works in; none: in the session's roots.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
    },
    /// The reserved agent exists from now on; its path is never free again on this branch.
    AgentPublished {
        /// Its path.
        path: AgentPath,
        /// Its directory, where admission set it: the copy of the primary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        directory: Option<AbsoluteDir>,
    },
    /// The reservation is dropped; path and slot are free.
    AgentRefused {
        /// The path that was reserved.
        path: AgentPath,
        /// Why.
        reason: String,
    },
    /// A turn began; its id is this event's position.
    TurnStarted {
        /// Whose.
        path: AgentPath,
    },
    /// A turn ended, once.
    TurnSettled {
        /// Whose.
        path: AgentPath,
        /// Which.
        turn: TurnId,
        /// How.
        outcome: Outcome,
        /// The whole result, or the useful part of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<BodyRef>,
        /// Why it did not complete; who interrupted it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Mail is stored for an agent; its id is this event's position.
    MailStored {
        /// What sort of mail.
        kind: MailKind,
        /// Who sent it.
        from: Sender,
        /// The recipient.
        to: AgentPath,
        /// The text.
        body: BodyRef,
        /// Whether it asks for a turn.
        wake: bool,
    },
    /// The mail now stands in the recipient's conversation and left the queue.
    MailDelivered {
        /// The recipient.
        to: AgentPath,
        /// Which, in order.
        mail: Vec<MailId>,
    },
    /// Tasks were written, each whole.
    TasksWritten {
        /// Who wrote them.
        by: Sender,
        /// The tasks as they are now.
        tasks: Vec<Task>,
    },
    /// The short status note of an owner changed.
    NoteSet {
        /// Whose tasks it speaks of.
        owner: Owner,
        /// The note; none clears it.
        note: Option<String>,
    },
    /// A turn waits for the person's leave; the request's id is this event's position.
    PermissionAsked {
        /// Whose turn.
        path: AgentPath,
        /// Which turn.
        turn: TurnId,
        /// What would be allowed.
        grant: Grant,
        /// One line for the person.
        subject: String,
    },
    /// A permission request left the queue.
    PermissionSettled {
        /// Which.
        id: PermissionId,
        /// How.
        answer: Answer,
    },
    /// Conversation: the agent heard something.
    Heard {
        /// In which turn.
        turn: TurnId,
        /// From whom.
        from: Sender,
        /// The mail it came as; none for the assignment that came with the spawn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mail: Option<MailId>,
        /// What sort of mail.
        sort: MailKind,
        /// The text.
        body: BodyRef,
    },
    /// Conversation: the agent said something and perhaps called tools.
    Said {
        /// In which turn.
        turn: TurnId,
        /// The message, as the model crate stores it.
        body: BodyRef,
        /// The calls in it, in the order in which they are run.
        calls: Vec<CallId>,
    },
    /// Conversation: a call has its result.
    Answered {
        /// In which turn.
        turn: TurnId,
        /// Which call.
        call: CallId,
        /// The result, as the model crate stores it.
        body: BodyRef,
    },
    /// Conversation: a call will never have a result.
    Unanswered {
        /// In which turn.
        turn: TurnId,
        /// Which call.
        call: CallId,
        /// What is known of it.
        fate: CallFate,
    },
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
