//! Where copies are made: a folder and a lock each, so that what a killed process left behind is
//! told from what a living one is making.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use stead_core::step::{self, Moment};
use stead_files::{Lock, private_dir, remove_tree_at};

use crate::error::{CopyError, failed};
use crate::home::Home;

/// The ending of a staged folder's lock, which lies beside it and is there before it.
const LOCK: &str = "lock";

/// A new folder that only its maker uses. Dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Staged {
    path: PathBuf,
    lock: Option<Lock>,
}

impl Staged {
    /// Makes an empty folder in the home's staging; `purpose` is for people.
    pub(crate) fn begin(home: &Home, purpose: &str) -> Result<Self, CopyError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let staging = home.staging();
        private_dir(&home.copies())?;
        private_dir(&staging)?;
        let process = std::process::id();
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = staging.join(format!("{process}-{number}"));
            let Some(lock) = Lock::try_exclusive(&path.with_extension(LOCK), purpose)? else {
                continue;
            };
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path, lock: Some(lock) }),
                // A killed process that had our number left one behind: not ours to use.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(CopyError::system("create", &path, error)),
            }
        }
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the folder to `to`, where nothing may be.
    ///
    /// On an error nothing is there but what was before. Passes the step `copies.publish`.
    pub(crate) fn publish(mut self, to: &Path) -> Result<(), CopyError> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        step::pass("copies.publish", Moment::Before);
        renameat_with(CWD, &self.path, CWD, to, RenameFlags::NOREPLACE)
            .map_err(|errno| CopyError::system("rename to", to, errno.into()))?;
        step::pass("copies.publish", Moment::After);
        // The copies are there; a lock's file that is left is cleared with the next leftovers.
        let _ = self.forget_lock();
        Ok(())
    }

    /// Removes the folder and says if that failed.
    pub(crate) fn remove(mut self) -> Result<(), CopyError> {
        remove_tree_at(&self.path)?;
        self.forget_lock()
    }

    /// The file goes while it is locked, so that nobody locks one that no path leads to.
    fn forget_lock(&mut self) -> Result<(), CopyError> {
        let Some(lock) = self.lock.take() else { return Ok(()) };
        fs::remove_file(lock.path()).map_err(failed("remove", lock.path()))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if self.lock.is_some() {
            // The error that brought us here matters more; `clear_staging` tries again.
            if remove_tree_at(&self.path).is_ok() {
                let _ = self.forget_lock();
            }
        }
    }
}

/// A folder in the home's staging.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedFolder {
    /// Where.
    pub path: PathBuf,
    /// Whether a living process is at work in it.
    pub is_alive: bool,
}

/// What is being made or was left behind half made, by name.
///
/// # Errors
/// The system's.
pub fn staged(home: &Home) -> Result<Vec<StagedFolder>, CopyError> {
    let mut found = Vec::new();
    for path in locks(home)? {
        let lock = Lock::try_exclusive(&path, "look whether it is alive")?;
        found.push(StagedFolder { path: path.with_extension(""), is_alive: lock.is_none() });
    }
    Ok(found)
}

/// Removes what killed processes left behind half made, and gives their folders; what a living one
/// is making stays. Only folders with a lock of stead's beside them are touched. Passes the step
/// `copies.clear`.
///
/// # Errors
/// The first thing that could not be removed.
pub fn clear_staging(home: &Home) -> Result<Vec<PathBuf>, CopyError> {
    let mut removed = Vec::new();
    for path in locks(home)? {
        let Some(lock) = Lock::try_exclusive(&path, "remove what was left behind")? else {
            continue;
        };
        let folder = path.with_extension("");
        step::pass("copies.clear", Moment::Before);
        if remove_tree_at(&folder)? {
            removed.push(folder);
        }
        fs::remove_file(lock.path()).map_err(failed("remove", lock.path()))?;
        step::pass("copies.clear", Moment::After);
    }
    Ok(removed)
}

fn locks(home: &Home) -> Result<Vec<PathBuf>, CopyError> {
    let staging = home.staging();
    let listed = match fs::read_dir(&staging) {
        Ok(listed) => listed,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CopyError::system("list", &staging, error)),
    };
    let mut locks = Vec::new();
    for entry in listed {
        let path = entry.map_err(failed("list", &staging))?.path();
        if path.extension() == Some(OsStr::new(LOCK)) {
            locks.push(path);
        }
    }
    locks.sort();
    Ok(locks)
}
