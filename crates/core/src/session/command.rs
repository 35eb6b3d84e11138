//! What may be asked of a root session, and what comes of it.

use std::collections::BTreeSet;

use super::fork::Taken;
use crate::delegated::{Admission, ApplyOutcome, Review};
use crate::event::{DriverSpec, Event, Frozen, Outcome, SessionStarted, Stream};
use crate::id::{
    ApplyId, BodyRef, CallId, Digest, Label, PermissionId, Position, RoleName, SessionId, SlotName,
    TaskId, TurnId,
};
use crate::layout::{AbsoluteDir, Root};
use crate::lineage::Dropped;
use crate::mail::Receipt;
use crate::path::AgentPath;
use crate::permission::{Answer, Deed, Grant, Mode, Zone};
use crate::rule::{Bucket, Rule};
use crate::shell::{ShellFate, ShellId};
use crate::task::{Owner, TaskChange};
use crate::usage::Usage;

/// A command. Time, ids and what the world looks like come with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Begin the session and `/root`'s first turn.
    Start {
        /// The facts of the session.
        started: SessionStarted,
        /// How `/root`'s turns are run.
        driver: DriverSpec,
        /// `/root`'s directory.
        directory: AbsoluteDir,
        /// The person's message; none: `/root` waits for one.
        message: Option<BodyRef>,
        /// The title of task 1, where `/root` gets private copies.
        title: String,
        /// What else of `/root` is frozen; its budget is that of the whole session.
        frozen: Box<Frozen>,
        /// What hooks added for its first turn, where that begins at once: in place. In private
        /// copies hooks run as everybody's do, before the publication.
        notes: Vec<BodyRef>,
    },
    /// Begin a session with what was taken of another.
    Fork {
        /// The new session's id.
        session: SessionId,
        /// Its label.
        label: Option<Label>,
        /// What was taken.
        taken: Box<Taken>,
    },
    /// Take a path and a slot for a new agent below `caller`.
    Reserve {
        /// The spawning agent.
        caller: AgentPath,
        /// The new agent's id.
        agent: SessionId,
        /// The spawning call.
        call: Option<CallId>,
        /// The free-form name.
        task_name: String,
        /// Its role.
        role: Option<RoleName>,
        /// The whole assignment.
        message: BodyRef,
        /// Its directory, already judged; none: the caller's.
        directory: Option<AbsoluteDir>,
        /// How its turns are run; none: as the caller's.
        driver: Option<DriverSpec>,
        /// What else is frozen; without a profile it has the caller's.
        frozen: Box<Frozen>,
    },
    /// Take a number, a path and a slot of capacity for a task with an agent of its own.
    Propose {
        /// The proposing agent.
        caller: AgentPath,
        /// The new agent's id.
        agent: SessionId,
        /// The proposing call.
        call: CallId,
        /// One line; the agent's path comes from it.
        title: String,
        /// Its role.
        role: Option<RoleName>,
        /// The whole assignment.
        message: BodyRef,
        /// What it is given, the primary first, already looked at; none: all of the session's
        /// roots, in private copies unless the session works in place.
        roots: Option<Vec<Root>>,
        /// The tasks that must be completed first.
        blocked_by: BTreeSet<TaskId>,
        /// How its turns are run; none: as the caller's.
        driver: Option<DriverSpec>,
        /// What else is frozen; without a profile it has the caller's.
        frozen: Box<Frozen>,
    },
    /// The reserved agent is ready: publish it and start its first turn.
    Publish {
        /// Its path.
        path: AgentPath,
        /// What was made for it; nothing for one without a layout of its own.
        admission: Admission,
    },
    /// The reserved agent cannot be.
    Refuse {
        /// Its path.
        path: AgentPath,
        /// Why.
        reason: String,
    },
    /// Store mail, or continue an agent.
    Send {
        /// The agent that sends; none: the person.
        from: Option<AgentPath>,
        /// The target as given.
        target: String,
        /// The text.
        body: BodyRef,
        /// Whether it asks for a turn.
        wake: bool,
    },
    /// Move the unread mail of a running turn into its conversation.
    Deliver {
        /// The agent.
        path: AgentPath,
        /// Its turn.
        turn: TurnId,
    },
    /// Record what an agent said.
    Say {
        /// The agent.
        path: AgentPath,
        /// Its turn.
        turn: TurnId,
        /// The message.
        body: BodyRef,
        /// The calls in it.
        calls: Vec<CallId>,
        /// What the model used for it; none: nobody knows.
        usage: Option<Usage>,
    },
    /// Record what a call came to.
    Answer {
        /// The agent.
        path: AgentPath,
        /// Its turn.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// The result.
        body: BodyRef,
    },
    /// End a turn.
    Settle {
        /// The agent.
        path: AgentPath,
        /// Its turn.
        turn: TurnId,
        /// How it ended.
        outcome: Outcome,
        /// The whole result.
        result: Option<BodyRef>,
        /// Why it did not complete.
        reason: Option<String>,
        /// What the spawn parent is mailed.
        report: BodyRef,
    },
    /// Write tasks and notes, all or none.
    WriteTasks {
        /// The agent that writes; none: the person.
        by: Option<AgentPath>,
        /// The tasks.
        changes: Vec<TaskChange>,
        /// The notes: owner (none: the writer) and text (empty clears).
        notes: Vec<(Option<Owner>, String)>,
    },
    /// Record that the person was shown a snapshot.
    Review {
        /// Which task.
        task: TaskId,
        /// Which copy.
        slot: SlotName,
        /// What was shown.
        review: Review,
        /// The newest event when the copy began to be read.
        since: Position,
    },
    /// Begin to apply what was reviewed.
    BeginApply {
        /// Which task.
        task: TaskId,
        /// Which copy.
        slot: SlotName,
    },
    /// Record how an apply ended.
    EndApply {
        /// Which task.
        task: TaskId,
        /// Which copy.
        slot: SlotName,
        /// Which apply.
        apply: ApplyId,
        /// How.
        outcome: ApplyOutcome,
    },
    /// The person gives copies up.
    Discard {
        /// Which task.
        task: TaskId,
        /// Which copy; none: all that are left.
        slot: Option<SlotName>,
    },
    /// May this be done?
    Ask {
        /// The agent.
        path: AgentPath,
        /// Its turn.
        turn: TurnId,
        /// What it would do.
        deed: Deed,
        /// Where the deed's files lie, in their order; a file without one lies outside.
        zones: Vec<Zone>,
        /// One line for the person.
        subject: String,
        /// Whether somebody can answer.
        attended: bool,
    },
    /// The person answers a permission request.
    Permit {
        /// Which.
        id: PermissionId,
        /// How: once, for the session, or denied.
        answer: Answer,
    },
    /// The person chooses how much is asked.
    SetMode {
        /// The mode; none: as it is.
        mode: Option<Mode>,
        /// The plan ceiling; none: as it is.
        plan_ceiling: Option<bool>,
    },
    /// A summary stands for the beginning of an agent's conversation.
    Compact {
        /// The agent.
        path: AgentPath,
        /// Its turn.
        turn: TurnId,
        /// The last `seq` of its conversation that the summary stands for: where a turn ended.
        through: u64,
        /// The summary.
        summary: BodyRef,
        /// What the model used for it; none: nobody knows.
        usage: Option<Usage>,
    },
    /// A command goes on in the background.
    StartShell {
        /// Its owner.
        path: AgentPath,
        /// Its turn.
        turn: TurnId,
        /// The command.
        command: String,
    },
    /// A background shell has ended.
    EndShell {
        /// Its owner.
        path: AgentPath,
        /// Which.
        shell: ShellId,
        /// How.
        fate: ShellFate,
        /// What its owner is mailed.
        report: BodyRef,
    },
    /// A hook adds something for the next task that the agent accepts.
    NoteHook {
        /// The agent, published or not.
        path: AgentPath,
        /// What it adds.
        context: BodyRef,
    },
    /// The stop hooks of a turn that ended are being started.
    NoteStop {
        /// The agent.
        path: AgentPath,
        /// The turn.
        turn: TurnId,
    },
    /// A driver keeps something for the agent's next turn.
    NoteDriver {
        /// The agent.
        path: AgentPath,
        /// Its turn.
        turn: TurnId,
        /// What it keeps.
        body: BodyRef,
    },
    /// A tool has written a file in place.
    NoteFile {
        /// The agent.
        path: AgentPath,
        /// Its turn.
        turn: TurnId,
        /// The file.
        file: AbsoluteDir,
        /// What it held; none: it was not there.
        before: Option<BodyRef>,
        /// What it holds; none: it was removed.
        after: Option<BodyRef>,
    },
    /// Remind `/root` of open tasks, if it is time ([`super::stale_tasks`]).
    Remind {
        /// Its turn.
        turn: TurnId,
        /// What it hears.
        text: BodyRef,
    },
    /// Record what a copy holds as a turn of `/root` begins.
    Capture {
        /// The turn.
        turn: TurnId,
        /// Which task.
        task: TaskId,
        /// Which copy.
        slot: SlotName,
        /// What it holds.
        snapshot: Digest,
    },
    /// Record that a copy holds again what was captured.
    Restore {
        /// Which task.
        task: TaskId,
        /// Which copy.
        slot: SlotName,
        /// What it held before.
        from: Digest,
        /// What it holds now.
        to: Digest,
    },
    /// The rules of a bucket are these from now on.
    SetRules {
        /// Which: the session's or the global one.
        bucket: Bucket,
        /// All of its rules.
        rules: Vec<Rule>,
    },
    /// The person takes a grant back.
    Revoke {
        /// The grant.
        grant: Grant,
    },
    /// The person gives the session another label.
    Rename {
        /// The label; none: it has none any more.
        label: Option<Label>,
    },
    /// Go back to the end of an earlier batch.
    Rewind {
        /// The position.
        to: Position,
        /// Whether a batch ended there, as the store says.
        stable: bool,
    },
    /// After a crash: settle what was abandoned, drop what was not published.
    Recover {
        /// The reason that turns and reservations get.
        reason: String,
        /// What spawn parents are mailed.
        report: BodyRef,
    },
}

/// An event and the stream it goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The stream.
    pub stream: Stream,
    /// The event.
    pub event: Event,
}

/// What a command comes to: the events to append, in order, and the answer to give once they are
/// durable. No event: the answer holds already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The events.
    pub events: Vec<Planned>,
    /// The answer.
    pub answer: Outcomes,
}

/// The answer to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcomes {
    /// It is done; there is nothing to say about it.
    Done,
    /// The agent's path; whether it was there already, from the same call.
    Reserved {
        /// The canonical path that it got.
        path: AgentPath,
        /// Its id.
        agent: SessionId,
        /// Whether this call reserved it before.
        again: bool,
        /// The task of its own, if it has one.
        task: Option<TaskId>,
    },
    /// A turn began.
    Started {
        /// Whose.
        path: AgentPath,
        /// Which.
        turn: TurnId,
    },
    /// What became of a message.
    Sent(Receipt),
    /// How many mails were delivered.
    Delivered(usize),
    /// The tasks written, and the owners whose note was not kept since no task of theirs is open.
    Written {
        /// Their numbers.
        tasks: BTreeSet<TaskId>,
        /// The owners.
        notes_dropped: Vec<Owner>,
    },
    /// An apply has begun: write exactly this.
    Applying {
        /// The apply.
        apply: ApplyId,
        /// What was reviewed.
        review: Review,
    },
    /// This snapshot was applied before; nothing is written again.
    AppliedBefore(ApplyOutcome),
    /// A session was begun with what was taken of another.
    Forked {
        /// `/root` of it.
        path: AgentPath,
        /// Its id.
        agent: SessionId,
        /// What stayed in the other.
        left: Dropped,
    },
    /// The session went back; this was dropped.
    Rewound(Dropped),
    /// The number of the shell that goes on.
    Shell(ShellId),
    /// The copies that were given up.
    Discarded(Vec<SlotName>),
    /// The deed is allowed.
    Allowed,
    /// The person is asked; the answer is another event.
    Asked(PermissionId),
    /// How many turns were settled and reservations dropped.
    Recovered {
        /// Turns.
        turns: usize,
        /// Reservations.
        reservations: usize,
    },
}
