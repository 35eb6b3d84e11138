//! Two of everything, full disks, read-only homes, damage: a clear error each, nothing lost.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so by panicking"
)]

mod common;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use stead_core::id::SessionId;
use stead_core::refusal::RefusalKind;
use stead_engine::api::PROTOCOL;
use stead_engine::connect;
use stead_testkit::{skip, until, within};

use common::{STEAD, client, follow, home, launch, log, message, runtime, start, world};

const QUICK: &str = r#"
[[agent]]
path = "/root"
[[agent.turn]]
step = [
  { call = { tool = "bash", as = "out", with = { command = "echo hello" } } },
  { say = "{{out}}" },
]
"#;

const SLOW: &str = r#"
[[agent]]
path = "/root"
[[agent.turn]]
step = [
  { call = { tool = "bash", with = { command = "echo started > started; sleep 60" } } },
  { say = "slept" },
]
"#;

fn is_gone(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}/exe")).exists()
}

#[test]
fn field_plan_05_a_second_engine_on_a_home_is_refused_and_told_who_serves_it() {
    let world = world();
    let runtime = runtime();
    runtime.block_on(client(&world)).unwrap();
    let first = world.engine().unwrap();
    let output = world.run(["serve"]);
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains(&first.to_string()), "{errors}");
    assert!(runtime.block_on(client(&world)).is_ok());
    assert_eq!(world.engine(), Some(first));
}

#[test]
fn sixteen_clients_at_once_start_one_engine_and_lose_nothing() {
    let world = world();
    let ids: Vec<String> = (0..16).map(|n| format!("s{n}")).collect();
    let engines: Vec<u32> = std::thread::scope(|scope| {
        let run = |id: &str| {
            runtime().block_on(async {
                let client = client(&world).await.unwrap();
                let started = client.start(&start(&world, id, QUICK, "go")).await.unwrap();
                let told = follow(&client, &started.session, 0).await;
                assert_eq!(told.last().unwrap().body["outcome"], "completed");
                client.engine().await.unwrap().pid
            })
        };
        let threads: Vec<_> = ids.iter().map(|id| scope.spawn(move || run(id))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(engines.iter().all(|pid| *pid == engines[0]), "{engines:?}");
    let sessions = runtime().block_on(async { client(&world).await.unwrap().sessions().await });
    assert_eq!(sessions.unwrap().len(), 16);
}

#[test]
fn field_ses_02_field_id_06_a_killed_engine_is_taken_over_without_manual_work() {
    let world = world();
    let runtime = runtime();
    let session = runtime.block_on(async {
        let client = client(&world).await.unwrap();
        client.start(&start(&world, "slow", SLOW, "go")).await.unwrap().session
    });
    until("the command starts", || world.work().join("started").exists().then_some(()));
    let engine = world.engine().unwrap();
    assert!(Command::new("kill").args(["-KILL", &engine.to_string()]).status().unwrap().success());
    until("the engine is gone", || is_gone(engine).then_some(()));
    runtime.block_on(async {
        let client = client(&world).await.unwrap();
        let tree = client.tree(&session).await.unwrap();
        assert_eq!(tree.agents.len(), 1);
        let root = &tree.agents[0];
        assert!(root.turn.is_none(), "{root:?}");
        assert!(root.reason.as_ref().unwrap().contains("engine"), "{root:?}");
        let events = log(&client, &session).await.unwrap();
        let unanswered: Vec<_> = events.iter().filter(|e| e.kind == "unanswered").collect();
        assert_eq!(unanswered.len(), 1);
        assert_eq!(unanswered[0].body["fate"], "unknown");
    });
    assert_ne!(world.engine(), Some(engine));
}

#[test]
fn the_processes_of_a_killed_engine_end_before_anything_is_settled() {
    let world = world();
    let runtime = runtime();
    let playbook = SLOW.replace("sleep 60", "echo $$ > pid; setsid sleep 61 & sleep 60");
    runtime.block_on(async {
        let client = client(&world).await.unwrap();
        client.start(&start(&world, "slow", &playbook, "go")).await.unwrap();
    });
    let pid = until("the command starts", || {
        fs::read_to_string(world.work().join("pid")).ok()?.trim().parse::<u32>().ok()
    });
    let engine = world.engine().unwrap();
    assert!(Command::new("kill").args(["-KILL", &engine.to_string()]).status().unwrap().success());
    runtime.block_on(client(&world)).unwrap();
    assert!(is_gone(pid), "the command outlived the recovery");
}

#[test]
fn copies_76_an_idle_engine_of_another_build_is_replaced_and_a_busy_one_is_named() {
    let world = world();
    let runtime = runtime();
    let other = stead_engine::Launch { build: "another".to_owned(), ..launch(&world) };
    runtime.block_on(async {
        let client = client(&world).await.unwrap();
        assert_eq!(client.engine().await.unwrap().protocol, PROTOCOL);
        client.start(&start(&world, "slow", SLOW, "go")).await.unwrap();
    });
    until("the command starts", || world.work().join("started").exists().then_some(()));
    let engine = world.engine().unwrap();
    let refusal = runtime.block_on(connect(&home(&world), &other)).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Unavailable);
    assert!(
        refusal.line.contains(&engine.to_string()) && refusal.line.contains("slow"),
        "{refusal}"
    );
    assert_eq!(world.engine(), Some(engine), "a busy engine goes on");

    world.ok(["stop", "/root", "--session", "slow"]);
    let replaced = within(Duration::from_secs(30), "the idle engine is replaced", || {
        // The new engine is of our own build, not of the other one, so it is only looked at here.
        let _ = runtime.block_on(async {
            tokio::time::timeout(Duration::from_secs(2), connect(&home(&world), &other)).await
        });
        world.engine().filter(|pid| *pid != engine)
    });
    assert_ne!(replaced, engine);
}

#[test]
fn a_newer_database_is_refused_and_left_alone() {
    let world = world();
    runtime().block_on(client(&world)).unwrap();
    world.ok(["serve", "--stop"]);
    let database = world.home().join("stead.db");
    set_version(&database, 99);
    let before = fs::read(&database).unwrap();
    let output = world.run(["sessions"]);
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("99") && errors.contains("stead.db"), "{errors}");
    assert!(errors.contains("hint:"), "{errors}");
    assert_eq!(fs::read(&database).unwrap(), before);
}

/// Writes SQLite's user version into the header, where its file format has it.
fn set_version(database: &Path, version: u32) {
    let mut bytes = fs::read(database).unwrap();
    bytes[60..64].copy_from_slice(&version.to_be_bytes());
    fs::write(database, bytes).unwrap();
}

#[test]
fn a_read_only_home_is_refused_by_name() {
    let world = world();
    fs::create_dir(world.home()).unwrap();
    let mounted = Mounted::new(&world.home(), &["-o", "ro,size=1m,mode=0700"]);
    let Some(_mounted) = mounted else {
        return skip("a_read_only_home_is_refused_by_name", "mounting needs root");
    };
    let output = world.run(["sessions"]);
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains(world.home().to_str().unwrap()), "{errors}");
    assert!(errors.contains("hint:"), "{errors}");
    let doctor = world.run(["doctor"]);
    let text = String::from_utf8_lossy(&doctor.stdout);
    assert!(text.contains("read-only") || text.contains("cannot be written"), "{text}");
}

#[test]
fn field_dsk_01_field_dsk_02_a_full_disk_is_told_at_once_and_nothing_is_lost() {
    let world = world();
    fs::create_dir(world.home()).unwrap();
    let Some(_mounted) = Mounted::new(&world.home(), &["-o", "size=2m,mode=0700"]) else {
        return skip("field_dsk_01", "mounting needs root");
    };
    let runtime = runtime();
    let session = SessionId::parse("full").unwrap();
    let client = runtime.block_on(async {
        let client = client(&world).await.unwrap();
        client.start(&start(&world, "full", QUICK, "go")).await.unwrap();
        follow(&client, &session, 0).await;
        client
    });
    let before = runtime.block_on(log(&client, &session)).unwrap();
    let filler = world.home().join("filler");
    let _ = fs::write(&filler, vec![0_u8; 4 << 20]);
    // Long enough that no page that is free already takes it.
    let text = "x".repeat(60_000);
    let refusal = (0..20)
        .find_map(|n| {
            let send = message(&world, &format!("m{n}"), "/root", &text, false);
            runtime.block_on(client.send(&session, &send)).err()
        })
        .expect("a full disk is told");
    assert_eq!(refusal.kind, RefusalKind::Storage, "{refusal}");
    let full = runtime.block_on(log(&client, &session)).unwrap();
    assert_eq!(full[..before.len()], before[..]);

    fs::remove_file(&filler).unwrap();
    let sent = message(&world, "after", "/root", "there is room again", true);
    runtime.block_on(client.send(&session, &sent)).unwrap();
    let told = runtime.block_on(follow(&client, &session, u64::try_from(full.len()).unwrap()));
    assert_eq!(told.last().unwrap().body["outcome"], "completed");
    let after = runtime.block_on(log(&client, &session)).unwrap();
    let positions: Vec<u64> = after.iter().map(|e| e.position).collect();
    assert!(positions.windows(2).all(|w| w[1] == w[0] + 1), "{positions:?}");
}

#[test]
fn field_dsk_on_a_full_disk_gc_removes_what_was_left_half_made() {
    let world = world();
    fs::create_dir(world.home()).unwrap();
    let Some(_mounted) = Mounted::new(&world.home(), &["-o", "size=2m,mode=0700"]) else {
        return skip("field_dsk", "mounting needs root");
    };
    world.ok(["sessions"]);
    let staged = world.home().join("copies/.staging/1-1");
    fs::create_dir_all(&staged).unwrap();
    for folder in [&world.home().join("copies"), &world.home().join("copies/.staging")] {
        fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    }
    fs::write(staged.join("large"), vec![0_u8; 64 << 10]).unwrap();
    fs::write(staged.with_extension("lock"), "").unwrap();
    let _ = fs::write(world.home().join("filler"), vec![0_u8; 4 << 20]);
    assert!(fs::write(world.home().join("more"), vec![0_u8; 4096]).is_err(), "it is full");
    let doctor = String::from_utf8(world.run(["doctor"]).stdout).unwrap();
    assert!(!doctor.contains("not stead's") && !doctor.contains("the lock"), "{doctor}");
    assert!(doctor.contains("never made whole"), "{doctor}");
    let told = world.ok(["gc"]);
    assert!(told.contains("half made"), "{told}");
    assert!(!staged.exists());
    // Full again, and no engine runs or can start.
    world.ok(["serve", "--stop"]);
    fs::create_dir_all(&staged).unwrap();
    fs::write(staged.join("large"), vec![0_u8; 64 << 10]).unwrap();
    fs::write(staged.with_extension("lock"), "").unwrap();
    let _ = fs::write(world.home().join("filler2"), vec![0_u8; 4 << 20]);
    let output = world.run(["gc"]);
    assert!(!staged.exists(), "{output:?}");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_corrupt_row_is_named_and_other_sessions_are_served() {
    let world = world();
    let runtime = runtime();
    runtime.block_on(async {
        let client = client(&world).await.unwrap();
        for id in ["damaged", "whole"] {
            client.start(&start(&world, id, QUICK, "go")).await.unwrap();
            follow(&client, &SessionId::parse(id).unwrap(), 0).await;
        }
    });
    world.ok(["serve", "--stop"]);
    let damage = "UPDATE events SET body = '{' WHERE kind = 'turn-started' AND session = \
                  (SELECT key FROM sessions WHERE id = 'damaged');";
    let sqlite = Command::new("sqlite3").arg(world.home().join("stead.db")).arg(damage).status();
    if !sqlite.is_ok_and(|status| status.success()) {
        return skip("a_corrupt_row_is_named_and_other_sessions_are_served", "no sqlite3");
    }
    let output = world.run(["tree", "--session", "damaged"]);
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("damaged") && errors.contains('4'), "{errors}");
    world.ok(["tree", "--session", "whole"]);
    let doctor = world.run(["doctor"]);
    let text = String::from_utf8_lossy(&doctor.stdout);
    assert!(text.contains("damaged"), "{text}");
}

#[test]
fn an_agent_is_never_the_person() {
    let world = world();
    // What an agent's command calls on the person's own socket, and on its own.
    let same_home: Vec<String> = ["STEAD_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"]
        .iter()
        .map(|name| format!("{name}={}", world.variables()[OsStr::new(name)].to_str().unwrap()))
        .collect();
    let as_person = format!("env -u STEAD_SOCKET {} {STEAD}", same_home.join(" "));
    let command = format!(
        "{as_person} serve --stop; echo stop=$?; {as_person} stop /root --session inside; echo \
         interrupt=$?; (setsid {as_person} serve --stop); echo setsid=$?; \
         {STEAD} send /root 'from inside'; echo agent=$?; {STEAD} permit allow 1; echo permit=$?"
    );
    let playbook = format!(
        r#"
[[agent]]
path = "/root"
[[agent.turn]]
step = [
  {{ call = {{ tool = "agent", as = "child", with = {{ task_name = "child", message = "go" }} }} }},
  {{ wait = ["{{{{child}}}}"], as = "out" }},
  {{ say = "{{{{out}}}}" }},
]
[[agent]]
path = "/root/child"
[[agent.turn]]
step = [
  {{ call = {{ tool = "bash", as = "out", with = {{ command = "{command}" }} }} }},
  {{ say = "{{{{out}}}}" }},
]
"#
    );
    let runtime = runtime();
    let (told, client) = runtime.block_on(async {
        let client = client(&world).await.unwrap();
        let params = start(&world, "inside", &playbook, "go");
        let session = client.start(&params).await.unwrap().session;
        (follow(&client, &session, 0).await, client)
    });
    let end = told.last().unwrap();
    assert_eq!(end.body["outcome"], "completed", "{end:?}");
    let text = end.text.clone().unwrap();
    for refused in ["stop=64", "interrupt=64", "setsid=64", "permit=64"] {
        assert!(text.contains(refused), "{refused} in {text}");
    }
    assert!(text.contains("agent=0"), "{text}");
    let events = runtime.block_on(log(&client, &SessionId::parse("inside").unwrap())).unwrap();
    let mail: Vec<_> =
        events.iter().filter(|e| e.kind == "mail-stored" && e.body["kind"] == "MAIL").collect();
    assert_eq!(mail.len(), 1, "{mail:?}");
    assert_eq!(mail[0].body["from"]["agent"], "/root/child", "whoever calls there is that agent");
    assert!(runtime.block_on(client.is_listening()));
}

#[test]
fn terminals_that_disagree_about_the_runtime_folder_find_one_engine() {
    let mut world = world();
    runtime().block_on(client(&world)).unwrap();
    let engine = world.engine().unwrap();
    let elsewhere = world.folder().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    world.set("XDG_RUNTIME_DIR", elsewhere);
    world.ok(["sessions"]);
    assert_eq!(world.engine(), Some(engine));
    world.ok(["serve", "--stop"]);
    until("the engine is gone", || is_gone(engine).then_some(()));
}

#[test]
fn a_session_changes_its_mode_and_only_the_person_may() {
    let world = world();
    let runtime = runtime();
    runtime.block_on(async {
        let client = client(&world).await.unwrap();
        let session = client.start(&start(&world, "mode", QUICK, "go")).await.unwrap().session;
        follow(&client, &session, 0).await;
    });
    assert_eq!(world.ok(["mode", "--session", "mode"]).trim(), "full-auto");
    assert_eq!(
        world.ok(["mode", "edits", "--plan", "on", "--session", "mode"]).trim(),
        "edits, planning only"
    );
    let now = world.json(["mode", "--session", "mode"]);
    assert_eq!((&now["mode"], &now["plan_ceiling"]), (&"edits".into(), &true.into()));
    // Under the ceiling nothing is run, whatever the mode.
    let sent = message(&world, "again", "/root", "go", true);
    let told = runtime.block_on(async {
        let client = client(&world).await.unwrap();
        let session = SessionId::parse("mode").unwrap();
        let before = u64::try_from(log(&client, &session).await.unwrap().len()).unwrap();
        client.send(&session, &sent).await.unwrap();
        follow(&client, &session, before).await
    });
    let end = told.last().unwrap().text.clone().unwrap();
    assert!(end.contains("plan ceiling") && end.contains("stead mode --plan off"), "{end}");
    let database = fs::metadata(world.home().join("stead.db")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&database.permissions()) & 0o777, 0o600);
    for name in ["stead.db-wal", "stead.db-shm"] {
        let file = fs::metadata(world.home().join(name)).unwrap();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o077,
            0,
            "{name}"
        );
    }
}

/// A tmpfs at a folder, for as long as it is there.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn new(folder: &Path, options: &[&str]) -> Option<Self> {
        let status = Command::new("mount")
            .args(["-t", "tmpfs"])
            .args(options)
            .arg("stead-test")
            .arg(folder)
            .status()
            .ok()?;
        status.success().then(|| Self(folder.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The engine may still hold files: stop it first, then let go even if one lingers.
        let world_home = &self.0;
        let _ =
            Command::new(STEAD).args(["serve", "--stop"]).env("STEAD_HOME", world_home).output();
        let _ = Command::new("umount").arg("-l").arg(world_home).status();
    }
}
