//! The life of a turn: hearing mail at a boundary, and ending once (A9, A10).

use super::command::{Decision, Outcomes, Planned};
use super::decide::{control, conversation, in_turn};
use super::state::State;
use crate::event::{BranchEvent, CallFate, MailKind, Outcome, Sender};
use crate::id::{BodyRef, TurnId};
use crate::path::AgentPath;
use crate::permission::Answer;
use crate::refusal::{Refusal, RefusalKind};
use crate::roster::{Agent, Standing};
use crate::task::Owner;

/// How a turn ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settlement {
    pub(super) outcome: Outcome,
    pub(super) result: Option<BodyRef>,
    pub(super) reason: Option<String>,
    pub(super) report: BodyRef,
}

/// The whole unread queue, oldest first, each its own message, in one batch with its removal.
pub(super) fn deliver(state: &State, path: &AgentPath, turn: TurnId) -> Result<Decision, Refusal> {
    let agent = in_turn(state, path, turn)?;
    let count = agent.unread.len();
    let mut events: Vec<Planned> = agent
        .unread
        .iter()
        .map(|mail| {
            let heard = BranchEvent::Heard {
                turn,
                from: mail.from.clone(),
                mail: Some(mail.id),
                sort: mail.kind,
                body: mail.body,
            };
            conversation(&agent.id, heard)
        })
        .collect();
    if count > 0 {
        let mail = agent.unread.iter().map(|m| m.id).collect();
        events.push(control(BranchEvent::MailDelivered { to: path.clone(), mail }));
    }
    Ok(Decision { events, answer: Outcomes::Delivered(count) })
}

/// One end, with its RESULT, the task settlement and whatever of the turn was still open, in one
/// batch. A turn with mail that woke it does not complete before it heard it.
pub(super) fn settle(
    state: &State,
    agent: &Agent,
    turn: TurnId,
    settlement: Settlement,
) -> Result<Decision, Refusal> {
    if settlement.outcome == Outcome::Completed && agent.unread.iter().any(|m| m.wake) {
        return Err(Refusal::new(
            RefusalKind::MailWaiting,
            format!("{} has mail that this turn was asked to hear", agent.path),
        ));
    }
    Ok(Decision {
        events: settlement_events(state, agent, turn, settlement),
        answer: Outcomes::Done,
    })
}

fn settlement_events(
    state: &State,
    agent: &Agent,
    turn: TurnId,
    settlement: Settlement,
) -> Vec<Planned> {
    let Settlement { outcome, result, reason, report } = settlement;
    let path = &agent.path;
    // Calls run one after another: the first without a result may have been started, the later
    // ones were not.
    let fates = std::iter::once(CallFate::Unknown).chain(std::iter::repeat(CallFate::NotStarted));
    let mut events: Vec<Planned> = agent
        .open_calls
        .iter()
        .zip(fates)
        .map(|(call, fate)| {
            conversation(&agent.id, BranchEvent::Unanswered { turn, call: call.clone(), fate })
        })
        .collect();
    events.extend(
        state.branch.permissions.values().filter(|r| r.turn == turn).map(|r| {
            control(BranchEvent::PermissionSettled { id: r.id, answer: Answer::Withdrawn })
        }),
    );
    events.push(control(BranchEvent::TurnSettled {
        path: path.clone(),
        turn,
        outcome,
        result,
        reason,
    }));
    if let Some(parent) = path.parent() {
        events.push(control(BranchEvent::MailStored {
            kind: MailKind::Result,
            from: Sender::Agent(path.clone()),
            to: parent,
            body: report,
            wake: false,
        }));
        if outcome == Outcome::Completed {
            let tasks = state.branch.tasks.close_owned(path);
            if !tasks.is_empty() {
                events.push(control(BranchEvent::TasksWritten { by: Sender::Stead, tasks }));
            }
            let owner = Owner::Agent(path.clone());
            if state.branch.tasks.notes.contains_key(&owner) {
                events.push(control(BranchEvent::NoteSet { owner, note: None }));
            }
        }
    }
    events
}

/// Settles what a crash left: every running turn as interrupted, every reservation refused. Doing
/// it twice changes nothing.
pub(super) fn recover(state: &State, reason: &str, report: BodyRef) -> Decision {
    let mut events = Vec::new();
    let (mut turns, mut reservations) = (0, 0);
    // Deepest first, so that a parent's RESULT mail never goes to an agent settled before it.
    let mut agents: Vec<&Agent> = state.branch.roster.all().collect();
    agents.sort_by_key(|a| std::cmp::Reverse(a.path.depth()));
    for agent in agents {
        match agent.standing {
            Standing::Idle => {}
            Standing::Preparing => {
                reservations += 1;
                events.push(control(BranchEvent::AgentRefused {
                    path: agent.path.clone(),
                    reason: reason.to_owned(),
                }));
            }
            Standing::Active(turn) => {
                turns += 1;
                let settlement = Settlement {
                    outcome: Outcome::Interrupted,
                    result: None,
                    reason: Some(reason.to_owned()),
                    report,
                };
                events.extend(settlement_events(state, agent, turn, settlement));
            }
        }
    }
    Decision { events, answer: Outcomes::Recovered { turns, reservations } }
}
