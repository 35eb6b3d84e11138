//! The task list of a root session (A16): one list, session-wide numbers, owners by path.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::line;
use crate::path::AgentPath;
use crate::refusal::{Refusal, RefusalKind};

/// The longest subject, in characters.
pub const LONGEST_SUBJECT: usize = 1000;
/// The longest description or note, in characters.
pub const LONGEST_TEXT: usize = 16_384;
/// The most tasks that one batch may write.
pub const LARGEST_BATCH: usize = 256;

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nobody has begun it.
    Pending,
    /// Its owner is at it.
    InProgress,
    /// Done.
    Completed,
}

/// A task as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its number.
    pub id: TaskId,
    /// One line.
    pub subject: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How far it is.
    pub status: Status,
    /// Whose it is.
    pub owner: Owner,
    /// The open tasks that must be completed first.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub blocked_by: BTreeSet<TaskId>,
}

/// Whose a task is. Ownership is attribution: it starts and mails nobody.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Owner {
    /// The tree's shared list, which `/root` keeps.
    Main,
    /// One agent.
    Agent(AgentPath),
    /// A free label that anybody may change.
    Bucket(String),
}

impl Owner {
    /// The owner that a writer is itself; none for the person.
    pub fn of(writer: Option<&AgentPath>) -> Self {
        match writer {
            Some(path) if !path.is_root() => Self::Agent(path.clone()),
            _ => Self::Main,
        }
    }
}

impl TryFrom<String> for Owner {
    type Error = String;

    /// Empty and `/root` are [`Owner::Main`]; what begins with `/` must be a canonical path; the
    /// rest is a bucket: one line of at most 128 characters, no blanks at its ends.
    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() || text == "/root" {
            return Ok(Self::Main);
        }
        if text.starts_with('/') {
            return AgentPath::parse(&text).map(Self::Agent).map_err(|e| e.to_string());
        }
        let long = text.chars().nth(128).is_some();
        if long || text.trim() != text || text.chars().any(char::is_control) {
            let text = line::cut(&text, 128);
            return Err(format!("{text:?} is not an owner: one line of at most 128 characters"));
        }
        Ok(Self::Bucket(text))
    }
}

impl From<Owner> for String {
    fn from(owner: Owner) -> String {
        match owner {
            Owner::Main => "/root".to_owned(),
            Owner::Agent(path) => path.into(),
            Owner::Bucket(label) => label,
        }
    }
}

/// One element of a batch: a new task without `id`, a change with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskChange {
    /// Which task to change; none makes one.
    pub id: Option<TaskId>,
    /// Its subject; needed for a new task.
    pub subject: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// Its status.
    pub status: Option<Status>,
    /// Its owner; a new task without one is the writer's.
    pub owner: Option<Owner>,
    /// The tasks that must be completed first.
    pub blocked_by: Option<BTreeSet<TaskId>>,
}

/// The tasks of one branch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskList {
    /// Every task by number.
    pub tasks: BTreeMap<TaskId, Task>,
    /// The short status notes by owner.
    pub notes: BTreeMap<Owner, String>,
    /// How many turns of `/root` began since tasks were written, or `/root` was reminded of them.
    pub quiet_turns: u32,
}

impl TaskList {
    /// Whether the owner has a task that is not completed.
    pub fn has_open(&self, owner: &Owner) -> bool {
        self.tasks.values().any(|t| t.owner == *owner && t.status != Status::Completed)
    }

    /// Judges a batch on the state before it and gives the tasks that it changes, each whole, and
    /// the highest number used. Nothing is applied when one element is refused (A16, seed 0).
    ///
    /// `writer` is none for the person. `exists` says whether an agent with that path is retained.
    pub fn write(
        &self,
        writer: Option<&AgentPath>,
        last: TaskId,
        changes: &[TaskChange],
        exists: impl Fn(&AgentPath) -> bool,
    ) -> Result<(Vec<Task>, TaskId), Refusal> {
        let invalid = |line: String| Refusal::new(RefusalKind::InvalidArgument, line);
        if changes.is_empty() || changes.len() > LARGEST_BATCH {
            return Err(invalid(format!("a batch has 1 to {LARGEST_BATCH} tasks")));
        }
        let mut seen = BTreeSet::new();
        for change in changes {
            if let Some(id) = change.id {
                let task = self.tasks.get(&id).ok_or_else(|| unknown_task(id, last))?;
                if !seen.insert(id) {
                    return Err(invalid(format!("task {id} stands twice in the batch")));
                }
                if let Some(writer) = writer {
                    may_write(writer, task)?;
                }
            }
            if let Some(Owner::Agent(path)) = &change.owner
                && !exists(path)
            {
                return Err(Refusal::new(
                    RefusalKind::UnknownAgent,
                    format!("no agent {path} can own a task"),
                )
                .hint("list_agents names the agents there are"));
            }
        }
        let mut next = last.0;
        let mut numbers = Vec::with_capacity(changes.len());
        for change in changes {
            if let Some(id) = change.id {
                numbers.push(id);
                continue;
            }
            next =
                next.checked_add(1).ok_or_else(|| invalid("no task number is left".to_owned()))?;
            numbers.push(TaskId(next));
        }
        let known = |id: &TaskId| self.tasks.contains_key(id) || (id.0 > last.0 && id.0 <= next);
        let mut written: BTreeMap<TaskId, Task> = BTreeMap::new();
        for (change, id) in changes.iter().zip(numbers) {
            written.insert(id, changed(self.tasks.get(&id), id, change, writer, known)?);
        }
        // Completed and absent blockers are edges to nothing: they go with any write.
        let mut after = self.tasks.clone();
        after.extend(written.clone());
        let open: BTreeSet<TaskId> =
            after.values().filter(|t| t.status != Status::Completed).map(|t| t.id).collect();
        let pruned = prune(&after, &open);
        written.extend(pruned);
        refuse_cycles(&after, &written)?;
        Ok((written.into_values().collect(), TaskId(next)))
    }

    /// The tasks that change when `path` settles successfully: its open tasks are completed, and
    /// no longer block others. Exactly its own, not its descendants'.
    pub fn close_owned(&self, path: &AgentPath) -> Vec<Task> {
        let owner = Owner::Agent(path.clone());
        let mut after = self.tasks.clone();
        let mut changed = BTreeMap::new();
        for task in after.values_mut() {
            if task.owner == owner && task.status != Status::Completed {
                task.status = Status::Completed;
                changed.insert(task.id, task.clone());
            }
        }
        let open: BTreeSet<TaskId> =
            after.values().filter(|t| t.status != Status::Completed).map(|t| t.id).collect();
        if !changed.is_empty() {
            changed.extend(prune(&after, &open));
        }
        changed.into_values().collect()
    }
}

fn prune(tasks: &BTreeMap<TaskId, Task>, open: &BTreeSet<TaskId>) -> BTreeMap<TaskId, Task> {
    tasks
        .values()
        .filter(|t| !t.blocked_by.is_subset(open))
        .map(|t| {
            let blocked_by = t.blocked_by.intersection(open).copied().collect();
            (t.id, Task { blocked_by, ..t.clone() })
        })
        .collect()
}

fn unknown_task(id: TaskId, last: TaskId) -> Refusal {
    let line = if id.0 >= 1 && id <= last {
        format!("there is no task {id} any more: a rewind left it behind")
    } else {
        format!("there is no task {id}")
    };
    Refusal::new(RefusalKind::NotFound, line).hint("task_list names the tasks there are")
}

/// An agent writes its own and its descendants' tasks, and the shared ones; `/root` writes all.
fn may_write(writer: &AgentPath, task: &Task) -> Result<(), Refusal> {
    match &task.owner {
        Owner::Agent(owner) if !writer.is_root() && !owner.is_within(writer) => Err(Refusal::new(
            RefusalKind::NotAllowed,
            format!("task {} belongs to {owner}", task.id),
        )
        .hint("nothing of the batch was written; send_message its owner or your parent")),
        _ => Ok(()),
    }
}

fn changed(
    before: Option<&Task>,
    id: TaskId,
    change: &TaskChange,
    writer: Option<&AgentPath>,
    known: impl Fn(&TaskId) -> bool,
) -> Result<Task, Refusal> {
    let invalid = |line: String| Refusal::new(RefusalKind::InvalidArgument, line);
    let subject = match (&change.subject, before) {
        (Some(text), _) => one_line(text).ok_or_else(|| {
            invalid(format!("task {id} needs a subject of 1 to {LONGEST_SUBJECT} characters"))
        })?,
        (None, Some(task)) => task.subject.clone(),
        (None, None) => return Err(invalid("a new task needs a subject".to_owned())),
    };
    let description = change
        .description
        .clone()
        .or_else(|| before.map(|t| t.description.clone()))
        .unwrap_or_default();
    if description.chars().count() > LONGEST_TEXT {
        return Err(invalid(format!("a description has at most {LONGEST_TEXT} characters")));
    }
    let blocked_by = match (&change.blocked_by, before) {
        (Some(ids), _) => {
            if let Some(bad) = ids.iter().find(|b| !known(b) || **b == id) {
                return Err(invalid(format!("task {id} cannot wait for task {bad}")));
            }
            ids.clone()
        }
        (None, Some(task)) => task.blocked_by.clone(),
        (None, None) => BTreeSet::new(),
    };
    Ok(Task {
        id,
        subject,
        description,
        status: change.status.or(before.map(|t| t.status)).unwrap_or(Status::Pending),
        owner: change
            .owner
            .clone()
            .or_else(|| before.map(|t| t.owner.clone()))
            .unwrap_or_else(|| Owner::of(writer)),
        blocked_by,
    })
}

/// The text on one line; none when nothing is left or it is too long.
fn one_line(text: &str) -> Option<String> {
    let line = line::one_line(text);
    let count = line.chars().count();
    (count > 0 && count <= LONGEST_SUBJECT).then_some(line)
}

fn refuse_cycles(
    after: &BTreeMap<TaskId, Task>,
    written: &BTreeMap<TaskId, Task>,
) -> Result<(), Refusal> {
    let edges = |id: &TaskId| {
        written.get(id).or_else(|| after.get(id)).map(|t| t.blocked_by.clone()).unwrap_or_default()
    };
    for start in written.keys() {
        let mut seen = BTreeSet::new();
        let mut open: Vec<TaskId> = edges(start).into_iter().collect();
        while let Some(id) = open.pop() {
            if id == *start {
                return Err(Refusal::new(
                    RefusalKind::InvalidArgument,
                    format!("task {start} would wait for itself"),
                ));
            }
            if seen.insert(id) {
                open.extend(edges(&id));
            }
        }
    }
    Ok(())
}
