//! What the tests of the store share.
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stead_core::event::{BranchEvent, Envelope, Event, Stream};
use stead_core::id::{SessionId, Timestamp};
use stead_core::task::Owner;
use stead_store::Append;

/// A home of the test's own.
pub(crate) fn home() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn session(id: &str) -> SessionId {
    SessionId::parse(id).unwrap()
}

/// An event that can be told from others.
pub(crate) fn note(number: u64) -> Event {
    Event::Branch(BranchEvent::NoteSet { owner: Owner::Main, note: Some(format!("n{number}")) })
}

pub(crate) fn stream(name: &str) -> Stream {
    if name.is_empty() { Stream::Control } else { Stream::Conversation(session(name)) }
}

/// An append of notes numbered by their position; `places` are stream (empty: control) and number.
pub(crate) fn append(id: &SessionId, expect: u64, places: &[(&str, u64)]) -> Append {
    let events = (expect + 1..)
        .zip(places)
        .map(|(position, (name, seq))| Envelope {
            stream: stream(name),
            seq: *seq,
            position,
            at: Timestamp(1_700_000_000_000 + i64::from(position.to_le_bytes()[0])),
            request: None,
            event: note(position),
        })
        .collect();
    Append { session: id.clone(), expect, events, bodies: Vec::new(), claims: Vec::new() }
}

/// A run of this test binary that does nothing but the ignored test `name`.
pub(crate) fn child(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--ignored", "--nocapture"]).env(CHILD, "1");
    command.stdin(Stdio::null());
    command
}

const CHILD: &str = "STEAD_STORE_TEST_CHILD";

/// Whether this process is one that [`child`] made; `--run-ignored` runs children without a parent.
pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// The folder that the parent of this child gave it.
pub(crate) fn given_folder() -> PathBuf {
    std::env::var_os("STEAD_STORE_TEST_FOLDER").unwrap().into()
}

/// Runs the ignored test `name` in a mount namespace of its own, so that whatever it mounts goes
/// with it, however it ends. `false`, and a line in the file named by STEAD_SKIPS, when this
/// machine allows no such thing.
pub(crate) fn in_own_mounts(name: &str, folder: &Path, root: bool) -> bool {
    let ways: &[&[&str]] = if root { &[&["-m"]] } else { &[&["-m"], &["-Urm"]] };
    let works = |way: &&&[&str]| {
        let made = Command::new("unshare")
            .args(**way)
            .args(["sh", "-c", "mount -t tmpfs none \"$0\" && umount \"$0\""])
            .arg(folder)
            .stderr(Stdio::null())
            .status();
        made.is_ok_and(|status| status.success())
    };
    let Some(way) = ways.iter().find(works) else {
        skip("nothing can be mounted here");
        return false;
    };
    let inner = child(name);
    let output = Command::new("unshare")
        .args(*way)
        .arg(inner.get_program())
        .args(inner.get_args())
        .env(CHILD, "1")
        .env("STEAD_STORE_TEST_FOLDER", folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{name}: {}", output.status);
    true
}

/// Says loudly that the running test, or a part of it, did not run.
pub(crate) fn skip(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test of stead-store");
    eprintln!("SKIPPED {test}: {reason}");
    if let Some(path) = std::env::var_os("STEAD_SKIPS") {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{test}: {reason}").unwrap();
    }
}

/// Runs a program that must succeed.
pub(crate) fn run(program: &str, arguments: &[&OsStr]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A few random numbers; no test depends on which.
pub(crate) fn random(below: u64) -> u64 {
    RandomState::new().hash_one(0_u8) % below
}
