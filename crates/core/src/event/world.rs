//! What holds whatever branch a session is on.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Outcome, SessionStarted};
use crate::delegated::{AdmittedCopy, ApplyOutcome, Review};
use crate::id::{ApplyId, Digest, Label, Position, SlotName, TaskId, TurnId};
use crate::layout::Root;
use crate::path::AgentPath;
use crate::permission::{Grant, Mode};
use crate::rule::{Bucket, Rule};

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
    /// The person took a grant back: the same is asked again.
    GrantRevoked {
        /// What was granted.
        grant: Grant,
    },
    /// The rules of a bucket are these from now on.
    RulesSet {
        /// Which: the session's or the global one.
        bucket: Bucket,
        /// All of its rules.
        rules: Vec<Rule>,
    },
    /// The session has another label.
    SessionRenamed {
        /// The label; none: it has none any more.
        label: Option<Label>,
    },
    /// What a copy held when a turn of `/root` began.
    Captured {
        /// The turn.
        turn: TurnId,
        /// Which task.
        task: TaskId,
        /// Which of its copies.
        slot: SlotName,
        /// What it held.
        snapshot: Digest,
    },
    /// A copy was made to hold again what was captured.
    Restored {
        /// Which task.
        task: TaskId,
        /// Which of its copies.
        slot: SlotName,
        /// What it held before, captured for the way back.
        from: Digest,
        /// What it holds now.
        to: Digest,
    },
    /// The branch goes on from `to`; what came after it is left behind.
    Rewound {
        /// The position that the next branch event follows.
        to: Position,
    },
}
