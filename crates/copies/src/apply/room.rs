//! Room on the disk: what an apply takes, and a reserve in the home that is given back before its
//! outcome is appended to the log.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use stead_core::id::RootId;
use stead_core::step::{self, Moment};
use stead_files::TreeError;

use super::plan::Planned;
use crate::Home;
use crate::changes::State;

/// What most file systems give room in.
const BLOCK: u64 = 4 << 10;

/// What a line of the journal takes besides its three paths.
const LINE: usize = 400;

/// What the log needs for one outcome, and the journal to be written once more.
const RESERVE: u64 = 256 << 10;

/// Bytes that the new files take on the disk, whole blocks each, and the journal.
pub(super) fn needed(planned: &[Planned]) -> u64 {
    let mut needed = 0_u64;
    for Planned { step, .. } in planned {
        if let (true, Some(State::File { size, .. })) = (step.is_staged(), &step.new) {
            needed = needed.saturating_add(size.next_multiple_of(BLOCK).max(BLOCK));
        }
        let line = step.path.as_bytes().len() + step.beside.as_bytes().len() + LINE;
        needed = needed.saturating_add(u64::try_from(line).unwrap_or(u64::MAX));
    }
    needed
}

/// A file in the home that holds room while an apply writes; dropped, it gives it back.
#[derive(Debug)]
pub(crate) struct Reserve(PathBuf);

impl Reserve {
    /// Takes the room, before anything is written. Where the file system promises no room, there is
    /// nothing to hold.
    pub(super) fn hold(home: &Home, root: &RootId) -> Result<Self, TreeError> {
        let path = path_of(home, root);
        let fail = |source: io::Error| TreeError::System {
            act: "reserve room for the outcome in",
            path: path.clone(),
            source,
        };
        step::pass("copies.reserve", Moment::Before);
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
        let file = file.map_err(fail)?;
        let reserve = Self(path.clone());
        match fallocate(&file, FallocateFlags::empty(), 0, RESERVE) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(errno) => return Err(fail(errno.into())),
        }
        step::pass("copies.reserve", Moment::After);
        Ok(reserve)
    }

    /// Gives back what a killed apply still holds.
    pub(crate) fn release(home: &Home, root: &RootId) -> io::Result<()> {
        match fs::remove_file(path_of(home, root)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        // One that is left is given back by whoever finishes the journal, or taken by the next apply.
        let _ = fs::remove_file(&self.0);
    }
}

fn path_of(home: &Home, root: &RootId) -> PathBuf {
    home.applies().join(format!("{}.reserve", root.as_str()))
}
