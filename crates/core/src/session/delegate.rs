//! Proposing a task with an agent of its own: one reservation that ends in admission or refusal.

use std::collections::BTreeSet;

use super::budget;
use super::command::{Decision, Outcomes};
use super::decide::{control, world};
use super::spawn::{check_new, check_roots, check_text, inherited, reserved_before};
use super::state::State;
use crate::delegated::{LONGEST_TITLE, MOST_ROOTS, may_narrow};
use crate::event::{BranchEvent, DriverSpec, Frozen, WorldEvent};
use crate::id::{BodyRef, CallId, RoleName, SessionId, TaskId};
use crate::layout::{Placement, Root};
use crate::line;
use crate::path::AgentPath;
use crate::refusal::{Refusal, RefusalKind};

/// What is proposed.
pub(super) struct Proposal {
    pub(super) title: String,
    pub(super) role: Option<RoleName>,
    pub(super) message: BodyRef,
    pub(super) roots: Option<Vec<Root>>,
    pub(super) blocked_by: BTreeSet<TaskId>,
    pub(super) driver: Option<DriverSpec>,
    pub(super) frozen: Box<Frozen>,
}

pub(super) fn propose(
    state: &State,
    caller: &AgentPath,
    agent: SessionId,
    call: CallId,
    proposal: Proposal,
) -> Result<Decision, Refusal> {
    let parent = state.branch.roster.find(caller)?;
    if let Some(again) = reserved_before(state, caller, &call) {
        return Ok(again);
    }
    let Proposal { title, role, message, roots, blocked_by, driver, frozen } = proposal;
    let title = check_title(&title)?;
    check_text("`brief`", message)?;
    let Some(started) = &state.world.started else {
        return Err(Refusal::new(RefusalKind::NotFound, "the session has not started"));
    };
    let roots = match roots {
        Some(roots) => {
            check_layout(&started.roots, &roots)?;
            roots
        }
        None if started.placement == Placement::PrivateCopies => started.roots.clone(),
        None => Vec::new(),
    };
    if let Some(unknown) = blocked_by.iter().find(|id| !state.branch.tasks.tasks.contains_key(id)) {
        return Err(Refusal::new(RefusalKind::NotFound, format!("there is no task {unknown}"))
            .hint("task_list names the tasks there are"));
    }
    let driver = driver.unwrap_or_else(|| parent.driver.clone());
    budget::check_new(state, parent, &frozen, &driver)?;
    let path = check_new(state, parent, &agent, true, &title)?;
    let number = state
        .world
        .last_task
        .0
        .checked_add(1)
        .ok_or_else(|| Refusal::new(RefusalKind::InvalidArgument, "no task number is left"))?;
    let task = TaskId(number);
    let frozen = inherited(parent, frozen, roots.is_empty());
    // Until admission says where the copy of the primary is.
    let directory =
        roots.first().map_or_else(|| parent.directory.clone(), |root| root.directory.clone());
    let events = vec![
        world(WorldEvent::TasksNumbered { last: task }),
        world(WorldEvent::TaskReserved { task, owner: path.clone(), title, blocked_by, roots }),
        control(BranchEvent::AgentReserved {
            agent: agent.clone(),
            path: path.clone(),
            role: role.or_else(|| parent.role.clone()),
            driver,
            directory,
            message: Some(message),
            call: Some(call),
            task: Some(task),
            frozen,
        }),
    ];
    let answer = Outcomes::Reserved { path, agent, again: false, task: Some(task) };
    Ok(Decision { events, answer })
}

/// The title on one line, of 1 to [`LONGEST_TITLE`] characters.
pub(super) fn check_title(title: &str) -> Result<String, Refusal> {
    let title = line::one_line(title);
    let count = title.chars().count();
    if (1..=LONGEST_TITLE).contains(&count) {
        return Ok(title);
    }
    Err(Refusal::new(
        RefusalKind::InvalidArgument,
        format!("a title has 1 to {LONGEST_TITLE} characters; this one has {count}"),
    ))
}

/// A layout takes only what the person selected for this session, or folders inside it, and may
/// narrow the access, never widen it (seed 3).
fn check_layout(selected: &[Root], asked: &[Root]) -> Result<(), Refusal> {
    let invalid = |line: String| Refusal::new(RefusalKind::InvalidArgument, line);
    if !(1..=MOST_ROOTS).contains(&asked.len()) {
        let count = asked.len();
        return Err(invalid(format!("a layout has 1 to {MOST_ROOTS} roots; this one has {count}")));
    }
    for root in asked {
        let source = root.directory.as_path().display();
        let Some(given) = selected.iter().find(|s| root.directory.is_within(&s.directory)) else {
            return Err(Refusal::new(
                RefusalKind::NotAllowed,
                format!("{source} is not among the roots that the person selected"),
            )
            .hint("only the session's roots, or folders inside them, can be sources"));
        };
        if !may_narrow(given.access, root.access) {
            return Err(Refusal::new(
                RefusalKind::NotAllowed,
                format!("the person gave {source} to be read; a layout cannot widen that"),
            )
            .hint("ask for it with access `read`"));
        }
    }
    check_roots(asked)
}
