//! What every test of real runs needs.
#![allow(dead_code, unreachable_pub)] // each test program uses a part of it
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use stead_process::{Command, Ended, How, Pipes, ProcessIdentity, Run, Spawner, ancestors};
use tempfile::TempDir;

/// Far longer than anything here takes: only a hang reaches it.
pub const PATIENCE: Duration = Duration::from_secs(20);

const MARK: &str = "STEAD_TEST_MARK";

pub fn start_spawner() -> Spawner {
    Spawner::start(Path::new(env!("CARGO_BIN_EXE_stead-spawner")), &[]).unwrap()
}

/// A folder, and a mark in the environment by which all processes of its commands are found.
pub struct Bench {
    pub folder: TempDir,
    pub mark: String,
}

impl Bench {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self {
            folder: tempfile::tempdir().unwrap(),
            mark: format!("{}-{number}", std::process::id()),
        }
    }

    pub fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    pub fn read_log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.log()).unwrap()).into_owned()
    }

    pub fn command(&self, program: impl Into<OsString>, arguments: &[&str]) -> Command {
        Command {
            program: program.into(),
            arguments: arguments.iter().map(Into::into).collect(),
            environment: BTreeMap::from([
                ("PATH".into(), std::env::var_os("PATH").unwrap()),
                (MARK.into(), self.mark.clone().into()),
            ]),
            directory: self.folder.path().to_owned(),
            time_limit: PATIENCE,
            grace: Duration::from_millis(300),
            pipes: Pipes::None,
            log: self.log(),
            log_limit: 1 << 20,
            held: None,
        }
    }

    pub fn bash(&self, script: &str) -> Command {
        self.command("bash", &["-c", script])
    }

    /// The living processes of this bench's commands: number and name.
    pub fn alive(&self) -> Vec<(u32, String)> {
        marked(&self.mark)
    }

    pub fn wait_for_processes(&self, count: usize) {
        until("the processes run", || self.alive().len() >= count);
    }

    #[track_caller]
    pub fn assert_none_left(&self) {
        assert_eq!(self.alive(), Vec::new());
    }
}

/// The living processes whose environment has the mark.
pub fn marked(mark: &str) -> Vec<(u32, String)> {
    let wanted = format!("{MARK}={mark}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let has_mark = std::fs::read(entry.path().join("environ"))
            .is_ok_and(|text| text.split(|byte| *byte == 0).any(|item| item == wanted.as_bytes()));
        if has_mark && ProcessIdentity::of(pid).is_ok_and(|identity| identity.is_alive()) {
            let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.push((pid, name.trim().to_owned()));
        }
    }
    found
}

pub fn mark_of_environment() -> OsString {
    std::env::var_os(MARK).unwrap()
}

pub fn mark_name() -> &'static OsStr {
    OsStr::new(MARK)
}

#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "never seen: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[track_caller]
pub fn ended(run: &mut Run) -> Ended {
    run.wait(Some(PATIENCE)).unwrap().expect("the run goes on and on")
}

#[track_caller]
pub fn outcome(spawner: &Spawner, command: &Command) -> Ended {
    ended(&mut spawner.run(command).unwrap())
}

pub fn is_clean(ended: &Ended, code: i32) -> bool {
    ended.how == How::Exited(code) && ended.survivor_count == 0 && ended.left.is_empty()
}

/// The supervisor of a run is the parent of its leader.
pub fn supervisor(run: &Run) -> ProcessIdentity {
    ancestors(run.leader.pid).into_iter().next().unwrap()
}

pub fn kill(pid: u32, signal: &str) {
    let status =
        std::process::Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(status.success());
}
