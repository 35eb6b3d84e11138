//! `decide`: a command on a state comes to events or to a refusal.

use super::command::{Command, Decision, Outcomes, Planned};
use super::state::State;
use super::{copies, delegate, message, person, spawn, tasks, turn};
use crate::event::{BranchEvent, Event, Stream, WorldEvent};
use crate::id::SessionId;
use crate::refusal::{Refusal, RefusalKind};

/// Decides one command. Pure: what it depends on stands in the state and in the command.
pub fn decide(state: &State, command: Command) -> Result<Decision, Refusal> {
    if state.world.started.is_none() && !matches!(command, Command::Start { .. }) {
        return Err(Refusal::new(RefusalKind::NotFound, "the session has not started"));
    }
    match command {
        Command::Start { started, driver, directory, message, title } => {
            spawn::start(state, started, driver, directory, message, &title)
        }
        Command::Reserve { caller, agent, call, task_name, role, message, directory } => {
            spawn::reserve(state, &caller, agent, call, &task_name, role, message, directory)
        }
        Command::Propose { caller, agent, call, title, role, message, roots, blocked_by } => {
            let proposal = delegate::Proposal { title, role, message, roots, blocked_by };
            delegate::propose(state, &caller, agent, call, proposal)
        }
        Command::Publish { path, admission } => spawn::publish(state, &path, admission),
        Command::Refuse { path, reason } => spawn::refuse(state, &path, &reason),
        Command::Send { from, target, body, wake } => {
            message::send(state, from, &target, body, wake)
        }
        Command::Deliver { path, turn } => turn::deliver(state, &path, turn),
        Command::Say { path, turn, body, calls } => turn::say(state, &path, turn, body, calls),
        Command::Answer { path, turn, call, body } => turn::answer(state, &path, turn, call, body),
        Command::Settle { path, turn, outcome, result, reason, report } => {
            let settlement = turn::Settlement { outcome, result, reason, report };
            turn::settle(state, &path, turn, settlement)
        }
        Command::WriteTasks { by, changes, notes } => tasks::write(state, by, changes, notes),
        Command::Review { task, slot, review, since } => {
            copies::review(state, task, slot, review, since)
        }
        Command::BeginApply { task, slot } => copies::begin_apply(state, task, slot),
        Command::EndApply { task, slot, apply, outcome } => {
            copies::end_apply(state, task, slot, apply, outcome)
        }
        Command::Discard { task, slot } => copies::discard(state, task, slot),
        Command::Ask { path, turn, deed, subject, attended } => {
            turn::ask(state, path, turn, deed, &subject, attended)
        }
        Command::Permit { id, answer } => person::permit(state, id, answer),
        Command::SetMode { mode, plan_ceiling } => Ok(person::set_mode(state, mode, plan_ceiling)),
        Command::Rewind { to, stable } => person::rewind(state, to, stable),
        Command::Recover { reason, report } => Ok(turn::recover(state, &reason, report)),
    }
}

pub(super) fn done(events: Vec<Planned>) -> Decision {
    Decision { events, answer: Outcomes::Done }
}

pub(super) fn control(event: BranchEvent) -> Planned {
    Planned { stream: Stream::Control, event: Event::Branch(event) }
}

pub(super) fn world(event: WorldEvent) -> Planned {
    Planned { stream: Stream::Control, event: Event::World(event) }
}

pub(super) fn conversation(agent: &SessionId, event: BranchEvent) -> Planned {
    Planned { stream: Stream::Conversation(agent.clone()), event: Event::Branch(event) }
}
