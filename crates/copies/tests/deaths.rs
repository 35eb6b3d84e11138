//! A process that is killed at any step of an admission or a discard leaves all or nothing.
//!
//! This program starts itself again for each step and dies there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use common::{Kit, contents, picture, request_for, session, slot, write};
use stead_copies::{
    Layout, clear_staging, discard, empty_trash, flush, flush_all, found, restore, trashed,
};
use stead_core::id::{TaskId, Timestamp};
use stead_core::layout::Access;
use stead_core::step::{Moment, observe};

/// What the child works in, what it does, and where it dies: the number of the step, or none to
/// write down all steps.
const FOLDER: &str = "COPIES_TEST_FOLDER";
const ACT: &str = "COPIES_TEST_ACT";
const DIES_AT: &str = "COPIES_TEST_DIES_AT";

static PASSED: Mutex<usize> = Mutex::new(0);

fn passed(name: &str, moment: Moment) {
    // Between two steps of ours Git is asked many questions; a death in one is one before the next.
    if name.starts_with("process.") {
        return;
    }
    let mut passed = PASSED.lock().unwrap();
    let file = PathBuf::from(std::env::var_os(FOLDER).unwrap()).join("steps");
    let mut file = OpenOptions::new().append(true).create(true).open(file).unwrap();
    writeln!(file, "{name} {moment:?}").unwrap();
    if std::env::var(DIES_AT).is_ok_and(|at| at == passed.to_string()) {
        let me = rustix::process::getpid();
        rustix::process::kill_process(me, rustix::process::Signal::KILL).unwrap();
    }
    *passed += 1;
}

/// The child: does nothing when it is run as a test of its own.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let kit = Kit::at_folder(Path::new(&folder));
    observe(passed);
    match std::env::var(ACT).unwrap().as_str() {
        "admit" => {
            let (app, lib) = (kit.at("app"), kit.at("lib"));
            let roots =
                [("app", app.as_path(), Access::Write), ("lib", lib.as_path(), Access::Read)];
            kit.try_admit(&request_for(1, &roots)).unwrap();
            flush(&kit.home, &session(), TaskId(1)).unwrap();
        }
        "discard" => {
            discard(&kit.home, &session(), TaskId(1), None, Timestamp(1)).unwrap();
        }
        "empty" => {
            empty_trash(&kit.home, Timestamp(2)).unwrap();
        }
        other => panic!("{other}"),
    }
}

/// Runs the child; whether it died.
fn run(kit: &Kit, act: &str, dies_at: Option<usize>) -> bool {
    let _ = fs::remove_file(kit.at("steps"));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child"]).env(FOLDER, kit.at("")).env(ACT, act);
    command.env(DIES_AT, dies_at.map_or("never".to_owned(), |at| at.to_string()));
    let output = command.output().unwrap();
    let killed = output.status.signal() == Some(9);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(killed || output.status.success(), "{said}");
    killed
}

fn steps(kit: &Kit) -> Vec<String> {
    let text = fs::read_to_string(kit.at("steps")).unwrap();
    text.lines().map(ToOwned::to_owned).collect()
}

fn sources() -> Kit {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join("untracked"), "x");
    write(&kit.at("lib/y"), "y");
    kit
}

/// The task is not there, or it is whole.
fn assert_all_or_nothing(kit: &Kit, step: &str) -> bool {
    let layout = Layout::load(&kit.home, &session(), TaskId(1)).unwrap();
    let task = kit.home.task(&session(), TaskId(1));
    assert_eq!(layout.is_some(), task.exists(), "{step}");
    let Some(layout) = layout else { return false };
    for made in &layout.slots {
        let copy = kit.home.copy(&session(), TaskId(1), &made.slot);
        assert_eq!(contents(&copy), contents(made.source.as_path()), "{step}");
        assert!(kit.home.blobs().get(&made.base).unwrap().is_some(), "{step}");
    }
    let copy = kit.home.copy(&session(), TaskId(1), &slot("app"));
    assert_eq!(kit.status(&copy), "?? untracked\n", "{step}");
    kit.ok(&copy, &["fsck", "--full"]);
    true
}

#[test]
fn a_killed_admission_leaves_a_whole_task_or_none() {
    let kit = sources();
    assert!(!run(&kit, "admit", None));
    let steps = steps(&kit);
    for expected in ["copies.depot", "files.clone", "copies.git", "copies.publish", "copies.flush"]
    {
        for moment in ["Before", "After"] {
            let step = format!("{expected} {moment}");
            assert!(steps.contains(&step), "{step}: {steps:?}");
        }
    }
    let mut outcomes = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let kit = sources();
        let before = (picture(&kit.at("app")), picture(&kit.at("lib")));
        assert!(run(&kit, "admit", Some(number)), "{step}");
        outcomes.push(assert_all_or_nothing(&kit, step));
        flush_all(&kit.home).unwrap();
        let mark = kit.home.task(&session(), TaskId(1)).join(".unflushed");
        assert!(!mark.exists(), "{step}");
        // A Git that was just being started holds the lock for a moment longer.
        stead_testkit::until("the staging to be cleared", || {
            assert!(clear_staging(&kit.home).unwrap().len() <= 1, "{step}");
            let left = fs::read_dir(kit.home.staging()).map_or(0, Iterator::count);
            (left == 0).then_some(())
        });
        assert!((picture(&kit.at("app")), picture(&kit.at("lib"))) == before, "{step}");
        // A new try is not in its way.
        if !outcomes[number] {
            assert!(!run(&kit, "admit", None), "{step}");
            assert!(assert_all_or_nothing(&kit, step), "{step}");
        }
    }
    assert!(outcomes.contains(&true) && outcomes.contains(&false));
    assert!(outcomes.is_sorted(), "once it is there it stays: {outcomes:?}");
}

#[test]
fn a_killed_discard_leaves_the_copies_here_or_in_the_trash() {
    let kit = sources();
    assert!(!run(&kit, "admit", None) && !run(&kit, "discard", None));
    for (number, step) in steps(&kit).iter().enumerate() {
        let kit = sources();
        run(&kit, "admit", None);
        assert!(run(&kit, "discard", Some(number)), "{step}");
        let there = kit.home.task(&session(), TaskId(1)).exists();
        let kept: Vec<_> =
            trashed(&kit.home).unwrap().into_iter().filter(|t| t.kept().exists()).collect();
        assert_eq!(kept.len(), usize::from(!there), "{step}");
        if let [kept] = kept.as_slice() {
            restore(&kit.home, kept).unwrap();
        }
        assert!(assert_all_or_nothing(&kit, step));
    }
}

#[test]
fn a_killed_emptying_is_finished_by_the_next() {
    let kit = sources();
    for act in ["admit", "discard", "empty"] {
        assert!(!run(&kit, act, None));
    }
    for (number, step) in steps(&kit).iter().enumerate() {
        let kit = sources();
        run(&kit, "admit", None);
        run(&kit, "discard", None);
        assert!(run(&kit, "empty", Some(number)), "{step}");
        empty_trash(&kit.home, Timestamp(2)).unwrap();
        assert!(found(&kit.home).unwrap().trash.is_empty(), "{step}");
        assert_eq!(fs::read_dir(kit.home.trash()).unwrap().count(), 0, "{step}");
    }
}
