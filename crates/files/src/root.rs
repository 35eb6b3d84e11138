//! An open root, and ways to what is below it that follow no link.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use crate::error::{TreeError, at, full};
use crate::path::RelPath;
use crate::stat::{Kind, Stat};

/// An open folder below which things are read and changed. Every way to them goes component by
/// component; a symbolic link on it, or a mount, is an error and never followed.
#[derive(Debug)]
pub struct RootFolder {
    fd: OwnedFd,
    path: PathBuf,
    stat: Stat,
    /// Whether mounts below are entered.
    crossing: bool,
    /// The kernel has no `openat2`, or a sandbox forbids it.
    by_component: AtomicBool,
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

/// Longest path that one call takes, with room for its end.
const PIECE: usize = 4000;

impl RootFolder {
    /// Opens the folder at `path`, whose last component may not be a symbolic link.
    pub fn open(path: &Path) -> Result<Self, TreeError> {
        let fd = open_quietly(CWD, path, FOLDER).map_err(|errno| match errno {
            Errno::LOOP | Errno::NOTDIR => TreeError::NotTheFolder(path.to_owned()),
            _ => at("open", path, &RelPath::root(), errno),
        })?;
        Self::from_fd(fd, path)
    }

    /// Takes over an open folder; `path` is for messages.
    pub fn from_fd(fd: OwnedFd, path: &Path) -> Result<Self, TreeError> {
        let stat =
            Stat::of_open(&fd).map_err(|errno| at("examine", path, &RelPath::root(), errno))?;
        let path = path.to_owned();
        Ok(Self { fd, path, stat, crossing: false, by_component: AtomicBool::new(false) })
    }

    /// Also enters what is mounted below.
    #[must_use]
    pub fn crossing(mut self, crossing: bool) -> Self {
        self.crossing = crossing;
        self
    }

    /// Never asks the kernel to resolve a whole path, as where it cannot; slower, and the same.
    #[must_use]
    pub fn by_component(self) -> Self {
        self.by_component.store(true, Ordering::Relaxed);
        self
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it was when it was opened.
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// The whole path of what is at `path`, for messages.
    pub fn full(&self, path: &RelPath) -> PathBuf {
        full(&self.path, path)
    }

    /// Opens the folder at `path` for reading, listing and as the place of further calls.
    pub fn folder(&self, path: &RelPath) -> Result<OwnedFd, TreeError> {
        self.open_folder(path).map_err(|errno| self.refused("open", path, errno))
    }

    /// What is at `path`; nothing when it, or a folder on the way, is not there.
    pub fn look(&self, path: &RelPath) -> Result<Option<Stat>, TreeError> {
        let Some(parent) = path.parent() else { return Ok(Some(self.stat)) };
        let found = self.open_folder(&parent).and_then(|folder| Stat::at(&folder, path.name()));
        match found {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.refused("examine", path, errno)),
        }
    }

    pub(crate) fn refused(&self, act: &'static str, path: &RelPath, errno: Errno) -> TreeError {
        match errno {
            Errno::LOOP | Errno::NOTDIR | Errno::XDEV => TreeError::NotBeneath(self.full(path)),
            _ => at(act, &self.path, path, errno),
        }
    }

    pub(crate) fn open_folder(&self, path: &RelPath) -> rustix::io::Result<OwnedFd> {
        if path.is_root() {
            // Not a duplicate: that would share how far the folder has been listed.
            return openat(&self.fd, ".", FOLDER, Mode::empty());
        }
        if !self.by_component.load(Ordering::Relaxed) {
            match self.open_whole(path) {
                // A sandbox may answer EPERM for a call it does not know.
                Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => {
                    self.by_component.store(true, Ordering::Relaxed);
                }
                other => return other,
            }
        }
        self.open_by_component(path)
    }

    fn open_whole(&self, path: &RelPath) -> rustix::io::Result<OwnedFd> {
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        if !self.crossing {
            resolve |= ResolveFlags::NO_XDEV;
        }
        let mut reached: Option<OwnedFd> = None;
        let mut rest = path.as_bytes();
        while !rest.is_empty() {
            let (piece, after) = split(rest);
            let here = reached.as_ref().map_or_else(|| self.fd.as_fd(), OwnedFd::as_fd);
            reached = Some(openat2(here, piece, FOLDER, Mode::empty(), resolve)?);
            rest = after;
        }
        reached.ok_or(Errno::NOENT)
    }

    fn open_by_component(&self, path: &RelPath) -> rustix::io::Result<OwnedFd> {
        let mut reached: Option<OwnedFd> = None;
        for name in path.components() {
            let here = reached.as_ref().map_or_else(|| self.fd.as_fd(), OwnedFd::as_fd);
            let next = openat(here, name, FOLDER, Mode::empty())?;
            if !self.crossing {
                let stat = Stat::of_open(&next)?;
                if stat.mounted || stat.device != self.stat.device {
                    return Err(Errno::XDEV);
                }
            }
            reached = Some(next);
        }
        reached.ok_or(Errno::NOENT)
    }

    /// Whether what is there now is still the folder that was opened as `stat`.
    pub(crate) fn expect(&self, stat: &Stat) -> Result<(), TreeError> {
        if self.stat.is_same_file(stat) && self.stat.kind == Kind::Folder {
            Ok(())
        } else {
            Err(TreeError::NotTheFolder(self.path.clone()))
        }
    }
}

impl AsFd for RootFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A first piece of whole components that one call takes, and the rest.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    if path.len() <= PIECE {
        return (path, &[]);
    }
    let head = path.get(..PIECE).unwrap_or(path);
    // No name is longer than 255 bytes on the systems we know, so a separator is found.
    match head.iter().rposition(|b| *b == b'/') {
        Some(at) => (path.get(..at).unwrap_or(path), path.get(at + 1..).unwrap_or_default()),
        None => (path, &[]),
    }
}

/// Opens a folder by its name in another one.
pub(crate) fn open_subfolder(folder: impl AsFd, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    open_quietly(folder, name, FOLDER)
}

/// Opens without leaving a trace in the time of access, where the system lets us: it does for
/// one's own files.
pub(crate) fn open_quietly(
    folder: impl AsFd,
    name: impl rustix::path::Arg + Copy,
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    match openat(&folder, name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => openat(&folder, name, flags, Mode::empty()),
        other => other,
    }
}

/// Opens a regular file for reading. What is no longer one does not hang the open.
pub(crate) fn open_file(folder: impl AsFd, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    open_quietly(folder, name, flags)
}

/// Open folders that waiting work may hold; beyond them it opens its folder again by its path.
const HELD: usize = 200;

/// An open folder that the work in its subfolders shares, counted so that a deep or wide tree
/// does not use up the process's descriptors.
pub(crate) struct Held<'a> {
    pub(crate) fd: OwnedFd,
    live: &'a AtomicUsize,
}

impl<'a> Held<'a> {
    pub(crate) fn new(fd: OwnedFd, live: &'a AtomicUsize) -> Arc<Self> {
        live.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { fd, live })
    }

    /// Whether it may stay open until work that is only queued comes up.
    pub(crate) fn may_wait(&self) -> bool {
        self.live.load(Ordering::Relaxed) < HELD
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}
