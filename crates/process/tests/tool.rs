//! Short programs run to their end, within bounds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stead_process::tool::{Tool, ToolError, find};

fn sh(script: &str) -> Tool {
    Tool::new("/bin/sh")
        .args(["-c", script])
        .env(BTreeMap::from([(OsString::from("PATH"), std::env::var_os("PATH").unwrap())]))
}

#[test]
fn an_answer_has_status_output_and_errors() {
    let said = sh("echo out; echo err >&2; exit 3").run().unwrap();
    assert_eq!(said.status.code(), Some(3));
    assert_eq!((said.stdout.as_slice(), said.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
}

#[test]
fn environment_and_directory_are_exactly_what_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let only = BTreeMap::from([(OsString::from("ONLY"), OsString::from("this"))]);
    let tool = Tool::new("/usr/bin/env").env(only).directory(&folder);
    assert_eq!(tool.run().unwrap().stdout, b"ONLY=this\n");
    let said = sh("pwd -P; cat").directory(&folder).run().unwrap().stdout;
    assert_eq!(String::from_utf8(said).unwrap().trim_end(), folder.to_str().unwrap());
}

#[test]
fn more_than_pipes_hold_goes_in_and_comes_out_at_once() {
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let said = sh("cat").input(bytes.clone()).run().unwrap();
    assert!(said.stdout == bytes);
    let unread = sh("exec true").input(bytes).run().unwrap();
    assert!(unread.status.success());
}

#[test]
fn a_flood_of_errors_neither_blocks_nor_fills_memory() {
    let said = sh("head -c 3000000 /dev/zero >&2; echo done").run().unwrap();
    assert_eq!(said.stdout, b"done\n");
    assert_eq!(said.stderr.len(), 64 << 10);
}

#[test]
fn too_long_an_answer_is_an_error() {
    let began = Instant::now();
    let error = sh("cat /dev/zero").output_limit(100_000).run().unwrap_err();
    assert!(matches!(error, ToolError::TooLong { limit: 100_000, .. }), "{error}");
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(sh("printf abc").output_limit(3).run().unwrap().stdout, b"abc");
}

#[test]
fn the_whole_group_is_killed_when_its_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; sleep 60 & echo $! > child; wait";
    let error = sh(script)
        .directory(folder.path())
        .time_limit(Duration::from_millis(400))
        .run()
        .unwrap_err();
    assert!(matches!(error, ToolError::TimedOut { .. }), "{error}");
    assert!(is_gone(&folder.path().join("child")));
}

#[test]
fn a_tool_that_is_given_up_is_killed_long_before_its_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let cancel = Arc::new(AtomicBool::new(false));
    let tool = sh("echo $$ > child; sleep 60").directory(folder.path()).cancel(cancel.clone());
    let child = folder.path().join("child");
    let giving_up = std::thread::spawn({
        let child = child.clone();
        move || {
            while !child.exists() {
                std::thread::yield_now();
            }
            cancel.store(true, Ordering::Relaxed);
        }
    });
    let error = tool.run().unwrap_err();
    giving_up.join().unwrap();
    assert!(matches!(error, ToolError::Cancelled(_)), "{error}");
    assert!(is_gone(&child));
}

#[test]
fn what_a_tool_leaves_behind_is_killed_and_does_not_hold_up_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let said = sh("sleep 60 & echo $! > child; echo done").directory(folder.path()).run().unwrap();
    assert_eq!(said.stdout, b"done\n");
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(is_gone(&folder.path().join("child")));
}

#[test]
fn what_cannot_be_started_says_why() {
    let run = |program: &str, folder: &str| Tool::new(program).directory(folder).run().unwrap_err();
    assert!(matches!(run("git", "/"), ToolError::Relative(_)));
    assert!(matches!(run("/nowhere/git", "/"), ToolError::NotFound(_)));
    assert!(matches!(run("/bin/sh", "/nowhere"), ToolError::Directory { .. }));
    assert!(matches!(run("/etc/passwd", "/"), ToolError::System { .. }));
}

#[test]
fn a_program_is_found_by_absolute_folders_only() {
    let path = OsString::from(".:bin:/nowhere:/bin");
    assert_eq!(find("sh", &path), Some(PathBuf::from("/bin/sh")));
    assert_eq!(find("sh", OsStr::new("bin:.")), None);
    assert_eq!(find("passwd", OsStr::new("/etc")), None);
}

fn is_gone(file: &Path) -> bool {
    let pid: u32 = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z ") {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
