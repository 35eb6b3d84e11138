//! Tasks: whose they are, and batches that are written whole or not at all (A16).

use std::collections::BTreeSet;

use super::delegated::propose;
use super::log::{Log, change, path, task, to};
use crate::event::Outcome;
use crate::id::TaskId;
use crate::refusal::RefusalKind;
use crate::roster::Standing;
use crate::session::{Command, Outcomes};
use crate::task::{Owner, Status, TaskChange};

/// The same, waiting for these.
fn after(by: &[u32], change: TaskChange) -> TaskChange {
    TaskChange { blocked_by: Some(by.iter().copied().map(TaskId).collect()), ..change }
}

fn set(number: u32, status: Status) -> TaskChange {
    TaskChange { status: Some(status), ..change(number) }
}

fn tree() -> Log {
    let mut log = Log::new(32);
    for name in ["a", "b", "ab"] {
        log.spawn("/root", name);
    }
    log.spawn("/root/a", "c");
    log
}

/// The kind of a refused batch, after showing that nothing changed.
fn refused(log: &mut Log, by: &str, changes: &[TaskChange]) -> RefusalKind {
    let command = Command::WriteTasks {
        by: (by != "person").then(|| path(by)),
        changes: changes.to_vec(),
        notes: Vec::new(),
    };
    log.refused(command)
}

#[test]
fn agents_64_one_foreign_task_refuses_the_whole_batch() {
    let mut log = tree();
    assert_eq!(log.write("/root/a", &[task("1"), task("2"), task("3")]).unwrap(), [1, 2, 3]);
    log.complete("/root/a");
    let before = log.state.branch.tasks.clone();
    assert!(before.tasks.values().all(|t| t.status == Status::Completed));
    let batch = [task("mine"), set(1, Status::InProgress)];
    assert_eq!(refused(&mut log, "/root/b", &batch), RefusalKind::NotAllowed);
    assert_eq!(log.state.branch.tasks, before);
    assert_eq!(log.state.world.last_task, TaskId(3));
    assert_eq!(log.write("/root/b", &[task("mine")]).unwrap(), [4]);
}

#[test]
fn agents_65_an_agent_writes_its_own_and_what_is_below_it() {
    let mut log = tree();
    log.write("/root/a/c", &[task("1")]).unwrap();
    log.write("/root/ab", &[task("2")]).unwrap();
    log.write("/root/a", &[TaskChange { subject: Some("1b".to_owned()), ..change(1) }]).unwrap();
    assert_eq!(log.task(1).subject, "1b");
    assert_eq!(refused(&mut log, "/root/a", &[set(2, Status::Completed)]), RefusalKind::NotAllowed);
    assert_eq!(
        refused(&mut log, "/root/a/c", &[set(2, Status::Completed)]),
        RefusalKind::NotAllowed
    );
    // Giving away is the last thing a writer may do to a task; nobody steals and then edits.
    log.write("/root/ab", &[to("/root/b", change(2))]).unwrap();
    assert_eq!(
        refused(&mut log, "/root/ab", &[set(2, Status::Completed)]),
        RefusalKind::NotAllowed
    );
    let steal = to("/root/ab", change(2));
    assert_eq!(refused(&mut log, "/root/ab", &[steal]), RefusalKind::NotAllowed);
    for by in ["/root", "person"] {
        log.write(by, &[set(1, Status::InProgress), set(2, Status::InProgress)]).unwrap();
    }
}

#[test]
fn agents_66_a_task_for_another_is_attribution() {
    let mut log = tree();
    log.complete("/root/a");
    let events = log.log.len();
    log.write("/root/b", &[to("/root/a", task("for a"))]).unwrap();
    assert_eq!(log.task(1).owner, Owner::Agent(path("/root/a")));
    assert_eq!(log.agent("/root/a").standing, Standing::Idle);
    assert!(log.unread("/root/a").is_empty());
    assert_eq!(log.log.len(), events + 2, "a number and a task, no turn, no mail");
}

#[test]
fn agents_67_shared_tasks_are_anybodys() {
    let mut log = tree();
    log.write("/root", &[task("main"), to("later", task("bucket"))]).unwrap();
    log.write("/root/a", &[to("", task("given to main"))]).unwrap();
    assert_eq!(log.task(3).owner, Owner::Main);
    for number in 1..=3 {
        log.write("/root/b", &[set(number, Status::InProgress)]).unwrap();
        log.write("/root/a/c", &[set(number, Status::Completed)]).unwrap();
    }
}

#[test]
fn agents_68_a_turn_that_failed_leaves_its_tasks_open() {
    let mut log = tree();
    log.write("/root/a", &[task("1")]).unwrap();
    log.write("/root/a/c", &[task("2")]).unwrap();
    log.settle("/root/a", Outcome::Errored);
    assert_eq!(log.task(1).status, Status::Pending);
    log.send("/root", "a", true).unwrap();
    log.deliver("/root/a");
    log.settle("/root/a", Outcome::Interrupted);
    assert_eq!(log.task(1).status, Status::Pending);
    log.send("/root", "a", true).unwrap();
    log.deliver("/root/a");
    log.complete("/root/a");
    assert_eq!(log.task(1).status, Status::Completed);
    assert_eq!(log.task(2).status, Status::Pending, "exactly its own");
}

#[test]
fn agents_69_anything_unknown_applies_nothing() {
    let mut log = tree();
    log.write("/root/a", &[task("1")]).unwrap();
    let id = log.agent("/root/b").id.to_string();
    let reserved = log.reserve("/root", "half").to_string();
    for bad in [
        change(7),
        change(0),
        to("/root/nobody", task("x")),
        to(&reserved, task("x")),
        to(&id, task("x")),
        TaskChange { owner: Some(Owner::Bucket("/etc".to_owned())), ..task("x") },
        TaskChange { owner: Some(Owner::Bucket(" x".to_owned())), ..task("x") },
        after(&[9], task("x")),
        after(&[1], change(1)),
        task(" \n "),
        task(&"x".repeat(1001)),
        TaskChange::default(),
        TaskChange { description: Some("x".repeat(16_385)), ..task("x") },
    ] {
        refused(&mut log, "/root/a", &[task("good"), bad.clone()]);
        refused(&mut log, "/root/a", &[bad, task("good")]);
    }
    assert_eq!(refused(&mut log, "/root/a", &[change(1), change(1)]), RefusalKind::InvalidArgument);
    assert_eq!(refused(&mut log, "/root/a", &[]), RefusalKind::InvalidArgument);
    assert_eq!(log.write("/root/a", &[task("good")]).unwrap(), [2]);
    for bad in ["/root/", "/root/A", "/x", "a\nb", " ", "x ", &"x".repeat(129)] {
        assert!(Owner::try_from(bad.to_owned()).is_err(), "{bad:?}");
    }
    assert!(serde_json::from_str::<Status>("\"done\"").is_err());
}

#[test]
fn agents_70_what_is_completed_blocks_nothing() {
    let mut log = tree();
    log.write("/root", &[task("1"), after(&[1], task("2"))]).unwrap();
    log.write("/root/b", &[after(&[1, 2], task("3"))]).unwrap();
    assert_eq!(
        refused(&mut log, "/root", &[after(&[3], change(1))]),
        RefusalKind::InvalidArgument,
        "a circle"
    );
    assert_eq!(log.write("/root", &[set(1, Status::Completed)]).unwrap(), [1]);
    assert_eq!(log.task(2).blocked_by, BTreeSet::new());
    assert_eq!(log.task(3).blocked_by, BTreeSet::from([TaskId(2)]));
    log.write("/root", &[after(&[1, 2], task("4"))]).unwrap();
    assert_eq!(log.task(4).blocked_by, BTreeSet::from([TaskId(2)]));
    // A batch may name the numbers that it is about to get.
    log.write("/root", &[after(&[6], task("5")), task("6")]).unwrap();
    assert_eq!(log.task(5).blocked_by, BTreeSet::from([TaskId(6)]));
    // A settlement unblocks too.
    log.write("/root/b", &[to("", after(&[3], task("7")))]).unwrap();
    log.complete("/root/b");
    assert_eq!(log.task(7).blocked_by, BTreeSet::new());
}

#[test]
fn field_plan_04_of_twenty_claims_one_wins_and_the_others_hear_who() {
    let mut log = Log::new(32);
    log.write("/root", &[task("who wants it?")]).unwrap();
    let agents: Vec<String> = (0..20).map(|_| log.spawn("/root", "worker")).collect();
    let mut winners = Vec::new();
    for at in &agents {
        let claim = to(at, set(1, Status::InProgress));
        match log.write(at, &[claim]) {
            Ok(_) => winners.push(at.clone()),
            Err(refusal) => {
                assert_eq!(refusal.kind, RefusalKind::NotAllowed);
                assert_eq!(refusal.line, "task 1 belongs to /root/worker");
            }
        }
    }
    assert_eq!(winners, ["/root/worker"]);
    assert_eq!(log.task(1).owner, Owner::Agent(path("/root/worker")));
}

#[test]
fn field_plan_01_tasks_are_the_same_after_a_restart() {
    let mut log = tree();
    log.write("/root/a", &[task("1"), after(&[1], task("2"))]).unwrap();
    log.write("/root", &[to("later", set_new(Status::InProgress))]).unwrap();
    let again = log.restarted();
    assert_eq!(again.state.branch.tasks, log.state.branch.tasks);
    assert_eq!(again.task(2).blocked_by, BTreeSet::from([TaskId(1)]));
}

fn set_new(status: Status) -> TaskChange {
    TaskChange { status: Some(status), ..task("3") }
}

#[test]
fn a_note_lives_while_its_owner_has_an_open_task() {
    let mut log = tree();
    let note = |by: &str, owner: Option<Owner>, text: &str| Command::WriteTasks {
        by: Some(path(by)),
        changes: Vec::new(),
        notes: vec![(owner, text.to_owned())],
    };
    let a = || Owner::Agent(path("/root/a"));
    let dropped = log.ok(note("/root/a", None, "half way"));
    let none = BTreeSet::new;
    assert_eq!(dropped, Outcomes::Written { tasks: none(), notes_dropped: vec![a()] });
    log.write("/root/a", &[task("1")]).unwrap();
    log.ok(note("/root/a", None, "half way"));
    assert_eq!(log.state.branch.tasks.notes[&a()], "half way");
    assert_eq!(log.refused(note("/root/b", Some(a()), "no")), RefusalKind::NotAllowed);
    let ghost = Owner::Agent(path("/root/ghost"));
    assert_eq!(log.refused(note("/root", Some(ghost), "no")), RefusalKind::UnknownAgent);
    let long = "x".repeat(16_385);
    assert_eq!(log.refused(note("/root/a", None, &long)), RefusalKind::InvalidArgument);
    log.complete("/root/a");
    assert!(log.state.branch.tasks.notes.is_empty());
    // `/root` by its path is the main list, in memory as in the log.
    log.write("/root", &[task("2")]).unwrap();
    log.ok(note("/root", Some(Owner::Agent(path("/root"))), "main"));
    assert_eq!(log.state.branch.tasks.notes[&Owner::Main], "main");
}

#[test]
fn field_plan_06_a_closed_task_is_closed_for_every_copy() {
    // The list is the session's and of the log alone: agents in copies of their own share it, and
    // nothing of it waits for a command of Git.
    let mut log = Log::in_copies(8);
    for name in ["one", "two"] {
        let Outcomes::Reserved { path, .. } = log.ok(propose(&log, name, None)) else { panic!() };
        log.publish(&path);
    }
    let shared = log.write("/root", &[task("shared")]).unwrap()[0];
    log.write("/root/one", &[set(shared, Status::Completed)]).unwrap();
    let after = log.restarted();
    for seen in [&log, &after] {
        assert_eq!(seen.task(shared).status, Status::Completed);
        assert_eq!(seen.state.branch.tasks, log.state.branch.tasks, "one list, whoever looks");
    }
}

#[test]
fn field_plan_07_a_dead_agents_task_stays_open_for_root_to_give_away_and_a_slow_one_keeps_its() {
    let mut log = tree();
    log.write("/root/a", &[at_it("dead"), at_it("other")]).unwrap();
    log.write("/root/b", &[at_it("slow")]).unwrap();
    log.settle("/root/a", Outcome::Interrupted);
    assert_eq!(log.task(1).status, Status::InProgress, "it is still open");
    log.write("/root", &[to("/root/ab", change(1))]).unwrap();
    assert_eq!(log.task(1).owner, Owner::Agent(path("/root/ab")));
    // A year without a word frees nothing.
    log.clock += 365 * 24 * 3600 * 1000;
    log.spawn("/root", "later");
    assert_eq!(log.task(3).owner, Owner::Agent(path("/root/b")));
    assert_eq!(log.task(3).status, Status::InProgress);
    let steal = to("/root/later", change(3));
    assert_eq!(refused(&mut log, "/root/later", &[steal]), RefusalKind::NotAllowed);
}

#[test]
fn field_plan_10_a_task_in_progress_is_nobody_elses() {
    let mut log = tree();
    log.write("/root/a", &[at_it("mine")]).unwrap();
    for claim in [to("/root/b", change(1)), to("", change(1)), set(1, Status::InProgress)] {
        assert_eq!(refused(&mut log, "/root/b", &[claim]), RefusalKind::NotAllowed);
    }
    assert_eq!(log.task(1).owner, Owner::Agent(path("/root/a")));
    // When its owner gives it away it is the other's, and no longer its own.
    log.write("/root/a", &[to("/root/b", change(1))]).unwrap();
    log.write("/root/b", &[set(1, Status::InProgress)]).unwrap();
    assert_eq!(refused(&mut log, "/root/a", &[set(1, Status::Pending)]), RefusalKind::NotAllowed);
}

/// A new task that its writer is at.
fn at_it(subject: &str) -> TaskChange {
    TaskChange { status: Some(Status::InProgress), ..task(subject) }
}
