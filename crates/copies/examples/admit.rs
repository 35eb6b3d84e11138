//! The maker of copies of `cargo xtask bench copy`: admits one folder and says how long it took.
//!
//! `admit HOME FOLDER TASK` makes the private copy of that task and prints the microseconds from
//! the request to the admitted layout, and those of them in which all was made durable.
#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::error::Error;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use stead_copies::{Home, Request, admit};
use stead_core::id::{RootId, SessionId, SlotName, TaskId, Timestamp};
use stead_core::layout::{AbsoluteDir, Access, Root, RootIdentity};
use stead_core::step::{self, Moment};
use stead_files::{FileIdentity, Watch};
use stead_git::Git;

/// When the flush began, and how long it took.
static FLUSH: Mutex<Option<(Instant, Duration)>> = Mutex::new(None);

fn note(name: &str, moment: Moment) {
    let Ok(mut flush) = FLUSH.lock() else { return };
    match (name, moment, *flush) {
        ("copies.sync", Moment::Before, _) => *flush = Some((Instant::now(), Duration::ZERO)),
        ("copies.sync", Moment::After, Some((began, _))) => {
            *flush = Some((began, began.elapsed()));
        }
        _ => {}
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let home = arguments.next().map(PathBuf::from).ok_or("which home?")?;
    let folder = arguments.next().map(PathBuf::from).ok_or("which folder?")?;
    let task = arguments.next().and_then(|task| task.into_string().ok()).ok_or("which task?")?;
    step::observe(note);
    let git = Git::find(&std::env::vars_os().collect())?;
    let began = Instant::now();
    let found = FileIdentity::of(&folder)?;
    let slot = SlotName::parse("bench")?;
    let root = Root {
        id: RootId::parse("root-bench")?,
        slot: slot.clone(),
        directory: AbsoluteDir::new(&folder)?,
        access: Access::Write,
        identity: RootIdentity {
            inode: found.inode,
            birth: found.birth.map(|birth| (birth.secs, birth.nanos)),
        },
    };
    let request = Request {
        session: SessionId::parse("bench")?,
        task: TaskId(task.parse()?),
        at: Timestamp(1),
        primary: slot,
        roots: vec![root],
    };
    let admitted = admit(&Home::new(home), &git, &request, Watch::default())?;
    let micros = began.elapsed().as_micros();
    let files: u64 = admitted.slots.iter().map(|slot| slot.totals.files).sum();
    let flush = FLUSH.lock().map_err(|error| error.to_string())?.map_or(Duration::ZERO, |f| f.1);
    println!("micros {micros} flush {} files {files}", flush.as_micros());
    Ok(())
}
