//! The apply of `cargo xtask bench apply`: files that a task changed are brought back.
//!
//! `apply FOLDER FILES` makes a plain root of so many files in the new FOLDER, admits a copy,
//! changes every file of it, freezes and reviews it, and prints the microseconds that checking,
//! writing and clearing took.
#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use stead_copies::{
    Apply, ApplyRequest, Base, Home, Layout, Outcome, Request, Review, admit, checkout, freeze,
};
use stead_core::id::{RequestId, RootId, SessionId, SlotName, TaskId, Timestamp};
use stead_core::layout::{AbsoluteDir, Access, Root, RootIdentity};
use stead_files::{FileIdentity, Watch};
use stead_git::Git;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Files of one folder.
const EACH: usize = 30;
/// Bytes of a file.
const BYTES: usize = 3500;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().map(PathBuf::from).ok_or("which folder?")?;
    let files = arguments.next().and_then(|files| files.into_string().ok()).ok_or("how many?")?;
    let files: usize = files.parse()?;
    let root = folder.join("root");
    fill(&root, files, b'a')?;
    let root = root.canonicalize()?;
    let home = Home::new(folder.join("home"));
    let git = Git::find(&std::env::vars_os().collect())?;
    let request = request(&root)?;
    let layout = admit(&home, &git, &request, Watch::default())?.layout;
    let slot = &request.primary;
    fill(&home.copy(&request.session, request.task, slot), files, b'b')?;
    let written = apply(&home, &git, &layout, slot)?;
    println!("micros {written} files {files}");
    Ok(())
}

/// Writes the files, each full of `byte`.
fn fill(root: &Path, files: usize, byte: u8) -> Result<()> {
    for number in 0..files {
        let folder = root.join(format!("d{}", number / EACH));
        if number.is_multiple_of(EACH) {
            fs::create_dir_all(&folder)?;
        }
        fs::write(folder.join(format!("f{number}")), vec![byte; BYTES])?;
    }
    Ok(())
}

fn request(root: &Path) -> Result<Request> {
    let found = FileIdentity::of(root)?;
    let slot = SlotName::parse("bench")?;
    let root = Root {
        id: RootId::parse("root-bench")?,
        slot: slot.clone(),
        directory: AbsoluteDir::new(root)?,
        access: Access::Write,
        identity: RootIdentity {
            inode: found.inode,
            birth: found.birth.map(|birth| (birth.secs, birth.nanos)),
        },
    };
    Ok(Request {
        session: SessionId::parse("bench")?,
        task: TaskId(1),
        at: Timestamp(1),
        primary: slot,
        roots: vec![root],
    })
}

/// How many microseconds the apply of what is in the copy takes.
fn apply(home: &Home, git: &Git, layout: &Layout, slot: &SlotName) -> Result<u128> {
    let found = layout.slot(slot).ok_or("the layout lacks the slot")?;
    let base = Base::load(home, &found.base)?;
    let snapshot = freeze(home, git, layout, slot, &found.base, Watch::default())?;
    let review = Review::new(home, layout, slot, &base, &snapshot, checkout(git, found)?)?;
    let apply = RequestId::parse("bench")?;
    let (base, snapshot, review, apply) = (&base, &snapshot, &review, &apply);
    let began = Instant::now();
    let request = ApplyRequest { home, git, apply, layout, slot, base, snapshot, review };
    match Apply::check(&request)?.write() {
        Outcome::Written(written) => written.clear()?,
        other => return Err(format!("not written: {other:?}").into()),
    };
    Ok(began.elapsed().as_micros())
}
