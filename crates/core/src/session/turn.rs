//! The life of a turn: what it hears, says and asks, and that it ends once (A9, A10).

use std::collections::BTreeSet;

use super::command::{Decision, Outcomes, Planned};
use super::decide::{control, conversation, done, world};
use super::spawn::{own_task, refusal_events};
use super::state::State;
use crate::event::{BranchEvent, CallFate, MailKind, Outcome, Sender, WorldEvent};
use crate::id::{BodyRef, CallId, PermissionId, Timestamp, TurnId};
use crate::line;
use crate::path::AgentPath;
use crate::permission::{Answer, Deed, Verdict, Zone};
use crate::refusal::{Refusal, RefusalKind};
use crate::roster::{Agent, Standing};
use crate::shell::ShellFate;
use crate::task::Owner;
use crate::usage::Usage;

/// How a turn ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settlement {
    pub(super) outcome: Outcome,
    pub(super) result: Option<BodyRef>,
    pub(super) reason: Option<String>,
    pub(super) report: BodyRef,
}

pub(super) fn in_turn<'a>(
    state: &'a State,
    path: &AgentPath,
    turn: TurnId,
) -> Result<&'a Agent, Refusal> {
    let agent = state.branch.roster.find(path)?;
    agent.check_turn(turn)?;
    Ok(agent)
}

/// Between a call and its result nothing else enters a conversation.
pub(super) fn no_open_call(agent: &Agent) -> Result<(), Refusal> {
    match agent.open_calls.first() {
        None => Ok(()),
        Some(open) => Err(Refusal::new(
            RefusalKind::WrongState,
            format!("call {open} of {} has no result yet", agent.path),
        )),
    }
}

/// The whole unread queue, oldest first, each its own message, in one batch with its removal.
pub(super) fn deliver(state: &State, path: &AgentPath, turn: TurnId) -> Result<Decision, Refusal> {
    let agent = in_turn(state, path, turn)?;
    no_open_call(agent)?;
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

pub(super) fn say(
    state: &State,
    path: &AgentPath,
    turn: TurnId,
    body: BodyRef,
    calls: Vec<CallId>,
    usage: Option<Usage>,
) -> Result<Decision, Refusal> {
    let agent = in_turn(state, path, turn)?;
    no_open_call(agent)?;
    if calls.iter().collect::<BTreeSet<_>>().len() != calls.len() {
        return Err(Refusal::new(
            RefusalKind::InvalidArgument,
            format!("{path} gave two calls one id"),
        ));
    }
    Ok(done(vec![conversation(&agent.id, BranchEvent::Said { turn, body, calls, usage })]))
}

/// Calls are run one after another, so results come in the order of the calls; what is known of a
/// call without a result rests on that.
pub(super) fn answer(
    state: &State,
    path: &AgentPath,
    turn: TurnId,
    call: CallId,
    body: BodyRef,
) -> Result<Decision, Refusal> {
    let agent = in_turn(state, path, turn)?;
    if !agent.open_calls.contains(&call) {
        return Err(Refusal::new(
            RefusalKind::WrongState,
            format!("call {call} of {path} waits for no result"),
        ));
    }
    if agent.open_calls.first() != Some(&call) {
        no_open_call(agent)?;
    }
    Ok(done(vec![conversation(&agent.id, BranchEvent::Answered { turn, call, body })]))
}

pub(super) fn ask(
    state: &State,
    path: AgentPath,
    turn: TurnId,
    deed: Deed,
    zones: &[Zone],
    subject: &str,
    attended: bool,
) -> Result<Decision, Refusal> {
    let agent = in_turn(state, &path, turn)?;
    let subject = line::brief(subject);
    let denied = |why: &str, hint: &str| {
        Err(Refusal::new(RefusalKind::Denied, format!("{subject}: {why}")).hint(hint))
    };
    match state.judge(agent, &deed, zones) {
        Verdict::Allow => Ok(Decision { events: Vec::new(), answer: Outcomes::Allowed }),
        Verdict::Deny(rule) => denied(
            &format!("the rule `{rule}` is in force"),
            "the person's rules are in `[permissions]` of the settings, or set by `stead permit`",
        ),
        Verdict::Forbid => {
            denied("the plan ceiling is on", "the person lifts it with `stead mode --plan off`")
        }
        Verdict::Ask if !attended => denied(
            "nobody is there to ask",
            "the person starts the session with `--mode edits` or `--mode full-auto`, or with \
             `--detach` and answers with `stead permit`",
        ),
        Verdict::Ask => Ok(Decision {
            events: vec![control(BranchEvent::PermissionAsked {
                path,
                turn,
                grant: deed,
                subject,
            })],
            answer: Outcomes::Asked(PermissionId(state.tip + 1)),
        }),
    }
}

/// One end, with its RESULT, the task settlement and whatever of the turn was still open, in one
/// batch. A turn with mail that woke it does not complete before it heard it.
pub(super) fn settle(
    state: &State,
    path: &AgentPath,
    turn: TurnId,
    settlement: Settlement,
) -> Result<Decision, Refusal> {
    let agent = in_turn(state, path, turn)?;
    if settlement.outcome == Outcome::Completed && agent.unread.iter().any(|m| m.wake) {
        return Err(Refusal::new(
            RefusalKind::MailWaiting,
            format!("{path} has mail that this turn was asked to hear"),
        ));
    }
    if settlement.outcome == Outcome::Completed && !agent.shells.is_empty() {
        let shells: Vec<String> = agent.shells.keys().map(ToString::to_string).collect();
        return Err(Refusal::new(
            RefusalKind::ShellsLive,
            format!("background shells of {path} live: {}", shells.join(", ")),
        )
        .hint("the turn ends when they have ended, or are stopped"));
    }
    let worked = Worked { until: None, shells: ShellFate::Stopped };
    Ok(done(settlement_events(state, agent, turn, settlement, worked)))
}

/// What is known of the last work of a turn that ends.
#[derive(Clone, Copy)]
struct Worked {
    /// When it was done; none: it goes on until now.
    until: Option<Timestamp>,
    /// How shells that live end with it.
    shells: ShellFate,
}

fn settlement_events(
    state: &State,
    agent: &Agent,
    turn: TurnId,
    settlement: Settlement,
    worked: Worked,
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
    events.extend(agent.shells.keys().map(|shell| {
        let fate = worked.shells;
        control(BranchEvent::ShellEnded { path: path.clone(), shell: *shell, fate })
    }));
    if let Some(own) = own_task(state, agent) {
        events.push(world(WorldEvent::TaskSettled { task: own.task, outcome }));
    }
    events.push(control(BranchEvent::TurnSettled {
        path: path.clone(),
        turn,
        outcome,
        result,
        reason: reason.map(|text| line::brief(&text)),
        worked_until: worked.until,
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
                events.extend(refusal_events(state, agent, reason));
            }
            Standing::Active(turn) => {
                turns += 1;
                let settlement = Settlement {
                    outcome: Outcome::Interrupted,
                    result: None,
                    reason: Some(reason.to_owned()),
                    report,
                };
                let worked = Worked { until: state.last_seen(agent), shells: ShellFate::Lost };
                events.extend(settlement_events(state, agent, turn, settlement, worked));
            }
        }
    }
    Decision { events, answer: Outcomes::Recovered { turns, reservations } }
}
