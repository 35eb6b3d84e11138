//! Copies a tree and says how long it took: `copy SRC DST [digest] [manifest] [noreflink]`.
//! With `capture SRC` it captures one three times instead, with `remove DIR` it removes one, with
//! `entries N` it makes up a manifest of so many and says what that costs.

#![allow(clippy::print_stdout)] // It is what a benchmark reads.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use stead_core::id::Digest;
use stead_files::{
    CaptureOptions, CloneOptions, Digests, Entry, Manifest, Node, RelPath, Seen, Time, TreeError,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["capture", source] => capture(Path::new(source)),
        ["remove", folder] => remove(Path::new(folder)),
        ["entries", count] => {
            entries(count.parse().unwrap_or(1_000_000));
            Ok(())
        }
        [source, destination, flags @ ..] => copy(Path::new(source), Path::new(destination), flags),
        _ => {
            println!("copy SRC DST [digest] [manifest] [noreflink]");
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

fn entries(count: u64) {
    let made_up = (0..count).filter_map(|n| {
        let path = format!("packages/some-package-{:06}/lib/internal/module{n:09}.js", n / 50);
        let time = Time { secs: 1_800_000_000, nanos: u32::try_from(n % 1_000_000_000).ok()? };
        let mut digest = [7; 32];
        digest.iter_mut().zip(n.to_le_bytes()).for_each(|(to, from)| *to = from);
        let digest = Some(Digest::from_bytes(digest));
        Some(Entry {
            path: RelPath::parse(path).ok()?,
            mode: 0o644,
            node: Node::File { size: n, digest },
            seen: Some(Seen { device: 1, inode: n, modified: time, changed: time }),
        })
    });
    let began = Instant::now();
    let manifest = Manifest::new(Time::now(), made_up.collect());
    let Ok(manifest) = manifest else { return };
    println!("{count} entries made in {:.3} s", began.elapsed().as_secs_f64());
    memory("in memory");
    let began = Instant::now();
    let bytes = manifest.encode();
    drop(manifest);
    println!("{} bytes stored in {:.3} s", bytes.len(), began.elapsed().as_secs_f64());
    let began = Instant::now();
    let read = Manifest::decode(&bytes).is_ok();
    println!("read in {:.3} s: {read}", began.elapsed().as_secs_f64());
    memory("at most");
}

fn memory(when: &str) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"))
    {
        println!("{when}: {line}");
    }
}

fn remove(folder: &Path) -> Result<(), TreeError> {
    let began = Instant::now();
    stead_files::remove_tree_at(folder)?;
    println!("removed in {:.3} s", began.elapsed().as_secs_f64());
    Ok(())
}
