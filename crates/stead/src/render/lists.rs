//! Sessions, tasks and permission requests as text.

use stead_core::permission::Deed;
use stead_core::rule::Rule;
use stead_core::task::Task;
use stead_engine::api::{DelegatedView, PermissionsResponse, SessionView, TasksResponse};

use super::{copies::slots, counted, moment, status};
use crate::clean;
use crate::output::{style, styled};

/// The sessions, one a line.
pub(crate) fn sessions(sessions: &[SessionView]) -> String {
    let mut text = String::new();
    for session in sessions {
        let state = match session.active {
            0 => styled(style::DIM, format_args!("{:<9}", "idle")),
            active => styled(style::BUSY, format_args!("{:<9}", format!("{active} active"))),
        };
        let label = session.label.as_ref().map(|l| format!("  {l}")).unwrap_or_default();
        text.push_str(&format!(
            "{}  {}  {state}  {}{}\n",
            session.session,
            moment(session.newest),
            clean::path(session.directory.as_path()),
            styled(style::BOLD, label),
        ));
    }
    text
}

/// The task list, one a line, then the notes.
pub(crate) fn tasks(list: &TasksResponse) -> String {
    let mut text = String::new();
    for task in &list.tasks {
        let (word, shade) = status(task.status);
        let owner = clean::line(&String::from(task.owner.clone()));
        text.push_str(&format!(
            "{:>3}  {}  {}  {}{}\n",
            task.id,
            styled(shade, format_args!("{word:<11}")),
            clean::line(&task.subject),
            styled(style::DIM, owner),
            waits_for(task),
        ));
    }
    for (owner, note) in &list.notes {
        let owner = styled(style::DIM, format_args!("{}:", clean::line(owner)));
        text.push_str(&format!("{owner} {}\n", clean::line(note)));
    }
    text
}

/// One task whole; `own` is what it has of its own when it is delegated.
pub(crate) fn task(task: &Task, own: Option<&DelegatedView>) -> String {
    let (word, shade) = status(task.status);
    let mut text = format!(
        "{} {}\n{}  {}{}\n",
        styled(style::BOLD, format_args!("{}.", task.id)),
        styled(style::BOLD, clean::line(&task.subject)),
        styled(shade, word),
        clean::line(&String::from(task.owner.clone())),
        waits_for(task),
    );
    if !task.description.is_empty() {
        text.push_str(&format!("\n{}\n", clean::block(&task.description).trim_end()));
    }
    if let Some(own) = own {
        text.push_str(&slots(own));
    }
    text
}

fn waits_for(task: &Task) -> String {
    if task.blocked_by.is_empty() {
        return String::new();
    }
    let blockers: Vec<_> = task.blocked_by.iter().map(ToString::to_string).collect();
    format!("  waits for {}", blockers.join(", "))
}

/// The open requests, one a line, and how to answer them; then what is allowed or not without one.
pub(crate) fn permissions(found: &PermissionsResponse) -> String {
    let mut text = requests(found);
    let mut section = |title: &str, lines: Vec<String>| {
        if lines.is_empty() {
            return;
        }
        text.push_str(&format!("{}\n", styled(style::BOLD, title)));
        for line in lines {
            text.push_str(&format!("  {}\n", clean::line(&line)));
        }
    };
    let rules = |rules: &[Rule]| rules.iter().map(Rule::to_string).collect();
    section("allowed in this session", found.grants.iter().map(Deed::to_string).collect());
    section("rules of this session", rules(&found.rules));
    section("rules of your settings", rules(&found.settings));
    if !(found.grants.is_empty() && found.rules.is_empty()) {
        let hint = "`stead permit revoke WHAT` takes one of this session back";
        text.push_str(&format!("{}\n", styled(style::DIM, hint)));
    }
    text
}

fn requests(found: &PermissionsResponse) -> String {
    let requests = &found.permissions;
    let Some(first) = requests.first() else { return String::new() };
    let mut text = String::new();
    for request in requests {
        text.push_str(&format!(
            "{:>4}  {}  {}\n",
            request.id,
            styled(style::BOLD, &request.path),
            clean::line(&request.subject)
        ));
        // What is allowed is the whole of it, so the whole of it is shown.
        if let Deed::Command(command) = &request.grant
            && command.trim().lines().count() > 1
        {
            for line in clean::block(command).lines() {
                text.push_str(&format!("      │ {line}\n"));
            }
        }
    }
    let first = first.id.0;
    text.push_str(&styled(
        style::DIM,
        format_args!(
            "{}: `stead permit allow {first}`, `… allow {first} --for session`, \
             `stead permit deny {first}`",
            counted(requests.len(), "request waits", "requests wait"),
        ),
    ));
    text.push('\n');
    text
}
