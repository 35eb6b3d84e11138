//! Texts that models and people both get.

use stead_core::task::Status;

use crate::api::TasksResponse;

/// The task list as plain text.
pub fn tasks(list: &TasksResponse) -> String {
    if list.tasks.is_empty() {
        return "no tasks\n".to_owned();
    }
    let mut text = String::new();
    for task in &list.tasks {
        let status = match task.status {
            Status::Pending => "pending",
            Status::InProgress => "in progress",
            Status::Completed => "completed",
        };
        let owner = String::from(task.owner.clone());
        text.push_str(&format!("{}. [{status}] {} ({owner})", task.id, task.subject));
        if !task.blocked_by.is_empty() {
            let blockers: Vec<String> = task.blocked_by.iter().map(ToString::to_string).collect();
            text.push_str(&format!(", waits for {}", blockers.join(", ")));
        }
        text.push('\n');
    }
    for (owner, note) in &list.notes {
        text.push_str(&format!("note of {owner}: {note}\n"));
    }
    text
}
