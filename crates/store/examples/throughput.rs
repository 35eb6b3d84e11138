//! Durable appends a second with 1, 16 and 64 threads that each wait for their own append, and
//! plain SQLite transactions of one row beside them on the same disk.
//!
//! `cargo run --release -p stead-store --example throughput -- FOLDER [SECONDS]`
#![allow(clippy::print_stdout, reason = "an example for people")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use stead_core::event::{BranchEvent, Envelope, Event, Stream};
use stead_core::id::{Position, SessionId, Timestamp};
use stead_core::task::Owner;
use stead_store::{Append, Store};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().map(PathBuf::from).ok_or("which folder?")?;
    let seconds = arguments.next().and_then(|text| text.to_str()?.parse().ok()).unwrap_or(3);
    let time = Duration::from_secs(seconds);
    std::fs::create_dir_all(&folder)?;
    plain(&folder.join("plain"), time)?;
    for threads in [1, 16, 64] {
        stead(&folder.join(format!("stead-{threads}")), threads, time)?;
    }
    piped(&folder.join("stead-piped"), 64, time)?;
    plain(&folder.join("plain-again"), time)
}

fn stead(home: &Path, threads: u64, time: Duration) -> Outcome<()> {
    let _ = std::fs::remove_dir_all(home);
    let store = Arc::new(Store::open(home)?);
    let began = Instant::now();
    let workers: Vec<_> = (0..threads)
        .map(|number| {
            let store = Arc::clone(&store);
            thread::spawn(move || work(&store, number, began, time))
        })
        .collect();
    let mut waits = Vec::new();
    for worker in workers {
        waits.extend(worker.join().map_err(|_| "a worker panicked")??);
    }
    report(&format!("stead, {threads} threads"), began.elapsed(), waits);
    Ok(())
}

/// One thread that submits without waiting: how much the writer's thread can take.
fn piped(home: &Path, sessions: u64, time: Duration) -> Outcome<()> {
    let _ = std::fs::remove_dir_all(home);
    let store = Store::open(home)?;
    let (sender, outcomes) = mpsc::channel();
    let sessions: Vec<_> = (0..sessions)
        .map(|number| SessionId::parse(&format!("session-{number}")))
        .collect::<Result<_, _>>()?;
    let began = Instant::now();
    let mut waits = Vec::new();
    let mut position = 0;
    while began.elapsed() < time {
        for session in &sessions {
            let sender = sender.clone();
            let asked = Instant::now();
            store.submit(one(session, position), move |outcome| {
                let _ = sender.send((outcome, asked.elapsed()));
            });
        }
        position += 1;
        // Eight rounds ahead of the disk at most.
        let behind = if position < 8 { 0 } else { sessions.len() };
        for (outcome, wait) in outcomes.iter().take(behind) {
            outcome?;
            waits.push(wait);
        }
    }
    report("stead, 512 in flight", began.elapsed(), waits);
    Ok(())
}

fn work(store: &Store, number: u64, began: Instant, time: Duration) -> Outcome<Vec<Duration>> {
    let session = SessionId::parse(&format!("session-{number}"))?;
    let mut waits = Vec::new();
    let mut position = 0;
    while began.elapsed() < time {
        let asked = Instant::now();
        store.append(one(&session, position))?;
        position += 1;
        waits.push(asked.elapsed());
    }
    Ok(waits)
}

fn one(session: &SessionId, expect: Position) -> Append {
    let event =
        Event::Branch(BranchEvent::NoteSet { owner: Owner::Main, note: Some("x".repeat(340)) });
    let envelope = Envelope {
        stream: Stream::Control,
        seq: expect + 1,
        position: expect + 1,
        at: Timestamp(0),
        request: None,
        event,
    };
    Append {
        session: session.clone(),
        expect,
        events: vec![envelope],
        bodies: Vec::new(),
        claims: Vec::new(),
    }
}

fn plain(folder: &Path, time: Duration) -> Outcome<()> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder)?;
    let connection = rusqlite::Connection::open(folder.join("plain.db"))?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.execute("CREATE TABLE rows (key INTEGER PRIMARY KEY, body TEXT)", [])?;
    let body = "x".repeat(400);
    let began = Instant::now();
    let mut waits = Vec::new();
    while began.elapsed() < time {
        let asked = Instant::now();
        connection.prepare_cached("INSERT INTO rows (body) VALUES (?1)")?.execute([&body])?;
        waits.push(asked.elapsed());
    }
    report("plain SQLite, 1 row", began.elapsed(), waits);
    Ok(())
}

fn report(name: &str, took: Duration, mut waits: Vec<Duration>) {
    waits.sort_unstable();
    let at = |share: usize| waits.get(waits.len() * share / 1000).copied().unwrap_or_default();
    let rate = u128::try_from(waits.len()).unwrap_or(0) * 1000 / took.as_millis().max(1);
    println!(
        "{name:<22} {rate:>7} a second   p50 {:>6} us   p99 {:>6} us   max {:>7} us",
        at(500).as_micros(),
        at(990).as_micros(),
        waits.last().copied().unwrap_or_default().as_micros(),
    );
}
