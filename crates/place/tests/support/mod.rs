//! What every test of real runs in places needs.
#![allow(dead_code, unreachable_pub)] // each test program uses a part of it
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests, which clippy does not know as such"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use stead_place::{Host, Listed, PortRange, Released, Which};
use stead_testkit::until;
use tempfile::TempDir;

/// A host of its own, folders to run in, and a bound.
pub struct Bench {
    folder: TempDir,
    pub ports: (u16, u16),
    pub bound: (u32, u32),
    pub client: BTreeMap<String, String>,
}

/// How one exec differs from the usual one.
pub struct Exec<'a> {
    pub place: &'a Path,
    pub script: &'a str,
    pub patience: Option<u64>,
    pub time_limit: u64,
    pub grace: u64,
    pub is_detached: bool,
}

impl<'a> Exec<'a> {
    pub fn new(place: &'a Path, script: &'a str) -> Self {
        let patience = Some(60_000);
        Self { place, script, patience, time_limit: 60_000, grace: 300, is_detached: false }
    }
}

impl Bench {
    /// Each test has a range of its own, so that tests at the same time do not take each other's
    /// ports; the registry knows only its own.
    pub fn new(first: u16) -> Self {
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = tempfile::Builder::new().prefix("sp-").tempdir_in(base).unwrap();
        let path = std::env::var("PATH").unwrap();
        let client = BTreeMap::from([("PATH".to_owned(), path)]);
        Self { folder, ports: (first, first + 16 * 20 - 1), bound: (2, 0), client }
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub fn host_folder(&self) -> PathBuf {
        self.root().join("host")
    }

    pub fn host(&self) -> Host {
        let ports = PortRange::new(self.ports.0, self.ports.1).unwrap();
        Host::new(&self.host_folder(), &self.root().join("short"), 0, ports)
    }

    /// A worktree, as far as a place looks.
    pub fn place(&self, name: &str) -> PathBuf {
        let place = self.root().join(name);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(".git"), "gitdir: elsewhere").unwrap();
        place
    }

    pub fn start(&self, exec: &Exec<'_>) -> Child {
        let order = serde_json::json!({
            "host": self.host_folder(),
            "ports": self.ports,
            "bound": self.bound,
            "patience": exec.patience,
            "directory": exec.place,
            "command": ["bash", "-c", exec.script],
            "client": self.client,
            "time_limit": exec.time_limit,
            "grace": exec.grace,
            "keeper": exec.is_detached.then_some(env!("CARGO_BIN_EXE_stead-place-keeper")),
        });
        let mut child = Command::new(env!("CARGO_BIN_EXE_stead-place-exec"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(order.to_string().as_bytes()).unwrap();
        child
    }

    pub fn exec(&self, exec: &Exec<'_>) -> Done {
        self.start(exec).wait_with_output().unwrap().into()
    }

    /// Runs a script in a place to its end and demands that it succeeds.
    pub fn ok(&self, place: &Path, script: &str) -> String {
        let done = self.exec(&Exec::new(place, script));
        assert_eq!(done.code, 0, "{}\n{}", done.out, done.errors);
        done.out
    }

    /// Starts a run that goes on until `end(name)` is called, or it is ended.
    pub fn begin(&self, place: &Path, name: &str) -> Child {
        let (began, ended) = (self.flag(name, "began"), self.flag(name, "end"));
        let script = format!(
            "touch '{}'; while [ ! -e '{}' ]; do sleep 0.01; done",
            began.display(),
            ended.display()
        );
        let child = self.start(&Exec::new(place, &script));
        until("the run begins", || began.exists().then_some(()));
        child
    }

    pub fn end(&self, name: &str) {
        fs::write(self.flag(name, "end"), "").unwrap();
    }

    pub fn flag(&self, name: &str, kind: &str) -> PathBuf {
        self.root().join(format!("{name}.{kind}"))
    }

    pub fn listed(&self, place: &Path) -> Listed {
        self.host().list().unwrap().into_iter().find(|listed| listed.place == place).unwrap()
    }

    pub fn release(&self, place: &Path) -> Vec<Released> {
        self.host().release(&Which::At(place.to_owned())).unwrap()
    }

    /// The processes whose environment says that they belong to this bench's places.
    pub fn alive(&self) -> Vec<u32> {
        let root = self.root();
        let wanted = format!("STEAD_SCRATCH={}", root.display());
        fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
            .filter(|pid| {
                fs::read(format!("/proc/{pid}/environ")).is_ok_and(|text| {
                    text.split(|byte| *byte == 0).any(|pair| pair.starts_with(wanted.as_bytes()))
                })
            })
            .collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // A test that failed leaves no process behind.
        for listed in self.host().list().unwrap_or_default() {
            let _ = self.host().release(&Which::Named(listed.id));
        }
    }
}

/// A run that has ended, as its caller sees it.
pub struct Done {
    pub code: i32,
    pub out: String,
    pub errors: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

pub fn wait(child: Child) -> Done {
    child.wait_with_output().unwrap().into()
}

pub fn kill(pid: u32, signal: &str) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

/// Every path below a folder with what a change of it would change.
pub fn snapshot(folder: &Path) -> Vec<(PathBuf, std::time::SystemTime, u64)> {
    let mut found = vec![(folder.to_owned(), folder.metadata().unwrap().modified().unwrap(), 0)];
    let mut next = 0;
    while next < found.len() {
        let path = found[next].0.clone();
        next += 1;
        if !path.is_dir() {
            continue;
        }
        for entry in fs::read_dir(path).unwrap().flatten() {
            let metadata = entry.path().symlink_metadata().unwrap();
            found.push((entry.path(), metadata.modified().unwrap(), metadata.len()));
        }
    }
    found.sort();
    found
}
