//! Background shells: whose they are, and how they end (A19).
//!
//! A shell belongs to one agent and one turn. Its owner's turn does not complete while it lives;
//! an error or an interrupt ends it; what a crash leaves is lost. One that ends by itself tells
//! its owner by EXECUTION mail, in the turn that started it.

use super::command::{Decision, Outcomes};
use super::decide::{control, done};
use super::state::State;
use super::turn::in_turn;
use crate::event::{BranchEvent, MailKind, Sender};
use crate::id::{BodyRef, TurnId};
use crate::line;
use crate::path::AgentPath;
use crate::refusal::{Refusal, RefusalKind};
use crate::shell::{MOST_SHELLS, ShellFate, ShellId};

pub(super) fn start(
    state: &State,
    path: AgentPath,
    turn: TurnId,
    command: &str,
) -> Result<Decision, Refusal> {
    let agent = in_turn(state, &path, turn)?;
    if agent.shells.len() >= MOST_SHELLS {
        return Err(Refusal::new(
            RefusalKind::NoRoom,
            format!("{path} has {MOST_SHELLS} background shells"),
        )
        .hint("stop one first"));
    }
    let number = agent.last_shell.0.checked_add(1).ok_or_else(|| {
        Refusal::new(RefusalKind::NoRoom, format!("no number for a shell of {path} is left"))
    })?;
    let shell = ShellId(number);
    let command = line::brief(command);
    let started = BranchEvent::ShellStarted { path, turn, shell, command };
    Ok(Decision { events: vec![control(started)], answer: Outcomes::Shell(shell) })
}

pub(super) fn end(
    state: &State,
    path: AgentPath,
    shell: ShellId,
    fate: ShellFate,
    report: BodyRef,
) -> Result<Decision, Refusal> {
    let agent = state.branch.roster.find(&path)?;
    if !agent.shells.contains_key(&shell) {
        let line = if (ShellId(1)..=agent.last_shell).contains(&shell) {
            format!("shell {shell} of {path} has ended")
        } else {
            format!("{path} never had a shell {shell}")
        };
        return Err(Refusal::new(RefusalKind::NotFound, line));
    }
    let mut events = vec![control(BranchEvent::ShellEnded { path: path.clone(), shell, fate })];
    // Whoever stopped it knows.
    if fate != ShellFate::Stopped {
        events.push(control(BranchEvent::MailStored {
            kind: MailKind::Execution,
            from: Sender::Stead,
            to: path,
            body: report,
            wake: true,
        }));
    }
    Ok(done(events))
}
