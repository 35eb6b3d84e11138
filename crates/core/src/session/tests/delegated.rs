//! Delegated tasks: admission as one reservation, review, apply and discard as a person has them.

use std::collections::BTreeSet;

use super::log::{Log, body, call, change, id, path, root, start, started, started_in_copies};
use crate::delegated::{ApplyOutcome, Review};
use crate::event::Outcome;
use crate::id::{ApplyId, BodyRef, SlotName, TaskId};
use crate::layout::{Access, Root};
use crate::path::AgentPath;
use crate::refusal::{Refusal, RefusalKind};
use crate::session::{Command, Outcomes, applicable, reviewable};
use crate::task::{Owner, Status, TaskChange};

pub(super) fn propose(log: &Log, title: &str, roots: Option<Vec<Root>>) -> Command {
    Command::Propose {
        caller: path("/root"),
        agent: id(&format!("agent-{}", log.log.len())),
        call: call(&format!("c-{}", log.log.len())),
        title: title.to_owned(),
        role: None,
        message: body("repair the parser"),
        roots,
        blocked_by: BTreeSet::new(),
        driver: None,
        frozen: Box::default(),
    }
}

fn slot(name: &str) -> SlotName {
    SlotName::parse(name).unwrap()
}

/// A session with a finished task 2 in copies of its own.
fn with_task() -> Log {
    let mut log = Log::in_copies(8);
    let command = propose(&log, "Fix it", None);
    log.ok(command);
    log.publish(&path("/root/fix-it"));
    log.complete("/root/fix-it");
    log
}

fn review_of(log: &Log, snapshot: &str) -> Command {
    let copy = &log.state.world.delegated[&TaskId(2)].copies[&slot("app")];
    Command::Review {
        task: TaskId(2),
        slot: slot("app"),
        review: Review { snapshot: body(snapshot).digest, base: copy.base, checkout: None },
        since: log.state.tip,
    }
}

fn begin() -> Command {
    Command::BeginApply { task: TaskId(2), slot: slot("app") }
}

fn begun(log: &mut Log) -> ApplyId {
    match log.ok(begin()) {
        Outcomes::Applying { apply, .. } => apply,
        other => panic!("{other:?}"),
    }
}

fn end(apply: ApplyId, outcome: ApplyOutcome) -> Command {
    Command::EndApply { task: TaskId(2), slot: slot("app"), apply, outcome }
}

fn applied(base: &str) -> ApplyOutcome {
    ApplyOutcome::Applied { base: body(base).digest, paths: 1 }
}

#[test]
fn a_session_in_copies_begins_as_a_reservation() {
    let mut log = Log::default();
    log.ok(start(started_in_copies(8)));
    let root = AgentPath::root();
    assert!(!log.state.branch.roster.at(&root).unwrap().is_published());
    assert!(log.state.branch.tasks.tasks.is_empty(), "nothing is visible before admission");
    log.publish(&root);
    let agent = log.agent("/root");
    assert_eq!(agent.directory.as_path().to_str(), Some("/home/copies/1/app"));
    let own = &log.state.world.delegated[&TaskId(1)];
    let routes: Vec<_> = own.routes().into_iter().map(|r| (r.directory, r.access)).collect();
    assert_eq!(routes[1].0.as_path().to_str(), Some("/home/copies/1/lib"));
    assert_eq!(routes[1].1, Access::Read);
    assert_eq!((log.task(1).owner.clone(), log.task(1).status), (Owner::Main, Status::InProgress));
    log.complete("/root");
    assert_eq!(log.task(1).status, Status::InProgress, "settling a turn never closes task 1");
}

#[test]
fn copies_38_a_refused_layout_leaves_no_task_and_its_number_is_used() {
    let mut log = Log::in_copies(8);
    let command = propose(&log, "Fix it", None);
    log.ok(command);
    log.ok(Command::Refuse { path: path("/root/fix-it"), reason: "the root is gone".to_owned() });
    assert!(!log.state.world.delegated.contains_key(&TaskId(2)));
    assert!(log.state.branch.roster.at(&path("/root/fix-it")).is_none());
    let command = propose(&log, "Fix it", None);
    assert!(matches!(
        log.ok(command),
        Outcomes::Reserved { path: at, task: Some(TaskId(3)), .. } if at == path("/root/fix-it")
    ));
}

#[test]
fn copies_34_a_layout_has_1_to_64_roots() {
    let mut log = Log::in_copies(8);
    let roots = |count: usize| {
        (0..count).map(|n| root(&format!("s{n}"), &format!("/w/app/{n}"))).collect::<Vec<_>>()
    };
    for count in [0, 65] {
        let command = propose(&log, "Fix it", Some(roots(count)));
        assert_eq!(log.refused(command), RefusalKind::InvalidArgument);
    }
    let command = propose(&log, "Fix it", Some(roots(64)));
    log.ok(command);
}

#[test]
fn copies_35_slots_are_portable_and_differ_without_regard_to_case() {
    for bad in ["ünï", "a/b", "..", "CON", "x.", "", "-x", ".x", "com1.txt", "Layout.json", "a b"]
    {
        assert!(SlotName::parse(bad).is_err(), "{bad}");
    }
    for good in ["app", "com", "com10", "console", "lpt0", "layout.json.x"] {
        assert!(SlotName::parse(good).is_ok(), "{good}");
    }
    let mut log = Log::in_copies(8);
    let twice = vec![root("App", "/w/app/a"), root("app", "/w/app/b")];
    let command = propose(&log, "Fix it", Some(twice));
    assert_eq!(log.refused(command), RefusalKind::InvalidArgument);
}

#[test]
fn copies_39_overlapping_roots_and_one_source_twice_are_refused() {
    let mut log = Log::in_copies(8);
    for other in ["/w/app", "/w/app/inner"] {
        let roots = vec![root("a", "/w/app"), root("b", other)];
        let command = propose(&log, "Fix it", Some(roots));
        assert_eq!(log.refused(command), RefusalKind::InvalidArgument);
    }
}

#[test]
fn copies_40_only_what_the_person_selected_is_given_and_never_wider() {
    let mut log = Log::in_copies(8);
    for (directory, access, kind) in [
        ("/home/u/app", Access::Read, RefusalKind::NotAllowed),
        ("/w", Access::Read, RefusalKind::NotAllowed),
        ("/w/lib", Access::Write, RefusalKind::NotAllowed),
        ("/w/lib/inner", Access::Write, RefusalKind::NotAllowed),
    ] {
        let asked = Root { access, ..root("x", directory) };
        let command = propose(&log, "Fix it", Some(vec![asked]));
        assert_eq!(log.refused(command), kind, "{directory}");
    }
    let narrower = Root { access: Access::Read, ..root("x", "/w/app/inner") };
    let command = propose(&log, "Fix it", Some(vec![narrower]));
    log.ok(command);
}

#[test]
fn in_place_a_task_without_a_layout_works_in_the_roots() {
    let mut log = Log::new(8);
    let command = propose(&log, "Fix it", None);
    log.ok(command);
    log.publish(&path("/root/fix-it"));
    assert_eq!(log.agent("/root/fix-it").directory, log.agent("/root").directory);
    let refusal = reviewable(&log.state, TaskId(1), &slot("app")).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::NotFound);
    assert!(refusal.hint.unwrap().contains("works in the roots themselves"));
}

#[test]
fn one_call_proposes_one_task() {
    let mut log = Log::in_copies(8);
    let command = propose(&log, "Fix it", None);
    log.ok(command.clone());
    let tip = log.state.tip;
    assert!(matches!(
        log.ok(command),
        Outcomes::Reserved { again: true, task: Some(TaskId(2)), .. }
    ));
    assert_eq!(log.state.tip, tip);
    for title in ["", " \n", &"x".repeat(201)] {
        let command = propose(&log, title, None);
        assert_eq!(log.refused(command), RefusalKind::InvalidArgument);
    }
    let empty = match propose(&log, "More", None) {
        Command::Propose { caller, agent, call, title, role, roots, blocked_by, .. } => {
            let message = BodyRef { bytes: 0, ..body("") };
            let (driver, frozen) = (None, Box::default());
            Command::Propose {
                caller,
                agent,
                call,
                title,
                role,
                message,
                roots,
                blocked_by,
                driver,
                frozen,
            }
        }
        other => other,
    };
    assert_eq!(log.refused(empty), RefusalKind::InvalidArgument);
}

#[test]
fn a_delegated_tasks_status_and_owner_follow_its_agent() {
    let mut log = Log::in_copies(8);
    let command = propose(&log, "Fix it", None);
    log.ok(command);
    log.publish(&path("/root/fix-it"));
    let owner = Owner::Agent(path("/root/fix-it"));
    assert_eq!((log.task(2).owner.clone(), log.task(2).status), (owner, Status::InProgress));
    for written in [
        TaskChange { status: Some(Status::Completed), ..change(2) },
        TaskChange { subject: Some("else".to_owned()), ..change(2) },
        TaskChange { owner: Some(Owner::Main), ..change(2) },
    ] {
        for by in ["/root", "/root/fix-it", "person"] {
            let refusal = log.write(by, std::slice::from_ref(&written)).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::NotAllowed);
        }
    }
    let described = TaskChange { description: Some("how".to_owned()), ..change(2) };
    log.write("/root", &[described]).unwrap();
    log.complete("/root/fix-it");
    assert_eq!(log.task(2).status, Status::Completed);
    log.send("person", "/root/fix-it", true).unwrap();
    assert_eq!(log.task(2).status, Status::InProgress);
    log.settle("/root/fix-it", Outcome::Errored);
    assert_eq!(log.task(2).status, Status::InProgress);
    assert_eq!(log.state.world.delegated[&TaskId(2)].settled, Some(Outcome::Errored));
}

#[test]
fn copies_55_only_what_was_reviewed_in_a_writable_slot_is_applied() {
    let mut log = with_task();
    let refusal = log.refusal(begin());
    assert!(refusal.line.contains("was not reviewed"), "{refusal}");
    assert!(refusal.hint.unwrap().contains("stead task review 2 app"));
    let unknown = log.refusal(Command::BeginApply { task: TaskId(2), slot: slot("nope") });
    assert_eq!(unknown.kind, RefusalKind::NotFound);
    assert!(unknown.hint.unwrap().contains("app, lib"));
    let read = log.refusal(Command::BeginApply { task: TaskId(2), slot: slot("lib") });
    assert_eq!(read.kind, RefusalKind::NotAllowed);
    assert_eq!(
        log.refused(Command::BeginApply { task: TaskId(9), slot: slot("app") }),
        RefusalKind::NotFound
    );
    assert!(reviewable(&log.state, TaskId(2), &slot("lib")).is_ok(), "read-only is reviewable");
}

#[test]
fn copies_57_nothing_is_reviewed_while_somebody_works_in_its_layout() {
    let mut log = Log::in_copies(8);
    let command = propose(&log, "Fix it", None);
    log.ok(command);
    log.publish(&path("/root/fix-it"));
    let reviewed = |log: &Log| reviewable(&log.state, TaskId(2), &slot("app")).map(|_| ());
    let busy = |refusal: Refusal| refusal.line;
    assert!(busy(reviewed(&log).unwrap_err()).contains("/root/fix-it still works"));
    // A checker that its agent spawned works in the same layout.
    log.spawn("/root/fix-it", "check");
    log.complete("/root/fix-it");
    assert!(busy(reviewed(&log).unwrap_err()).contains("/root/fix-it/check still works"));
    log.complete("/root/fix-it/check");
    reviewed(&log).unwrap();
    // A turn that came and went while the copy was read spoils the review.
    let command = review_of(&log, "s");
    log.send("person", "/root/fix-it/check", true).unwrap();
    assert_eq!(log.refused(command.clone()), RefusalKind::WrongState);
    log.deliver("/root/fix-it/check");
    log.complete("/root/fix-it/check");
    assert_eq!(log.refused(command), RefusalKind::WrongState);
    let command = review_of(&log, "s");
    log.ok(command);
}

#[test]
fn copies_72_a_second_apply_of_a_snapshot_answers_with_the_first_outcome() {
    let mut log = with_task();
    let command = review_of(&log, "s");
    log.ok(command);
    let apply = begun(&mut log);
    assert_eq!(log.refused(begin()), RefusalKind::WrongState, "one apply at a time");
    assert_eq!(log.refused(end(ApplyId(1), applied("b"))), RefusalKind::WrongState);
    log.ok(end(apply, applied("b")));
    let tip = log.state.tip;
    assert_eq!(log.ok(begin()), Outcomes::AppliedBefore(applied("b")));
    assert_eq!(log.state.tip, tip);
    // The base advanced: another snapshot needs a review of its own.
    let command = review_of(&log, "t");
    log.ok(command);
    let apply = begun(&mut log);
    log.ok(end(
        apply,
        ApplyOutcome::RolledBack {
            cause: "full".to_owned(),
            conflict: false,
            paths: Vec::new(),
            rescue: None,
        },
    ));
    begun(&mut log);
}

#[test]
fn copies_68_an_apply_that_was_recorded_stays_so_whatever_is_tried_after_it() {
    let mut log = with_task();
    let command = review_of(&log, "s");
    log.ok(command);
    let first = begun(&mut log);
    log.ok(end(first, applied("b")));
    let command = review_of(&log, "t");
    log.ok(command);
    let second = begun(&mut log);
    let copy = |log: &Log| log.state.world.delegated[&TaskId(2)].copies[&slot("app")].clone();
    assert_eq!((copy(&log).applied, copy(&log).applying), (Some(first), Some(second)));
    let (reason, conflict, paths) = ("cut short".to_owned(), false, Vec::new());
    log.ok(end(second, ApplyOutcome::Refused { reason, conflict, paths, half_way: true }));
    assert_eq!(copy(&log).applied, Some(first));
    let third = begun(&mut log);
    log.ok(end(third, applied("c")));
    assert_eq!(copy(&log).applied, Some(third));
}

#[test]
fn copies_70_an_apply_that_needs_recovery_is_not_offered_again() {
    let mut log = with_task();
    let command = review_of(&log, "s");
    log.ok(command);
    let apply = begun(&mut log);
    let (cause, rescue) = ("denied".to_owned(), "/h/rescue".to_owned());
    log.ok(end(apply, ApplyOutcome::RecoveryNeeded { cause, paths: Vec::new(), rescue }));
    let refusal = log.refusal(begin());
    assert!(refusal.line.contains("needs recovery: denied"), "{refusal}");
    assert!(refusal.hint.unwrap().contains("/h/rescue"));
    let command = review_of(&log, "s");
    log.ok(command);
    assert!(applicable(&log.state, TaskId(2), &slot("app")).unwrap().is_ok());
}

#[test]
fn a_rewind_never_forgets_an_apply_or_a_copy() {
    let mut log = with_task();
    let command = review_of(&log, "s");
    log.ok(command);
    let apply = begun(&mut log);
    log.complete("/root");
    log.ok(end(apply, applied("b")));
    let before = log.state.world.delegated.clone();
    let first = log.state.first_batch().unwrap();
    log.ok(Command::Rewind { to: first, stable: true });
    assert_eq!(log.state.world.delegated, before);
    assert_eq!(log.ok(begin()), Outcomes::AppliedBefore(applied("b")));
    assert_eq!(log.refused(Command::Rewind { to: first - 1, stable: true }), RefusalKind::NotFound);
}

#[test]
fn only_a_person_gives_a_copy_up_and_never_under_an_agent() {
    let mut log = Log::in_copies(8);
    let command = propose(&log, "Fix it", None);
    log.ok(command);
    log.publish(&path("/root/fix-it"));
    let discard = Command::Discard { task: TaskId(2), slot: None };
    assert_eq!(log.refused(discard.clone()), RefusalKind::WrongState);
    log.complete("/root/fix-it");
    assert_eq!(log.state.world.delegated[&TaskId(2)].copies.len(), 2, "settling removes nothing");
    assert_eq!(log.ok(discard.clone()), Outcomes::Discarded(vec![slot("app"), slot("lib")]));
    assert_eq!(log.ok(discard), Outcomes::Discarded(Vec::new()));
    assert_eq!(log.refused(begin()), RefusalKind::NotFound);
}

#[test]
fn a_crash_during_admission_leaves_neither_agent_nor_task() {
    let mut log = Log::in_copies(8);
    let command = propose(&log, "Fix it", None);
    log.ok(command);
    log.ok(super::recovery::recover());
    assert!(!log.state.world.delegated.contains_key(&TaskId(2)));
    assert!(log.state.branch.roster.at(&path("/root/fix-it")).is_none());
    let mut log = Log::default();
    log.ok(start(started(8)));
    assert!(log.state.world.delegated.is_empty());
}
