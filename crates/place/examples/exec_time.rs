//! Times a run in a place against a shell, and counts the processes of each:
//! `cargo run --release -p stead-place --example exec_time -- target/release/stead`.
//!
//! The two take turns, so that a busy machine is busy for both. Processes are counted by the
//! kernel's own counter; the smallest difference is the one without others in it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that cannot be made is a failed one"
)]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 200;

fn main() {
    let program = std::env::args_os().nth(1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let exec = || {
        let mut command = Command::new(&program);
        command.args(["exec", "--", "true"]).env("XDG_STATE_HOME", folder.path().join("state"));
        command
    };
    let nothing = || {
        let mut command = Command::new(&program);
        command.arg("--version");
        command
    };
    let shell = || {
        let mut command = Command::new("sh");
        command.args(["-c", "true"]);
        command
    };
    let kinds: [(&str, &dyn Fn() -> Command); 3] =
        [("sh -c true", &shell), ("stead --version", &nothing), ("stead exec -- true", &exec)];
    let mut times: [Vec<Duration>; 3] = [const { Vec::new() }; 3];
    let mut counts = [u64::MAX; 3];
    for _ in 0..ROUNDS {
        for ((_, make), (times, count)) in kinds.iter().zip(times.iter_mut().zip(counts.iter_mut()))
        {
            let (began, before) = (Instant::now(), started());
            let status = make()
                .current_dir(&place)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .status()
                .unwrap();
            times.push(began.elapsed());
            *count = (*count).min(started() - before);
            assert!(status.success());
        }
    }
    for (((name, _), mut times), count) in kinds.iter().zip(times).zip(counts) {
        times.sort();
        let at = |part: usize| times[times.len() * part / 100];
        println!("{name:<20} p50 {:>8.2?}  p95 {:>8.2?}  processes {count}", at(50), at(95));
    }
    Command::new(&program)
        .arg("release")
        .env("XDG_STATE_HOME", folder.path().join("state"))
        .current_dir(&place)
        .stdout(Stdio::null())
        .status()
        .unwrap();
}

/// How many processes this machine has started since its own start.
fn started() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("processes ")).unwrap();
    line.trim().parse().unwrap()
}
