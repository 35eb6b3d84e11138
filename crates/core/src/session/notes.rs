//! Small things that are worth remembering: what a driver keeps, which files were written in
//! place, and that `/root` was reminded of its tasks.

use super::command::Decision;
use super::decide::{control, conversation, done};
use super::spawn::check_text;
use super::state::State;
use super::turn::{in_turn, no_open_call};
use crate::event::{BranchEvent, MailKind, Sender};
use crate::id::{BodyRef, TurnId};
use crate::layout::AbsoluteDir;
use crate::path::AgentPath;
use crate::refusal::{Refusal, RefusalKind};
use crate::task::{Status, Task};

/// How many turns of `/root` begin without a task being written before it is reminded, and before
/// it is reminded again.
pub const STALE_TURNS: u32 = 8;

/// The open tasks that `/root` is to be reminded of now; none: it is not time, or there are none.
/// At most once in [`STALE_TURNS`] turns (seed 0, agents_68). Each names its owner.
pub fn stale_tasks(state: &State) -> Vec<&Task> {
    let list = &state.branch.tasks;
    if list.quiet_turns < STALE_TURNS {
        return Vec::new();
    }
    list.tasks.values().filter(|task| task.status != Status::Completed).collect()
}

pub(super) fn remind(state: &State, turn: TurnId, text: BodyRef) -> Result<Decision, Refusal> {
    let agent = in_turn(state, &AgentPath::root(), turn)?;
    no_open_call(agent)?;
    check_text("a reminder", text)?;
    let tasks = stale_tasks(state);
    if tasks.is_empty() {
        return Err(Refusal::new(RefusalKind::WrongState, "/root is not to be reminded now"));
    }
    let heard = BranchEvent::Heard {
        turn,
        from: Sender::Stead,
        mail: None,
        sort: MailKind::Note,
        body: text,
    };
    let tasks = tasks.into_iter().map(|task| task.id).collect();
    Ok(done(vec![control(BranchEvent::Reminded { tasks }), conversation(&agent.id, heard)]))
}

pub(super) fn driver(
    state: &State,
    path: AgentPath,
    turn: TurnId,
    body: BodyRef,
) -> Result<Decision, Refusal> {
    let agent = in_turn(state, &path, turn)?;
    check_text("what a driver keeps", body)?;
    let known = agent.driver_note == Some(body);
    let noted = (!known).then(|| control(BranchEvent::DriverNoted { path, body }));
    Ok(done(noted.into_iter().collect()))
}

pub(super) fn file(
    state: &State,
    path: AgentPath,
    turn: TurnId,
    file: AbsoluteDir,
    before: Option<BodyRef>,
    after: Option<BodyRef>,
) -> Result<Decision, Refusal> {
    in_turn(state, &path, turn)?;
    Ok(done(vec![control(BranchEvent::FileChanged { path, turn, file, before, after })]))
}
