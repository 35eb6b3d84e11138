//! Start of a session, and spawning as a transaction (A4): reserve, then publish or refuse.

use super::command::{Decision, Outcomes, Planned};
use super::decide::{control, conversation, done, world};
use super::state::State;
use crate::event::{BranchEvent, DriverSpec, MailKind, Sender, SessionStarted, Stream, WorldEvent};
use crate::id::{BodyRef, CallId, Position, RoleName, SessionId, TurnId};
use crate::layout::AbsoluteDir;
use crate::line;
use crate::mail::LONGEST_BODY;
use crate::path::AgentPath;
use crate::refusal::{Refusal, RefusalKind};
use crate::roster::Standing;

/// The position at which the batch that starts a session ends.
pub(super) const FIRST_BATCH: Position = 5;

pub(super) fn start(
    state: &State,
    started: SessionStarted,
    driver: DriverSpec,
    directory: AbsoluteDir,
    message: BodyRef,
) -> Result<Decision, Refusal> {
    if state.world.started.is_some() || state.tip != 0 {
        return Err(Refusal::new(
            RefusalKind::AlreadyExists,
            format!("session {} exists", started.session),
        )
        .hint(format!("`stead run --session {}` continues it", started.session)));
    }
    if started.roots.is_empty() || started.roots.len() > 64 {
        return Err(Refusal::new(RefusalKind::InvalidArgument, "a session has 1 to 64 roots"));
    }
    if !(1..=64).contains(&started.capacity) {
        return Err(Refusal::new(RefusalKind::InvalidArgument, "a session's capacity is 1 to 64"));
    }
    check_roots(&started)?;
    check_text("the message", message)?;
    let id = started.session.clone();
    let path = AgentPath::root();
    let turn = TurnId(4);
    let events = vec![
        world(WorldEvent::SessionStarted(started)),
        control(BranchEvent::AgentReserved {
            agent: id.clone(),
            path: path.clone(),
            role: None,
            driver,
            directory,
            message,
            call: None,
        }),
        control(BranchEvent::AgentPublished { path: path.clone() }),
        control(BranchEvent::TurnStarted { path: path.clone() }),
        conversation(
            &id,
            BranchEvent::Heard {
                turn,
                from: Sender::Person,
                mail: None,
                sort: MailKind::User,
                body: message,
            },
        ),
    ];
    Ok(Decision { events, answer: Outcomes::Started { path, turn } })
}

/// Roots may not overlap, and slots differ without regard to case (`decisions.md`).
fn check_roots(started: &SessionStarted) -> Result<(), Refusal> {
    for (number, root) in started.roots.iter().enumerate() {
        for other in started.roots.iter().skip(number + 1) {
            let invalid = |line: String| Err(Refusal::new(RefusalKind::InvalidArgument, line));
            if root.id == other.id {
                return invalid(format!("two roots have the id {}", root.id));
            }
            if root.slot.as_str().eq_ignore_ascii_case(other.slot.as_str()) {
                return invalid(format!("two roots have the slot {}", root.slot));
            }
            if root.directory.is_within(&other.directory)
                || other.directory.is_within(&root.directory)
            {
                let line = format!(
                    "the roots {} and {} overlap",
                    root.directory.as_path().display(),
                    other.directory.as_path().display()
                );
                return Err(Refusal::new(RefusalKind::InvalidArgument, line)
                    .hint("give the outer one alone, or two that stand side by side"));
            }
        }
    }
    Ok(())
}

/// Refuses a text that is empty or longer than is taken.
pub(super) fn check_text(what: &str, body: BodyRef) -> Result<(), Refusal> {
    let invalid = |line: String| Err(Refusal::new(RefusalKind::InvalidArgument, line));
    match usize::try_from(body.bytes) {
        Ok(0) => invalid(format!("{what} may not be empty")),
        Ok(bytes) if bytes <= LONGEST_BODY => Ok(()),
        _ => invalid(format!("{what} has {} bytes; at most {LONGEST_BODY} are taken", body.bytes)),
    }
}

/// Refuses when as many agents are active as the session allows (A8).
pub(super) fn check_room(state: &State) -> Result<(), Refusal> {
    let capacity = state.world.started.as_ref().map_or(0, |s| usize::from(s.capacity));
    let active = state.branch.roster.active();
    if active < capacity {
        return Ok(());
    }
    Err(Refusal::new(
        RefusalKind::NoRoom,
        format!("{active} agents are active, as many as this session allows"),
    )
    .hint("nothing was queued: wait_agent until one settles, then try again"))
}

#[expect(clippy::too_many_arguments, reason = "the fields of one command, taken apart")]
pub(super) fn reserve(
    state: &State,
    caller: &AgentPath,
    agent: SessionId,
    call: Option<CallId>,
    task_name: &str,
    role: Option<RoleName>,
    message: BodyRef,
    directory: Option<AbsoluteDir>,
) -> Result<Decision, Refusal> {
    let roster = &state.branch.roster;
    let parent = roster.find(caller)?;
    // The same call again has the same effect: one agent.
    if let Some(call) = &call
        && let Some(known) = roster
            .all()
            .find(|a| a.call.as_ref() == Some(call) && a.path.parent().as_ref() == Some(caller))
    {
        let answer =
            Outcomes::Reserved { path: known.path.clone(), agent: known.id.clone(), again: true };
        return Ok(Decision { events: Vec::new(), answer });
    }
    check_text("`message`", message)?;
    if call.is_some() && parent.turn().is_none() {
        return Err(Refusal::new(
            RefusalKind::WrongState,
            format!("the turn of {caller} that asked for an agent has ended"),
        ));
    }
    // An id that ever had a conversation is never given again, rewinds or not.
    if roster.with_id(&agent).is_some() || state.next_seq(&Stream::Conversation(agent.clone())) > 1
    {
        return Err(Refusal::new(RefusalKind::AlreadyExists, format!("the id {agent} is taken")));
    }
    check_room(state)?;
    let path = caller
        .derive_child(task_name, |path| roster.at(path).is_some())
        .map_err(|e| Refusal::new(RefusalKind::InvalidArgument, e.to_string()))?;
    let reserved = BranchEvent::AgentReserved {
        agent: agent.clone(),
        path: path.clone(),
        role: role.or_else(|| parent.role.clone()),
        driver: parent.driver.clone(),
        directory: directory.unwrap_or_else(|| parent.directory.clone()),
        message,
        call,
    };
    Ok(Decision {
        events: vec![control(reserved)],
        answer: Outcomes::Reserved { path, agent, again: false },
    })
}

fn preparing<'a>(state: &'a State, path: &AgentPath) -> Result<&'a crate::roster::Agent, Refusal> {
    state.branch.roster.at(path).filter(|a| a.standing == Standing::Preparing).ok_or_else(|| {
        Refusal::new(RefusalKind::WrongState, format!("{path} is not being prepared"))
    })
}

pub(super) fn publish(state: &State, path: &AgentPath) -> Result<Decision, Refusal> {
    let agent = preparing(state, path)?;
    let turn = TurnId(state.tip + 2);
    let from = path.parent().map_or(Sender::Person, Sender::Agent);
    let heard =
        BranchEvent::Heard { turn, from, mail: None, sort: MailKind::Mail, body: agent.message };
    let events: Vec<Planned> = vec![
        control(BranchEvent::AgentPublished { path: path.clone() }),
        control(BranchEvent::TurnStarted { path: path.clone() }),
        conversation(&agent.id, heard),
    ];
    Ok(Decision { events, answer: Outcomes::Started { path: path.clone(), turn } })
}

pub(super) fn refuse(state: &State, path: &AgentPath, reason: &str) -> Result<Decision, Refusal> {
    preparing(state, path)?;
    let reason = line::brief(reason);
    Ok(done(vec![control(BranchEvent::AgentRefused { path: path.clone(), reason })]))
}
