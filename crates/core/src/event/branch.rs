//! What holds on the branch it was decided on.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{CallFate, DriverSpec, MailKind, Outcome, Sender, Worktree};
use crate::budget::Budget;
use crate::id::{
    BodyRef, CallId, MailId, PermissionId, RoleName, SessionId, TaskId, Timestamp, TurnId,
};
use crate::layout::AbsoluteDir;
use crate::path::AgentPath;
use crate::permission::{Answer, Grant};
use crate::rule::Rule;
use crate::shell::{ShellFate, ShellId};
use crate::task::{Owner, Task};
use crate::usage::Usage;

/// What is frozen about an agent at its spawn besides its driver and directory; every field is
/// optional in the stored form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Frozen {
    /// Its profile, as [`crate::profile::Profile`] is stored; none: nothing was configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<BodyRef>,
    /// The rules of its role.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// What it and its descendants may use.
    #[serde(skip_serializing_if = "Budget::is_none")]
    pub budget: Budget,
    /// What it was given of its parent's conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<BodyRef>,
    /// The worktree outside the session's roots in which it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
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
        /// The whole first assignment; none: it is published idle and waits to be told something.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<BodyRef>,
        /// The spawning call, for idempotence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The task whose layout it works in; none: in the session's roots.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        /// What it was frozen with besides.
        #[serde(flatten)]
        frozen: Box<Frozen>,
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
        /// What hooks had noted for it: it is heard in this turn and waits no longer.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        context: Vec<BodyRef>,
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
        /// When it did its last work, where it did not work until this event: after a crash.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worked_until: Option<Timestamp>,
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
    /// A hook added something that the agent hears with the next task it accepts.
    HookNoted {
        /// Whose.
        path: AgentPath,
        /// What it added.
        context: BodyRef,
    },
    /// The stop hooks of a turn have been started; they are not started for it again.
    StopNoted {
        /// Whose.
        path: AgentPath,
        /// Which turn.
        turn: TurnId,
    },
    /// A background shell runs.
    ShellStarted {
        /// Its owner.
        path: AgentPath,
        /// The turn that started it.
        turn: TurnId,
        /// Its number among its owner's shells.
        shell: ShellId,
        /// The command, on one line.
        command: String,
    },
    /// A background shell ended, once.
    ShellEnded {
        /// Its owner.
        path: AgentPath,
        /// Which.
        shell: ShellId,
        /// How.
        fate: ShellFate,
    },
    /// What a driver keeps for an agent's next turn, such as another maker's session id. It is of
    /// this driver and this agent only.
    DriverNoted {
        /// Whose.
        path: AgentPath,
        /// What it keeps.
        body: BodyRef,
    },
    /// A tool of a turn wrote a file in place, where no copy keeps what was before.
    FileChanged {
        /// Whose turn.
        path: AgentPath,
        /// Which.
        turn: TurnId,
        /// The file, by its absolute path.
        file: AbsoluteDir,
        /// What it held; none: it was not there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<BodyRef>,
        /// What it holds; none: it was removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<BodyRef>,
    },
    /// `/root` was reminded of open tasks that nobody has written for some time.
    Reminded {
        /// Which.
        tasks: BTreeSet<TaskId>,
    },
    /// Conversation: what was heard and said up to `through` is one summary for the model from now
    /// on. The events stay in the log.
    Compacted {
        /// In which turn.
        turn: TurnId,
        /// The `seq` in this stream of the last event that the summary stands for.
        through: u64,
        /// The summary.
        summary: BodyRef,
        /// What the model used for it; none: nobody knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
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
        /// What the model used for it; none: nobody knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
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
