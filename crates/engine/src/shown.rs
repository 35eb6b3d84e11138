//! Reviews and outcomes in the words that faces pass on.

use stead_copies::{
    ApplyRefused, Barred, Cause, Change, Conflict, Finished, Rescue, Review, headline,
};
use stead_core::delegated::ApplyOutcome;
use stead_core::id::{SlotName, TaskId};
use stead_core::refusal::RefusalKind;
use stead_files::RelPath;

use crate::api::{BarredView, ChangeView, ReviewResponse};

/// The most paths that an outcome in the log names.
const NAMED: usize = 1000;

/// A review as faces get it.
pub(crate) fn review(
    task: TaskId,
    slot: &SlotName,
    review: &Review,
    diff: String,
    cut: bool,
) -> ReviewResponse {
    let barred = |one: &Barred| BarredView { path: one.path.clone(), why: one.bar.to_string() };
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
        barred: review.barred.iter().map(barred).collect(),
        diff,
        cut,
        beside: review.beside.iter().map(|(path, files)| (path.to_string(), *files)).collect(),
        repositories: review.repositories.iter().map(ToString::to_string).collect(),
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

/// Paths as people see them.
fn named(paths: &[RelPath]) -> Vec<String> {
    paths.iter().take(NAMED).map(ToString::to_string).collect()
}

/// An apply that was led back.
pub(crate) fn rolled_back(cause: &Cause, rescue: &Rescue) -> ApplyOutcome {
    let conflict = matches!(cause, Cause::Edited(_) | Cause::DestinationChanged(_));
    let rescue = folder_of(rescue);
    let paths = named(cause.edited());
    ApplyOutcome::RolledBack { cause: cause.to_string(), conflict, paths, rescue }
}

/// An apply that was led back for a reason that is not the person's.
pub(crate) fn led_back(cause: &str, rescue: &Rescue) -> ApplyOutcome {
    let (cause, rescue) = (cause.to_owned(), folder_of(rescue));
    ApplyOutcome::RolledBack { cause, conflict: false, paths: Vec::new(), rescue }
}

fn folder_of(rescue: &Rescue) -> Option<String> {
    rescue.folder.as_ref().map(|folder| folder.as_path().display().to_string())
}

/// How a journal that an engine left was finished; `kept` is where it will be kept.
pub(crate) fn finished(finished: &Finished, kept: &str) -> Option<ApplyOutcome> {
    const CAUSE: &str = "the engine ended while it was written";
    match finished {
        Finished::Back => Some(led_back(CAUSE, &Rescue::default())),
        // Only what was recorded as applied is led forward.
        Finished::Forward => None,
        Finished::Neither { rescue } => {
            let folder = rescue.folder.as_ref().map(|f| f.as_path().display().to_string());
            let first = rescue.paths.first().map(ToString::to_string).unwrap_or_default();
            let more = match rescue.paths.len() {
                0 | 1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            Some(ApplyOutcome::RecoveryNeeded {
                cause: format!("{CAUSE}; left as found: {first}{more}"),
                paths: named(&rescue.paths),
                rescue: folder.unwrap_or_else(|| kept.to_owned()),
            })
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
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

    #[test]
    fn copies_69_an_outcome_names_every_path_that_was_edited() {
        let edited: Vec<RelPath> =
            (0..10).map(|n| RelPath::parse(format!("f{n}")).unwrap()).collect();
        let cause = Cause::Edited(edited.clone());
        let outcome = rolled_back(&cause, &Rescue::default());
        let ApplyOutcome::RolledBack { cause, paths, .. } = outcome else { panic!("{outcome:?}") };
        assert!(cause.contains("f4, and 5 more changed"), "{cause}");
        assert_eq!(paths.len(), 10);
        let rescue = Rescue { paths: edited, folder: None };
        let outcome = finished(&Finished::Neither { rescue }, "/h/kept").unwrap();
        let ApplyOutcome::RecoveryNeeded { cause, paths, rescue } = outcome else { panic!() };
        assert!(cause.ends_with("left as found: f0 and 9 more"), "{cause}");
        assert_eq!((paths.len(), rescue.as_str()), (10, "/h/kept"));
    }
}
