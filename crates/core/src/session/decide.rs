//! `decide`: a command on a state comes to events or to a refusal.

use super::command::{Command, Decision, Outcomes, Planned};
use super::state::State;
use super::{
    compact, copies, delegate, fork, hooks, message, notes, person, restore, rules, shells, spawn,
    tasks, turn,
};
use crate::event::{BranchEvent, Event, Stream, WorldEvent};
use crate::id::SessionId;
use crate::refusal::{Refusal, RefusalKind};

/// Decides one command. Pure: what it depends on stands in the state and in the command.
pub fn decide(state: &State, command: Command) -> Result<Decision, Refusal> {
    let begins = matches!(command, Command::Start { .. } | Command::Fork { .. });
    if state.world.started.is_none() && !begins {
        return Err(Refusal::new(RefusalKind::NotFound, "the session has not started"));
    }
    match command {
        Command::Start { started, driver, directory, message, title, frozen, notes } => {
            let root = spawn::RootAgent { driver, directory, message, frozen };
            spawn::start(state, started, root, &title, &notes)
        }
        Command::Fork { session, label, taken } => fork::begin(state, session, label, *taken),
        Command::Reserve {
            caller,
            agent,
            call,
            task_name,
            role,
            message,
            directory,
            driver,
            frozen,
        } => {
            let new = spawn::Spawn { task_name, role, message, directory, driver, frozen };
            spawn::reserve(state, &caller, agent, call, new)
        }
        Command::Propose {
            caller,
            agent,
            call,
            title,
            role,
            message,
            roots,
            blocked_by,
            driver,
            frozen,
        } => {
            let proposal =
                delegate::Proposal { title, role, message, roots, blocked_by, driver, frozen };
            delegate::propose(state, &caller, agent, call, proposal)
        }
        Command::Publish { path, admission } => spawn::publish(state, &path, admission),
        Command::Refuse { path, reason } => spawn::refuse(state, &path, &reason),
        Command::Send { from, target, body, wake } => {
            message::send(state, from, &target, body, wake)
        }
        Command::Deliver { path, turn } => turn::deliver(state, &path, turn),
        Command::Say { path, turn, body, calls, usage } => {
            turn::say(state, &path, turn, body, calls, usage)
        }
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
        Command::Ask { path, turn, deed, zones, subject, attended } => {
            turn::ask(state, path, turn, deed, &zones, &subject, attended)
        }
        Command::Compact { path, turn, through, summary, usage } => {
            compact::compact(state, &path, turn, through, summary, usage)
        }
        Command::StartShell { path, turn, command } => shells::start(state, path, turn, &command),
        Command::EndShell { path, shell, fate, report } => {
            shells::end(state, path, shell, fate, report)
        }
        Command::NoteHook { path, context } => hooks::note(state, path, context),
        Command::NoteStop { path, turn } => hooks::stop(state, path, turn),
        Command::NoteDriver { path, turn, body } => notes::driver(state, path, turn, body),
        Command::NoteFile { path, turn, file, before, after } => {
            notes::file(state, path, turn, file, before, after)
        }
        Command::Remind { turn, text } => notes::remind(state, turn, text),
        Command::Capture { turn, task, slot, snapshot } => {
            restore::capture(state, turn, task, slot, snapshot)
        }
        Command::Restore { task, slot, from, to } => restore::restore(state, task, slot, from, to),
        Command::SetRules { bucket, rules } => rules::set(state, bucket, rules),
        Command::Revoke { grant } => rules::revoke(state, grant),
        Command::Rename { label } => Ok(person::rename(state, label)),
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
