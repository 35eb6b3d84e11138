//! The peer of `cargo xtask bench events`: rows of 400 bytes in SQLite, a durable transaction each.
//!
//! `one_row FOLDER MILLISECONDS WRITERS` writes for so long into a new database, from so many
//! threads with a connection each, and prints how many rows that were in how many microseconds.
#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How long a writer waits for its turn at most.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().map(PathBuf::from).ok_or("which folder?")?;
    let time = arguments.next().ok_or("how many milliseconds?")?.parse()?;
    let time = Duration::from_millis(time);
    let writers: u32 = arguments.next().ok_or("how many writers?")?.parse()?;
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("rows.db");
    open(&file)?.execute("CREATE TABLE rows (key INTEGER PRIMARY KEY, body TEXT)", [])?;
    let began = Instant::now();
    let threads: Vec<_> = (0..writers)
        .map(|_| {
            let file = file.clone();
            thread::spawn(move || write(&file, began, time))
        })
        .collect();
    let mut rows: u64 = 0;
    for thread in threads {
        rows += thread.join().map_err(|_| "a writer panicked")??;
    }
    println!("rows {rows} micros {}", began.elapsed().as_micros());
    Ok(())
}

fn open(file: &Path) -> Outcome<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    Ok(connection)
}

fn write(file: &Path, began: Instant, time: Duration) -> Outcome<u64> {
    let connection = open(file)?;
    let body = "x".repeat(400);
    let mut insert = connection.prepare("INSERT INTO rows (body) VALUES (?1)")?;
    let mut rows = 0;
    while began.elapsed() < time {
        insert.execute([&body])?;
        rows += 1;
    }
    Ok(rows)
}
