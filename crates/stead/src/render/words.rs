//! One word for each thing, and its style.

use clap::builder::styling::Style;
use stead_core::event::Outcome;
use stead_core::layout::Placement;
use stead_core::permission::{Answer, Mode};
use stead_core::task::Status;
use stead_engine::api::Activity;

use crate::clean;
use crate::output::style;

/// What an agent is doing.
pub(crate) fn activity(activity: Activity) -> &'static str {
    match activity {
        Activity::Preparing => "preparing",
        Activity::Running => "running",
        Activity::Waiting => "waiting",
        Activity::PermissionBlocked => "asking",
        Activity::Idle => "idle",
    }
}

/// How a turn ended, and how that looks.
pub(crate) fn outcome(outcome: Outcome) -> (&'static str, Style) {
    match outcome {
        Outcome::Completed => ("completed", style::GOOD),
        Outcome::Errored => ("errored", style::BAD),
        Outcome::Interrupted => ("interrupted", style::ASK),
    }
}

/// How a turn ended and why, on one line; a reason that begins with the word stands alone.
pub(crate) fn ended(how: Outcome, why: Option<&str>, longest: usize) -> String {
    let (word, _) = outcome(how);
    let why = clean::brief(why.unwrap_or_default(), longest);
    if why.is_empty() {
        word.to_owned()
    } else if why.starts_with(word) {
        why
    } else {
        format!("{word}: {why}")
    }
}

/// How a permission request was settled.
pub(crate) fn answer(answer: Answer) -> &'static str {
    match answer {
        Answer::Once => "allowed once",
        Answer::Session => "allowed for the session",
        Answer::Denied => "denied",
        Answer::Withdrawn => "withdrawn: its turn ended",
        Answer::Headless => "refused: nobody was there to answer",
    }
}

/// How much is asked.
pub(crate) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Ask => "ask",
        Mode::Edits => "edits",
        Mode::FullAuto => "full-auto",
    }
}

/// Where agents work.
pub(crate) fn placement(placement: Placement) -> &'static str {
    match placement {
        Placement::PrivateCopies => "in private copies",
        Placement::InPlace => "in place",
    }
}

/// How far a task is.
pub(crate) fn status(status: Status) -> (&'static str, Style) {
    match status {
        Status::Pending => ("pending", style::DIM),
        Status::InProgress => ("in progress", style::BUSY),
        Status::Completed => ("completed", style::GOOD),
    }
}

/// A number with its noun.
pub(crate) fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
