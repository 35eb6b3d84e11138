//! Processes that are killed while they write, and two that want to write at once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests, which clippy does not know as such"
)]

mod kit;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use kit::{append, child, given_folder, home, is_child, random, session};
use stead_core::event::{BranchEvent, Event};
use stead_store::{Body, LeaseName, Store, StoreError};

fn start(name: &str, folder: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut process = child(name)
        .env("STEAD_STORE_TEST_FOLDER", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(process.stdout.take().unwrap());
    (process, output)
}

/// Kills the child at some moment: in every second round at any, also while it opens the store,
/// else after its first word, which even a starved machine lets it say.
fn kill(
    round: u64,
    mut process: Child,
    mut output: BufReader<ChildStdout>,
    within: u64,
) -> Vec<String> {
    let mut said = Vec::new();
    if round.is_multiple_of(2) {
        said.push(first_word(&mut output));
    }
    thread::sleep(Duration::from_micros(3000 + random(within)));
    process.kill().unwrap();
    process.wait().unwrap();
    said.extend(rest(output));
    said
}

fn first_word(output: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "the child ended");
        if let Some(word) = line.strip_prefix("ACK ") {
            return word.trim().to_owned();
        }
    }
}

/// What the child said until it was killed, but for a line that it did not finish.
fn rest(mut output: BufReader<ChildStdout>) -> Vec<String> {
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().filter_map(|line| line.strip_prefix("ACK ")).map(str::to_owned).collect()
}

/// Opens the store that nobody has. Tests run beside this one in one process, and whatever they
/// start has a copy of every lock for the moment before it is executed.
fn open(home: &Path) -> Store {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match Store::open(home) {
            Err(StoreError::Held { .. }) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(1));
            }
            outcome => return outcome.unwrap(),
        }
    }
}

/// One line of a child, in one write.
fn say(line: &str) {
    std::io::stdout().write_all(format!("\nACK {line}\n").as_bytes()).unwrap();
}

#[test]
#[ignore = "a child of field_ses_01"]
fn appends_until_it_is_killed() {
    if !is_child() {
        return;
    }
    let store = open(&given_folder());
    let s = session("s");
    let mut tip = store.reader().tip(&s).unwrap().unwrap_or(0);
    let mut talk = store.reader().read_stream(&s, &kit::stream("s"), 1, usize::MAX);
    let mut talk = talk.as_mut().map_or(0, |records| records.len() as u64);
    loop {
        let mut batch = append(&s, tip, &[("", tip - talk + 1), ("s", talk + 1)]);
        // Every few appends a long body, so that kills fall into its file too.
        let length = if tip.is_multiple_of(14) { 100_000 } else { 300 };
        let body = Body::new(vec![u8::try_from(tip % 251).unwrap(); length]);
        batch.events[0].event = Event::Branch(BranchEvent::Heard {
            turn: stead_core::id::TurnId(tip + 1),
            from: stead_core::event::Sender::Person,
            mail: None,
            sort: stead_core::event::MailKind::User,
            body: body.reference(),
        });
        batch.bodies = vec![body];
        tip = store.append(batch).unwrap().last;
        talk += 1;
        say(&tip.to_string());
    }
}

#[test]
fn field_ses_01_a_kill_in_an_append_leaves_no_half_event() {
    let home = home();
    let s = session("s");
    let mut acknowledged = 0;
    let mut before = Vec::new();
    for round in 0..60 {
        let (process, output) = start("appends_until_it_is_killed", home.path());
        let said = kill(round, process, output, 40_000);
        let last = said.last().map_or(0, |line| line.parse().unwrap());
        acknowledged = acknowledged.max(last);
        let store = open(home.path());
        let Some(tip) = store.reader().tip(&s).unwrap() else {
            assert_eq!(acknowledged, 0);
            continue;
        };
        assert!(tip >= acknowledged, "{acknowledged} was acknowledged, {tip} is stored");
        // Positions are contiguous and every event parses, or this fails.
        let records = store.reader().read(&s, 1, usize::MAX).unwrap();
        assert_eq!(records.len() as u64, tip);
        assert_eq!(records[..before.len()], before);
        assert!(records.last().unwrap().last_of_batch, "no half of a batch");
        let report = store.reader().check(Duration::from_hours(1), |_| false).unwrap();
        assert!(report.is_sound(), "{report:?}");
        before = records;
    }
    assert!(acknowledged >= 60, "every second child wrote: {acknowledged}");
    let store = open(home.path());
    let places = [("", before.len() as u64 / 2 + 1)];
    store.append(append(&s, before.len() as u64, &places)).unwrap();
}

#[test]
#[ignore = "a child of field_ses_02"]
fn holds_a_lease_until_it_is_killed() {
    if !is_child() {
        return;
    }
    let store = open(&given_folder());
    let lease = store.lease(&LeaseName::parse("s").unwrap(), "serve the session s").unwrap();
    say(&lease.fence().to_string());
    thread::sleep(Duration::from_mins(1));
}

#[test]
fn field_ses_02_a_second_writer_is_told_who_holds_the_session() {
    let home = home();
    let name = LeaseName::parse("s").unwrap();
    for round in 1..=3 {
        let (mut process, mut output) = start("holds_a_lease_until_it_is_killed", home.path());
        assert_eq!(first_word(&mut output), (round * 2 - 1).to_string());
        match Store::open(home.path()).err().unwrap() {
            StoreError::Held { holder: Some(holder), .. } => assert_eq!(holder.pid, process.id()),
            other => panic!("{other}"),
        }
        let (_, holder) = Store::open_reader(home.path()).unwrap().lease(&name).unwrap().unwrap();
        assert_eq!((holder.pid, &*holder.purpose), (process.id(), "serve the session s"));
        process.kill().unwrap();
        process.wait().unwrap();
        // At once, without anybody's help.
        let store = open(home.path());
        let lease = store.lease(&name, "take over").unwrap();
        assert_eq!(lease.fence(), round * 2);
        // A second handle in one process is no better than a second process.
        match store.lease(&name, "again").unwrap_err() {
            StoreError::LeaseHeld { holder: Some(holder), .. } => {
                assert_eq!((holder.pid, &*holder.purpose), (std::process::id(), "take over"));
            }
            other => panic!("{other}"),
        }
        assert!(store.lease(&LeaseName::parse("t").unwrap(), "another").is_ok());
        assert!(matches!(Store::open(home.path()), Err(StoreError::Held { .. })));
        drop(lease);
        drop(store);
    }
}

#[test]
fn field_lck_04_a_stale_lock_that_names_a_stranger_is_taken_over() {
    let home = home();
    drop(open(home.path()));
    let mut stranger = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let pid = stranger.id();
    for text in [format!("{pid} 1 stead store\n"), format!("{pid}"), String::new()] {
        fs::write(home.path().join("stead.lock"), &text).unwrap();
        drop(open(home.path()));
        assert!(stranger.try_wait().unwrap().is_none(), "the stranger lives");
    }
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
#[ignore = "a child of field_dsk_05"]
fn changes_a_state_until_it_is_killed() {
    if !is_child() {
        return;
    }
    let store = open(&given_folder());
    let name = LeaseName::parse("state").unwrap();
    loop {
        let lease = store.lease(&name, "change").unwrap();
        say(&lease.fence().to_string());
    }
}

#[test]
fn field_dsk_05_a_kill_leaves_the_old_state_or_the_new() {
    let home = home();
    let name = LeaseName::parse("state").unwrap();
    let began = Instant::now();
    let mut known = 0;
    let mut rounds = 0;
    for round in 0..300 {
        let (process, output) = start("changes_a_state_until_it_is_killed", home.path());
        let said = kill(round, process, output, 20_000);
        let last: u64 = said.last().map_or(known, |line| line.parse().unwrap());
        rounds = round;
        known = match Store::open_reader(home.path()) {
            Ok(reader) => reader.lease(&name).unwrap().map_or(0, |(fence, _)| fence),
            Err(StoreError::Absent(_)) => 0,
            Err(other) => panic!("{other}"),
        };
        assert!(known == last || known == last + 1, "{last} was said, {known} is stored");
        // On a loaded machine fewer rounds must do.
        if began.elapsed() > Duration::from_secs(20) {
            break;
        }
    }
    assert!(known >= rounds / 2, "every second child wrote: {known} in {rounds} rounds");
}
