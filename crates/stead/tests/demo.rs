//! `stead demo` as a person and a script meet it: what it shows, and that it leaves nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests, which clippy does not know as such"
)]

mod common;

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use common::world;
use stead_testkit::{World, until, within};

/// How long a part of the demo may take, with its builds, on a loaded machine.
const LONG: Duration = Duration::from_mins(5);

/// A world with a temporary folder of its own.
fn prepared() -> (World, PathBuf) {
    let mut world = world();
    let temporary = world.folder().canonicalize().unwrap().join("tmp");
    fs::create_dir(&temporary).unwrap();
    world.set("TMPDIR", temporary.clone());
    (world, temporary)
}

fn texts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Everything that has to do with `folder`: its command line, its environment or its directory.
fn processes_of(folder: &Path) -> Vec<String> {
    let wanted = folder.as_os_str().as_bytes();
    let has = |bytes: &[u8]| bytes.windows(wanted.len()).any(|part| part == wanted);
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let directory = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        let line = read("cmdline");
        if has(&line) || has(&read("environ")) || directory.starts_with(folder) {
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}

/// Nothing of the demo is there any more, and the person's own home was never made.
fn nothing_is_left(world: &World, temporary: &Path) {
    assert_eq!(fs::read_dir(temporary).unwrap().count(), 0, "the temporary folder is empty");
    until("every process of it has ended", || processes_of(temporary).is_empty().then_some(()));
    for folder in ["home", "state", "config"] {
        assert!(!world.folder().join(folder).exists(), "{folder} is the person's");
    }
    assert_eq!(fs::read_dir(world.work()).unwrap().count(), 0);
}

#[test]
fn the_demo_does_what_it_says_and_leaves_nothing() {
    let (world, temporary) = prepared();
    let (code, out, errors) = texts(&world.run(["demo", "--yes"]));
    assert_eq!(code, 0, "{out}\n{errors}");
    for part in [
        "its tests, before: 7 of 8 fail",
        "/root/repair-library completed",
        "/root/repair-service completed",
        "/root/review completed",
        "the library is repaired: `sum 1h30m 45m` is answered with `200 2h15m`",
        "the service is repaired: `sum x` is answered with `400 x: ",
        "3 files written, nothing else touched",
        "its tests, after: all 8 pass",
        "All of it really happened.",
    ] {
        assert!(errors.contains(part), "{part}\n{errors}");
    }
    assert!(out.contains("3 changes") && out.contains("+            'h' => 3600,"), "{out}");
    nothing_is_left(&world, &temporary);
}

/// The folder of the demo that plays.
fn stage(temporary: &Path) -> Option<PathBuf> {
    fs::read_dir(temporary).unwrap().flatten().next().map(|entry| entry.path())
}

/// Begins a demo, and interrupts it when `reached` says so.
fn interrupted(reached: impl Fn(&Path) -> bool) {
    let (world, temporary) = prepared();
    let child: Child = world
        .command(["demo", "--yes"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    within(LONG, "the demo is so far", || {
        stage(&temporary).filter(|stage| reached(stage)).map(drop)
    });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let (code, out, errors) = texts(&child.wait_with_output().unwrap());
    assert_eq!(code, 130, "{out}\n{errors}");
    assert!(errors.contains("interrupted"), "{errors}");
    nothing_is_left(&world, &temporary);
}

#[test]
fn an_interrupt_among_the_first_tests_leaves_nothing() {
    interrupted(|stage| stage.join("target/debug").exists());
}

#[test]
fn an_interrupt_among_the_agents_leaves_nothing() {
    interrupted(|stage| {
        // A session, a task, a slot: the service that an agent has just built.
        let sessions = fs::read_dir(stage.join("home/copies")).into_iter().flatten().flatten();
        let built = |task: &str| format!("{task}/project/target/debug/timerd");
        sessions.into_iter().any(|session| session.path().join(built("3")).exists())
    });
}

/// A folder with `git` and, if it is given, a `cargo` that is this script, as the whole `PATH`.
fn path_with(world: &mut World, cargo: Option<&str>) {
    let folder = world.folder().join("bin");
    fs::create_dir(&folder).unwrap();
    let path = world.variables()[std::ffi::OsStr::new("PATH")].clone();
    let git =
        std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.exists());
    symlink(git.unwrap(), folder.join("git")).unwrap();
    if let Some(script) = cargo {
        fs::write(folder.join("cargo"), script).unwrap();
        fs::set_permissions(folder.join("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
    }
    world.set("PATH", folder);
}

#[test]
fn without_cargo_or_an_answer_nothing_is_begun() {
    let (mut world, temporary) = prepared();
    let (code, out, errors) = texts(&world.run(["demo"]));
    assert_eq!((code, out.as_str()), (2, ""), "{errors}");
    assert!(errors.contains("`stead demo --yes` applies"), "{errors}");
    path_with(&mut world, None);
    let (code, out, errors) = texts(&world.run(["demo", "--yes"]));
    assert_eq!((code, out.as_str()), (1, ""), "{errors}");
    assert!(errors.contains("needs cargo: it is not in PATH") && errors.contains("hint: "));
    assert!(world.ok(["demo", "--help"]).contains("--keep <DIR>"));
    nothing_is_left(&world, &temporary);
}

#[test]
fn what_failed_is_said_and_kept_where_that_was_asked_for() {
    let (mut world, temporary) = prepared();
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && exit\necho no space left\nexit 101\n";
    path_with(&mut world, Some(script));
    let (code, _, errors) = texts(&world.run(["demo", "--yes"]));
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("cargo test says nothing of tests: no space left"), "{errors}");
    assert!(errors.contains("`stead demo --keep DIR` keeps everything"), "{errors}");
    nothing_is_left(&world, &temporary);

    let kept = world.folder().canonicalize().unwrap().join("kept it's here");
    let kept = kept.to_str().unwrap();
    let (code, _, errors) = texts(&world.run(["demo", "--yes", "--keep", kept]));
    assert_eq!(code, 1, "{errors}");
    let looking = errors.lines().find(|line| line.starts_with("  . ")).expect(&errors);
    let script = format!("{looking} && echo \"$STEAD_HOME\" && pwd && git log --oneline");
    let shell = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
    let (code, out, errors) = texts(&shell);
    assert_eq!(code, 0, "{errors}");
    assert!(out.starts_with(&format!("{kept}/home\n{kept}/project\n")), "{out}");
    let (code, _, errors) = texts(&world.run(["demo", "--yes", "--keep", kept]));
    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("it is not empty"), "{errors}");
}
