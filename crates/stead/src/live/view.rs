//! The live tree as lines, without a terminal: what is shown, not how.

use clap::builder::styling::Style;
use stead_core::id::Timestamp;
use stead_core::path::AgentPath;
use stead_core::permission::{Deed, Request};
use stead_engine::api::Activity;

use super::fold::{Agent, Fold};
use crate::output::style;
use crate::{clean, render};

/// A piece of a line in one style.
pub(super) type Piece = (Style, String);
/// A line of the view.
pub(super) type Row = Vec<Piece>;

/// What a view is drawn for.
pub(super) struct Frame<'a> {
    /// The width of the terminal.
    pub(super) width: usize,
    /// The most lines.
    pub(super) height: usize,
    /// Now.
    pub(super) now: Timestamp,
    /// When following began.
    pub(super) began: Timestamp,
    /// A line for the person about what was just pressed.
    pub(super) notice: Option<&'a str>,
    /// Whether the agents go on when the person leaves.
    pub(super) outlives: bool,
}

/// Draws the view: the agents, what waits for the person, what can be pressed.
pub(super) fn view(fold: &Fold, frame: &Frame<'_>) -> Vec<Row> {
    let mut below = Vec::new();
    if let Some(request) = fold.permissions.values().next() {
        below.push(vec![
            (style::ASK.bold(), "? ".to_owned()),
            (style::BOLD, request.path.to_string()),
            (
                Style::new(),
                format!(" asks: {}{}", clean::line(&request.subject), more_lines(request)),
            ),
        ]);
        let more = match fold.permissions.len() {
            1 => String::new(),
            n => format!("  ({} more)", n - 1),
        };
        let keys = format!("  a allow once · s allow for the session · d deny{more}");
        below.push(vec![(style::ASK, keys)]);
    }
    below.push(match frame.notice {
        Some(notice) => vec![(style::ASK, clean::line(notice))],
        None => vec![(style::DIM, foot(fold, frame))],
    });
    let room = frame.height.saturating_sub(below.len()).max(1);
    let mut rows = agents(fold, frame, room);
    rows.extend(below);
    rows.truncate(frame.height.max(1));
    rows.into_iter().map(|row| fit(row, frame.width)).collect()
}

fn foot(fold: &Fold, frame: &Frame<'_>) -> String {
    let name = fold.label.clone().unwrap_or_else(|| fold.session.to_string());
    let working = fold.at_work();
    let leaving = if frame.outlives { "Ctrl-C leaves, twice stops" } else { "Ctrl-C ends it all" };
    format!(
        "{} · {working} at work · {leaving} · session {}",
        render::lasting(frame.now.0 - frame.began.0),
        clean::brief(&name, 40),
    )
}

/// The agents in the order of their paths. Where there is no room for all, idle ones go first.
fn agents(fold: &Fold, frame: &Frame<'_>, room: usize) -> Vec<Row> {
    let mut shown: Vec<(&AgentPath, &Agent)> = fold.agents.iter().collect();
    let mut left_out = 0;
    if shown.len() > room {
        let keep = room.saturating_sub(1);
        let busy = shown.iter().filter(|(_, a)| a.activity != Activity::Idle).count();
        let mut idle_room = keep.saturating_sub(busy);
        let all = shown.len();
        shown.retain(|(path, agent)| {
            agent.activity != Activity::Idle || path.is_root() || {
                let fits = idle_room > 0;
                idle_room = idle_room.saturating_sub(1);
                fits
            }
        });
        shown.truncate(keep);
        left_out = all - shown.len();
    }
    let widest = shown.iter().map(|(path, _)| name_of(path).chars().count()).max().unwrap_or(0);
    let mut rows: Vec<Row> =
        shown.into_iter().map(|(path, agent)| row(fold, path, agent, frame.now, widest)).collect();
    if left_out > 0 {
        let more = render::counted(left_out, "more agent", "more agents");
        rows.push(vec![(style::DIM, format!("  and {more}"))]);
    }
    rows
}

fn name_of(path: &AgentPath) -> String {
    let depth = path.depth().saturating_sub(1);
    let name = if path.is_root() { path.as_str() } else { path.name() };
    format!("{}{name}", "  ".repeat(depth))
}

fn row(fold: &Fold, path: &AgentPath, agent: &Agent, now: Timestamp, widest: usize) -> Row {
    let (sign, shade) = match (agent.activity, agent.outcome) {
        (Activity::Preparing, _) | (Activity::Idle, None) => ("·", style::DIM),
        (Activity::Running, _) => ("●", style::BUSY),
        (Activity::Waiting, _) => ("◌", style::BUSY),
        (Activity::PermissionBlocked, _) => ("?", style::ASK),
        (Activity::Idle, Some(how)) => {
            let (_, shade) = render::outcome(how);
            (if shade == style::GOOD { "✓" } else { "✗" }, shade)
        }
    };
    let state = match (agent.activity, agent.outcome) {
        (Activity::Idle, Some(how)) => render::outcome(how).0,
        (activity, _) => render::activity(activity),
    };
    let since = match agent.since {
        Some(since) if agent.activity != Activity::Idle => {
            format!(" {}", render::lasting(now.0 - since.0))
        }
        _ => String::new(),
    };
    let mut facts = String::new();
    let tasks = fold.open_tasks(path);
    if tasks > 0 {
        facts.push_str(&format!(" · {}", render::counted(tasks, "task", "tasks")));
    }
    if agent.unread > 0 {
        facts.push_str(&format!(" · {} unread", agent.unread));
    }
    let told = match (agent.activity, &agent.reason) {
        (Activity::Idle, Some(reason)) => clean::line(reason),
        _ => agent.last.clone(),
    };
    let name = format!("{:<widest$}", name_of(path));
    let mut row = vec![
        (shade, format!("{sign} ")),
        (style::BOLD, name),
        (shade, format!("  {:<18}", format!("{state}{since}"))),
        (Style::new(), facts),
    ];
    if !told.is_empty() {
        row.push((style::DIM, format!("  {told}")));
    }
    row
}

/// Cuts a row to the width of the terminal.
fn fit(row: Row, width: usize) -> Row {
    let mut left = width;
    let mut kept = Vec::with_capacity(row.len());
    for (style, text) in row {
        let text = clean::fit(&text, left);
        left -= text.chars().map(clean::columns).sum::<usize>().min(left);
        kept.push((style, text));
        if left == 0 {
            break;
        }
    }
    kept
}

/// A command of several lines is not allowed by its first.
fn more_lines(request: &Request) -> String {
    match &request.grant {
        Deed::Command(command) if command.trim().lines().count() > 1 => {
            format!(" ({} lines: `stead permit list`)", command.trim().lines().count())
        }
        Deed::Edits(paths) if paths.len() > 1 => format!(" ({} files)", paths.len()),
        Deed::Command(_)
        | Deed::Edit(_)
        | Deed::Edits(_)
        | Deed::Read(_)
        | Deed::Foreign { .. } => String::new(),
    }
}

#[cfg(test)]
mod tests;
