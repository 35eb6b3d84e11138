//! PRC-05: whoever dies, the processes of the runs are ended.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use stead_process::{How, ProcessIdentity, SpawnError, Spawner, ancestors};
use support::{Bench, ended, is_clean, kill, outcome, start_spawner, until};

const FOLDER: &str = "STEAD_TEST_FOLDER";

/// A server behind a wrapper, one behind two, and a daemon.
const SERVERS: &str =
    "sh -c 'exec sleep 300' & sh -c 'sh -c \"sleep 300\"; :' & (setsid sleep 300 &) ; sleep 300";

/// As many of its processes are called `sleep`.
const SLEEPS: usize = 4;

/// Not a test: the engine that is killed. Its runs carry the mark it was given.
#[test]
#[ignore = "started by the tests of the engine's death"]
fn engine() {
    let folder = std::env::var_os(FOLDER).unwrap();
    let bench = Bench::new();
    let spawner = start_spawner();
    let mut runs = Vec::new();
    for number in 0..2 {
        let mut command = bench.bash(SERVERS);
        let mark = (support::mark_name().to_owned(), support::mark_of_environment());
        command.environment.extend([mark]);
        command.log = Path::new(&folder).join(format!("log-{number}"));
        runs.push(spawner.run(&command).unwrap());
    }
    let identity = serde_json::to_vec(&spawner.identity()).unwrap();
    std::fs::write(Path::new(&folder).join("spawner.new"), identity).unwrap();
    std::fs::rename(Path::new(&folder).join("spawner.new"), Path::new(&folder).join("spawner"))
        .unwrap();
    until("the order to exit", || Path::new(&folder).join("exit").exists());
}

/// Starts the engine and waits until its runs are whole.
fn start_engine(bench: &Bench) -> (Child, ProcessIdentity) {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let child = command
        .args(["--exact", "engine", "--ignored", "--nocapture"])
        .env(FOLDER, bench.folder.path())
        .env(support::mark_name(), format!("{}-runs", bench.mark))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let file = bench.folder.path().join("spawner");
    until("the engine's runs", || file.exists() && sleeps(bench) == 2 * SLEEPS);
    (child, serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap())
}

fn sleeps(bench: &Bench) -> usize {
    let processes = support::marked(&format!("{}-runs", bench.mark));
    processes.iter().filter(|(_, name)| name == "sleep").count()
}

#[track_caller]
fn dies(signal: Option<&str>) {
    let bench = Bench::new();
    let (mut engine, spawner) = start_engine(&bench);
    match signal {
        Some(signal) => kill(engine.id(), signal),
        None => std::fs::write(bench.folder.path().join("exit"), b"").unwrap(),
    }
    engine.wait().unwrap();
    until("no process of a run is left", || {
        !support::marked(&format!("{}-runs", bench.mark)).iter().any(|(pid, _)| *pid != engine.id())
    });
    until("the spawner has ended", || !spawner.is_alive());
}

#[test]
fn field_prc_05_engine_killed() {
    dies(Some("-KILL"));
}

#[test]
fn field_prc_05_engine_interrupted() {
    dies(Some("-INT"));
}

#[test]
fn field_prc_05_engine_hung_up() {
    dies(Some("-HUP"));
}

#[test]
fn field_prc_05_engine_exits() {
    dies(None);
}

#[test]
fn field_prc_05_engine_and_spawner_killed() {
    let bench = Bench::new();
    let (mut engine, spawner) = start_engine(&bench);
    kill(spawner.pid, "-STOP");
    kill(engine.id(), "-KILL");
    kill(spawner.pid, "-KILL");
    engine.wait().unwrap();
    until("no process of a run is left", || {
        support::marked(&format!("{}-runs", bench.mark)).is_empty()
    });
}

#[test]
fn field_prc_05_spawner_killed() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let mut run = spawner.run(&bench.bash(SERVERS)).unwrap();
    until("the servers run", || {
        bench.alive().iter().filter(|(_, name)| name == "sleep").count() == SLEEPS
    });
    kill(spawner.identity().pid, "-KILL");
    let end = ended(&mut run);
    assert_eq!((end.how, end.left), (How::Lost, vec![]));
    bench.assert_none_left();
    assert!(spawner.is_gone());
    assert!(matches!(spawner.run(&bench.bash("true")), Err(SpawnError::Gone(_))));
    assert!(!spawner.identity().is_alive());
    assert!(is_clean(&outcome(&start_spawner(), &bench.bash("true")), 0));
}

#[test]
fn field_prc_05_supervisor_killed() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let other = Bench::new();
    let mut bystander = spawner.run(&other.bash("sleep 300")).unwrap();
    for signal in ["-KILL", "-TERM", "-ABRT"] {
        let mut run = spawner.run(&bench.bash(SERVERS)).unwrap();
        until("the servers run", || {
            bench.alive().iter().filter(|(_, name)| name == "sleep").count() == SLEEPS
        });
        kill(support::supervisor(&run).pid, signal);
        assert_eq!(ended(&mut run).how, How::Lost);
        bench.assert_none_left();
    }
    assert!(bystander.leader.is_alive());
    bystander.stop().unwrap();
    assert_eq!(ended(&mut bystander).how, How::Stopped);
    assert!(is_clean(&outcome(&spawner, &bench.bash("true")), 0));
}

/// A command can stop whoever watches it: `kill -STOP $PPID`.
#[test]
fn field_prc_03_who_is_stopped_goes_on() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let mut command = bench.bash("kill -STOP $PPID; sleep 300");
    command.time_limit = Duration::from_millis(500);
    let mut run = spawner.run(&command).unwrap();
    assert_eq!(ended(&mut run).how, How::TimedOut);
    bench.assert_none_left();
    kill(spawner.identity().pid, "-STOP");
    assert!(is_clean(&outcome(&spawner, &bench.bash("true")), 0));
    let identity = spawner.identity();
    kill(identity.pid, "-STOP");
    drop(spawner);
    until("the spawner has ended", || !identity.is_alive());
}

#[test]
fn a_dropped_spawner_ends_after_its_last_run() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let identity = spawner.identity();
    let mut run = spawner.run(&bench.bash("sleep 0.3; exit 6")).unwrap();
    drop(spawner);
    assert!(is_clean(&ended(&mut run), 6));
    until("the spawner has ended", || !identity.is_alive());
}

/// The supervisor that waits for the next request: the spawner's only child while nothing runs.
fn waiting(spawner: &Spawner) -> ProcessIdentity {
    let mut found = Vec::new();
    let is_child = |pid: u32| ancestors(pid).first() == Some(&spawner.identity());
    until("one supervisor waits", || {
        found = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
            .filter(|pid| is_child(*pid))
            .filter_map(|pid| ProcessIdentity::of(pid).ok().filter(ProcessIdentity::is_alive))
            .collect();
        found.len() == 1
    });
    found.remove(0)
}

#[test]
fn who_waits_for_a_request_may_be_killed_or_stopped() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    assert!(is_clean(&outcome(&spawner, &bench.bash("true")), 0));
    for signal in ["-KILL", "-TERM", "-STOP"] {
        let waiting = waiting(&spawner);
        kill(waiting.pid, signal);
        if signal != "-STOP" {
            until("it is dead", || !waiting.is_alive());
        }
        assert!(is_clean(&outcome(&spawner, &bench.bash("exit 3")), 3), "{signal}");
    }
    bench.assert_none_left();
}

#[test]
fn who_waits_for_a_request_ends_with_the_spawner() {
    let bench = Bench::new();
    for dies in [true, false] {
        let spawner = start_spawner();
        assert!(is_clean(&outcome(&spawner, &bench.bash("true")), 0));
        let waiting = waiting(&spawner);
        if dies {
            kill(spawner.identity().pid, "-KILL");
        } else {
            drop(spawner);
        }
        until("it has ended", || !waiting.is_alive());
    }
}
