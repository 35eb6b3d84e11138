//! Writing tasks and notes: one batch, all or nothing (A16).

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::command::{Decision, Outcomes};
use super::decide::{control, world};
use super::state::State;
use crate::event::{BranchEvent, Sender, WorldEvent};
use crate::path::AgentPath;
use crate::refusal::{Refusal, RefusalKind};
use crate::roster::Roster;
use crate::task::{LARGEST_BATCH, LONGEST_TEXT, Owner, TaskChange};

pub(super) fn write(
    state: &State,
    by: Option<AgentPath>,
    mut changes: Vec<TaskChange>,
    notes: Vec<(Option<Owner>, String)>,
) -> Result<Decision, Refusal> {
    let invalid = |line: String| Err(Refusal::new(RefusalKind::InvalidArgument, line));
    let roster = &state.branch.roster;
    if let Some(by) = &by {
        roster.find(by)?;
    }
    if changes.is_empty() && notes.is_empty() {
        return invalid("nothing to write was given".to_owned());
    }
    if notes.len() > LARGEST_BATCH {
        return invalid(format!("a batch has at most {LARGEST_BATCH} notes"));
    }
    for change in &mut changes {
        change.owner = change.owner.take().map(|owner| known(roster, owner)).transpose()?;
    }
    let mut events = Vec::with_capacity(notes.len());
    let mut list = Cow::Borrowed(&state.branch.tasks);
    let mut numbers = BTreeSet::new();
    let used = state.world.last_task;
    if !changes.is_empty() {
        for change in &changes {
            follows_its_agent(state, change)?;
        }
        let exists = |path: &AgentPath| roster.find(path).is_ok();
        let (tasks, last) = list.write(by.as_ref(), used, &changes, exists)?;
        if last > used {
            events.push(world(WorldEvent::TasksNumbered { last }));
        }
        let asked: BTreeSet<_> = changes.iter().filter_map(|c| c.id).collect();
        numbers =
            tasks.iter().map(|t| t.id).filter(|id| asked.contains(id) || *id > used).collect();
        list.to_mut().tasks.extend(tasks.iter().map(|t| (t.id, t.clone())));
        let author = by.clone().map_or(Sender::Person, Sender::Agent);
        events.push(control(BranchEvent::TasksWritten { by: author, tasks }));
    }
    let mut notes_dropped = Vec::new();
    for (owner, text) in notes {
        let owner = match owner {
            Some(owner) => known(roster, owner)?,
            None => Owner::of(by.as_ref()),
        };
        if let (Owner::Agent(path), Some(by)) = (&owner, &by)
            && !by.is_root()
            && !path.is_within(by)
        {
            return Err(Refusal::new(
                RefusalKind::NotAllowed,
                format!("the note of {path} is not the caller's to write"),
            ));
        }
        if text.chars().count() > LONGEST_TEXT {
            return invalid(format!("a note has at most {LONGEST_TEXT} characters"));
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

/// The owner as it is stored: in its one spelling, an agent that is published, and no agent's id.
/// A delegated task's title, status and owner follow its agent. Task 1 is `/root`'s, and settling a
/// turn never closes it, so its status may be written.
fn follows_its_agent(state: &State, change: &TaskChange) -> Result<(), Refusal> {
    let Some(own) = change.id.and_then(|id| state.world.delegated.get(&id)) else { return Ok(()) };
    let status = change.status.is_some() && !own.owner.is_root();
    if change.subject.is_none() && change.owner.is_none() && !status {
        return Ok(());
    }
    Err(Refusal::new(
        RefusalKind::NotAllowed,
        format!("title, status and owner of task {} follow {}", own.task, own.owner),
    )
    .hint("its description and `blocked_by` can be written"))
}

fn known(roster: &Roster, owner: Owner) -> Result<Owner, Refusal> {
    let owner = Owner::try_from(String::from(owner))
        .map_err(|line| Refusal::new(RefusalKind::InvalidArgument, line))?;
    match &owner {
        Owner::Main => {}
        Owner::Agent(path) => {
            roster.find(path)?;
        }
        Owner::Bucket(label) => {
            if let Some(agent) = roster.published().find(|a| a.id.as_str() == label) {
                return Err(Refusal::new(
                    RefusalKind::UnknownAgent,
                    format!("{label} is an id, and ids own no tasks"),
                )
                .hint(format!("the agent's address is {}", agent.path)));
            }
        }
    }
    Ok(owner)
}
