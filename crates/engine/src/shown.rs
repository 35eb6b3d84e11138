//! Reviews and outcomes in the words that faces pass on.

use stead_copies::apply::Refused;
use stead_copies::{Change, Finished, Rescue, Review, State};
use stead_core::delegated::ApplyOutcome;
use stead_core::id::{SlotName, TaskId};
use stead_core::refusal::RefusalKind;

use crate::api::{ChangeView, ReviewResponse};

/// The most paths that an outcome in the log names.
const NAMED: usize = 200;

/// A review as faces get it.
pub(crate) fn review(
    task: TaskId,
    slot: &SlotName,
    review: &Review,
    diff: stead_copies::Diff,
) -> ReviewResponse {
    let view = |change: &Change| ChangeView { path: change.path.to_string(), what: what(change) };
    ReviewResponse {
        task,
        slot: slot.clone(),
        copy: review.copy.display().to_string(),
        destination: review.destination.clone(),
        access: review.access,
        snapshot: review.snapshot,
        checkout: review.checkout.clone(),
        changes: review.changes.iter().map(view).collect(),
        diff: diff.text,
        cut: diff.cut,
        beside: review.beside.iter().map(|(path, files)| (path.to_string(), *files)).collect(),
        commits: review.commits,
    }
}

/// What becomes of a path, in a few words.
fn what(change: &Change) -> String {
    let kind = |state: &State| match state {
        State::File { .. } => "file",
        State::Folder { .. } => "folder",
        State::Link { .. } => "link",
        State::Special => "special file",
    };
    let mode = |state: &State| state.mode().map(|mode| format!("{mode:o}")).unwrap_or_default();
    match (&change.before, &change.after) {
        (None, None) => String::new(),
        (None, Some(after)) => format!("new {}", kind(after)),
        (Some(before), None) => format!("{} removed", kind(before)),
        (Some(before), Some(after)) if !before.is_kind_of(after) => {
            format!("{} becomes {}", kind(before), kind(after))
        }
        (Some(State::Link { .. }), Some(_)) => "link leads elsewhere".to_owned(),
        (Some(before), Some(after)) => {
            let modes = format!("mode {} to {}", mode(before), mode(after));
            match (before.is_folder() || before.has_bytes_of(after), mode(before) == mode(after)) {
                (true, _) => modes,
                (false, true) => "file changed".to_owned(),
                (false, false) => format!("file changed, {modes}"),
            }
        }
    }
}

/// A refused apply, as the log keeps it.
pub(crate) fn refused(refused: &Refused) -> ApplyOutcome {
    let refusal = refused.refusal();
    let reason = match &refusal.hint {
        Some(hint) => format!("{} ({hint})", refusal.line),
        None => refusal.line.clone(),
    };
    let paths = match refused {
        Refused::Conflicts(conflicts) => {
            let one = |c: &stead_copies::apply::Conflict| format!("{}: {}", c.path, c.clash);
            conflicts.iter().take(NAMED).map(one).collect()
        }
        _ => Vec::new(),
    };
    ApplyOutcome::Refused { reason, conflict: refusal.kind == RefusalKind::Conflict, paths }
}

/// An apply that was led back.
pub(crate) fn rolled_back(cause: &str, rescue: &Rescue) -> ApplyOutcome {
    let rescue = rescue.folder.as_ref().map(|folder| folder.as_path().display().to_string());
    ApplyOutcome::RolledBack { cause: cause.to_owned(), rescue }
}

/// How a journal that an engine left was finished.
pub(crate) fn finished(finished: &Finished, journal: &str) -> Option<ApplyOutcome> {
    const CAUSE: &str = "the engine ended while it was written";
    match finished {
        Finished::Back => Some(ApplyOutcome::RolledBack { cause: CAUSE.to_owned(), rescue: None }),
        // Only what was recorded as applied is led forward.
        Finished::Forward => None,
        Finished::Neither { rescue } => {
            let paths: Vec<String> = rescue.paths.iter().map(ToString::to_string).collect();
            let folder = rescue.folder.as_ref().map(|f| f.as_path().display().to_string());
            Some(ApplyOutcome::RecoveryNeeded {
                cause: format!("{CAUSE}; left as they were found: {}", paths.join(", ")),
                rescue: folder.unwrap_or_else(|| journal.to_owned()),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use stead_core::id::Digest;
    use stead_files::RelPath;

    use super::*;

    #[test]
    fn copies_65_changes_that_no_file_diff_shows_are_named() {
        let file = |mode, byte| {
            Some(State::File { mode, size: 1, digest: Digest::from_bytes([byte; 32]) })
        };
        let link = |to: &str| Some(State::Link { target: to.as_bytes().into() });
        let told =
            |before, after| what(&Change { path: RelPath::parse("x").unwrap(), before, after });
        assert_eq!(told(file(0o644, 1), file(0o755, 1)), "mode 644 to 755");
        assert_eq!(told(file(0o644, 1), file(0o644, 2)), "file changed");
        assert_eq!(told(file(0o644, 1), file(0o600, 2)), "file changed, mode 644 to 600");
        assert_eq!(told(link("a"), link("b")), "link leads elsewhere");
        assert_eq!(told(file(0o644, 1), link("b")), "file becomes link");
        assert_eq!(told(None, Some(State::Folder { mode: 0o755 })), "new folder");
        assert_eq!(told(Some(State::Folder { mode: 0o755 }), None), "folder removed");
        let folder = |mode| Some(State::Folder { mode });
        assert_eq!(told(folder(0o755), folder(0o700)), "mode 755 to 700");
    }
}
