//! `decide`: a command on a state comes to events or to a refusal.

use std::collections::BTreeSet;

use super::command::{Command, Decision, Outcomes, Planned};
use super::spawn;
use super::state::State;
use super::turn;
use crate::event::{BranchEvent, Event, MailKind, Sender, Stream, WorldEvent};
use crate::id::{MailId, PermissionId, Position, SessionId, TurnId};
use crate::mail::{Receipt, ReceiptState};
use crate::path::AgentPath;
use crate::permission::{Answer, Request, Verdict};
use crate::refusal::{Refusal, RefusalKind};
use crate::roster::Agent;
use crate::task::{LONGEST_TEXT, Owner, TaskChange};

/// Decides one command. Pure: what it depends on stands in the state and in the command.
pub fn decide(state: &State, command: Command) -> Result<Decision, Refusal> {
    if state.world.started.is_none() && !matches!(command, Command::Start { .. }) {
        return Err(Refusal::new(RefusalKind::NotFound, "the session has not started"));
    }
    match command {
        Command::Start { started, driver, directory, message } => {
            spawn::start(state, started, driver, directory, message)
        }
        Command::Reserve { caller, agent, call, task_name, role, message, directory } => {
            spawn::reserve(state, &caller, agent, call, &task_name, role, message, directory)
        }
        Command::Publish { path } => spawn::publish(state, &path),
        Command::Refuse { path, reason } => spawn::refuse(state, &path, reason),
        Command::Send { from, target, body, wake } => send(state, from, &target, body, wake),
        Command::Deliver { path, turn } => turn::deliver(state, &path, turn),
        Command::Say { path, turn, body, calls } => {
            let agent = in_turn(state, &path, turn)?;
            if let Some(open) = agent.open_calls.first() {
                return Err(Refusal::new(
                    RefusalKind::WrongState,
                    format!("call {open} of {path} has no result yet"),
                ));
            }
            if calls.iter().collect::<BTreeSet<_>>().len() != calls.len() {
                return Err(Refusal::new(
                    RefusalKind::InvalidArgument,
                    format!("{path} gave two calls one id"),
                ));
            }
            let said = BranchEvent::Said { turn, body, calls };
            Ok(done(vec![conversation(&agent.id, said)]))
        }
        Command::Answer { path, turn, call, body } => {
            let agent = in_turn(state, &path, turn)?;
            if !agent.open_calls.contains(&call) {
                return Err(Refusal::new(
                    RefusalKind::WrongState,
                    format!("call {call} of {path} waits for no result"),
                ));
            }
            let answered = BranchEvent::Answered { turn, call, body };
            Ok(done(vec![conversation(&agent.id, answered)]))
        }
        Command::Settle { path, turn, outcome, result, reason, report } => {
            let agent = in_turn(state, &path, turn)?;
            turn::settle(state, agent, turn, turn::Settlement { outcome, result, reason, report })
        }
        Command::WriteTasks { by, changes, notes } => write_tasks(state, by, &changes, notes),
        Command::Ask { path, turn, deed, subject, attended } => {
            in_turn(state, &path, turn)?;
            match state.judge(&deed) {
                Verdict::Allow => Ok(Decision { events: Vec::new(), answer: Outcomes::Allowed }),
                Verdict::Forbid => {
                    Err(Refusal::new(RefusalKind::Denied, format!("{subject}: the plan ceiling is on"))
                        .hint("the person lifts it with `stead mode --plan off`"))
                }
                Verdict::Ask if !attended => {
                    Err(Refusal::new(RefusalKind::Denied, format!("{subject}: nobody is there to ask"))
                        .hint("the person starts the session with `--mode edits` or `--mode full-auto`, or with `--detach` and answers with `stead permit`"))
                }
                Verdict::Ask => {
                    let asked = BranchEvent::PermissionAsked { path, turn, grant: deed, subject };
                    Ok(Decision {
                        events: vec![control(asked)],
                        answer: Outcomes::Asked(PermissionId(state.tip + 1)),
                    })
                }
            }
        }
        Command::Permit { id, answer } => permit(state, id, answer),
        Command::SetMode { mode, plan_ceiling } => {
            let mode = mode.or(state.world.mode).unwrap_or(crate::permission::Mode::Ask);
            let plan_ceiling = plan_ceiling.unwrap_or(state.world.plan_ceiling);
            if Some(mode) == state.world.mode && plan_ceiling == state.world.plan_ceiling {
                return Ok(done(Vec::new()));
            }
            Ok(done(vec![world(WorldEvent::ModeSet { mode, plan_ceiling })]))
        }
        Command::Rewind { to, stable } => rewind(state, to, stable),
        Command::Recover { reason, report } => Ok(turn::recover(state, &reason, report)),
    }
}

/// Judges an interrupt and names the agent and its running turn; none: it is idle already, which
/// is a success (A6). `caller` is none for the person, who may interrupt `/root` too.
pub fn interrupt(
    state: &State,
    caller: Option<&AgentPath>,
    target: &str,
) -> Result<(AgentPath, Option<TurnId>), Refusal> {
    let root = AgentPath::root();
    let agent = state.branch.roster.resolve(caller.unwrap_or(&root), target)?;
    match caller {
        Some(_) if agent.path.is_root() => {
            Err(Refusal::new(RefusalKind::NotAllowed, "/root is interrupted by the person only"))
        }
        Some(caller) if *caller == agent.path => {
            Err(Refusal::new(RefusalKind::NotAllowed, "an agent does not interrupt itself")
                .hint("end the turn by answering without a call"))
        }
        _ => Ok((agent.path.clone(), agent.turn())),
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

pub(super) fn in_turn<'a>(
    state: &'a State,
    path: &AgentPath,
    turn: TurnId,
) -> Result<&'a Agent, Refusal> {
    let agent = state.branch.roster.find(path)?;
    agent.check_turn(turn)?;
    Ok(agent)
}

fn send(
    state: &State,
    from: Option<AgentPath>,
    target: &str,
    body: crate::id::BodyRef,
    wake: bool,
) -> Result<Decision, Refusal> {
    if body.bytes == 0 {
        return Err(Refusal::new(RefusalKind::InvalidArgument, "a message may not be empty"));
    }
    let root = AgentPath::root();
    let agent = state.branch.roster.resolve(from.as_ref().unwrap_or(&root), target)?;
    let to = &agent.path;
    // A person's words to /root always continue it; an agent's never wake it.
    let wake = wake || (from.is_none() && to.is_root());
    if wake && to.is_root() && from.is_some() {
        return Err(Refusal::new(
            RefusalKind::NotAllowed,
            "an agent may mail /root, never wake it",
        )
        .hint("send it without `wake`"));
    }
    let starts = wake && agent.turn().is_none();
    if starts && !to.is_root() {
        spawn::check_room(state)?;
    }
    let (kind, sender) = match from {
        Some(path) => (MailKind::Mail, Sender::Agent(path)),
        None => (MailKind::User, Sender::Person),
    };
    let mut events =
        vec![control(BranchEvent::MailStored { kind, from: sender, to: to.clone(), body, wake })];
    if starts {
        events.push(control(BranchEvent::TurnStarted { path: to.clone() }));
    }
    let receipt = Receipt {
        to: to.clone(),
        mail: MailId(state.tip + 1),
        state: match (wake, starts) {
            (_, true) => ReceiptState::TurnStarted,
            (true, false) => ReceiptState::QueuedForRunningTurn,
            (false, false) => ReceiptState::Stored,
        },
        result_to: if wake { to.parent() } else { None },
    };
    Ok(Decision { events, answer: Outcomes::Sent(receipt) })
}

fn write_tasks(
    state: &State,
    by: Option<AgentPath>,
    changes: &[TaskChange],
    notes: Vec<(Option<Owner>, String)>,
) -> Result<Decision, Refusal> {
    let roster = &state.branch.roster;
    let exists = |path: &AgentPath| roster.find(path).is_ok();
    let mut events = Vec::new();
    let mut list = state.branch.tasks.clone();
    let mut numbers = BTreeSet::new();
    let author = by.clone().map_or(Sender::Person, Sender::Agent);
    if !changes.is_empty() {
        let (tasks, last) = list.write(by.as_ref(), state.world.last_task, changes, exists)?;
        if last > state.world.last_task {
            events.push(world(WorldEvent::TasksNumbered { last }));
        }
        let asked: BTreeSet<_> = changes.iter().filter_map(|c| c.id).collect();
        numbers = tasks
            .iter()
            .map(|t| t.id)
            .filter(|id| asked.contains(id) || *id > state.world.last_task)
            .collect();
        list.tasks.extend(tasks.iter().map(|t| (t.id, t.clone())));
        events.push(control(BranchEvent::TasksWritten { by: author, tasks }));
    } else if notes.is_empty() {
        return Err(Refusal::new(RefusalKind::InvalidArgument, "nothing to write was given"));
    }
    let mut notes_dropped = Vec::new();
    for (owner, text) in notes {
        let owner = owner.unwrap_or_else(|| match &by {
            Some(path) if !path.is_root() => Owner::Agent(path.clone()),
            _ => Owner::Main,
        });
        if let Owner::Agent(path) = &owner {
            roster.find(path)?;
            if by.as_ref().is_some_and(|by| !by.is_root() && !path.is_within(by)) {
                return Err(Refusal::new(
                    RefusalKind::NotAllowed,
                    format!("the note of {path} is not the caller's to write"),
                ));
            }
        }
        if text.chars().count() > LONGEST_TEXT {
            return Err(Refusal::new(
                RefusalKind::InvalidArgument,
                format!("a note has at most {LONGEST_TEXT} characters"),
            ));
        }
        let note = (!text.trim().is_empty()).then_some(text);
        if note.is_some() && !list.has_open(&owner) {
            notes_dropped.push(owner);
        } else {
            events.push(control(BranchEvent::NoteSet { owner, note }));
        }
    }
    Ok(Decision { events, answer: Outcomes::Written { tasks: numbers, notes_dropped } })
}

fn permit(state: &State, id: PermissionId, answer: Answer) -> Result<Decision, Refusal> {
    let Some(Request { grant, .. }) = state.branch.permissions.get(&id) else {
        return Err(Refusal::new(
            RefusalKind::NotFound,
            format!("no permission request {id} is open"),
        )
        .hint("`stead permit list` names the open ones"));
    };
    let mut events = vec![control(BranchEvent::PermissionSettled { id, answer })];
    if answer == Answer::Session {
        events.push(world(WorldEvent::Granted { grant: grant.clone() }));
    }
    Ok(done(events))
}

fn rewind(state: &State, to: Position, stable: bool) -> Result<Decision, Refusal> {
    if let Some(busy) =
        state.branch.roster.all().find(|a| a.standing != crate::roster::Standing::Idle)
    {
        return Err(Refusal::new(
            RefusalKind::WrongState,
            format!("{} is not idle; a session is rewound when nothing runs", busy.path),
        )
        .hint(format!("`stead stop {}` ends its turn", busy.path)));
    }
    // The batch that starts a session ends at its fifth event and is never left behind.
    if to < spawn::FIRST_BATCH || to > state.tip || !stable {
        return Err(Refusal::new(
            RefusalKind::NotFound,
            format!("position {to} is not the end of a batch of this session"),
        ));
    }
    Ok(done(vec![world(WorldEvent::Rewound { to })]))
}
