//! Runs: their limits, their end, what they leave, and the release of it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stead_place::{Left, Presence, Which};
use stead_process::How;
use stead_testkit::until;
use support::{Bench, Done, Exec, kill, snapshot, wait};

/// Leaves a process in a session of its own, whose number is in `$TMPDIR/NAME`.
fn leave(name: &str) -> String {
    format!("setsid sleep 600 > /dev/null 2>&1 & echo $! > $TMPDIR/{name}")
}

fn is_alive(pid: u32) -> bool {
    stead_process::ProcessIdentity::of(pid).is_ok_and(|found| found.is_alive())
}

fn number(bench: &Bench, place: &Path, name: &str) -> u32 {
    let text = fs::read_to_string(bench.listed(place).scratch.join(name)).unwrap();
    text.trim().parse().unwrap()
}

fn is_free(bench: &Bench, place: &Path) -> bool {
    bench.host().list().unwrap().iter().all(|listed| listed.place != place)
}

#[test]
fn output_and_status_are_the_commands_own() {
    let bench = Bench::new(29_400);
    let place = bench.place("a");
    let script = "echo out; echo err >&2; printf half; exit 9";
    let done = bench.exec(&Exec::new(&place, script));
    assert_eq!((done.code, done.out.as_str(), done.errors.as_str()), (9, "out\nhalf", "err\n"));
    assert_eq!(bench.exec(&Exec::new(&place, "kill -KILL $$")).code, 137);
    let lines = bench.ok(&place, "seq 1 200000").lines().count();
    assert_eq!(lines, 200_000);
    let client = bench.ok(&place, "env | sort");
    for line in client.lines() {
        let name = line.split('=').next().unwrap();
        let known = ["PATH", "TMPDIR", "PWD", "SHLVL", "_", "GIT_ASKPASS"].contains(&name)
            || name.starts_with("STEAD_")
            || ["GIT_TERMINAL_PROMPT", "SSH_ASKPASS_REQUIRE", "OLDPWD"].contains(&name);
        assert!(known, "{line}");
    }
    let listed = bench.listed(&place);
    assert_eq!(listed.last.unwrap().how, Some(How::Exited(0)));
}

#[test]
fn places_30_a_run_past_its_limit_is_ended_and_its_place_stays() {
    let bench = Bench::new(29_420);
    let place = bench.place("a");
    let limited = |script| Exec { time_limit: 300, ..Exec::new(&place, script) };
    let done = bench.exec(&limited("sleep 600 & sleep 600"));
    assert_eq!(done.code, 124);
    assert_eq!(bench.alive(), Vec::<u32>::new());
    let listed = bench.listed(&place);
    assert_eq!((listed.presence, listed.last.unwrap().how), (Presence::There, Some(How::TimedOut)));
    assert_eq!(bench.host().live_runs().unwrap(), 0);
}

#[test]
fn places_31_a_command_that_ignores_term_is_killed_after_the_grace() {
    let bench = Bench::new(29_440);
    let place = bench.place("a");
    let began = Instant::now();
    let script = "trap '' TERM; (trap '' TERM; sleep 600) & while :; do sleep 0.05; done";
    let exec = Exec { time_limit: 200, grace: 400, ..Exec::new(&place, script) };
    assert_eq!(bench.exec(&exec).code, 124);
    assert!(began.elapsed() >= Duration::from_millis(600));
    assert_eq!(bench.alive(), Vec::<u32>::new());
}

#[test]
fn an_interrupted_starter_ends_its_run_and_a_killed_one_too() {
    let bench = Bench::new(29_460);
    let place = bench.place("a");
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129), ("-KILL", -1)] {
        let name = format!("run{signal}");
        let child = bench.begin(&place, &name);
        kill(child.id(), signal);
        assert_eq!(wait(child).code, code, "{signal}");
        until("nothing of it lives", || bench.alive().is_empty().then_some(()));
        until("it counts no more", || (bench.host().live_runs().unwrap() == 0).then_some(()));
    }
}

#[test]
fn a_first_interrupt_is_forwarded_and_a_second_kills() {
    let bench = Bench::new(29_480);
    let place = bench.place("a");
    let began = bench.flag("run", "began");
    let script = format!(
        "trap 'echo heard' INT; trap '' TERM; touch {}; while :; do sleep 0.05; done",
        began.display()
    );
    let child = bench.start(&Exec { grace: 60_000, ..Exec::new(&place, &script) });
    until("it runs", || began.exists().then_some(()));
    kill(child.id(), "-INT");
    std::thread::sleep(Duration::from_millis(300));
    kill(child.id(), "-INT");
    let done = wait(child);
    assert_eq!((done.code, done.out.as_str()), (130, "heard\n"));
}

#[test]
fn places_48_what_a_run_left_is_still_up_in_the_next() {
    let bench = Bench::new(29_500);
    let place = bench.place("a");
    bench.ok(&place, &leave("db"));
    bench.ok(&place, "kill -0 $(cat $TMPDIR/db)");
    until("only it is left", || (bench.listed(&place).left.len() == 1).then_some(()));
}

#[test]
fn places_50_one_release_ends_what_several_runs_left() {
    let bench = Bench::new(29_520);
    let place = bench.place("a");
    fs::write(place.join("file"), "mine").unwrap();
    let before = snapshot(&place);
    for name in ["one", "two", "three"] {
        bench.ok(&place, &leave(name));
    }
    // What closed everything, left its session, its group and its parents, and scrubbed its mark.
    bench.ok(&place, "(setsid env -i /bin/bash -c '(/bin/sleep 600 &)' > /dev/null 2>&1 &)");
    bench.ok(&place, "mkdir -p $TMPDIR/closed/deep; chmod 500 $TMPDIR/closed/deep $TMPDIR/closed");
    let left = until("only what shall stay is left", || {
        let left = bench.listed(&place).left;
        (left.len() == 4 && left.iter().all(|(_, name)| name == "sleep")).then_some(left)
    });
    let scratch = bench.listed(&place).scratch;
    let released = bench.release(&place);
    assert_eq!((released.len(), released[0].ended), (1, 4));
    assert_eq!(released[0].left, []);
    assert!(left.iter().all(|(pid, _)| !is_alive(*pid)));
    assert!(!scratch.exists() && is_free(&bench, &place));
    assert_eq!(snapshot(&place), before);
    assert_eq!(fs::read_dir(bench.host_folder().join("runs")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(bench.host_folder().join("releasing")).unwrap().count(), 0);
}

#[test]
fn places_55_a_release_ends_a_live_run_as_interrupted_and_refuses_a_new_one() {
    let bench = Bench::new(29_540);
    let place = bench.place("a");
    let began = bench.flag("slow", "began");
    let script = format!(
        "trap 'sleep 1; exit 0' TERM; touch {}; while :; do sleep 0.01; done",
        began.display()
    );
    let run = bench.start(&Exec { grace: 20_000, ..Exec::new(&place, &script) });
    until("it runs", || began.exists().then_some(()));
    let host = bench.host();
    let at = place.clone();
    let release = std::thread::spawn(move || host.release(&Which::At(at)).unwrap());
    until("it is being released", || bench.listed(&place).is_releasing.then_some(()));
    let refused = bench.exec(&Exec::new(&place, "true"));
    assert_eq!(refused.code, 75, "{}", refused.errors);
    let released = release.join().unwrap();
    assert_eq!((released[0].interrupted, released[0].left.len()), (1, 0));
    assert_eq!(wait(run).code, 143);
    assert_eq!(bench.alive(), Vec::<u32>::new());
}

#[test]
fn places_56_a_second_release_finds_nothing() {
    let bench = Bench::new(29_560);
    let place = bench.place("a");
    assert!(bench.release(&place).is_empty());
    bench.ok(&place, "true");
    assert_eq!(bench.release(&place).len(), 1);
    assert!(bench.release(&place).is_empty());
}

#[test]
fn places_58_a_listener_outside_holds_the_block_back_and_is_named() {
    let mut bench = Bench::new(29_580);
    bench.ports = (29_580, 29_595);
    let (place, other) = (bench.place("a"), bench.place("b"));
    bench.ok(&place, "true");
    let port = bench.listed(&place).ports.first();
    let stranger = std::net::TcpListener::bind(("127.0.0.1", port + 4)).unwrap();
    let released = bench.release(&place);
    let Left::Listener(listener) = &released[0].left[0] else { panic!("{released:?}") };
    assert_eq!(listener.port, port + 4);
    assert_eq!(listener.process.as_ref().unwrap().0, std::process::id());
    assert!(bench.listed(&place).held_back.is_some());
    assert_eq!(bench.exec(&Exec::new(&other, "true")).code, 74);
    drop(stranger);
    assert!(bench.release(&place)[0].left.is_empty());
    assert_eq!(bench.exec(&Exec::new(&other, "true")).code, 0);
}

#[test]
fn places_58_a_process_that_left_its_group_is_ended_though_its_keeper_was_killed() {
    let bench = Bench::new(29_600);
    let place = bench.place("a");
    bench.ok(&place, &leave("one"));
    let left = number(&bench, &place, "one");
    let record = fs::read(bench.host_folder().join("runs/p1.1/record.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let keeper = u32::try_from(record["processes"]["keeper"]["pid"].as_u64().unwrap()).unwrap();
    kill(keeper, "-KILL");
    until("the keeper is gone", || (!is_alive(keeper)).then_some(()));
    assert!(is_alive(left));
    let released = bench.release(&place);
    assert_eq!((released[0].ended, released[0].left.len()), (1, 0));
    assert!(!is_alive(left));
}

#[test]
fn places_59_a_number_that_is_a_strangers_now_is_not_signalled() {
    let bench = Bench::new(29_620);
    let place = bench.place("a");
    bench.ok(&place, "true");
    // The kernel tells processes apart by hundredths of a second.
    std::thread::sleep(Duration::from_millis(50));
    let mut stranger = std::process::Command::new("setsid").args(["sleep", "600"]).spawn().unwrap();
    let path = bench.host_folder().join("runs/p1.1/record.json");
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for name in ["keeper", "supervisor", "leader"] {
        record["processes"][name]["pid"] = stranger.id().into();
    }
    fs::write(&path, record.to_string()).unwrap();
    assert!(bench.release(&place)[0].left.is_empty());
    assert!(stranger.try_wait().unwrap().is_none());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn places_60_a_release_never_waits_for_the_bound() {
    let mut bench = Bench::new(29_640);
    bench.bound = (1, 0);
    let (a, b) = (bench.place("a"), bench.place("b"));
    bench.ok(&a, &leave("one"));
    let holder = bench.begin(&b, "holder");
    assert_eq!(bench.release(&a)[0].ended, 1);
    bench.end("holder");
    assert_eq!(wait(holder).code, 0);
}

#[test]
fn places_61_a_place_whose_folder_is_gone_is_released_by_its_path() {
    let bench = Bench::new(29_660);
    let place = bench.place("a");
    bench.ok(&place, &leave("one"));
    let left = number(&bench, &place, "one");
    fs::remove_dir_all(&place).unwrap();
    assert_eq!(bench.listed(&place).presence, Presence::Gone);
    assert!(bench.release(&place)[0].left.is_empty());
    assert!(!is_alive(left) && is_free(&bench, &place));
}

#[test]
fn places_63_a_hold_that_nobody_used_for_long_is_listed_as_abandoned_and_stays() {
    let bench = Bench::new(29_680);
    let place = bench.place("a");
    bench.ok(&place, &leave("one"));
    assert!(!bench.listed(&place).is_abandoned);
    let path = bench.host_folder().join("runs/p1.1/record.json");
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let days = 3 * 24 * 3600 * 1000;
    record["started"] = (record["started"].as_u64().unwrap() - days).into();
    fs::write(&path, record.to_string()).unwrap();
    bench.ok(&bench.place("other"), "true");
    let listed = bench.listed(&place);
    assert!(listed.is_abandoned);
    assert_eq!(listed.left.len(), 1);
    assert!(is_alive(number(&bench, &place, "one")));
}

#[test]
fn places_69_of_two_releases_at_once_one_does_the_work() {
    let bench = Bench::new(29_700);
    let place = bench.place("a");
    bench.ok(&place, &leave("one"));
    let releases: Vec<_> = (0..4)
        .map(|_| {
            let (host, place) = (bench.host(), place.clone());
            std::thread::spawn(move || host.release(&Which::At(place)).unwrap().len())
        })
        .collect();
    let done: Vec<usize> = releases.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(done.iter().sum::<usize>(), 1, "{done:?}");
}

#[test]
fn a_scratch_folder_that_is_not_ours_is_not_removed() {
    let bench = Bench::new(29_720);
    let place = bench.place("a");
    bench.ok(&place, "true");
    let scratch = bench.listed(&place).scratch;
    let moved = bench.root().join("moved");
    fs::rename(&scratch, &moved).unwrap();
    let theirs = bench.root().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("precious"), "").unwrap();
    std::os::unix::fs::symlink(&theirs, &scratch).unwrap();
    assert_eq!(bench.release(&place)[0].left.len(), 1);
    assert!(theirs.join("precious").exists());
    fs::remove_file(&scratch).unwrap();
    assert!(bench.release(&place)[0].left.is_empty());
}

/// A run for an engine: it outlives its starter, and its outcome is read from its folder.
#[test]
fn a_detached_run_goes_on_without_its_starter_and_leaves_its_outcome() {
    let bench = Bench::new(29_740);
    let place = bench.place("a");
    let go = bench.flag("run", "end");
    let script = format!(
        "echo begun; while [ ! -e {} ]; do sleep 0.01; done; echo over; exit 4",
        go.display()
    );
    let exec = Exec { is_detached: true, ..Exec::new(&place, &script) };
    let started: Done = bench.exec(&exec);
    assert_eq!(started.code, 0, "{}", started.errors);
    assert_eq!(bench.host().live_runs().unwrap(), 1);
    assert_eq!(bench.listed(&place).live.len(), 1);
    fs::write(go, "").unwrap();
    until("it has ended", || (bench.host().live_runs().unwrap() == 0).then_some(()));
    assert_eq!(bench.listed(&place).last.unwrap().how, Some(How::Exited(4)));
    let log: PathBuf = bench.host_folder().join("runs/p1.1/log");
    assert_eq!(fs::read_to_string(log).unwrap(), "begun\nover\n");
}
