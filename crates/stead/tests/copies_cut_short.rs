//! Applies whose engine was killed before the first file was replaced.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so by panicking"
)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use stead_testkit::{World, until};

use common::copies::{RUNS, run};
use common::world;

/// More files than can be staged before the journal is seen.
const FILES: usize = 3000;

/// An apply to a plain folder whose engine is killed when its journal is there; the session.
fn cut_short(world: &World) -> String {
    for number in 0..FILES {
        world.write(&format!("d/f{number}"), "base\n");
    }
    run(world, RUNS, "for file in d/*; do echo task > $file; done");
    world.ok(["task", "review", "1"]);
    let session = world.json(["sessions", "list"]);
    let session = session["sessions"][0]["session"].as_str().unwrap().to_owned();
    let engine = world.engine().unwrap();
    std::thread::scope(|scope| {
        let applied = scope.spawn(|| world.run(["task", "apply", "1"]));
        until("the journal is there", || journal(world));
        let killed = Command::new("kill").args(["-KILL", &engine.to_string()]).status().unwrap();
        assert!(killed.success());
        let output = applied.join().unwrap();
        assert_eq!(output.status.code(), Some(66), "{output:?}");
    });
    session
}

fn journal(world: &World) -> Option<PathBuf> {
    let entries = fs::read_dir(world.home().join("applies")).ok()?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(|path| path.extension().is_some_and(|ending| ending == "journal"))
}

fn slot(world: &World, session: &str) -> Value {
    let shown = world.json(["task", "show", "1", "--session", session]);
    shown["delegated"]["slots"][0].clone()
}

#[test]
fn copies_69_what_a_half_way_outcome_names_is_there() {
    let world = world();
    let session = cut_short(&world);
    fs::write(world.work().join("d/f7"), "mine\n").unwrap();
    let slot = slot(&world, &session);
    assert_eq!(slot["outcome"]["state"], "recovery-needed", "{slot}");
    assert_eq!(slot["outcome"]["paths"], serde_json::json!(["d/f7"]), "{slot}");
    let named = slot["outcome"]["rescue"].as_str().unwrap().to_owned();
    assert!(Path::new(&named).exists(), "{named}");
    assert_eq!(fs::read(world.work().join("d/f7")).unwrap(), b"mine\n");
    assert_eq!(fs::read(world.work().join("d/f8")).unwrap(), b"base\n");
    assert!(journal(&world).is_none());
    let doctor = String::from_utf8(world.run(["doctor"]).stdout).unwrap();
    assert!(doctor.contains("is half-way") && doctor.contains("d/f7"), "{doctor}");
}

#[test]
fn an_apply_to_a_folder_that_is_gone_is_given_up_with_its_copy() {
    let world = world();
    let session = cut_short(&world);
    fs::remove_dir_all(world.work()).unwrap();
    fs::create_dir(world.work()).unwrap();
    let output = world.run(["sessions", "list"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let command = format!("stead task discard 1 {} --session {session}", "work");
    assert!(errors.contains(&command), "{errors}");
    world.ok(["task", "discard", "1", "--session", &session]);
    assert!(journal(&world).is_none());
    let output = world.run(["sessions", "list"]);
    assert!(output.stderr.is_empty(), "{output:?}");
}
