//! Applies whose outcome cannot be stored: what is said is true, and the next command settles it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so by panicking"
)]

mod common;

use std::fs;
use std::process::Command;

use stead_testkit::{World, skip};

use common::copies::{RUNS, repository, run};
use common::world;

/// Has the store refuse to keep ends of applies like `pattern`, as a full disk would.
fn refuse(world: &World, pattern: &str) -> bool {
    let trigger = format!(
        "CREATE TRIGGER full BEFORE INSERT ON events WHEN NEW.kind = 'apply-ended' \
         AND CAST(NEW.body AS TEXT) LIKE '{pattern}' BEGIN SELECT RAISE(ABORT, 'no room'); END;"
    );
    sqlite(world, &trigger)
}

fn sqlite(world: &World, text: &str) -> bool {
    let database = world.home().join("stead.db");
    let done =
        Command::new("sqlite3").arg(database).args(["-cmd", ".timeout 5000"]).arg(text).status();
    done.is_ok_and(|status| status.success())
}

/// Nothing of an apply is left in the work folder or the home.
fn assert_nothing_left(world: &World) {
    for entry in fs::read_dir(world.work()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.starts_with(".stead-new-"), "{name}");
    }
    assert!(!world.work().join(".git/index.lock").exists());
    let applies = fs::read_dir(world.home().join("applies")).unwrap();
    for entry in applies {
        let path = entry.unwrap().path();
        assert!(path.extension().is_some_and(|ending| ending == "lock"), "{}", path.display());
    }
}

#[test]
fn copies_73_what_was_written_and_cannot_be_recorded_is_taken_back() {
    let world = world();
    let work = repository(&world);
    run(&world, RUNS, "echo more >> a.txt; echo new > c.txt");
    world.ok(["task", "review", "1"]);
    if !refuse(&world, "%applied%") {
        return skip("copies_73", "no sqlite3");
    }
    let output = world.run(["task", "apply", "1"]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    assert!(told.contains("could not be recorded"), "{told}");
    assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"one\n");
    assert!(!work.join("c.txt").exists());
    assert_nothing_left(&world);
    assert!(sqlite(&world, "DROP TRIGGER full"));
    world.ok(["task", "apply", "1"]);
    assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"one\nmore\n");
    assert_nothing_left(&world);
}

#[test]
fn copies_73_an_end_that_cannot_be_recorded_is_told_as_it_is_and_settled_by_the_next_command() {
    let world = world();
    let work = repository(&world);
    run(&world, RUNS, "echo more >> a.txt");
    world.ok(["task", "review", "1"]);
    if !refuse(&world, "%") {
        return skip("copies_73", "no sqlite3");
    }
    for verb in ["apply", "apply", "review", "discard"] {
        let output = world.run(["task", verb, "1"]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(66), "{verb}: {told}");
        assert!(told.contains("cannot be recorded"), "{verb}: {told}");
        assert!(told.contains("the folder is as before"), "{verb}: {told}");
        assert!(!told.contains("nothing was saved") && !told.contains("under way"), "{told}");
        assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"one\n");
        assert_nothing_left(&world);
    }
    assert!(sqlite(&world, "DROP TRIGGER full"));
    world.ok(["task", "review", "1"]);
    let shown = world.ok(["task", "show", "1"]);
    assert!(shown.contains("could not be recorded"), "{shown}");
    world.ok(["task", "apply", "1"]);
    assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"one\nmore\n");
}
