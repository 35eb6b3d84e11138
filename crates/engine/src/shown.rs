//! Reviews and outcomes in the words that faces pass on.

use stead_copies::{ApplyRefused, Cause, Change, Conflict, Finished, Rescue, Review, headline};
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
    diff: String,
    cut: bool,
) -> ReviewResponse {
    let view = |change: &Change| ChangeView { path: change.path.clone(), what: headline(change) };
    ReviewResponse {
        task,
        slot: slot.clone(),
        copy: review.copy.display().to_string(),
        destination: review.destination.clone(),
        access: review.access,
        snapshot: review.snapshot,
        checkout: review.checkout.clone(),
        changes: review.changes.iter().map(view).collect(),
        diff,
        cut,
        beside: review.beside.iter().map(|(path, files)| (path.to_string(), *files)).collect(),
        commits: review.commits,
    }
}

/// A refused apply, as the log keeps it.
pub(crate) fn refused(refused: &ApplyRefused) -> ApplyOutcome {
    let refusal = refused.refusal();
    let reason = match &refusal.hint {
        Some(hint) => format!("{} ({hint})", refusal.line),
        None => refusal.line.clone(),
    };
    let paths = match refused {
        ApplyRefused::Conflicts(conflicts) => {
            let one = |c: &Conflict| format!("{}: {}", c.path, c.clash);
            conflicts.iter().take(NAMED).map(one).collect()
        }
        _ => Vec::new(),
    };
    let conflict = refusal.kind == RefusalKind::Conflict;
    let half_way = matches!(refused, ApplyRefused::Unfinished(_));
    ApplyOutcome::Refused { reason, conflict, paths, half_way }
}

/// An apply that was led back.
pub(crate) fn rolled_back(cause: &Cause, rescue: &Rescue) -> ApplyOutcome {
    let conflict = matches!(cause, Cause::Edited(_) | Cause::DestinationChanged(_));
    let rescue = rescue.folder.as_ref().map(|folder| folder.as_path().display().to_string());
    ApplyOutcome::RolledBack { cause: cause.to_string(), conflict, rescue }
}

/// How a journal that an engine left was finished.
pub(crate) fn finished(finished: &Finished, journal: &str) -> Option<ApplyOutcome> {
    const CAUSE: &str = "the engine ended while it was written";
    match finished {
        Finished::Back => Some(ApplyOutcome::RolledBack {
            cause: CAUSE.to_owned(),
            conflict: false,
            rescue: None,
        }),
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
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn an_apply_that_gave_way_to_the_person_is_a_conflict() {
        let path = stead_files::RelPath::parse("a").unwrap();
        for (cause, is_conflict) in [
            (Cause::Edited(vec![path]), true),
            (Cause::DestinationChanged("the index"), true),
            (Cause::IndexLocked(PathBuf::from("l")), false),
            (Cause::Withdrawn, false),
        ] {
            let outcome = rolled_back(&cause, &Rescue::default());
            let ApplyOutcome::RolledBack { conflict, .. } = outcome else { panic!("{outcome:?}") };
            assert_eq!(conflict, is_conflict, "{cause}");
        }
        let unfinished = refused(&ApplyRefused::Unfinished(PathBuf::from("j")));
        assert!(matches!(unfinished, ApplyOutcome::Refused { half_way: true, .. }));
    }
}
