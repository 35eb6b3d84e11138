//! What holds on every branch, and how an event changes it.

use std::collections::BTreeMap;

use crate::delegated::{self, Delegated};
use crate::event::{SessionStarted, WorldEvent};
use crate::id::{Digest, Label, Position, SlotName, TaskId};
use crate::permission::{Grant, Mode};
use crate::rule::{Bucket, Rule};

/// What holds on every branch. Its fold never sees a [`super::Branch`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct World {
    /// How the session started; none before its first event.
    pub started: Option<SessionStarted>,
    /// The session's label now.
    pub label: Option<Label>,
    /// How much is asked now; none before the first event.
    pub mode: Option<Mode>,
    /// Whether the plan ceiling is on.
    pub plan_ceiling: bool,
    /// The highest task number ever used.
    pub last_task: TaskId,
    /// The tasks that have an agent of their own.
    pub delegated: BTreeMap<TaskId, Delegated>,
    /// What the person allowed for the session.
    pub grants: Vec<Grant>,
    /// The rules of the session's and of the global bucket.
    pub rules: BTreeMap<Bucket, Vec<Rule>>,
    /// What copies held, oldest first.
    pub captures: BTreeMap<(TaskId, SlotName), Vec<Capture>>,
    /// Every rewind: its own position and where the branch went on from, oldest first.
    pub rewinds: Vec<(Position, Position)>,
}

/// What a copy held at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capture {
    /// The position of the event that says so.
    pub position: Position,
    /// What it held.
    pub snapshot: Digest,
}

impl World {
    pub(super) fn evolve(&mut self, position: Position, event: &WorldEvent) {
        delegated::evolve(&mut self.delegated, position, event);
        match event {
            WorldEvent::SessionStarted(started) => {
                self.mode = Some(started.mode);
                self.plan_ceiling = started.plan_ceiling;
                self.label.clone_from(&started.label);
                self.started = Some(started.clone());
            }
            WorldEvent::TasksNumbered { last } => self.last_task = self.last_task.max(*last),
            WorldEvent::ModeSet { mode, plan_ceiling } => {
                self.mode = Some(*mode);
                self.plan_ceiling = *plan_ceiling;
            }
            WorldEvent::Granted { grant } => {
                if !self.grants.contains(grant) {
                    self.grants.push(grant.clone());
                }
            }
            WorldEvent::GrantRevoked { grant } => self.grants.retain(|known| known != grant),
            WorldEvent::RulesSet { bucket, rules } => {
                self.rules.insert(*bucket, rules.clone());
            }
            WorldEvent::SessionRenamed { label } => self.label.clone_from(label),
            WorldEvent::Captured { task, slot, snapshot, .. }
            | WorldEvent::Restored { task, slot, from: snapshot, .. } => {
                let capture = Capture { position, snapshot: *snapshot };
                self.captures.entry((*task, slot.clone())).or_default().push(capture);
            }
            WorldEvent::Rewound { to } => self.rewinds.push((position, *to)),
            WorldEvent::TaskReserved { .. }
            | WorldEvent::TaskAdmitted { .. }
            | WorldEvent::TaskRefused { .. }
            | WorldEvent::TaskSettled { .. }
            | WorldEvent::CopyReviewed { .. }
            | WorldEvent::ApplyBegun { .. }
            | WorldEvent::ApplyEnded { .. }
            | WorldEvent::CopyDiscarded { .. } => {}
        }
    }

    /// What a copy held when `at` was the newest event: what was captured first behind it, when
    /// the next turn of `/root` began or a rewind left that state. None: nothing was captured
    /// since, so the copy still holds it as far as turns of `/root` are concerned.
    pub fn held_at(&self, task: TaskId, slot: &SlotName, at: Position) -> Option<Digest> {
        let captures = self.captures.get(&(task, slot.clone()))?;
        captures.iter().find(|capture| capture.position > at).map(|capture| capture.snapshot)
    }
}
