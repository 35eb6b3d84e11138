//! Copies a tree and says how long it took: `copy SRC DST [digest] [manifest] [noreflink] [sync]`.
//! With `capture SRC` it captures one twice instead; with `remove DIR` it removes one.

#![allow(clippy::print_stdout)] // It is what a benchmark reads.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use stead_files::{CaptureOptions, CloneOptions, Digests, TreeError};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["capture", source] => capture(Path::new(source)),
        ["remove", folder] => remove(Path::new(folder)),
        [source, destination, flags @ ..] => copy(Path::new(source), Path::new(destination), flags),
        _ => {
            println!("copy SRC DST [digest] [manifest] [noreflink] [sync]");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn copy(source: &Path, destination: &Path, flags: &[&str]) -> Result<(), TreeError> {
    let options = CloneOptions {
        reflink: !flags.contains(&"noreflink"),
        manifest: flags.contains(&"manifest") || flags.contains(&"digest"),
        digests: if flags.contains(&"digest") { Digests::All } else { Digests::None },
        sync: flags.contains(&"sync"),
        ..CloneOptions::default()
    };
    let began = Instant::now();
    let listing = stead_files::walk(source, &options.walk)?;
    let walked = began.elapsed();
    let cloned = stead_files::clone(listing, destination, &options)?;
    println!(
        "{} files, {} bytes, {:.3} s (walk {:.3} s), by {}, {} rounds, {} obstacles",
        cloned.files,
        cloned.bytes,
        began.elapsed().as_secs_f64(),
        walked.as_secs_f64(),
        cloned.method,
        cloned.rounds,
        cloned.obstacles.len(),
    );
    for obstacle in cloned.obstacles.iter().take(10) {
        println!("{} {}", obstacle.path, obstacle.kind);
    }
    Ok(())
}

fn capture(source: &Path) -> Result<(), TreeError> {
    let mut previous = None;
    for _ in 0..3 {
        let began = Instant::now();
        let options = CaptureOptions::default();
        let captured = stead_files::capture(source, previous.as_ref(), &options)?;
        println!(
            "{} entries, {} files read, {:.3} s",
            captured.manifest.entries().len(),
            captured.read_files,
            began.elapsed().as_secs_f64(),
        );
        let began = Instant::now();
        let bytes = captured.manifest.encode();
        let encoded = began.elapsed();
        let began = Instant::now();
        let read = stead_files::Manifest::decode(&bytes);
        println!(
            "  stored {} bytes in {:.3} s, read in {:.3} s: {}",
            bytes.len(),
            encoded.as_secs_f64(),
            began.elapsed().as_secs_f64(),
            read.is_ok_and(|read| read == captured.manifest),
        );
        previous = Some(captured.manifest);
    }
    Ok(())
}

fn remove(folder: &Path) -> Result<(), TreeError> {
    let began = Instant::now();
    stead_files::remove_tree_at(folder)?;
    println!("removed in {:.3} s", began.elapsed().as_secs_f64());
    Ok(())
}
