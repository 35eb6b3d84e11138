//! How a run ends: in time, whole, and with the right word for it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::time::{Duration, Instant};

use stead_process::How;
use support::{Bench, ended, is_clean, outcome, start_spawner, until};

/// What a loaded machine may add to a time that is promised.
const SLACK: Duration = Duration::from_secs(3);

#[test]
fn field_prc_01() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let mut command = bench.bash("mkfifo p; (while :; do echo c; sleep 1; done)>p & cat p");
    command.time_limit = Duration::from_millis(600);
    let began = Instant::now();
    let run = outcome(&spawner, &command);
    assert_eq!(run.how, How::TimedOut);
    assert!(began.elapsed() < command.time_limit + command.grace + SLACK);
    bench.assert_none_left();
    assert_eq!(bench.read_log(), "c\n");
}

#[test]
fn field_prc_02() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    for script in [
        "sleep 40 & echo ok",
        "sleep 40 </dev/null >/dev/null & echo ok",
        "sleep 40 2>/dev/null & echo ok",
        "sleep 40 </dev/null >/dev/null 2>&1 & echo ok",
    ] {
        let began = Instant::now();
        let run = outcome(&spawner, &bench.bash(script));
        assert!(began.elapsed() < Duration::from_secs(1) + SLACK, "{script}");
        assert_eq!(run.how, How::Exited(0));
        assert_eq!((run.survivors, run.survivor_count), (vec!["sleep".to_owned()], 1));
        assert_eq!(bench.read_log(), "ok\n");
        bench.assert_none_left();
    }
}

#[test]
fn field_prc_03() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let script = "trap \"\" TERM INT HUP; (trap \"\" TERM; sleep 300) & sleep 300";
    let mut command = bench.bash(script);
    command.time_limit = Duration::from_millis(400);
    let began = Instant::now();
    let run = outcome(&spawner, &command);
    assert_eq!(run.how, How::TimedOut);
    let took = began.elapsed();
    assert!(took >= command.time_limit + command.grace, "KILL came before the grace: {took:?}");
    assert!(took < command.time_limit + command.grace + SLACK);
    bench.assert_none_left();
    // The same as leftovers of a command that ends by itself.
    let run =
        outcome(&spawner, &bench.bash("(trap '' TERM; while :; do sleep 300; done) & exit 4"));
    assert_eq!(run.how, How::Exited(4));
    assert!(run.survivor_count >= 1);
    bench.assert_none_left();
}

#[test]
fn field_prc_08() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let script = "bash -c 'while :; do printf x >>hb; sleep 0.05; done'; echo never";
    let mut run = spawner.run(&bench.bash(script)).unwrap();
    let beats = bench.folder.path().join("hb");
    let size = || std::fs::metadata(&beats).map_or(0, |found| found.len());
    until("it writes", || size() > 2);
    run.stop().unwrap();
    assert_eq!(ended(&mut run).how, How::Stopped);
    bench.assert_none_left();
    let at_end = size();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(size(), at_end);
    assert_eq!(bench.read_log(), "");
}

#[test]
fn field_hng_05() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    for _ in 0..500 {
        assert!(is_clean(&outcome(&spawner, &bench.command("true", &[])), 0));
    }
    for (script, code, bytes) in [
        ("printf x", 0, 1),
        ("head -c 65536 /dev/zero; exit 3", 3, 65536),
        ("echo a; exec >&- 2>&-; sleep 0.2; exit 5", 5, 2),
    ] {
        let run = outcome(&spawner, &bench.bash(script));
        assert!(is_clean(&run, code), "{script}: {run:?}");
        assert_eq!(run.bytes, bytes);
        assert_eq!(std::fs::metadata(bench.log()).unwrap().len(), bytes);
    }
}

#[test]
fn daemons_are_ended_too() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let daemon = "(setsid sh -c '(setsid sleep 300 >/dev/null 2>&1 </dev/null &) &' &) ; ";
    let run = outcome(&spawner, &bench.bash(&format!("{daemon} sleep 0.1; exit 0")));
    assert_eq!((run.how, run.survivors), (How::Exited(0), vec!["sleep".to_owned()]));
    bench.assert_none_left();

    let mut run = spawner.run(&bench.bash(&format!("{daemon} {daemon} sleep 300"))).unwrap();
    until("both daemons are there", || {
        bench.alive().iter().filter(|(_, name)| name == "sleep").count() == 3
    });
    run.stop().unwrap();
    assert_eq!(ended(&mut run).how, How::Stopped);
    bench.assert_none_left();
}

#[test]
fn a_stopped_process_gets_its_chance_to_end_in_order() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let mut command = bench.bash("trap 'echo bye; exit 9' TERM; kill -STOP $$");
    command.grace = support::PATIENCE;
    let mut run = spawner.run(&command).unwrap();
    until("it is stopped", || {
        std::fs::read_to_string(format!("/proc/{}/stat", run.leader.pid)).unwrap().contains(") T ")
    });
    run.stop().unwrap();
    assert_eq!(ended(&mut run).how, How::Stopped);
    assert_eq!(bench.read_log(), "bye\n");
}

#[test]
fn what_multiplies_is_ended() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    // A tree of 63 at once, and one that goes on starting processes until it is killed.
    let tree = "f() { [ $1 -gt 1 ] && { f $(($1-1)) & f $(($1-1)) & }; sleep 300; }; f 6";
    let chain = "trap '' TERM; while :; do (trap '' TERM; setsid sleep 300 &) ; done";
    for (script, limit) in [(tree, 700), (chain, 200)] {
        let mut command = bench.bash(script);
        command.time_limit = Duration::from_millis(limit);
        command.grace = Duration::from_millis(50);
        let run = outcome(&spawner, &command);
        assert_eq!((run.how, run.left), (How::TimedOut, vec![]));
        bench.assert_none_left();
    }
}

#[test]
fn dropping_a_run_ends_it() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let run = spawner.run(&bench.bash("sleep 300 & sleep 300")).unwrap();
    bench.wait_for_processes(2);
    drop(run);
    until("its processes are gone", || bench.alive().is_empty());
}

#[test]
fn a_stop_after_the_end_changes_nothing() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    for _ in 0..50 {
        let mut run = spawner.run(&bench.command("true", &[])).unwrap();
        run.stop().unwrap();
        let how = ended(&mut run).how;
        assert!(matches!(how, How::Exited(0) | How::Stopped), "{how:?}");
    }
}
