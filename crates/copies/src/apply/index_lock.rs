//! `index.lock` of the destination, held while its files change, so that no Git writes the index
//! meanwhile. The index itself is never written.
//!
//! The file holds one line, by which it is known again after a crash: an inode may be used anew,
//! the name of an apply is not. It is made under another name and renamed, so that it is never seen
//! without its line.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use stead_core::step::{self, Moment};
use stead_files::{RelPath, Stat, TreeError};

use crate::journal::Header;

/// How long an editor may hold the index, and how often that is looked for.
pub(super) const EDITOR: Duration = Duration::from_secs(1);
pub(super) const NAP: Duration = Duration::from_millis(10);

/// The lock of one apply, whether it is there or not.
#[derive(Debug)]
pub(crate) struct IndexLock {
    path: PathBuf,
    /// What it is until it is taken.
    prepared: PathBuf,
    line: String,
}

impl IndexLock {
    /// The lock of the apply that a journal's header names; none for a plain folder.
    pub(crate) fn of(header: &Header) -> Option<Self> {
        let folder = header.index.as_ref()?.as_path();
        let (apply, task, slot) = (&header.apply, header.task, &header.slot);
        // A name as the rest of what is staged has, so that it is known for what it is.
        let name = RelPath::parse(format!(".stead-new-{}-index", apply.as_str())).ok()?;
        Some(Self {
            path: folder.join("index.lock"),
            prepared: folder.join(name.as_os_str()),
            line: format!(
                "stead apply {} of task {task} ({}) writes this work tree; if it does not end, run `stead doctor`\n",
                apply.as_str(),
                slot.as_str(),
            ),
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file under its other name.
    pub(crate) fn prepare(&self) -> Result<(), TreeError> {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&self.prepared)
            .and_then(|mut file| file.write_all(self.line.as_bytes()))
            .map_err(system("create", &self.prepared))
    }

    /// Takes the lock, waiting for an editor that holds it; `false` when that took too long.
    pub(crate) fn take(&self) -> Result<bool, TreeError> {
        let began = Instant::now();
        step::pass("copies.index-lock", Moment::Before);
        loop {
            match self.try_take() {
                Ok(()) => break,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(system("create", &self.path)(error)),
            }
            if began.elapsed() >= EDITOR {
                return Ok(false);
            }
            sleep(NAP);
        }
        step::pass("copies.index-lock", Moment::After);
        Ok(true)
    }

    fn try_take(&self) -> io::Result<()> {
        let (from, to) = (&self.prepared, &self.path);
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            // A file system that does not know the flag: a link refuses an existing name too.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                fs::hard_link(from, to)?;
                fs::remove_file(from)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether the lock that is there is this one.
    pub(crate) fn is_held(&self) -> Result<bool, TreeError> {
        match Stat::of(&self.path) {
            // Only what has its length is read: whose it is else does not matter.
            Ok(stat) if usize::try_from(stat.size).is_ok_and(|size| size == self.line.len()) => {}
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(system("examine", &self.path)(error)),
        }
        match stead_files::read_file(&self.path) {
            Ok(bytes) => Ok(bytes == self.line.as_bytes()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(system("read", &self.path)(error)),
        }
    }

    /// Removes what there is of it; another's lock stays.
    pub(crate) fn release(&self) -> Result<(), TreeError> {
        step::pass("copies.index-unlock", Moment::Before);
        if self.is_held()? {
            remove(&self.path)?;
        }
        remove(&self.prepared)?;
        step::pass("copies.index-unlock", Moment::After);
        Ok(())
    }
}

fn remove(path: &Path) -> Result<(), TreeError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(system("remove", path)(error)),
        _ => Ok(()),
    }
}

fn system(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TreeError {
    let path = path.to_owned();
    move |source| TreeError::System { act, path, source }
}
