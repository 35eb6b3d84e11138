//! The bound: what counts, who waits, who is told.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod support;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use stead_testkit::until;
use support::{Bench, Exec, kill, snapshot, wait};

#[test]
fn places_12_at_the_bound_no_wait_refuses_and_names_every_holder() {
    let bench = Bench::new(25_064);
    let (a, b, c) = (bench.place("a"), bench.place("b"), bench.place("c"));
    let (first, second) = (bench.begin(&a, "one"), bench.begin(&b, "two"));
    let third = bench.exec(&Exec { patience: None, ..Exec::new(&c, "true") });
    assert_eq!(third.code, 72);
    for named in [&a, &b] {
        assert!(third.errors.contains(named.to_str().unwrap()), "{}", third.errors);
    }
    bench.end("one");
    assert_eq!(wait(first).code, 0);
    assert_eq!(bench.exec(&Exec { patience: None, ..Exec::new(&c, "exit 7") }).code, 7);
    bench.end("two");
    wait(second);
}

/// Sixteen runs at once in sixteen places: each notes in a file of its own while it runs, and looks
/// how many others do. None ever sees more than the bound, and no two places share a port.
#[test]
fn sixteen_at_once_never_pass_the_bound_and_share_no_port() {
    let bench = Bench::new(25_384);
    let inside = bench.root().join("inside");
    fs::create_dir(&inside).unwrap();
    let inside = inside.display();
    let script = format!(
        "for round in 1 2 3; do touch {inside}/$$; ls {inside} | wc -l; sleep 0.02; done; \
         rm {inside}/$$; echo $STEAD_PORT"
    );
    let children: Vec<_> = (0..16)
        .map(|number| bench.start(&Exec::new(&bench.place(&format!("w{number}")), &script)))
        .collect();
    let mut most_at_once = 0;
    let mut ports = Vec::new();
    for child in children {
        let done = wait(child);
        assert_eq!(done.code, 0, "{}", done.errors);
        let numbers: Vec<usize> =
            done.out.lines().map(|line| line.trim().parse().unwrap()).collect();
        most_at_once = most_at_once.max(numbers[..3].iter().copied().max().unwrap());
        ports.push(numbers[3]);
    }
    assert!(most_at_once <= 2, "{most_at_once}");
    ports.sort_unstable();
    assert!(ports.windows(2).all(|pair| pair[1] - pair[0] >= 16), "{ports:?}");
    assert_eq!(bench.host().live_runs().unwrap(), 0);
}

#[test]
fn places_17_a_run_that_ended_no_longer_counts_whatever_it_left() {
    let mut bench = Bench::new(25_704);
    bench.bound = (1, 0);
    let (a, b) = (bench.place("a"), bench.place("b"));
    bench.ok(&a, "sleep 600 & echo $! > $TMPDIR/left");
    assert_eq!(bench.host().live_runs().unwrap(), 0);
    assert_eq!(bench.exec(&Exec { patience: None, ..Exec::new(&b, "exit 5") }).code, 5);
    until("only it is left", || (bench.listed(&a).left.len() == 1).then_some(()));
}

#[test]
fn places_18_a_killed_supervisor_stops_counting_and_its_processes_end() {
    let mut bench = Bench::new(26_024);
    bench.bound = (1, 0);
    let (a, b) = (bench.place("a"), bench.place("b"));
    let child = bench.begin(&a, "one");
    let supervisor = until("the supervisor is recorded", || {
        let bytes = fs::read(bench.host_folder().join("runs/p1.1/record.json")).ok()?;
        let record: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        u32::try_from(record["processes"]["supervisor"]["pid"].as_u64()?).ok()
    });
    kill(supervisor, "-KILL");
    until("it counts no more", || (bench.host().live_runs().unwrap() == 0).then_some(()));
    assert_eq!(wait(child).code, 66);
    assert_eq!(bench.alive(), Vec::<u32>::new());
    assert_eq!(bench.exec(&Exec { patience: None, ..Exec::new(&b, "exit 3") }).code, 3);
    // The second record of the place makes the first one stale.
    bench.ok(&a, "true");
    bench.ok(&a, "true");
    assert!(!bench.host_folder().join("runs/p1.1").exists());
}

#[test]
fn a_killed_keeper_ends_its_run_too() {
    let bench = Bench::new(26_344);
    let place = bench.place("a");
    let child = bench.begin(&place, "one");
    let record = fs::read(bench.host_folder().join("runs/p1.1/record.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let keeper = record["processes"]["keeper"]["pid"].as_u64().unwrap();
    kill(u32::try_from(keeper).unwrap(), "-KILL");
    assert_eq!(wait(child).code, 66);
    assert_eq!(bench.alive(), Vec::<u32>::new());
}

#[test]
fn places_19_a_descendant_with_every_descriptor_does_not_keep_the_run_alive() {
    let bench = Bench::new(26_664);
    let place = bench.place("a");
    // Nothing is closed and nothing redirected: it writes to the run's own pipes.
    let began = Instant::now();
    let out = bench.ok(&place, "(while sleep 0.05; do echo still; done) & echo done; sleep 0.1");
    assert!(out.contains("done\n") && began.elapsed() < Duration::from_secs(20));
    assert_eq!(bench.host().live_runs().unwrap(), 0);
    // It lives on, and nobody ends it by a pipe that nobody reads.
    std::thread::sleep(Duration::from_millis(300));
    assert!(!bench.listed(&place).left.is_empty());
}

#[test]
fn places_20_a_corrupt_record_is_set_aside_and_does_not_count() {
    let bench = Bench::new(26_984);
    let place = bench.place("a");
    bench.ok(&place, "true");
    let record = bench.host_folder().join("runs/p1.1/record.json");
    fs::write(&record, "{\"version\":1,\"ho").unwrap();
    let done = bench.exec(&Exec::new(&place, "true"));
    assert_eq!(done.code, 0);
    assert!(done.errors.contains("aside "), "{}", done.errors);
    assert!(!record.exists());
    assert_eq!(fs::read_dir(bench.host_folder().join("aside")).unwrap().count(), 1);
    // A run that lives counts, whatever its record is.
    let child = bench.begin(&place, "one");
    fs::write(bench.host_folder().join("runs/p1.2/record.json"), "").unwrap();
    assert_eq!(bench.host().live_runs().unwrap(), 1);
    bench.end("one");
    assert_eq!(wait(child).code, 0);
}

#[test]
fn places_21_after_a_reboot_nothing_counts_and_no_stranger_is_signalled() {
    let bench = Bench::new(27_304);
    let place = bench.place("a");
    bench.ok(&place, "true");
    let mut stranger = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let path = bench.host_folder().join("runs/p1.1/record.json");
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for name in ["keeper", "supervisor", "leader"] {
        // Every number is a stranger's now; once of an earlier boot, once of an earlier start.
        record["processes"][name]["pid"] = stranger.id().into();
        record["processes"][name]["boot_id"] = "another".into();
    }
    fs::write(&path, record.to_string()).unwrap();
    assert_eq!(bench.host().live_runs().unwrap(), 0);
    assert!(bench.listed(&place).left.is_empty());
    let released = bench.release(&place);
    assert_eq!((released[0].ended, released[0].left.len()), (0, 0));
    assert!(stranger.try_wait().unwrap().is_none());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn places_22_an_exec_inside_a_run_goes_on_in_its_room() {
    let mut bench = Bench::new(27_624);
    bench.bound = (1, 0);
    let place = bench.place("a");
    let order = serde_json::json!({
        "host": bench.host_folder(), "ports": bench.ports, "bound": [1, 0], "patience": null,
        "directory": place, "command": ["bash", "-c", "echo $STEAD_RUN $STEAD_PORT"],
        "client": bench.client, "time_limit": 1000, "grace": 300,
    });
    let file = bench.root().join("order");
    fs::write(&file, order.to_string()).unwrap();
    let inner = format!("'{}' < '{}'", env!("CARGO_BIN_EXE_stead-place-exec"), file.display());
    let out = bench.ok(&place, &format!("echo $STEAD_RUN $STEAD_PORT; {inner}"));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((lines.len(), lines[0]), (2, lines[1]));
    assert!(!bench.host_folder().join("runs/p1.2").exists());
    // The room of a run in another place is not this one's, and would never come free.
    let other = bench.place("b");
    let done = bench.exec(&Exec::new(&other, &inner));
    assert_eq!(done.code, 72);
    assert!(done.errors.contains("part of"), "{}", done.errors);
}

#[test]
fn places_23_a_waiter_that_is_interrupted_leaves_the_line_and_the_others_keep_their_order() {
    let mut bench = Bench::new(27_944);
    bench.bound = (1, 0);
    let holder = bench.begin(&bench.place("holder"), "holder");
    let order = bench.root().join("order");
    let mut waiters = Vec::new();
    for number in 0..4 {
        let script = format!("echo {number} >> '{}'", order.display());
        waiters.push(bench.start(&Exec::new(&bench.place(&format!("w{number}")), &script)));
        let tickets = || fs::read_dir(bench.host_folder().join("line")).unwrap().count();
        until("it stands in the line", || (tickets() == number + 1).then_some(()));
    }
    kill(waiters[1].id(), "-INT");
    let interrupted = waiters.remove(1).wait_with_output().unwrap();
    assert!(!interrupted.status.success());
    bench.end("holder");
    for waiter in waiters {
        let done = wait(waiter);
        assert_eq!(done.code, 0, "{}", done.errors);
        assert!(done.errors.starts_with("waiting "), "{}", done.errors);
    }
    wait(holder);
    assert_eq!(fs::read_to_string(order).unwrap(), "0\n2\n3\n");
}

#[test]
fn places_24_waiting_is_not_charged_and_has_an_end() {
    let mut bench = Bench::new(28_264);
    bench.bound = (1, 0);
    let (a, b) = (bench.place("a"), bench.place("b"));
    let holder = bench.begin(&a, "one");
    let limited = Exec { time_limit: 1000, ..Exec::new(&b, "sleep 0.5") };
    let waiter = bench.start(&limited);
    let impatient = bench.exec(&Exec { patience: Some(100), ..Exec::new(&b, "true") });
    assert_eq!(impatient.code, 73, "{}", impatient.errors);
    // Longer than the limit.
    std::thread::sleep(Duration::from_millis(1200));
    bench.end("one");
    assert_eq!(wait(waiter).code, 0);
    wait(holder);
}

#[test]
fn places_25_counting_changes_no_file_and_equals_the_live_supervisors() {
    let bench = Bench::new(28_584);
    let (a, b) = (bench.place("a"), bench.place("b"));
    bench.ok(&a, "true");
    let running = [bench.begin(&a, "one"), bench.begin(&b, "two")];
    // Something stale, which a count that wrote would remove.
    fs::create_dir(bench.host_folder().join("runs/p1.0")).unwrap();
    let before = snapshot(&bench.host_folder());
    let host = bench.host();
    assert_eq!(host.live_runs().unwrap(), 2);
    assert_eq!(host.list().unwrap().iter().map(|place| place.live.len()).sum::<usize>(), 2);
    assert_eq!(snapshot(&bench.host_folder()), before);
    bench.end("one");
    bench.end("two");
    for run in running {
        wait(run);
    }
    assert_eq!(host.live_runs().unwrap(), 0);
}

#[test]
fn places_15_all_of_the_bound_reserved_is_refused_and_never_waited_for() {
    let mut bench = Bench::new(28_904);
    bench.bound = (2, 2);
    let done = bench.exec(&Exec::new(&bench.place("a"), "true"));
    assert_eq!(done.code, 77);
    assert!(done.errors.contains("reserved"), "{}", done.errors);
}

#[test]
fn a_holder_that_dies_before_its_run_begins_leaves_nothing() {
    let bench = Bench::new(29_224);
    let place = bench.place("a");
    bench.ok(&place, "true");
    // What a starter leaves that is killed between folder and start.
    let runs = bench.host_folder().join("runs");
    let dead: PathBuf = runs.join(".new-p1.2");
    fs::create_dir(&dead).unwrap();
    bench.ok(&place, "true");
    assert!(!dead.exists() && runs.join("p1.2").exists());
}
