//! `stead gc` with the real program: what it removes, and above all what it keeps.
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
use stead_testkit::World;

use common::copies::RUNS;
use common::world;

fn run(world: &World, message: &str) -> String {
    fs::write(world.folder().join("p.toml"), RUNS).unwrap();
    let playbook = format!("playbook:{}", world.folder().join("p.toml").display());
    world.ok(["run", "--mode", "full-auto", "--agent", &playbook, message])
}

fn repository(world: &World) {
    world.write("a.txt", "one\n");
    for arguments in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "first"]] {
        let done = Command::new("git")
            .current_dir(world.work())
            .args(["-c", "user.name=n", "-c", "user.email=e@x"])
            .args(arguments)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HOME", world.folder())
            .status();
        assert!(done.unwrap().success(), "git {arguments:?}");
    }
}

/// Of what kinds something went.
fn removed(document: &Value) -> Vec<String> {
    let removed = document["removed"].as_array().unwrap();
    removed.iter().map(|one| one["kind"].as_str().unwrap().to_owned()).collect()
}

fn names(folder: PathBuf) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).into_iter().flatten();
    listed.map(|entry| entry.unwrap().path()).collect()
}

fn blobs(world: &World) -> Vec<PathBuf> {
    let mut blobs: Vec<PathBuf> =
        names(world.home().join("blobs")).into_iter().flat_map(names).collect();
    blobs.sort();
    blobs
}

/// As if it were of last year.
fn age(path: &Path) {
    let done = Command::new("touch").args(["-h", "-d", "@1000000000"]).arg(path).status();
    assert!(done.unwrap().success());
}

/// As if what is in the trash had come there long ago.
fn age_trash(world: &World) {
    for entry in names(world.home().join("trash")) {
        let path = entry.join("record.json");
        let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        record["at"] = 1_000_000_000_000_u64.into();
        fs::write(path, record.to_string()).unwrap();
    }
}

#[test]
fn without_anything_to_do_it_says_so() {
    let world = world();
    let output = world.run(["gc"]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing to remove"), "{output:?}");
    assert!(output.stdout.is_empty());
}

#[test]
fn what_is_needed_stays_and_what_was_discarded_goes_after_thirty_days() {
    let world = world();
    repository(&world);
    run(&world, "echo more >> a.txt; echo n > new.txt");
    world.ok(["task", "review", "1"]);
    // All of it is old, and all of it is needed.
    for path in blobs(&world) {
        age(&path);
    }
    let kept = blobs(&world);
    assert!(!kept.is_empty());
    let document = world.json(["gc"]);
    assert_eq!(removed(&document), Vec::<String>::new(), "{document:#}");
    assert_eq!(blobs(&world), kept);
    world.ok(["task", "apply", "1"]);
    assert_eq!(fs::read(world.work().join("new.txt")).unwrap(), b"n\n");
    // What nothing names goes once it is old.
    let stray = world.home().join("blobs/ab").join("0".repeat(62));
    fs::create_dir_all(stray.parent().unwrap()).unwrap();
    fs::write(&stray, "stray").unwrap();
    assert_eq!(removed(&world.json(["gc"])), Vec::<String>::new());
    age(&stray);
    assert_eq!(removed(&world.json(["gc", "--dry-run"])), ["bodies"]);
    assert!(stray.exists());
    assert_eq!(removed(&world.json(["gc"])), ["bodies"]);
    assert!(!stray.exists());
    // Just discarded, it is in the trash and its depot stays.
    let depot = names(world.home().join("objects"));
    world.ok(["task", "discard", "1"]);
    let document = world.json(["gc"]);
    assert_eq!(removed(&document), Vec::<String>::new(), "{document:#}");
    assert!(document["kept"][0]["why"].as_str().unwrap().contains("30 days"), "{document:#}");
    age_trash(&world);
    let doctor = world.ok(["doctor"]);
    assert!(doctor.contains("`stead gc` empties"), "{doctor}");
    let document = world.json(["gc", "--dry-run"]);
    assert_eq!(removed(&document), ["trash"], "{document:#}");
    assert_eq!(names(world.home().join("trash")).len(), 1);
    let document = world.json(["gc"]);
    assert_eq!(removed(&document), ["trash", "layout", "depot"], "{document:#}");
    assert!(names(world.home().join("trash")).is_empty());
    assert!(!depot.iter().any(|path| path.is_dir()), "{depot:?}");
    world.ok(["doctor"]);
    // The folder can be worked on as before.
    run(&world, "echo again >> a.txt");
    let told = world.ok(["task", "review", "1"]);
    assert!(told.contains("+again"), "{told}");
}

#[test]
fn field_cln_copies_go_to_the_trash_only_when_all_of_it_was_applied() {
    let world = world();
    repository(&world);
    run(&world, "echo more >> a.txt");
    let document = world.json(["gc", "--copies"]);
    assert_eq!(removed(&document), Vec::<String>::new(), "{document:#}");
    world.ok(["task", "review", "1"]);
    world.ok(["task", "apply", "1"]);
    let shown = world.json(["task", "show", "1"]);
    let copy = PathBuf::from(shown["delegated"]["slots"][0]["copy"].as_str().unwrap());
    fs::write(copy.join("late.txt"), "mine").unwrap();
    let document = world.json(["gc", "--copies"]);
    assert_eq!(removed(&document), Vec::<String>::new(), "{document:#}");
    assert!(document["kept"][0]["why"].as_str().unwrap().contains("not applied"), "{document:#}");
    fs::remove_file(copy.join("late.txt")).unwrap();
    assert_eq!(removed(&world.json(["gc", "--copies", "--dry-run"])), ["copy"]);
    assert!(copy.is_dir());
    let text = world.ok(["gc", "--copies"]);
    assert!(text.contains("in the trash: copy of task 1"), "{text}");
    assert!(!copy.exists());
    assert_eq!(names(world.home().join("trash")).len(), 1);
    // Its session is gone: nobody can ask for it any more.
    let stray = world.home().join("copies/gone/1");
    fs::create_dir_all(stray.join("x")).unwrap();
    let document = world.json(["gc", "--copies"]);
    assert_eq!(removed(&document), Vec::<String>::new(), "no layout, no move: {document:#}");
    assert!(stray.is_dir());
}

#[test]
fn what_cannot_be_read_may_name_anything_and_keeps_all() {
    let world = world();
    repository(&world);
    run(&world, "echo more >> a.txt");
    let layout = names(world.home().join("copies")).into_iter().find_map(|session| {
        let layout = session.join("1/layout.json");
        layout.exists().then_some(layout)
    });
    let stray = world.home().join("blobs/ab").join("0".repeat(62));
    fs::create_dir_all(stray.parent().unwrap()).unwrap();
    fs::write(&stray, "stray").unwrap();
    age(&stray);
    fs::write(layout.unwrap(), "{").unwrap();
    let document = world.json(["gc"]);
    assert_eq!(removed(&document), Vec::<String>::new(), "{document:#}");
    assert!(document["kept"][0]["why"].as_str().unwrap().contains("cannot be read"));
    assert!(stray.exists());
    let doctor = world.run(["doctor"]);
    let text = String::from_utf8_lossy(&doctor.stdout);
    assert!(text.contains("layout"), "{text}");
}

#[test]
fn only_the_person_collects() {
    let world = world();
    repository(&world);
    let stead = common::STEAD;
    let told = run(&world, &format!("{stead} gc --copies; echo =$?"));
    assert!(told.contains("=64"), "{told}");
}

#[test]
fn field_wt_21_a_copy_that_was_removed_by_hand_blocks_nothing_and_doctor_names_it() {
    let world = world();
    repository(&world);
    run(&world, "echo more >> a.txt");
    let shown = world.json(["task", "show", "1"]);
    let copy = PathBuf::from(shown["delegated"]["slots"][0]["copy"].as_str().unwrap());
    fs::remove_dir_all(&copy).unwrap();
    let doctor = world.ok(["doctor"]);
    assert!(doctor.contains("was removed") && doctor.contains("stead task discard 1"), "{doctor}");
    let told = world.ok(["task", "discard", "1"]);
    assert!(told.starts_with("removed before"), "{told}");
    let doctor = world.ok(["doctor"]);
    assert!(!doctor.contains("was removed"), "{doctor}");
    run(&world, "echo more >> a.txt");
    world.ok(["task", "review", "1"]);
}

#[test]
fn pipes_in_the_home_hold_up_neither_doctor_nor_gc() {
    let world = world();
    repository(&world);
    run(&world, "echo more >> a.txt");
    world.ok(["serve", "--stop"]);
    let home = world.home();
    for path in
        ["trash/x/record.json", "copies/s/1/layout.json", "applies/r.journal", "engine.json"]
    {
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    }
    let doctor = world.run(["doctor"]);
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert_eq!(doctor.status.code(), Some(1), "{text}");
    assert!(text.contains("engine.json is not a file"), "{text}");
    fs::remove_file(home.join("engine.json")).unwrap();
    let told = world.json(["gc", "--copies"]);
    assert_eq!(removed(&told), Vec::<String>::new(), "{told:#}");
}

#[test]
fn doctor_tells_what_is_held_and_what_helps() {
    let world = world();
    repository(&world);
    run(&world, "echo more >> a.txt");
    run(&world, "echo other >> a.txt");
    world.ok(["task", "discard", "1"]);
    let staged = world.home().join("copies/.staging/1-1");
    fs::create_dir(&staged).unwrap();
    fs::write(staged.with_extension("lock"), "").unwrap();
    let told = world.ok(["doctor"]);
    for line in [
        "1 private copy of 2 tasks",
        "object files of 1 repository",
        "kept by nothing else",
        "1 copy in",
        "the oldest of today",
        "1 folder with copies that were never made whole",
        "1 folder is registered",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert_eq!(removed(&world.json(["gc", "--dry-run"])), ["staging"]);
    assert!(staged.exists());
    assert_eq!(removed(&world.json(["gc"])), ["staging"]);
    assert!(!staged.exists());
    fs::rename(world.work(), world.folder().join("moved")).unwrap();
    fs::create_dir(world.work()).unwrap();
    let told = world.ok(["doctor"]);
    assert!(
        told.contains("another folder than the one") && told.contains("roots rebind"),
        "{told}"
    );
}

/// A task whose copy was applied, of a repository with ignored files, a nested repository and a
/// submodule; the copy.
fn applied(world: &World) -> PathBuf {
    let told = run(world, "echo more >> a.txt; git add -A");
    assert!(!told.contains("fatal"), "{told}");
    world.ok(["task", "review", "1"]);
    world.ok(["task", "apply", "1"]);
    let shown = world.json(["task", "show", "1"]);
    PathBuf::from(shown["delegated"]["slots"][0]["copy"].as_str().unwrap())
}

#[test]
fn field_cln_copies_stay_for_whatever_no_apply_brings() {
    let world = world();
    let shell = |folder: &Path, line: &str| {
        let done = Command::new("sh")
            .current_dir(folder)
            .args(["-ec", line])
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HOME", world.folder())
            .envs(["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, "n")))
            .envs(["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, "e@x")))
            .output()
            .unwrap();
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let library = world.folder().join("library");
    fs::create_dir(&library).unwrap();
    shell(&library, "git init -q; echo l > l; git add l; git commit -qm l");
    world.write(".gitignore", "target/\nnested/\n");
    world.write("target/old", "built\n");
    repository(&world);
    let add = format!(
        "git -c protocol.file.allow=always submodule -q add {} sub; git commit -qm sub;
         git init -q nested; cd nested; echo n > n; git add n; git commit -qm n",
        library.display()
    );
    shell(&world.work(), &add);
    let lines = [
        "git checkout -qb side; echo s > a.txt; git commit -qam side; git checkout -q -",
        "git tag -am t kept",
        "git checkout -q --detach; git commit -q --allow-empty -m d; git checkout -q -",
        "echo x >> a.txt; git stash -q; git stash show -p | head -1; git checkout -q HEAD .; echo more >> a.txt",
        "cp a.txt ../k; echo staged > a.txt; git add a.txt; mv ../k a.txt",
        "git mv .gitignore x; git mv x .gitignore; echo only > n.txt; git add n.txt; rm n.txt",
        "echo new > target/new",
        "echo other > target/old",
        "echo x >> nested/n",
        "git -C nested commit -q --allow-empty -m more",
        "git init -q fresh",
        "echo x >> sub/l",
        "git -C sub commit -q --allow-empty -m more",
        "git worktree add -q ../../elsewhere HEAD",
    ];
    for line in lines {
        let copy = applied(&world);
        let document = world.json(["gc", "--copies", "--dry-run"]);
        assert_eq!(removed(&document), ["copy"], "untouched before {line}: {document:#}");
        shell(&copy, line);
        let document = world.json(["gc", "--copies"]);
        assert_eq!(removed(&document), Vec::<String>::new(), "{line}: {document:#}");
        assert!(copy.is_dir(), "{line}");
        world.ok(["task", "discard", "1"]);
        fs::write(world.work().join("a.txt"), "one\n").unwrap();
    }
}

#[test]
fn doctor_tells_what_is_missing_below_the_copies_and_what_places_hold() {
    let world = world();
    repository(&world);
    run(&world, "echo more >> a.txt");
    world.ok(["exec", "--", "true"]);
    let told = world.ok(["doctor"]);
    assert!(told.contains("1 place holds ports") && told.contains("stead places"), "{told}");
    let wrong = |named: &str| {
        let output = world.run(["doctor"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{named}: {text}");
        assert!(text.contains(named), "{named}: {text}");
    };
    for (folder, named) in [("objects", "borrows its Git objects"), ("blobs", "is not known")] {
        let (folder, aside) = (world.home().join(folder), world.home().join("aside"));
        fs::rename(&folder, &aside).unwrap();
        wrong(named);
        fs::rename(&aside, &folder).unwrap();
        world.ok(["doctor"]);
    }
    let places = world.folder().join("state/stead/host/places.json");
    fs::write(&places, "{").unwrap();
    wrong("places.json");
}

#[test]
fn a_root_is_forgotten_when_its_folder_is_gone_and_no_copy_is_left() {
    let world = world();
    repository(&world);
    run(&world, "echo more >> a.txt");
    let aside = world.folder().join("aside");
    fs::rename(world.work(), &aside).unwrap();
    fs::create_dir(world.work()).unwrap();
    let sessions = world.json(["sessions"]);
    let session = sessions["sessions"][0]["session"].as_str().unwrap();
    assert_eq!(removed(&world.json(["gc"])), Vec::<String>::new(), "a copy is left");
    world.ok(["task", "discard", "1", "--session", session]);
    assert_eq!(removed(&world.json(["gc", "--dry-run"])), ["root"]);
    assert_eq!(removed(&world.json(["gc"])), ["root"]);
    let doctor = world.ok(["doctor"]);
    assert!(!doctor.contains("another folder"), "{doctor}");
    // Another folder at the same path is a root of its own.
    repository(&world);
    run(&world, "echo more >> a.txt");
    assert_eq!(removed(&world.json(["gc"])), Vec::<String>::new());
}
