//! The maker of copies of `cargo xtask bench copy`: admits one folder and says how long it took.
//!
//! `admit HOME FOLDER TASK` makes the private copy of that task and prints the microseconds from
//! the request to the admitted layout, and those that the flush takes which follows.
#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use stead_copies::{Home, Request, admit, flush};
use stead_core::id::{RootId, SessionId, SlotName, TaskId, Timestamp};
use stead_core::layout::{AbsoluteDir, Access, Root, RootIdentity};
use stead_files::{FileIdentity, Watch};
use stead_git::Git;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let home = arguments.next().map(PathBuf::from).ok_or("which home?")?;
    let folder = arguments.next().map(PathBuf::from).ok_or("which folder?")?;
    let task = arguments.next().and_then(|task| task.into_string().ok()).ok_or("which task?")?;
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
    let home = Home::new(home);
    let admitted = admit(&home, &git, &request, Watch::default())?;
    let micros = began.elapsed().as_micros();
    let began = Instant::now();
    flush(&home, &admitted.layout.session, admitted.layout.task)?;
    let flush = began.elapsed();
    let files: u64 = admitted.slots.iter().map(|slot| slot.totals.files).sum();
    println!("micros {micros} flush {} files {files}", flush.as_micros());
    Ok(())
}
