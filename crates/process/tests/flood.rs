//! Output without end, without sense and without text in it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::time::Duration;

use stead_process::{How, Run, output::bounded};
use support::{Bench, ended, is_clean, outcome, start_spawner};

/// The most memory a supervisor has had, in KiB, as long as it lives; else 0.
fn peak(run: &Run) -> u64 {
    let supervisor = stead_process::ancestors(run.leader.pid).into_iter().next();
    let status = supervisor
        .and_then(|found| std::fs::read_to_string(format!("/proc/{}/status", found.pid)).ok());
    status
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap_or(0)
}

#[test]
fn field_out_01() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let yes = bench.command("yes", &["a line of output"]);
    let zeros = bench.bash(
        "head -c 300M /dev/zero; printf end; touch done; until [ -e seen ]; do sleep 0.02; done; \
         exit 2",
    );
    for (command, how) in [(yes, How::Stopped), (zeros, How::Exited(2))] {
        let mut run = spawner.run(&command).unwrap();
        if how == How::Stopped {
            std::thread::sleep(Duration::from_secs(2));
        } else {
            support::until("all is written", || bench.folder.path().join("done").exists());
        }
        let most = peak(&run);
        if how == How::Stopped {
            run.stop().unwrap();
        } else {
            std::fs::write(bench.folder.path().join("seen"), b"").unwrap();
        }
        let end = ended(&mut run);
        assert_eq!(end.how, how);
        assert!(most > 0 && most < 24 * 1024, "a supervisor took {most} KiB");
        assert!(end.bytes > 4 * command.log_limit, "only {} bytes", end.bytes);
        let log = std::fs::read(bench.log()).unwrap();
        assert!(log.len() as u64 <= command.log_limit);
        let marker = format!("\n[stead: {} bytes omitted]\n", end.omitted);
        assert_eq!(end.bytes - end.omitted, (log.len() - marker.len()) as u64);
        let text = String::from_utf8_lossy(&log);
        assert!(text.contains(&marker));
        if how == How::Exited(2) {
            assert_eq!(end.bytes, (300 << 20) + 3);
            assert!(text.ends_with("end") && text.starts_with('\0'));
        } else {
            assert!(text.starts_with("a line of output\n"));
        }
    }
}

#[test]
fn field_out_03() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let mut command = bench.command("yes", &[]);
    command.log_limit = 5_000_000;
    let mut run = spawner.run(&command).unwrap();
    let size = || std::fs::metadata(bench.log()).map_or(0, |found| found.len());
    support::until("the log is full but for its tail", || size() > 4_700_000);
    for _ in 0..50 {
        assert!(size() <= command.log_limit);
        std::thread::sleep(Duration::from_millis(5));
    }
    run.stop().unwrap();
    let end = ended(&mut run);
    assert_eq!(end.how, How::Stopped);
    assert!(end.omitted > 0);
    assert!(size() <= command.log_limit);
    bench.assert_none_left();
}

/// A full disk neither ends the run nor is it hidden.
#[test]
fn a_log_that_cannot_be_written_is_counted_as_omitted() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let mut command = bench.bash("head -c 1M /dev/zero; exit 8");
    command.log = "/dev/full".into();
    let run = outcome(&spawner, &command);
    assert!(is_clean(&run, 8), "{run:?}");
    assert_eq!((run.bytes, run.omitted), (1 << 20, 1 << 20));
}

#[test]
fn field_out_05() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let run = outcome(&spawner, &bench.command("sh", &["-c", "seq 100000; exit 3"]));
    assert!(is_clean(&run, 3));
    let whole = bench.read_log();
    let lines: Vec<&str> = whole.lines().skip(49_999).take(11).collect();
    assert_eq!((lines[0], lines[10]), ("50000", "50010"));
    let answer = bounded(&bench.log(), 4096, run.omitted).unwrap();
    assert!(answer.text.len() <= 4096);
    assert!(answer.text.starts_with("1\n2\n") && answer.text.ends_with("\n100000\n"));
    let marker =
        format!("[stead: {} bytes omitted; log: {}]", answer.omitted, bench.log().display());
    assert!(answer.text.contains(&marker), "{}", answer.text);
}

#[test]
fn field_out_06() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let run = outcome(&spawner, &bench.command("head", &["-c", "2M", "/dev/urandom"]));
    assert!(is_clean(&run, 0));
    assert_eq!(run.bytes, 2 << 20);
    let answer = bounded(&bench.log(), 30_000, run.omitted).unwrap();
    assert!(answer.text.len() <= 30_000);
    let json = serde_json::to_string(&answer.text).unwrap();
    assert_eq!(serde_json::from_str::<String>(&json).unwrap(), answer.text);

    let raw = r"printf '\033]0;x\a\033[2J\377\000'";
    assert!(is_clean(&outcome(&spawner, &bench.bash(raw)), 0));
    assert_eq!(std::fs::read(bench.log()).unwrap(), b"\x1b]0;x\x07\x1b[2J\xff\0");
    let answer = bounded(&bench.log(), 1000, 0).unwrap();
    assert_eq!(answer.text, "\u{1b}]0;x\u{7}\u{1b}[2J\u{fffd}\0");
}

#[test]
fn both_outputs_keep_their_order() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let run = outcome(&spawner, &bench.bash("for i in 1 2 3; do echo o$i; echo e$i >&2; done"));
    assert!(is_clean(&run, 0));
    assert_eq!(bench.read_log(), "o1\ne1\no2\ne2\no3\ne3\n");
}
