//! Captures of copies and going back to them (`decisions.md`, *Rewind of files*).

use super::command::Decision;
use super::decide::{done, world};
use super::state::State;
use super::turn::in_turn;
use crate::delegated::PrivateCopy;
use crate::event::WorldEvent;
use crate::id::{Digest, SlotName, TaskId, TurnId};
use crate::path::AgentPath;
use crate::refusal::{Refusal, RefusalKind};
use crate::roster::Standing;

fn copy<'a>(state: &'a State, task: TaskId, slot: &SlotName) -> Result<&'a PrivateCopy, Refusal> {
    let own = state.world.delegated.get(&task).ok_or_else(|| {
        Refusal::new(RefusalKind::NotFound, format!("task {task} has no copies"))
            .hint("`stead task list` names the tasks that have")
    })?;
    let copy = own.copy(slot)?;
    match copy.applying {
        None => Ok(copy),
        Some(apply) => Err(Refusal::new(
            RefusalKind::WrongState,
            format!("the copy {slot} of task {task} is being applied ({apply})"),
        )),
    }
}

/// As a turn of `/root` begins, once for each copy.
pub(super) fn capture(
    state: &State,
    turn: TurnId,
    task: TaskId,
    slot: SlotName,
    snapshot: Digest,
) -> Result<Decision, Refusal> {
    in_turn(state, &AgentPath::root(), turn)?;
    copy(state, task, &slot)?;
    let held = state.world.held_at(task, &slot, turn.0);
    if held.is_some() {
        return Err(Refusal::new(
            RefusalKind::AlreadyExists,
            format!("the copy {slot} of task {task} was captured for turn {turn}"),
        ));
    }
    Ok(done(vec![world(WorldEvent::Captured { turn, task, slot, snapshot })]))
}

/// While all are idle; only to what the copy once held. What it held before is a capture from now
/// on: so the way back is open as well (field_rew_05).
pub(super) fn restore(
    state: &State,
    task: TaskId,
    slot: SlotName,
    from: Digest,
    to: Digest,
) -> Result<Decision, Refusal> {
    if let Some(busy) = state.branch.roster.all().find(|a| a.standing != Standing::Idle) {
        return Err(Refusal::new(
            RefusalKind::WrongState,
            format!("{} is not idle; copies are restored when nothing runs", busy.path),
        )
        .hint(format!("`stead stop {}` ends its turn", busy.path)));
    }
    copy(state, task, &slot)?;
    let captures = state.world.captures.get(&(task, slot.clone()));
    let known = captures.is_some_and(|all| all.iter().any(|capture| capture.snapshot == to));
    if !known {
        return Err(Refusal::new(
            RefusalKind::NotFound,
            format!("the copy {slot} of task {task} never held {to}"),
        ));
    }
    Ok(done(vec![world(WorldEvent::Restored { task, slot, from, to })]))
}
