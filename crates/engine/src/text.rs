//! Texts that models and people both get.

use stead_core::task::{Status, Task};

use crate::api::TasksResponse;

/// The most tasks that a reminder names.
const MOST_REMINDED: usize = 50;

/// The task list as plain text.
pub fn tasks(list: &TasksResponse) -> String {
    if list.tasks.is_empty() {
        return "no tasks\n".to_owned();
    }
    let mut lines = Vec::new();
    lines.extend(list.tasks.iter().map(task));
    for (owner, note) in &list.notes {
        lines.push(format!("note of {owner}: {note}"));
    }
    lines.join("\n") + "\n"
}

fn task(task: &Task) -> String {
    let status = match task.status {
        Status::Pending => "pending",
        Status::InProgress => "in progress",
        Status::Completed => "completed",
    };
    let owner = String::from(task.owner.clone());
    let blockers: Vec<String> = task.blocked_by.iter().map(ToString::to_string).collect();
    let waits = match blockers.as_slice() {
        [] => String::new(),
        some => format!(", waits for {}", some.join(", ")),
    };
    format!("{}. [{status}] {} ({owner}){waits}", task.id, task.subject)
}

/// What `/root` hears of tasks that are open and were not written for a while, in the shape of the
/// list, so that each names its owner (seed 0).
pub(crate) fn reminder(open: &[&Task]) -> String {
    let mut lines =
        vec!["These tasks are open, and no task was written for some turns:".to_owned()];
    lines.extend(open.iter().take(MOST_REMINDED).map(|open| task(open)));
    match open.len().saturating_sub(MOST_REMINDED) {
        0 => {}
        more => lines.push(format!("and {more} more that task_list shows")),
    }
    lines.push("Close what is done with task_write, or ask the owner. Else do nothing.".to_owned());
    lines.join("\n")
}
