//! Killed at every step of write, clear and recovery: the original is wholly the old one or wholly
//! the new one.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use stead_copies::{Finished, Outcome, Recorded, forget, leftovers, recover};
use stead_core::step::Moment;
use stead_testkit::as_a_plain_user;

use crate::during::at_steps;
use crate::kit::{World, assert_same, chmod, content, root_id, write};

const CHILD: &str = "STEAD_COPIES_TEST_KILL";

pub(crate) fn build(root: &Path) {
    write(root, "a", "base\n");
    write(root, "gone", "base\n");
    write(root, "from-folder/deep/x", "base\n");
    write(root, "to-folder", "base\n");
    write(root, "mode", "base\n");
    write(root, "closed/in", "base\n");
    symlink("a", root.join("link")).unwrap();
}

pub(crate) fn task(copy: &Path) {
    write(copy, "a", "task\n");
    fs::remove_file(copy.join("gone")).unwrap();
    fs::remove_dir_all(copy.join("from-folder")).unwrap();
    write(copy, "from-folder", "task\n");
    fs::remove_file(copy.join("to-folder")).unwrap();
    write(copy, "to-folder/deep/x", "task\n");
    chmod(&copy.join("mode"), 0o755);
    write(copy, "closed/in", "task\n");
    write(copy, "closed/new", "task\n");
    chmod(&copy.join("closed"), 0o555);
    fs::remove_file(copy.join("link")).unwrap();
    symlink("mode", copy.join("link")).unwrap();
}

/// Kills this process at the step that the parent named, counted from 1.
fn die_at(number: u64) -> impl FnMut(&str, Moment) + 'static {
    let mut passed = 0;
    move |_, _| {
        passed += 1;
        if passed == number {
            let me = rustix::process::getpid();
            rustix::process::kill_process(me, rustix::process::Signal::KILL).unwrap();
            loop {
                std::thread::park();
            }
        }
    }
}

/// What a child is told.
fn told() -> Option<(std::path::PathBuf, u64, bool)> {
    let text = std::env::var(CHILD).ok()?;
    let mut words = text.splitn(3, ' ');
    let number = words.next()?.parse().ok()?;
    let flag = words.next()? == "yes";
    Some((words.next()?.into(), number, flag))
}

/// Runs a child; whether it was killed.
fn killed(name: &str, folder: &Path, number: u64, flag: bool) -> bool {
    let flag = if flag { "yes" } else { "no" };
    let status = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(CHILD, format!("{number} {flag} {}", folder.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success() || status.signal() == Some(9), "{name} {number}: {status}");
    !status.success()
}

/// Where the world of a child is, the parent having made it.
fn world_file(folder: &Path) -> std::path::PathBuf {
    folder.join("recorded")
}

#[test]
#[ignore = "a child of copies_68"]
fn applies_until_it_is_killed() {
    let Some((folder, number, exchanges)) = told() else { return };
    let made = tempfile::Builder::new().prefix("w").disable_cleanup(true).tempdir_in(&folder);
    let mut world = World::new(made.unwrap(), true, build);
    task(&world.copy);
    as_a_plain_user();
    let mut apply = world.ready().unwrap();
    if !exchanges {
        apply = apply.without_exchange();
    }
    let recorded = world_file(&folder);
    at_steps(die_at(number), move || match apply.write() {
        Outcome::Written(written) => {
            // The engine's append.
            fs::write(recorded, "applied").unwrap();
            written.clear().unwrap();
        }
        other => panic!("{other:?}"),
    });
}

#[test]
#[ignore = "a child of copies_68"]
fn recovers_until_it_is_killed() {
    let Some((folder, number, applied)) = told() else { return };
    let recorded = if applied { Recorded::Applied } else { Recorded::Nothing };
    let home = stead_copies::Home::new(home_in(&folder));
    as_a_plain_user();
    at_steps(die_at(number), move || recover(&home, &root_id(), recorded).unwrap());
}

fn world_in(folder: &Path) -> std::path::PathBuf {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.into_iter().find(|path| path.is_dir()).unwrap()
}

fn home_in(folder: &Path) -> std::path::PathBuf {
    world_in(folder).join("home")
}

/// What there is after a crash and recovery, which is killed too at its step `again`, and then
/// done to its end. Gives whether the recovery was killed.
fn recovered(folder: &Path, again: u64, case: &str) -> bool {
    let world = world_in(folder);
    let home = stead_copies::Home::new(world.join("home"));
    let applied = world_file(folder).exists();
    let recorded = if applied { Recorded::Applied } else { Recorded::Nothing };
    let was_killed = again > 0
        && !leftovers(&home).unwrap().is_empty()
        && killed("crash::recovers_until_it_is_killed", folder, again, applied);
    let left = leftovers(&home).unwrap();
    if let Some(left) = left.first() {
        assert_eq!(left.header.as_ref().unwrap().task.0, 1);
    }
    let finished = recover(&home, &root_id(), recorded).unwrap();
    match (&finished, applied) {
        (None, _) | (Some(Finished::Back), false) | (Some(Finished::Forward), true) => {}
        other => panic!("{case}: {other:?}"),
    }
    // Twice is once.
    assert_eq!(recover(&home, &root_id(), recorded).unwrap(), finished);
    forget(&home, &root_id()).unwrap();
    assert!(leftovers(&home).unwrap().is_empty());

    let expected = folder.join("expected");
    fs::create_dir(&expected).unwrap();
    build(&expected);
    let is_new = applied;
    if is_new {
        task(&expected);
    }
    assert_eq!(content(&world.join("root")), content(&expected), "{case}");
    assert_same(&expected, &world.join("root"));
    assert!(!world.join("root/.git/index.lock").exists(), "{case}");
    for entry in fs::read_dir(world.join("root/.git")).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(!stead_files::is_temporary(&name), "{case}: {}", name.display());
    }
    was_killed
}

#[test]
fn copies_68_a_kill_at_any_step_leaves_the_old_tree_or_the_new_one() {
    let folder = crate::kit::quick_folder();
    let mut steps = 0;
    for number in 1.. {
        let case = folder.path().join(format!("case-{number}"));
        fs::create_dir(&case).unwrap();
        // Every third without exchanges.
        let done = !killed("crash::applies_until_it_is_killed", &case, number, number % 3 != 0);
        recovered(&case, 0, &format!("step {number}"));
        stead_files::remove_tree_at(&case).unwrap();
        if done {
            break;
        }
        steps = number;
    }
    assert!(steps > 60, "{steps}");
    println!("{steps} steps");
}

#[test]
fn copies_68_a_kill_in_the_recovery_is_recovered_from() {
    let folder = crate::kit::quick_folder();
    let mut kills = 0;
    // Applies cut short in the beginning, in the middle, at the end, and while they are cleared.
    for number in [9, 31, 52, 70, 84, 96] {
        for again in 1.. {
            let case = folder.path().join(format!("case-{number}-{again}"));
            fs::create_dir(&case).unwrap();
            killed("crash::applies_until_it_is_killed", &case, number, number % 2 == 0);
            let was_killed = recovered(&case, again, &format!("step {number}, then {again}"));
            stead_files::remove_tree_at(&case).unwrap();
            if !was_killed {
                break;
            }
            kills += 1;
        }
    }
    assert!(kills > 60, "{kills}");
    println!("{kills} kills");
}
