//! Start of a session, and spawning as a transaction (A4): reserve, then publish or refuse.

use std::collections::BTreeSet;

use super::command::{Decision, Outcomes, Planned};
use super::decide::{control, conversation, done, world};
use super::state::State;
use super::{budget, delegate};
use crate::delegated::{Admission, Delegated, FIRST_TASK, MOST_ROOTS};
use crate::event::{
    BranchEvent, DriverSpec, Frozen, MailKind, Sender, SessionStarted, Stream, WorldEvent,
};
use crate::id::{BodyRef, CallId, Position, RoleName, SessionId, TaskId, TurnId};
use crate::layout::{AbsoluteDir, Placement, Root};
use crate::line;
use crate::mail::LONGEST_BODY;
use crate::path::AgentPath;
use crate::refusal::{Refusal, RefusalKind};
use crate::roster::{Agent, MOST_CAPACITY, Standing};
use crate::task::{Owner, Status, Task};

/// What `/root` is made of.
pub(super) struct RootAgent {
    pub(super) driver: DriverSpec,
    pub(super) directory: AbsoluteDir,
    pub(super) message: Option<BodyRef>,
    pub(super) frozen: Box<Frozen>,
}

/// What a new agent is to be.
pub(super) struct Spawn {
    pub(super) task_name: String,
    pub(super) role: Option<RoleName>,
    pub(super) message: BodyRef,
    pub(super) directory: Option<AbsoluteDir>,
    pub(super) driver: Option<DriverSpec>,
    pub(super) frozen: Box<Frozen>,
}

/// Refuses to begin a session where one is, or one that is not well formed.
pub(super) fn check_start(state: &State, started: &SessionStarted) -> Result<(), Refusal> {
    if state.world.started.is_some() || state.tip != 0 {
        return Err(Refusal::new(
            RefusalKind::AlreadyExists,
            format!("session {} exists", started.session),
        )
        .hint(format!("`stead run --session {}` continues it", started.session)));
    }
    if !(1..=MOST_ROOTS).contains(&started.roots.len()) {
        return Err(Refusal::new(RefusalKind::InvalidArgument, "a session has 1 to 64 roots"));
    }
    if !(1..=MOST_CAPACITY).contains(&started.capacity) {
        return Err(Refusal::new(
            RefusalKind::InvalidArgument,
            format!("a session's capacity is 1 to {MOST_CAPACITY}"),
        ));
    }
    check_roots(&started.roots)
}

pub(super) fn start(
    state: &State,
    started: SessionStarted,
    root: RootAgent,
    title: &str,
    notes: &[BodyRef],
) -> Result<Decision, Refusal> {
    check_start(state, &started)?;
    if let Some(message) = root.message {
        check_text("the message", message)?;
    }
    root.frozen.budget.check(&root.driver)?;
    let id = started.session.clone();
    let path = AgentPath::root();
    let message = root.message;
    if started.placement == Placement::PrivateCopies {
        let task = Some(FIRST_TASK);
        let mut events = vec![world(WorldEvent::SessionStarted(started.clone()))];
        events.extend(first_task(&started.roots, FIRST_TASK, title)?);
        events.push(root.reserved(&id, task));
        let answer = Outcomes::Reserved { path, agent: id, again: false, task };
        return Ok(Decision { events, answer });
    }
    let mut events = vec![
        world(WorldEvent::SessionStarted(started)),
        root.reserved(&id, None),
        control(BranchEvent::AgentPublished { path: path.clone(), directory: None }),
    ];
    let Some(message) = message else {
        let answer = Outcomes::Reserved { path, agent: id, again: false, task: None };
        return Ok(Decision { events, answer });
    };
    let turn = TurnId(4);
    let first = First { from: Sender::Person, sort: MailKind::User, body: message };
    events.extend(beginning(&path, &id, turn, Some(first), notes));
    Ok(Decision { events, answer: Outcomes::Started { path, turn } })
}

/// The reservation of the task that `/root` of a session with private copies works on.
pub(super) fn first_task(
    roots: &[Root],
    task: TaskId,
    title: &str,
) -> Result<Vec<Planned>, Refusal> {
    Ok(vec![
        world(WorldEvent::TasksNumbered { last: task }),
        world(WorldEvent::TaskReserved {
            task,
            owner: AgentPath::root(),
            title: delegate::check_title(title)?,
            blocked_by: BTreeSet::new(),
            roots: roots.to_vec(),
        }),
    ])
}

impl RootAgent {
    pub(super) fn reserved(self, id: &SessionId, task: Option<TaskId>) -> Planned {
        control(BranchEvent::AgentReserved {
            agent: id.clone(),
            path: AgentPath::root(),
            role: None,
            driver: self.driver,
            directory: self.directory,
            message: self.message,
            call: None,
            task,
            frozen: self.frozen,
        })
    }
}

/// What a turn hears first.
pub(super) struct First {
    pub(super) from: Sender,
    pub(super) sort: MailKind,
    pub(super) body: BodyRef,
}

/// The beginning of a turn: what it was given, and what hooks had noted for it, used once (A18).
/// `turn` is the position that the first of these events gets.
pub(super) fn beginning(
    path: &AgentPath,
    agent: &SessionId,
    turn: TurnId,
    first: Option<First>,
    notes: &[BodyRef],
) -> Vec<Planned> {
    let started = BranchEvent::TurnStarted { path: path.clone(), context: notes.to_vec() };
    let noted = |body: &BodyRef| First { from: Sender::Stead, sort: MailKind::Note, body: *body };
    let heard =
        first.into_iter().chain(notes.iter().map(noted)).map(|First { from, sort, body }| {
            conversation(agent, BranchEvent::Heard { turn, from, mail: None, sort, body })
        });
    std::iter::once(control(started)).chain(heard).collect()
}

/// Roots may not overlap, and slots differ without regard to case (`decisions.md`).
pub(super) fn check_roots(roots: &[Root]) -> Result<(), Refusal> {
    for (number, root) in roots.iter().enumerate() {
        for other in roots.iter().skip(number + 1) {
            let invalid = |line: String| Err(Refusal::new(RefusalKind::InvalidArgument, line));
            if root.id == other.id {
                let folder = root.directory.as_path().display();
                return Err(Refusal::new(
                    RefusalKind::InvalidArgument,
                    format!("{folder} is given twice, as {} and {}", root.slot, other.slot),
                )
                .hint("give each folder once"));
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
        format!("the session allows {capacity} active agents, and has {active}"),
    )
    .hint("nothing was queued: wait_agent until one settles, then try again"))
}

pub(super) fn reserve(
    state: &State,
    caller: &AgentPath,
    agent: SessionId,
    call: Option<CallId>,
    new: Spawn,
) -> Result<Decision, Refusal> {
    let parent = state.branch.roster.find(caller)?;
    if let Some(again) = call.as_ref().and_then(|call| reserved_before(state, caller, call)) {
        return Ok(again);
    }
    let Spawn { task_name, role, message, directory, driver, frozen } = new;
    check_text("`message`", message)?;
    let driver = driver.unwrap_or_else(|| parent.driver.clone());
    budget::check_new(state, parent, &frozen, &driver)?;
    let path = check_new(state, parent, &agent, call.is_some(), &task_name)?;
    let reserved = BranchEvent::AgentReserved {
        agent: agent.clone(),
        path: path.clone(),
        role: role.or_else(|| parent.role.clone()),
        driver,
        frozen: inherited(parent, frozen, directory.is_none()),
        directory: directory.unwrap_or_else(|| parent.directory.clone()),
        message: Some(message),
        call,
        task: parent.task,
    };
    Ok(Decision {
        events: vec![control(reserved)],
        answer: Outcomes::Reserved { path, agent, again: false, task: None },
    })
}

/// An agent without a profile of its own has its parent's, for good (A6); and one that is in its
/// parent's directory is in its parent's worktree.
pub(super) fn inherited(
    parent: &Agent,
    mut frozen: Box<Frozen>,
    in_its_directory: bool,
) -> Box<Frozen> {
    frozen.profile = frozen.profile.or(parent.frozen.profile);
    if in_its_directory {
        frozen.worktree.clone_from(&parent.frozen.worktree);
    }
    frozen
}

/// The same call again has the same effect: one agent.
pub(super) fn reserved_before(
    state: &State,
    caller: &AgentPath,
    call: &CallId,
) -> Option<Decision> {
    let known = state
        .branch
        .roster
        .all()
        .find(|a| a.call.as_ref() == Some(call) && a.path.parent().as_ref() == Some(caller))?;
    let answer = Outcomes::Reserved {
        path: known.path.clone(),
        agent: known.id.clone(),
        again: true,
        task: own_task(state, known).map(|own| own.task),
    };
    Some(Decision { events: Vec::new(), answer })
}

/// Whether `parent` may have a new agent now, and its path (A4, A8).
pub(super) fn check_new(
    state: &State,
    parent: &Agent,
    agent: &SessionId,
    by_call: bool,
    name: &str,
) -> Result<AgentPath, Refusal> {
    let roster = &state.branch.roster;
    let caller = &parent.path;
    if by_call && parent.turn().is_none() {
        return Err(Refusal::new(
            RefusalKind::WrongState,
            format!("the turn of {caller} that asked for an agent has ended"),
        ));
    }
    // An id that ever had a conversation is never given again, rewinds or not.
    if roster.with_id(agent).is_some() || state.next_seq(&Stream::Conversation(agent.clone())) > 1 {
        return Err(Refusal::new(RefusalKind::AlreadyExists, format!("the id {agent} is taken")));
    }
    check_room(state)?;
    caller
        .derive_child(name, |path| roster.at(path).is_some())
        .map_err(|e| Refusal::new(RefusalKind::InvalidArgument, e.to_string()))
}

/// The task that this agent was made for, if it was made for one.
pub(super) fn own_task<'a>(state: &'a State, agent: &Agent) -> Option<&'a Delegated> {
    let task = state.world.delegated.get(&agent.task?)?;
    (task.owner == agent.path).then_some(task)
}

fn preparing<'a>(state: &'a State, path: &AgentPath) -> Result<&'a Agent, Refusal> {
    state.branch.roster.at(path).filter(|a| a.standing == Standing::Preparing).ok_or_else(|| {
        Refusal::new(RefusalKind::WrongState, format!("{path} is not being prepared"))
    })
}

pub(super) fn publish(
    state: &State,
    path: &AgentPath,
    admission: Admission,
) -> Result<Decision, Refusal> {
    let Admission { copies, notes } = admission;
    let agent = preparing(state, path)?;
    let own = own_task(state, agent);
    let wanted = own.map(|own| own.roots.as_slice()).unwrap_or_default();
    if !wanted.iter().map(|root| &root.slot).eq(copies.iter().map(|made| &made.slot)) {
        return Err(Refusal::new(
            RefusalKind::WrongState,
            format!("the copies made for {path} are not those of its layout"),
        ));
    }
    let directory = copies.first().map(|primary| primary.directory.clone());
    let mut events = vec![control(BranchEvent::AgentPublished { path: path.clone(), directory })];
    if let Some(own) = own {
        events.push(world(WorldEvent::TaskAdmitted { task: own.task, copies, notes }));
        // What was completed meanwhile blocks nothing.
        let open = |id: &&TaskId| {
            state.branch.tasks.tasks.get(id).is_some_and(|t| t.status != Status::Completed)
        };
        let task = Task {
            id: own.task,
            subject: own.title.clone(),
            description: String::new(),
            status: Status::InProgress,
            owner: Owner::of(Some(path)),
            blocked_by: own.blocked_by.iter().filter(open).copied().collect(),
        };
        events.push(control(BranchEvent::TasksWritten { by: Sender::Stead, tasks: vec![task] }));
    }
    let Some(body) = agent.message else {
        let (path, id) = (path.clone(), agent.id.clone());
        let task = own.map(|own| own.task);
        let answer = Outcomes::Reserved { path, agent: id, again: false, task };
        return Ok(Decision { events, answer });
    };
    let before = Position::try_from(events.len()).unwrap_or(Position::MAX);
    let turn = TurnId(state.tip.saturating_add(before).saturating_add(1));
    let (from, sort) = match path.parent() {
        Some(parent) => (Sender::Agent(parent), MailKind::Mail),
        None => (Sender::Person, MailKind::User),
    };
    let first = First { from, sort, body };
    events.extend(beginning(path, &agent.id, turn, Some(first), &agent.notes));
    Ok(Decision { events, answer: Outcomes::Started { path: path.clone(), turn } })
}

pub(super) fn refuse(state: &State, path: &AgentPath, reason: &str) -> Result<Decision, Refusal> {
    let agent = preparing(state, path)?;
    Ok(done(refusal_events(state, agent, reason)))
}

/// What drops a reservation: the agent's, and its task's if it has one of its own.
pub(super) fn refusal_events(state: &State, agent: &Agent, reason: &str) -> Vec<Planned> {
    let reason = line::brief(reason);
    let task = own_task(state, agent)
        .map(|own| WorldEvent::TaskRefused { task: own.task, reason: reason.clone() });
    let refused = BranchEvent::AgentRefused { path: agent.path.clone(), reason };
    std::iter::once(control(refused)).chain(task.map(world)).collect()
}
