//! Review, apply and discard: a person's, and judged here before anything is touched
//! (`spec/copies.md` 2.7, 2.8).

use super::command::{Decision, Outcomes};
use super::decide::{done, world};
use super::state::State;
use crate::delegated::{ApplyOutcome, Delegated, PrivateCopy, Review};
use crate::event::WorldEvent;
use crate::id::{ApplyId, Position, SlotName, TaskId};
use crate::layout::Access;
use crate::refusal::{Refusal, RefusalKind};
use crate::roster::{Agent, Standing};

/// The delegated task with this number.
fn find(state: &State, task: TaskId) -> Result<&Delegated, Refusal> {
    state.world.delegated.get(&task).ok_or_else(|| {
        let line = if state.branch.tasks.tasks.contains_key(&task) {
            format!("task {task} has no agent and no copies of its own")
        } else {
            format!("there is no task {task}")
        };
        Refusal::new(RefusalKind::NotFound, line)
            .hint("`stead task list` names the tasks there are")
    })
}

/// The agents that work in the layout of `task`: its own, and those that cooperate.
fn workers(state: &State, task: TaskId) -> impl Iterator<Item = &Agent> {
    state.branch.roster.all().filter(move |agent| agent.task == Some(task))
}

/// Refuses while anybody works in the layout of `task`: what is there may still change.
pub fn idle_layout(state: &State, task: TaskId) -> Result<(), Refusal> {
    match workers(state, task).find(|agent| agent.standing != Standing::Idle) {
        None => Ok(()),
        Some(busy) => Err(Refusal::new(
            RefusalKind::WrongState,
            format!("{} still works in the copies of task {task}", busy.path),
        )
        .hint(format!("wait for it, or `stead stop {}`", busy.path))),
    }
}

/// The copy of `slot` if it can be reviewed now: nobody works in its layout, and no apply of it is
/// under way.
pub fn reviewable<'a>(
    state: &'a State,
    task: TaskId,
    slot: &SlotName,
) -> Result<&'a PrivateCopy, Refusal> {
    let copy = find(state, task)?.copy(slot)?;
    idle_layout(state, task)?;
    not_applying(copy, task, slot)?;
    Ok(copy)
}

fn not_applying(copy: &PrivateCopy, task: TaskId, slot: &SlotName) -> Result<(), Refusal> {
    match copy.applying {
        None => Ok(()),
        Some(_) => Err(Refusal::new(
            RefusalKind::WrongState,
            format!("an apply of task {task} {slot} is under way"),
        )
        .hint(format!("`stead task show {task}` says how it ended"))),
    }
}

/// What would be applied (P1, P2), or the outcome of the apply that did it before.
pub fn applicable<'a>(
    state: &'a State,
    task: TaskId,
    slot: &SlotName,
) -> Result<Result<&'a Review, &'a ApplyOutcome>, Refusal> {
    let delegated = find(state, task)?;
    let copy = delegated.copy(slot)?;
    if delegated.root(slot).is_none_or(|root| root.access != Access::Write) {
        return Err(Refusal::new(
            RefusalKind::NotAllowed,
            format!("{slot} of task {task} is a read-only root; nothing is applied to it"),
        ));
    }
    not_applying(copy, task, slot)?;
    let again = format!("`stead task review {task} {slot}` shows what would be applied");
    let Some(review) = &copy.reviewed else {
        return Err(Refusal::new(
            RefusalKind::WrongState,
            format!("{slot} of task {task} was not reviewed"),
        )
        .hint(again));
    };
    match &copy.ended {
        Some((snapshot, outcome)) if *snapshot == review.snapshot => match outcome {
            ApplyOutcome::Applied { .. } => return Ok(Err(outcome)),
            ApplyOutcome::RecoveryNeeded { cause, rescue, .. } => {
                return Err(Refusal::new(
                    RefusalKind::Unknown,
                    format!("the last apply of {slot} of task {task} needs recovery: {cause}"),
                )
                .hint(format!("look at {rescue}; then review again")));
            }
            ApplyOutcome::Refused { .. } | ApplyOutcome::RolledBack { .. } => {}
        },
        _ => {}
    }
    if review.base != copy.base {
        return Err(Refusal::new(
            RefusalKind::WrongState,
            format!("{slot} of task {task} was reviewed before the last apply"),
        )
        .hint(again));
    }
    Ok(Ok(review))
}

pub(super) fn review(
    state: &State,
    task: TaskId,
    slot: SlotName,
    review: Review,
    since: Position,
) -> Result<Decision, Refusal> {
    let copy = reviewable(state, task, &slot)?;
    let began = |agent: &Agent| agent.last.as_ref().is_some_and(|last| last.turn.0 > since);
    if copy.base != review.base || workers(state, task).any(began) {
        return Err(Refusal::new(
            RefusalKind::WrongState,
            format!("{slot} of task {task} was worked on while it was being read"),
        )
        .hint("review it again"));
    }
    Ok(done(vec![world(WorldEvent::CopyReviewed { task, slot, review })]))
}

pub(super) fn begin_apply(
    state: &State,
    task: TaskId,
    slot: SlotName,
) -> Result<Decision, Refusal> {
    let review = match applicable(state, task, &slot)? {
        Ok(review) => review.clone(),
        Err(before) => {
            let answer = Outcomes::AppliedBefore(before.clone());
            return Ok(Decision { events: Vec::new(), answer });
        }
    };
    let snapshot = review.snapshot;
    let apply = ApplyId(state.tip.saturating_add(1));
    let events = vec![world(WorldEvent::ApplyBegun { task, slot, snapshot })];
    Ok(Decision { events, answer: Outcomes::Applying { apply, review } })
}

pub(super) fn end_apply(
    state: &State,
    task: TaskId,
    slot: SlotName,
    apply: ApplyId,
    outcome: ApplyOutcome,
) -> Result<Decision, Refusal> {
    let copy = find(state, task)?.copies.get(&slot);
    match copy.and_then(|copy| Some((copy.applying?, copy.reviewed.as_ref()?))) {
        Some((under_way, review)) if under_way == apply => {
            let snapshot = review.snapshot;
            let ended = WorldEvent::ApplyEnded { task, slot, apply, snapshot, outcome };
            Ok(done(vec![world(ended)]))
        }
        _ => Err(Refusal::new(
            RefusalKind::WrongState,
            format!("apply {apply} of task {task} {slot} is not under way"),
        )),
    }
}

pub(super) fn discard(
    state: &State,
    task: TaskId,
    slot: Option<SlotName>,
) -> Result<Decision, Refusal> {
    let delegated = find(state, task)?;
    idle_layout(state, task)?;
    let slots: Vec<SlotName> = match slot {
        Some(slot) => {
            delegated.copy(&slot)?;
            vec![slot]
        }
        None => delegated
            .copies
            .iter()
            .filter(|(_, copy)| !copy.discarded)
            .map(|(slot, _)| slot.clone())
            .collect(),
    };
    for slot in &slots {
        not_applying(delegated.copy(slot)?, task, slot)?;
    }
    let events = slots
        .iter()
        .map(|slot| world(WorldEvent::CopyDiscarded { task, slot: slot.clone() }))
        .collect();
    Ok(Decision { events, answer: Outcomes::Discarded(slots) })
}
