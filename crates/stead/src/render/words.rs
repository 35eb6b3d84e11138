//! One word for each thing, and its style.

use clap::builder::styling::Style;
use stead_core::delegated::ApplyOutcome;
use stead_core::event::Outcome;
use stead_core::layout::Placement;
use stead_core::permission::{Answer, Mode};
use stead_core::task::Status;
use stead_engine::api::{Activity, CopyState};

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

/// How far a copy is on its way into the original, and how that looks.
pub(crate) fn copy_state(state: CopyState) -> (&'static str, Style) {
    match state {
        CopyState::Preparing => ("being made", style::DIM),
        CopyState::NotReviewed => ("not reviewed", style::BUSY),
        CopyState::Reviewed => ("reviewed", style::ASK),
        CopyState::Applying => ("being applied", style::ASK),
        CopyState::Applied => ("applied", style::GOOD),
        CopyState::Discarded => ("discarded", style::DIM),
    }
}

/// How an apply ended, on one line.
pub(crate) fn applied(outcome: &ApplyOutcome) -> String {
    match outcome {
        ApplyOutcome::Applied { paths: 0, .. } => "applied: nothing differed".to_owned(),
        ApplyOutcome::Applied { paths, .. } => {
            let paths = counted(usize::try_from(*paths).unwrap_or(usize::MAX), "path", "paths");
            format!("applied, {paths} written")
        }
        ApplyOutcome::Refused { reason, .. } => {
            format!("not applied, nothing was written: {}", clean::line(reason))
        }
        ApplyOutcome::RolledBack { cause, rescue, .. } => {
            let rescue = rescue
                .as_ref()
                .map(|rescue| format!("; what was found is kept in {}", clean::line(rescue)))
                .unwrap_or_default();
            format!("not applied, all is as it was: {}{rescue}", clean::line(cause))
        }
        ApplyOutcome::RecoveryNeeded { cause, rescue, .. } => {
            format!("half-way: {}; see {}", clean::line(cause), clean::line(rescue))
        }
    }
}

/// How far a copy is, on one line.
pub(crate) fn copying(files: u64, done: u64, of: Option<(u64, u64)>) -> String {
    match of {
        Some((all, bytes)) => {
            format!("copying: {files} of {all} files, {} of {}", size(done), size(bytes))
        }
        None => format!("copying: {files} files, {}", size(done)),
    }
}

/// A number with its noun.
pub(crate) fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A number of bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let (mut tenths, mut unit) = (bytes.saturating_mul(10) / 1024, "KiB");
    for next in UNITS.iter().skip(1) {
        if tenths < 10_240 {
            break;
        }
        tenths /= 1024;
        unit = next;
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_short() {
        assert_eq!(size(7), "7 bytes");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(5 * 1024 * 1024), "5.0 MiB");
    }
}
