//! The peer of `cargo xtask bench events`: rows of 400 bytes in SQLite, a durable transaction each.
//!
//! `one_row FOLDER MILLISECONDS` writes for so long into a new database and prints how many rows
//! that were in how many microseconds.
#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().map(PathBuf::from).ok_or("which folder?")?;
    let time = arguments.next().ok_or("how many milliseconds?")?;
    let time = Duration::from_millis(time.to_str().ok_or("milliseconds are digits")?.parse()?);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let connection = rusqlite::Connection::open(folder.join("rows.db"))?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.execute("CREATE TABLE rows (key INTEGER PRIMARY KEY, body TEXT)", [])?;
    let body = "x".repeat(400);
    let mut insert = connection.prepare("INSERT INTO rows (body) VALUES (?1)")?;
    let began = Instant::now();
    let mut rows: u64 = 0;
    while began.elapsed() < time {
        insert.execute([&body])?;
        rows += 1;
    }
    println!("rows {rows} micros {}", began.elapsed().as_micros());
    Ok(())
}
