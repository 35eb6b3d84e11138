//! What hooks leave behind: context for the next task, and that a stop was told once (A18).

use super::command::Decision;
use super::decide::{control, done};
use super::spawn::check_text;
use super::state::State;
use crate::event::BranchEvent;
use crate::id::{BodyRef, TurnId};
use crate::path::AgentPath;
use crate::refusal::{Refusal, RefusalKind};

/// The most notes that wait for one agent.
const MOST_NOTES: usize = 64;

/// Keeps what a hook added, whether it let the task through or not: the next turn that begins
/// hears it, once (agents_43). An agent that is being prepared has its start hooks' context so.
pub(super) fn note(state: &State, path: AgentPath, context: BodyRef) -> Result<Decision, Refusal> {
    let roster = &state.branch.roster;
    let agent = match roster.at(&path) {
        Some(agent) => agent,
        None => roster.find(&path)?,
    };
    check_text("what a hook adds", context)?;
    if agent.notes.len() >= MOST_NOTES {
        return Err(Refusal::new(
            RefusalKind::NoRoom,
            format!("{MOST_NOTES} notes of hooks wait for {path} already"),
        )
        .hint("they are heard with the next task that its prompt hook lets through"));
    }
    Ok(done(vec![control(BranchEvent::HookNoted { path, context })]))
}

/// Before the stop hooks of a turn are started: they are started once, also after a crash in
/// between (agents_82).
pub(super) fn stop(state: &State, path: AgentPath, turn: TurnId) -> Result<Decision, Refusal> {
    let agent = state.branch.roster.find(&path)?;
    if agent.stop_due() != Some(turn) {
        return Err(Refusal::new(
            RefusalKind::WrongState,
            format!("no stop of turn {turn} of {path} is to be told"),
        ));
    }
    Ok(done(vec![control(BranchEvent::StopNoted { path, turn })]))
}
