//! Delegated tasks: what each may use, and what became of its private copies.
//!
//! All of it is world state: a rewind never forgets that copies were made or that something was
//! written to an original (`architecture.md`, *The log*).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::event::{Outcome, WorldEvent};
use crate::id::{ApplyId, Digest, Position, SlotName, TaskId};
use crate::layout::{AbsoluteDir, Access, Root};
use crate::path::AgentPath;
use crate::refusal::{Refusal, RefusalKind};

/// The task that `/root` of a session with private copies works on.
pub const FIRST_TASK: TaskId = TaskId(1);
/// The longest title, in characters.
pub const LONGEST_TITLE: usize = 200;
/// The most roots of a layout (`spec/copies.md` 2.3).
pub const MOST_ROOTS: usize = 64;

/// A task that an agent of its own works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegated {
    /// Its number.
    pub task: TaskId,
    /// The agent that works on it.
    pub owner: AgentPath,
    /// One line.
    pub title: String,
    /// The tasks that must be completed first, as it was proposed.
    pub blocked_by: BTreeSet<TaskId>,
    /// What it was given, the primary first; empty: it works where the session's roots are.
    pub roots: Vec<Root>,
    /// Whether its copies are complete and its agent is published.
    pub admitted: bool,
    /// Its copies by slot; none before admission.
    pub copies: BTreeMap<SlotName, PrivateCopy>,
    /// What admission said of its copies.
    pub notes: Vec<String>,
    /// How its agent's last turn ended; none while none has.
    pub settled: Option<Outcome>,
}

/// The private copy of one slot, and what was done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateCopy {
    /// Where it is.
    pub directory: AbsoluteDir,
    /// What its changes are told against: admission's state, later the snapshot applied last.
    pub base: Digest,
    /// The last review since the base changed.
    pub reviewed: Option<Review>,
    /// The apply that is under way, or whose outcome is not known yet.
    pub applying: Option<ApplyId>,
    /// The last apply that ended: which snapshot, and how.
    pub ended: Option<(Digest, ApplyOutcome)>,
    /// The last apply that ended as applied, whatever was tried after it: what recovery has to know
    /// of it, because what people were told was applied is never led back (`spec/copies.md` 2.8).
    pub applied: Option<ApplyId>,
    /// Whether it was moved to the trash.
    pub discarded: bool,
}

/// A snapshot that a person was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// The snapshot's name.
    pub snapshot: Digest,
    /// The base that it was compared with.
    pub base: Digest,
    /// What the original had checked out; none for a plain folder (P7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<Checkout>,
}

/// What a work tree has checked out: recorded by review, compared by apply (P7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checkout {
    /// A branch, by its whole name; its commit may move.
    Branch(String),
    /// A commit, by its object id.
    Detached(String),
}

/// A copy as admission made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdmittedCopy {
    /// Its slot.
    pub slot: SlotName,
    /// Where it is.
    pub directory: AbsoluteDir,
    /// Its base.
    pub base: Digest,
}

/// What admission made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Admission {
    /// The copies, in the order of the layout's roots.
    pub copies: Vec<AdmittedCopy>,
    /// What the person and the agent should know of them.
    pub notes: Vec<String>,
}

/// How an apply ended (`spec/copies.md` 2.8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum ApplyOutcome {
    /// The original has exactly the reviewed snapshot at every affected path.
    Applied {
        /// The copy's base from now on.
        base: Digest,
        /// How many paths were written or removed.
        paths: u64,
    },
    /// Nothing was written.
    Refused {
        /// Why, in one line that names the precondition.
        reason: String,
        /// Whether the person's own edits stand in the way.
        conflict: bool,
        /// The paths in the way, as people see them; not all where there are very many.
        paths: Vec<String>,
        /// Whether an earlier apply to the root is half-way and comes first.
        #[serde(default, skip_serializing_if = "is_false")]
        half_way: bool,
    },
    /// Something was written, and everything is as it was before.
    RolledBack {
        /// What went wrong.
        cause: String,
        /// Whether the person's own edits stood in the way.
        #[serde(default, skip_serializing_if = "is_false")]
        conflict: bool,
        /// The paths that somebody changed meanwhile, as people see them; not all where there are
        /// very many.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<String>,
        /// Where the state that was found then is kept, if it differed from both.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rescue: Option<String>,
    },
    /// Paths are neither as before nor as reviewed, and were left so.
    RecoveryNeeded {
        /// What went wrong.
        cause: String,
        /// The paths that were left as they were found; not all where there are very many.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<String>,
        /// Where the recovery data is.
        rescue: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Delegated {
    /// The copy of `slot`; a refusal names the slots there are.
    pub fn copy(&self, slot: &SlotName) -> Result<&PrivateCopy, Refusal> {
        if !self.admitted {
            return Err(Refusal::new(
                RefusalKind::WrongState,
                format!("the copies of task {} are still being made", self.task),
            ));
        }
        let copy = self.copies.get(slot).ok_or_else(|| {
            let names: Vec<&str> = self.copies.keys().map(SlotName::as_str).collect();
            let line = format!("task {} has no slot {slot}", self.task);
            let hint = if names.is_empty() {
                "it works in the roots themselves: there is nothing to review".to_owned()
            } else {
                format!("its slots are {}", names.join(", "))
            };
            Refusal::new(RefusalKind::NotFound, line).hint(hint)
        })?;
        if copy.discarded {
            return Err(Refusal::new(
                RefusalKind::NotFound,
                format!("the copy {slot} of task {} was discarded", self.task),
            )
            .hint("`stead gc` says what is in the trash"));
        }
        Ok(copy)
    }

    /// The root behind `slot`.
    pub fn root(&self, slot: &SlotName) -> Option<&Root> {
        self.roots.iter().find(|root| root.slot == *slot)
    }

    /// The roots as the agent uses them: its copies, with the access of the layout.
    pub fn routes(&self) -> Vec<Root> {
        self.roots
            .iter()
            .filter_map(|root| {
                let copy = self.copies.get(&root.slot)?;
                Some(Root { directory: copy.directory.clone(), ..root.clone() })
            })
            .collect()
    }
}

/// Folds a world event into the delegated tasks; others leave them alone.
pub(crate) fn evolve(
    tasks: &mut BTreeMap<TaskId, Delegated>,
    position: Position,
    event: &WorldEvent,
) {
    match event {
        WorldEvent::TaskReserved { task, owner, title, blocked_by, roots } => {
            tasks.insert(
                *task,
                Delegated {
                    task: *task,
                    owner: owner.clone(),
                    title: title.clone(),
                    blocked_by: blocked_by.clone(),
                    roots: roots.clone(),
                    admitted: false,
                    copies: BTreeMap::new(),
                    notes: Vec::new(),
                    settled: None,
                },
            );
        }
        WorldEvent::TaskAdmitted { task, copies, notes } => {
            if let Some(known) = tasks.get_mut(task) {
                known.admitted = true;
                known.notes.clone_from(notes);
                known.copies =
                    copies.iter().map(|made| (made.slot.clone(), PrivateCopy::new(made))).collect();
            }
        }
        WorldEvent::TaskRefused { task, .. } => drop(tasks.remove(task)),
        WorldEvent::TaskSettled { task, outcome } => {
            if let Some(known) = tasks.get_mut(task) {
                known.settled = Some(*outcome);
            }
        }
        WorldEvent::CopyReviewed { task, slot, review } => {
            if let Some(copy) = copy_mut(tasks, *task, slot) {
                copy.reviewed = Some(review.clone());
                // Whoever looks again after a failed recovery has seen to it.
                if matches!(copy.ended, Some((_, ApplyOutcome::RecoveryNeeded { .. }))) {
                    copy.ended = None;
                }
            }
        }
        WorldEvent::ApplyBegun { task, slot, .. } => {
            if let Some(copy) = copy_mut(tasks, *task, slot) {
                copy.applying = Some(ApplyId(position));
            }
        }
        WorldEvent::ApplyEnded { task, slot, apply, snapshot, outcome } => {
            if let Some(copy) = copy_mut(tasks, *task, slot) {
                copy.applying = None;
                copy.ended = Some((*snapshot, outcome.clone()));
                if let ApplyOutcome::Applied { base, .. } = outcome {
                    copy.base = *base;
                    copy.applied = Some(*apply);
                }
            }
        }
        // Whoever goes back looks again before anything is applied.
        WorldEvent::Restored { task, slot, .. } => {
            if let Some(copy) = copy_mut(tasks, *task, slot) {
                copy.reviewed = None;
            }
        }
        WorldEvent::CopyDiscarded { task, slot } => {
            if let Some(copy) = copy_mut(tasks, *task, slot) {
                copy.discarded = true;
            }
        }
        WorldEvent::SessionStarted(_)
        | WorldEvent::TasksNumbered { .. }
        | WorldEvent::ModeSet { .. }
        | WorldEvent::Granted { .. }
        | WorldEvent::GrantRevoked { .. }
        | WorldEvent::RulesSet { .. }
        | WorldEvent::SessionRenamed { .. }
        | WorldEvent::Captured { .. }
        | WorldEvent::Rewound { .. } => {}
    }
}

fn copy_mut<'a>(
    tasks: &'a mut BTreeMap<TaskId, Delegated>,
    task: TaskId,
    slot: &SlotName,
) -> Option<&'a mut PrivateCopy> {
    tasks.get_mut(&task)?.copies.get_mut(slot)
}

impl PrivateCopy {
    fn new(made: &AdmittedCopy) -> Self {
        Self {
            directory: made.directory.clone(),
            base: made.base,
            reviewed: None,
            applying: None,
            ended: None,
            applied: None,
            discarded: false,
        }
    }
}

/// Whether `asked` may be given where the person gave `given` (seed 3: access may narrow, never
/// widen).
pub fn may_narrow(given: Access, asked: Access) -> bool {
    given == Access::Write || asked == Access::Read
}
