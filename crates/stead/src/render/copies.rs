//! Copies, reviews and applies as text.

use clap::builder::styling::Style;
use stead_copies::Finished;
use stead_core::delegated::Checkout;
use stead_core::layout::Access;
use stead_engine::CutShort;
use stead_engine::api::{BarredView, CopyState, DelegatedView, ReviewResponse};

use super::{applied, copy_state, counted};
use crate::clean;
use crate::output::{style, styled};

/// As much of a note as people get; programs get it whole.
const LONGEST_NOTE: usize = 160;

/// The slots of a delegated task: what each is a copy of, and how far it is.
pub(crate) fn slots(own: &DelegatedView) -> String {
    let mut text = String::new();
    for slot in &own.slots {
        let (word, shade) = copy_state(slot.state);
        let access = match slot.access {
            Access::Read => "read only",
            Access::Write => "to write",
        };
        text.push_str(&format!(
            "\n{}  {}  {access}\n  original  {}\n",
            styled(style::BOLD, &slot.slot),
            styled(shade, word),
            clean::path(slot.original.as_path()),
        ));
        if let Some(copy) = slot.copy.as_ref().filter(|_| slot.state != CopyState::Discarded) {
            text.push_str(&format!("  copy      {}\n", clean::path(copy.as_path())));
        }
        if let Some(outcome) = &slot.outcome {
            text.push_str(&format!("  last      {}\n", applied(outcome)));
        }
    }
    for note in &own.notes {
        text.push_str(&format!("{}\n", styled(style::DIM, clean::brief(note, LONGEST_NOTE))));
    }
    text
}

/// A frozen snapshot against its base.
pub(crate) fn review(review: &ReviewResponse) -> String {
    let ReviewResponse { task, slot, .. } = review;
    let mut text = format!(
        "{}\n  copy      {}\n  original  {}{}\n  snapshot  {}\n",
        styled(style::BOLD, format_args!("task {task} {slot}")),
        clean::line(&review.copy),
        clean::path(review.destination.as_path()),
        review.checkout.as_ref().map(checked_out).unwrap_or_default(),
        review.snapshot,
    );
    if review.changes.is_empty() {
        text.push_str("\nnothing differs from what it was made from\n");
    } else {
        let count = counted(review.changes.len(), "change", "changes");
        text.push_str(&format!("\n{}\n", styled(style::BOLD, count)));
    }
    if !review.diff.is_empty() {
        text.push('\n');
        for line in clean::block(&review.diff).lines() {
            let shade = match line.as_bytes() {
                [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => style::BOLD,
                [b'+', ..] => style::GOOD,
                [b'-', ..] => style::BAD,
                [b'@', ..] => style::DIM,
                _ => Style::new(),
            };
            text.push_str(&format!("{}\n", styled(shade, line)));
        }
    }
    for BarredView { path, why } in &review.barred {
        let path = clean::line(&path.to_string());
        text.push_str(&format!(
            "{}\n",
            styled(style::BAD, format_args!("no apply can bring {path}: {why}"))
        ));
    }
    for (folder, files) in &review.beside {
        let files = counted(usize::try_from(*files).unwrap_or(usize::MAX), "file", "files");
        let became = if review.repositories.contains(folder) {
            ", which became a repository; what you have there stays as it is"
        } else {
            ""
        };
        text.push_str(&format!(
            "not reviewed and never applied: {files} changed in {}{became}\n",
            clean::line(folder)
        ));
    }
    if let Some(commits @ 1..) = review.commits {
        let count = usize::try_from(commits).unwrap_or(usize::MAX);
        text.push_str(&format!(
            "{} in the copy; an apply brings files, not commits\n",
            counted(count, "commit", "commits")
        ));
    }
    text
}

/// An apply that was cut short, and what became of it.
pub(crate) fn cut_short(cut: &CutShort) -> String {
    let Some(header) = &cut.header else {
        let why = cut.finished.as_ref().err().map(String::as_str).unwrap_or_default();
        return format!("an apply to root {} was cut short: {}", cut.root, clean::line(why));
    };
    let whose = format!(
        "an apply of task {} {} to {} was cut short",
        header.task,
        header.slot,
        clean::path(header.source.as_path())
    );
    match &cut.finished {
        Ok(Finished::Back) => format!("{whose}; the folder is as it was before it"),
        Ok(Finished::Forward) => format!("{whose}; it is whole now"),
        Ok(Finished::Neither { rescue }) => {
            let paths: Vec<String> = rescue.paths.iter().map(ToString::to_string).collect();
            let folder = rescue.folder.as_ref().map(|f| clean::path(f.as_path()));
            format!(
                "{whose}; you changed {} meanwhile, which stays{}",
                clean::brief(&paths.join(", "), 300),
                folder.map(|f| format!("; stead's own files are in {f}")).unwrap_or_default()
            )
        }
        Err(why) => format!("{whose} and could not be finished: {}", clean::line(why)),
    }
}

fn checked_out(checkout: &Checkout) -> String {
    match checkout {
        Checkout::Branch(name) => {
            let name = name.strip_prefix("refs/heads/").unwrap_or(name);
            format!(", on {}", clean::line(name))
        }
        Checkout::Detached(commit) => {
            let short: String = commit.chars().take(12).collect();
            format!(", at {}", clean::line(&short))
        }
    }
}
