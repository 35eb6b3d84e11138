//! Texts that models and people both get.

use stead_core::task::Status;

use crate::api::TasksResponse;

/// The task list as plain text.
pub fn tasks(list: &TasksResponse) -> String {
    if list.tasks.is_empty() {
        return "no tasks\n".to_owned();
    }
    let mut lines = Vec::new();
    for task in &list.tasks {
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
        lines.push(format!("{}. [{status}] {} ({owner}){waits}", task.id, task.subject));
    }
    for (owner, note) in &list.notes {
        lines.push(format!("note of {owner}: {note}"));
    }
    lines.join("\n") + "\n"
}
