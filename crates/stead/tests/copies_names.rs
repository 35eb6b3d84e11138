//! Odd names, checkouts and modes on the whole way through a private copy and back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so by panicking"
)]

mod common;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::Value;
use stead_testkit::World;

use common::copies::{RUNS, copy_of, git, picture, repository, run};
use common::world;

fn session(world: &World) -> String {
    world.json(["sessions", "list"])["sessions"][0]["session"].as_str().unwrap().to_owned()
}

#[test]
fn field_wt_12_a_detached_head_is_copied_reviewed_and_applied() {
    let world = world();
    let work = repository(&world);
    git(&work, &["checkout", "-q", "--detach"]);
    let head = fs::read(work.join(".git/HEAD")).unwrap();
    run(&world, RUNS, "git status | head -1; echo more >> a.txt");
    let told = world.ok(["task", "review", "1"]);
    assert!(told.contains(", at "), "{told}");
    world.ok(["task", "apply", "1"]);
    assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"one\nmore\n");
    assert_eq!(fs::read(work.join(".git/HEAD")).unwrap(), head);
    // A checkout that moved since the review is refused.
    world.ok(["run", "--session", &session(&world), "echo again >> a.txt"]);
    world.ok(["task", "review", "1"]);
    git(&work, &["commit", "-qam", "moved on"]);
    let output = world.run(["task", "apply", "1"]);
    assert_eq!(output.status.code(), Some(65), "{output:?}");
}

#[test]
fn field_wt_15_the_sources_git_settings_stay_byte_for_byte() {
    let world = world();
    let work = repository(&world);
    git(&work, &["config", "remote.origin.url", "https://example.invalid/x.git"]);
    git(&work, &["config", "core.hooksPath", ".githooks"]);
    let config = fs::read(work.join(".git/config")).unwrap();
    let same = || assert_eq!(fs::read(work.join(".git/config")).unwrap(), config);
    let change = "git config user.name agent; git config core.bare false; echo x > a.txt";
    run(&world, RUNS, change);
    same();
    world.ok(["task", "review", "1"]);
    world.ok(["task", "apply", "1"]);
    same();
    world.ok(["task", "discard", "1"]);
    same();
}

#[test]
fn field_wt_31_inherited_git_variables_lead_nowhere_else() {
    let mut world = world();
    let work = repository(&world);
    let other = world.folder().join("other");
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q"]);
    fs::write(other.join("o"), "o").unwrap();
    git(&other, &["add", "-A"]);
    git(&other, &["commit", "-qm", "other"]);
    let before = picture(&other);
    for (name, path) in [
        ("GIT_DIR", other.join(".git")),
        ("GIT_WORK_TREE", other.clone()),
        ("GIT_INDEX_FILE", other.join(".git/index")),
        ("GIT_OBJECT_DIRECTORY", other.join(".git/objects")),
    ] {
        world.set(name, path);
    }
    let commit = "env | grep -c ^GIT_DIR; echo x > a.txt; git add -A; \
                  git -c user.name=n -c user.email=e commit -qm work";
    let told = run(&world, RUNS, commit);
    assert!(told.contains("exit status 0"), "{told}");
    let told = world.ok(["task", "review", "1"]);
    assert!(told.contains("1 commit in the copy"), "{told}");
    world.ok(["task", "apply", "1"]);
    assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"x\n");
    assert_eq!(picture(&other), before);
}

#[test]
fn field_apl_12_a_copy_whose_commit_failed_is_kept_with_its_changes() {
    let world = world();
    repository(&world);
    let fail =
        "echo mine > a.txt; git add a.txt; git -c user.email= -c user.name= commit -m x; exit 3";
    run(&world, RUNS, fail);
    let copy = copy_of(&world, "1");
    world.ok(["serve", "--stop"]);
    let _ = world.ok(["sessions", "list"]);
    world.ok(["gc"]);
    assert_eq!(fs::read(copy.join("a.txt")).unwrap(), b"mine\n");
    assert!(world.ok(["task", "review", "1"]).contains("+mine"));
}

#[test]
fn field_cln_01_the_end_of_a_session_removes_neither_copy_nor_commit() {
    let world = world();
    repository(&world);
    let commit = "echo x > a.txt; git add -A; git -c user.name=n -c user.email=e commit -qm work";
    run(&world, RUNS, commit);
    let copy = copy_of(&world, "1");
    world.ok(["serve", "--stop"]);
    assert_eq!(git(&copy, &["log", "--format=%s"]), "work\nfirst\n");
}

#[test]
fn field_cln_09_a_copy_removed_by_hand_can_still_be_discarded_and_its_history_read() {
    let world = world();
    repository(&world);
    run(&world, RUNS, "echo x > a.txt");
    let copy = copy_of(&world, "1");
    fs::remove_dir_all(&copy).unwrap();
    let output = world.run(["task", "review", "1"]);
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    world.ok(["task", "discard", "1"]);
    assert!(world.ok(["log"]).contains("is in the trash"));
    // The whole folder of the task gone is no different.
    run(&world, RUNS, "echo y > a.txt");
    let copy = copy_of(&world, "1");
    fs::remove_dir_all(copy.parent().unwrap()).unwrap();
    world.ok(["task", "discard", "1", "--session", &session(&world)]);
}

#[test]
fn field_nam_01_field_nam_02_names_with_blanks_and_accents_are_reviewed_with_their_content() {
    let world = world();
    let work = repository(&world);
    world.write("größe.txt", "alt\n");
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-qm", "names"]);
    let change = "echo neu > größe.txt; mkdir -p 日本; echo inhalt > '日本/neue datei.txt'; \
                  git mv sub/b.txt 'sub/umbenannt é.txt'";
    run(&world, RUNS, change);
    let told = world.ok(["task", "review", "1"]);
    for part in
        ["größe.txt", "+neu", "日本/neue datei.txt", "+inhalt", "sub/umbenannt é.txt", "+two"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    world.ok(["task", "apply", "1"]);
    assert_eq!(fs::read(work.join("größe.txt")).unwrap(), b"neu\n");
    assert_eq!(fs::read(work.join("日本/neue datei.txt")).unwrap(), b"inhalt\n");
    assert_eq!(fs::read(work.join("sub/umbenannt é.txt")).unwrap(), b"two\n");
    assert!(!work.join("sub/b.txt").exists());
}

#[test]
fn field_nam_06_names_that_are_no_utf8_stay_apart_and_whole() {
    let world = world();
    let work = repository(&world);
    let name = |last: u8| OsString::from_vec(vec![b'n', 0xff, last]);
    for last in [0xfe, 0xfd] {
        fs::write(work.join(name(last)), [last]).unwrap();
    }
    run(
        &world,
        RUNS,
        "for f in n*; do printf x >> \"$f\"; done; printf z > \"$(printf 'n\\374')\"",
    );
    let copy = copy_of(&world, "1");
    assert_eq!(fs::read(copy.join(name(0xfe))).unwrap(), [0xfe, b'x']);
    let review: Value = world.json(["task", "review", "1"]);
    let mut paths: Vec<String> = review["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["path"]["hex"].as_str().unwrap().to_owned())
        .collect();
    paths.sort();
    assert_eq!(paths, ["6efc", "6efffd", "6efffe"], "JSON shows them without loss");
    world.ok(["task", "apply", "1"]);
    for last in [0xfe, 0xfd] {
        assert_eq!(fs::read(work.join(name(last))).unwrap(), [last, b'x']);
    }
    assert_eq!(fs::read(work.join(OsStr::from_bytes(b"n\xfc"))).unwrap(), b"z");
    world.ok(["task", "discard", "1"]);
    assert!(!copy.exists());
}

#[test]
fn field_mode_03_changing_one_file_leaves_all_others_modes_and_links() {
    let world = world();
    let work = repository(&world);
    for (name, mode) in [("tool.sh", 0o755), ("secret", 0o600), ("odd", 0o4711)] {
        let path = world.write(name, name);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    std::os::unix::fs::symlink("tool.sh", work.join("link")).unwrap();
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-qm", "modes"]);
    let seen = |folder: &Path| -> Vec<(PathBuf, u32)> {
        ["tool.sh", "secret", "odd", "link", "sub", "sub/b.txt"]
            .map(|name| {
                let found = fs::symlink_metadata(folder.join(name)).unwrap();
                (PathBuf::from(name), found.mode())
            })
            .to_vec()
    };
    let before = seen(&work);
    run(&world, RUNS, "umask 077; echo more >> a.txt");
    assert_eq!(seen(&copy_of(&world, "1")), before);
    world.ok(["task", "review", "1"]);
    world.ok(["task", "apply", "1"]);
    assert_eq!(seen(&work), before);
    assert_eq!(fs::read_link(work.join("link")).unwrap(), Path::new("tool.sh"));
    assert_eq!(fs::metadata(work.join("a.txt")).unwrap().permissions().mode() & 0o7777, 0o644);
}
