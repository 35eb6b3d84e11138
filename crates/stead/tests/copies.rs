//! Private copies with the real program: run, review, apply, discard.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so by panicking"
)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use stead_core::layout::Placement;
use stead_core::refusal::RefusalKind;
use stead_engine::Client;
use stead_engine::api::{ApplyParams, DiscardParams, ReviewParams};
use stead_testkit::{World, skip, until};

use common::copies::{RUNS, copy_of, git, picture, repository, run};
use common::{client, follow, message, runtime, start, world};

fn refused(world: &World, arguments: &[&str], status: i32, named: &str) -> String {
    let output = world.run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {errors}");
    assert!(errors.contains(named), "{arguments:?}: {errors}");
    errors
}

/// What a list of the program has.
fn listed(world: &World, verb: &str) -> Vec<Value> {
    let document = world.json([verb, "list"]);
    let list = document.as_object().unwrap().values().find_map(Value::as_array);
    list.unwrap_or_else(|| panic!("{document}")).clone()
}

fn sessions(world: &World) -> Vec<Value> {
    listed(world, "sessions")
}

#[test]
fn the_original_is_untouched_until_apply_and_then_only_the_applied_files_differ() {
    let world = world();
    let work = repository(&world);
    let before = picture(&work);
    let change = "echo more >> a.txt; rm sub/b.txt; mkdir -p new/deep; printf '\\0\\1' > new/deep/x; \
                  chmod 755 a.txt; ln -s a.txt link; mkdir target; echo t > target/t; git add -A; \
                  git -c user.name=n -c user.email=e commit -qm work";
    run(&world, RUNS, change);
    assert_eq!(picture(&work), before, "nothing of the original changes before the apply");
    let told = world.ok(["task", "review", "1"]);
    for line in ["a.txt", "sub/b.txt", "new/deep/x", "link", "1 commit in the copy", "+more"] {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert_eq!(picture(&work), before, "a review writes nothing either");
    let index = fs::read(work.join(".git/index")).unwrap();
    world.ok(["task", "apply", "1"]);
    assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"one\nmore\n");
    assert_eq!(fs::metadata(work.join("a.txt")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(fs::read(work.join("new/deep/x")).unwrap(), [0, 1]);
    assert_eq!(fs::read_link(work.join("link")).unwrap(), Path::new("a.txt"));
    assert!(!work.join("sub/b.txt").exists() && !work.join("target").exists());
    assert_eq!(fs::read(work.join(".git/index")).unwrap(), index, "nothing is staged");
    assert!(!work.join(".git/index.lock").exists());
    let status = git(&work, &["status", "--porcelain"]);
    assert_eq!(status, " M a.txt\n D sub/b.txt\n?? link\n?? new/\n");
    // Apply, commit, edit on in the copy, review and apply again.
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-qm", "applied"]);
    let session = sessions(&world)[0]["session"].as_str().unwrap().to_owned();
    world.ok(["run", "--session", &session, "echo again >> a.txt"]);
    let told = world.ok(["task", "review", "1"]);
    assert!(told.contains("+again") && !told.contains("+more"), "told against the applied: {told}");
    world.ok(["task", "apply", "1"]);
    assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"one\nmore\nagain\n");
    assert_eq!(git(&work, &["status", "--porcelain"]), " M a.txt\n");
    let told = world.ok(["task", "apply", "1"]);
    assert!(told.contains("before; nothing was done now"), "{told}");
}

#[test]
fn copies_56_an_apply_brings_what_was_reviewed_and_later_edits_stay_in_the_copy() {
    let world = world();
    let work = repository(&world);
    run(&world, RUNS, "echo reviewed > a.txt");
    world.ok(["task", "review", "1"]);
    let copy = copy_of(&world, "1");
    fs::write(copy.join("a.txt"), "later\n").unwrap();
    world.ok(["task", "apply", "1"]);
    assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"reviewed\n");
    assert_eq!(fs::read(copy.join("a.txt")).unwrap(), b"later\n");
}

#[test]
fn copies_60_the_persons_own_edit_is_a_conflict_and_nothing_is_written() {
    let world = world();
    let work = repository(&world);
    run(&world, RUNS, "echo theirs > a.txt; echo theirs > sub/b.txt");
    world.ok(["task", "review", "1"]);
    fs::write(work.join("a.txt"), "mine\n").unwrap();
    let before = picture(&work);
    let output = world.run(["task", "apply", "1"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(65), "{errors}");
    assert!(errors.contains("a.txt"), "{errors}");
    assert_eq!(picture(&work), before);
    let shown = world.ok(["task", "show", "1"]);
    assert!(shown.contains("nothing was written"), "{shown}");
    // Once the person's edit is out of the way the same review is applied.
    fs::write(work.join("a.txt"), "one\n").unwrap();
    world.ok(["task", "apply", "1"]);
    assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"theirs\n");
}

#[test]
fn copies_55_what_cannot_be_applied_is_refused_by_name() {
    let world = world();
    repository(&world);
    let lib = world.folder().join("lib");
    fs::create_dir(&lib).unwrap();
    fs::write(lib.join("l"), "l").unwrap();
    fs::write(world.folder().join("p.toml"), RUNS).unwrap();
    let playbook = format!("playbook:{}", world.folder().join("p.toml").display());
    let (work, lib) = (world.work(), format!("{}:read", lib.display()));
    let work = work.to_str().unwrap();
    world.ok([
        "run",
        "--mode",
        "full-auto",
        "--root",
        work,
        "--root",
        &lib,
        "--agent",
        &playbook,
        "echo x > a.txt; echo y > ../lib/l",
    ]);
    let slot = world.json(["task", "show", "1"])["delegated"]["slots"][0]["slot"].clone();
    let slot = slot.as_str().unwrap();
    refused(&world, &["task", "apply", "1", slot], 64, "was not reviewed");
    refused(&world, &["task", "apply", "1", "lib"], 64, "read-only root");
    refused(&world, &["task", "apply", "1", "nope"], 64, "no slot nope");
    refused(&world, &["task", "apply", "7", slot], 64, "no task 7");
    let told = world.ok(["task", "review", "1", "lib"]);
    assert!(told.contains("+y"), "read-only is reviewable: {told}");
    world.ok(["task", "review", "1"]);
    world.ok(["task", "apply", "1"]);
}

#[test]
fn field_apl_only_the_person_reviews_applies_and_discards() {
    let world = world();
    let work = repository(&world);
    // The agent calls stead itself: on its own socket, and on the person's.
    let steal = format!(
        "for verb in review apply discard; do {stead} task $verb 1; echo =$?; (unset STEAD_SOCKET; \
         export XDG_RUNTIME_DIR={run}; {stead} task $verb 1; echo =$?); done",
        run = world.folder().join("run").display(),
        stead = common::STEAD
    );
    let before = picture(&work);
    let told = run(&world, RUNS, &steal);
    assert_eq!(told.matches("=64").count(), 6, "{told}");
    assert_eq!(picture(&work), before);
}

#[test]
fn copies_42_the_persons_home_folder_is_never_copied() {
    let world = world();
    let home = PathBuf::from(&world.variables()[std::ffi::OsStr::new("HOME")]);
    fs::write(world.folder().join("p.toml"), RUNS).unwrap();
    let playbook = format!("playbook:{}", world.folder().join("p.toml").display());
    let root = home.to_str().unwrap();
    let arguments = ["run", "--root", root, "--agent", &playbook, "--mode", "full-auto", "true"];
    let errors = refused(&world, &arguments, 64, "never copied");
    assert!(errors.contains("--root DIR"), "{errors}");
    assert_eq!(sessions(&world).len(), 0, "nothing remains");
}

#[test]
fn a_root_that_was_moved_is_refused_until_it_is_rebound() {
    let world = world();
    let work = repository(&world);
    run(&world, RUNS, "echo theirs > a.txt");
    world.ok(["task", "review", "1"]);
    let id = listed(&world, "roots")[0]["id"].as_str().unwrap().to_owned();
    let session = sessions(&world)[0]["session"].as_str().unwrap().to_owned();
    let moved = world.folder().join("moved");
    fs::rename(&work, &moved).unwrap();
    fs::create_dir(&work).unwrap();
    let apply = ["task", "apply", "1", "--session", session.as_str()];
    let output = world.run(apply);
    assert_eq!(output.status.code(), Some(65), "{output:?}");
    assert_eq!(listed(&world, "roots")[0]["state"], "changed");
    let user = world.folder().join("user");
    for never in [Path::new("/"), &world.home(), world.folder(), &user] {
        refused(&world, &["roots", "rebind", &id, never.to_str().unwrap()], 64, "");
    }
    assert_eq!(listed(&world, "roots")[0]["state"], "changed");
    world.ok(["roots", "rebind", &id, moved.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&world.run(apply).stderr).into_owned();
    assert!(text.contains(&format!("written in {}", moved.display())), "{text}");
    assert_eq!(fs::read(moved.join("a.txt")).unwrap(), b"theirs\n", "{text}");
}

#[test]
fn field_cln_02_a_copy_is_discarded_in_one_step_and_the_original_stays() {
    let world = world();
    let work = repository(&world);
    run(&world, RUNS, "echo theirs > a.txt");
    let copy = copy_of(&world, "1");
    assert!(copy.is_dir());
    let before = picture(&work);
    world.ok(["task", "discard", "1"]);
    assert!(!copy.exists());
    assert_eq!(picture(&work), before);
    refused(&world, &["task", "review", "1"], 64, "was discarded");
    let told = String::from_utf8(world.run(["task", "discard", "1"]).stderr).unwrap();
    assert!(told.contains("no copies left"), "{told}");
}

async fn started(world: &World, id: &str, work: &str) -> Client {
    let client = client(world).await.unwrap();
    let mut params = start(world, id, RUNS, work);
    params.placement = Placement::PrivateCopies;
    let session = client.start(&params).await.unwrap().session;
    follow(&client, &session, 0).await;
    client
}

#[test]
fn copies_71_a_client_that_goes_during_an_apply_finds_its_outcome_later() {
    let world = world();
    let work = repository(&world);
    runtime().block_on(async {
        let client = started(&world, "gone", "for n in $(seq 300); do echo x > f$n; done").await;
        let session = stead_core::id::SessionId::parse("gone").unwrap();
        let task = stead_core::id::TaskId(1);
        let slot = client.tasks(&session).await.unwrap().delegated[0].slots[0].slot.clone();
        let params = ReviewParams { slot: slot.clone(), most_lines: Some(10) };
        let review = client.review(&session, task, &params).await.unwrap();
        assert_eq!(review.changes.len(), 300);
        let params = ApplyParams { slot: slot.clone() };
        // The request is sent and nobody waits for its answer.
        let apply = client.apply(&session, task, &params);
        let _ = tokio::time::timeout(std::time::Duration::from_millis(3), apply).await;
        let params = ApplyParams { slot };
        let again = loop {
            match client.apply(&session, task, &params).await {
                Ok(response) => break response,
                Err(refusal) => assert_eq!(refusal.kind, RefusalKind::WrongState, "{refusal}"),
            }
        };
        assert!(matches!(again.outcome, stead_core::delegated::ApplyOutcome::Applied { .. }));
    });
    assert_eq!(fs::read_dir(&work).unwrap().count(), 304);
}

#[test]
fn field_cln_03_a_second_session_has_copies_of_its_own() {
    let world = world();
    repository(&world);
    runtime().block_on(async {
        let client = started(&world, "one", "echo 1 > a.txt").await;
        started(&world, "two", "cat a.txt").await;
        let path = |session: &str| stead_core::id::SessionId::parse(session).unwrap();
        let copy = |list: stead_engine::api::TasksResponse| {
            list.delegated[0].slots[0].copy.clone().unwrap()
        };
        let one = copy(client.tasks(&path("one")).await.unwrap());
        let two = copy(client.tasks(&path("two")).await.unwrap());
        assert_ne!(one, two);
        assert_eq!(fs::read(one.as_path().join("a.txt")).unwrap(), b"1\n");
        assert_eq!(fs::read(two.as_path().join("a.txt")).unwrap(), b"one\n");
        let discard = DiscardParams { slot: None };
        client.discard(&path("one"), stead_core::id::TaskId(1), &discard).await.unwrap();
        assert!(two.as_path().is_dir());
    });
}

#[test]
fn copies_52_a_large_copy_is_cancelled_and_nothing_of_it_is_left() {
    let world = world();
    let work = repository(&world);
    for folder in 0..60 {
        let folder = work.join(format!("node_modules/{folder}"));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..500 {
            fs::write(folder.join(file.to_string()), b"x").unwrap();
        }
    }
    fs::write(world.folder().join("p.toml"), RUNS).unwrap();
    let playbook = format!("playbook:{}", world.folder().join("p.toml").display());
    let run = ["run", "--detach", "--mode", "full-auto", "--agent", &playbook, "true"];
    let mut run = world.command(run).stderr(Stdio::null()).spawn().unwrap();
    let staging = world.home().join("copies/.staging");
    let _ = until("copying to begin", || fs::read_dir(&staging).ok()?.next());
    let session = sessions(&world)[0]["session"].as_str().unwrap().to_owned();
    let session = session.as_str();
    world.ok(["stop", "/root", "--session", session]);
    assert_eq!(run.wait().unwrap().code(), Some(64));
    let refused = until("the start to be refused", || {
        let log = world.ok(["log", "--session", session]);
        log.contains("cannot be started").then_some(log)
    });
    assert!(refused.contains("stopped") || refused.contains("cancel"), "{refused}");
    until("the staging to be empty", || {
        fs::read_dir(&staging).unwrap().next().is_none().then_some(())
    });
    assert!(!world.home().join("copies").join(session).exists());
    assert_eq!(sessions(&world).len(), 0);
}

#[test]
fn a_continued_agent_works_on_in_its_copy() {
    let world = world();
    repository(&world);
    runtime().block_on(async {
        let client = started(&world, "on", "echo 1 >> a.txt").await;
        let session = stead_core::id::SessionId::parse("on").unwrap();
        let tip = client.tree(&session).await.unwrap().tip;
        client
            .send(&session, &message(&world, "m", "/root", "echo 2 >> a.txt", true))
            .await
            .unwrap();
        follow(&client, &session, tip).await;
        let tree = client.tree(&session).await.unwrap();
        let directory = tree.agents[0].directory.as_path();
        assert!(directory.starts_with(world.home()), "{directory:?}");
        assert_eq!(fs::read(directory.join("a.txt")).unwrap(), b"one\n1\n2\n");
    });
}

#[test]
fn copies_that_a_power_cut_took_from_memory_are_named_and_never_used() {
    let world = world();
    let work = repository(&world);
    let before = picture(&work);
    runtime().block_on(async {
        let client = started(&world, "cut", "echo theirs > a.txt").await;
        let mark = world.home().join("copies/cut/1/.unflushed");
        until("the copies to be on the disk", || (!mark.exists()).then_some(()));
        // As if the machine had stopped before.
        fs::write(&mark, "another boot").unwrap();
        let session = stead_core::id::SessionId::parse("cut").unwrap();
        let tip = client.tree(&session).await.unwrap().tip;
        client.send(&session, &message(&world, "m", "/root", "echo more", true)).await.unwrap();
        follow(&client, &session, tip).await;
    });
    let log = world.ok(["log"]);
    assert!(log.contains("the copies of task 1 were cut off"), "{log}");
    let told = refused(&world, &["task", "review", "1"], 64, "were cut off");
    assert!(told.contains("stead task discard 1"), "{told}");
    let doctor = String::from_utf8(world.run(["doctor"]).stdout).unwrap();
    assert!(doctor.contains("before the disk had the copies of task 1 of cut"), "{doctor}");
    world.ok(["task", "discard", "1"]);
    assert!(!copy_of(&world, "1").exists());
    assert_eq!(picture(&work), before);
}

#[test]
fn copies_58_a_home_on_another_disk_is_told_at_admission() {
    let (memory, disk) = (Path::new("/dev/shm"), Path::new("/var/tmp"));
    if !memory.is_dir() || !disk.is_dir() {
        return skip("copies_58", "there are no two disks");
    }
    let mut world = World::below(disk, common::STEAD);
    repository(&world);
    let home = tempfile::tempdir_in(memory).unwrap();
    world.set("STEAD_HOME", home.path());
    fs::write(world.folder().join("p.toml"), RUNS).unwrap();
    let playbook = format!("playbook:{}", world.folder().join("p.toml").display());
    let arguments = ["run", "--mode", "full-auto", "--agent", &playbook, "true"];
    let errors = refused(&world, &arguments, 64, "different disks");
    assert!(errors.contains("STEAD_HOME"), "{errors}");
    let _ = world.run(["serve", "--stop"]);
}

#[test]
fn a_conflict_is_settled_by_what_its_hint_says_and_not_by_a_commit() {
    let world = world();
    let work = repository(&world);
    run(&world, RUNS, "echo theirs >> a.txt");
    fs::write(work.join("a.txt"), "mine\none\n").unwrap();
    world.ok(["task", "review", "1"]);
    for _ in 0..2 {
        let errors = refused(&world, &["task", "apply", "1"], 65, "a.txt");
        assert!(errors.contains("committing does not help"), "{errors}");
        git(&work, &["add", "-A"]);
        git(&work, &["commit", "-q", "--allow-empty", "-m", "mine"]);
        world.ok(["task", "review", "1"]);
    }
    fs::write(copy_of(&world, "1").join("a.txt"), "mine\none\ntheirs\n").unwrap();
    git(&work, &["checkout", "-q", "HEAD~2", "--", "a.txt"]);
    world.ok(["task", "review", "1"]);
    world.ok(["task", "apply", "1"]);
    assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"mine\none\ntheirs\n");
}

#[test]
fn a_checkout_that_changed_is_no_matter_of_the_persons_files() {
    let world = world();
    let work = repository(&world);
    run(&world, RUNS, "echo theirs >> a.txt");
    world.ok(["task", "review", "1"]);
    git(&work, &["checkout", "-qb", "other"]);
    let errors = refused(&world, &["task", "apply", "1"], 65, "");
    assert!(!errors.contains("your versions"), "{errors}");
}

#[test]
fn paths_names_everything_that_a_journey_leaves() {
    let world = world();
    repository(&world);
    run(&world, RUNS, "echo theirs >> a.txt");
    world.ok(["task", "review", "1"]);
    world.ok(["task", "apply", "1"]);
    world.ok(["task", "discard", "1"]);
    world.ok(["exec", "--", "true"]);
    let paths = world.json(["paths"]);
    let named: Vec<&str> =
        paths["paths"].as_array().unwrap().iter().map(|p| p["path"].as_str().unwrap()).collect();
    for folder in [world.home(), world.folder().join("state/stead/host")] {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let path = path.to_str().unwrap();
            // SQLite's own stand beside the database.
            let path = path.trim_end_matches("-wal").trim_end_matches("-shm");
            assert!(named.contains(&path), "{path}: {named:?}");
        }
    }
}

#[test]
fn one_read_only_root_is_the_one_that_is_meant() {
    let world = world();
    repository(&world);
    fs::write(world.folder().join("p.toml"), RUNS).unwrap();
    let playbook = format!("playbook:{}", world.folder().join("p.toml").display());
    let run = ["run", "--mode", "full-auto", "--root", ".:read", "--agent", &playbook, "true"];
    let output = world.run(run);
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!told.contains("open"), "{told}");
    world.ok(["task", "review", "1"]);
    refused(&world, &["run", "--root", ".", "--root", ".", "--agent", &playbook, "x"], 2, "twice");
}

#[test]
fn a_review_says_in_advance_what_no_apply_can_bring() {
    let world = world();
    let work = repository(&world);
    world.write("sub/.gitignore", "*.ign\n");
    world.write("sub/s.ign", "mine\n");
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-qm", "ignores"]);
    run(&world, RUNS, "echo more >> a.txt; rm -r sub; ln -s a.txt sub; mkdir .GIT; touch .GIT/x");
    let output = world.run(["task", "review", "1"]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    for line in ["no apply can bring sub: ", "no apply can bring .GIT: "] {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert!(!said.contains("exactly this") && said.contains("is refused"), "{said}");
    let review = world.json(["task", "review", "1"]);
    assert_eq!(review["barred"].as_array().unwrap().len(), 2, "{review}");
    let before = picture(&work);
    refused_apply(&world, ".GIT: its name stands for");
    assert_eq!(picture(&work), before);
    // Without what is barred the rest is applied.
    let copy = copy_of(&world, "1");
    fs::remove_dir_all(copy.join(".GIT")).unwrap();
    world.ok(["task", "review", "1"]);
    refused_apply(&world, "sub: it was a folder that holds files");
    fs::remove_file(copy.join("sub")).unwrap();
    world.ok(["task", "review", "1"]);
    world.ok(["task", "apply", "1"]);
    assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"one\nmore\n");
    assert_eq!(fs::read(work.join("sub/s.ign")).unwrap(), b"mine\n");
}

/// An apply whose outcome is a refusal with this in it.
fn refused_apply(world: &World, named: &str) {
    let output = world.run(["task", "apply", "1"]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    assert!(told.contains(named), "{told}");
}

#[test]
fn a_folder_that_became_a_repository_is_named_by_the_review_and_stays_in_the_original() {
    let world = world();
    let work = repository(&world);
    world.write("sub/untracked", "precious\n");
    run(&world, RUNS, "git init -q sub; echo more >> sub/b.txt; echo more >> a.txt");
    let told = world.ok(["task", "review", "1"]);
    assert!(told.contains("sub, which became a repository") && !told.contains("removed"), "{told}");
    world.ok(["task", "apply", "1"]);
    assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"one\nmore\n");
    assert_eq!(fs::read(work.join("sub/b.txt")).unwrap(), b"two\n");
    assert_eq!(fs::read(work.join("sub/untracked")).unwrap(), b"precious\n");
}
