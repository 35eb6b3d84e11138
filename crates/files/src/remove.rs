//! Removing a tree, and putting one aside.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RawDir, RenameFlags, chmod, fchmod, fsync, openat, renameat,
    renameat_with, unlinkat,
};
use rustix::io::Errno;
use stead_core::step::{self, Moment};

use crate::error::TreeError;
use crate::stat::{Kind, Stat};

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

/// So deep a folder is emptied where it stands; deeper ones are first moved up to the top of the
/// doomed tree. So neither the depth of a tree nor the length of its paths is bounded by what one
/// process may open or one call may name.
const DEPTH: usize = 40;

/// Bytes of names that one call lists.
const LISTED_AT_ONCE: usize = 16 * 1024;

/// Removes `name` in the open folder, a whole tree if it is a folder; whether anything was there.
///
/// Links are removed and never followed, and what is mounted in the tree is never entered: that is
/// an error. Own folders that may not be written are made writable. `path` is the open folder's
/// path, for messages. Passes the step `files.remove`.
///
/// # Errors
/// The first thing that could not be removed; what came before it is gone.
pub fn remove_tree(folder: impl AsFd, name: &OsStr, path: &Path) -> Result<bool, TreeError> {
    let folder = folder.as_fd();
    let whole = path.join(name);
    let stat = match Stat::at(folder, name) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(false),
        Err(errno) => return Err(system("examine", &whole, errno)),
    };
    step::pass("files.remove", Moment::Before);
    if stat.kind == Kind::Folder {
        let top =
            enter(folder, name, stat.device).map_err(|errno| system("open", &whole, errno))?;
        let mut removal = Removal { top: &top, device: stat.device, moved: 0, pending: Vec::new() };
        removal.empty(&top, &whole, 0)?;
        while let Some((moved, was)) = removal.pending.pop() {
            let name = OsStr::from_bytes(moved.as_bytes());
            let deep = enter(top.as_fd(), name, stat.device)
                .map_err(|errno| system("open", &was, errno))?;
            removal.empty(&deep, &was, 1)?;
            unlinkat(&top, name, AtFlags::REMOVEDIR)
                .map_err(|errno| system("remove", &was, errno))?;
        }
        unlinkat(folder, name, AtFlags::REMOVEDIR)
            .map_err(|errno| system("remove", &whole, errno))?;
    } else {
        unlinkat(folder, name, AtFlags::empty())
            .map_err(|errno| system("remove", &whole, errno))?;
    }
    step::pass("files.remove", Moment::After);
    Ok(true)
}

/// [`remove_tree`] for a path, whose parent's own links are followed.
pub fn remove_tree_at(path: &Path) -> Result<bool, TreeError> {
    let Some(name) = path.file_name() else {
        return Err(TreeError::NotTheFolder(path.to_owned()));
    };
    let parent = parent_of(path);
    match open_parent(parent) {
        Ok(folder) => remove_tree(&folder, name, parent),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(system("open", parent, errno)),
    }
}

/// Moves what is at `path` to `name` in the folder `trash` on the same device, whole and at once,
/// and durably. Passes the step `files.trash`.
///
/// # Errors
/// [`TreeError::Exists`] when the name is taken; the system's `EXDEV` when the devices differ. In
/// both cases nothing was moved.
pub fn trash(path: &Path, trash: &Path, name: &OsStr) -> Result<(), TreeError> {
    let Some(old) = path.file_name() else {
        return Err(TreeError::NotTheFolder(path.to_owned()));
    };
    let parent = parent_of(path);
    let from = open_parent(parent).map_err(|errno| system("open", parent, errno))?;
    let to = open_parent(trash).map_err(|errno| system("open", trash, errno))?;
    step::pass("files.trash", Moment::Before);
    let moved = match renameat_with(&from, old, &to, name, RenameFlags::NOREPLACE) {
        Err(Errno::ACCESS) => move_closed(&from, old, &to, name),
        moved => moved,
    };
    match moved {
        Ok(()) => {}
        Err(Errno::EXIST) => return Err(TreeError::Exists(trash.join(name))),
        Err(errno) => return Err(system("move", path, errno)),
    }
    fsync(&to).map_err(|errno| system("sync", trash, errno))?;
    fsync(&from).map_err(|errno| system("sync", parent, errno))?;
    step::pass("files.trash", Moment::After);
    Ok(())
}

/// Moves an own folder that may not be written: the system wants to write in it, because its parent
/// becomes another one. Its permission bits are the same after it.
fn move_closed(from: &OwnedFd, old: &OsStr, to: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    let stat = Stat::at(from, old)?;
    if stat.kind != Kind::Folder || stat.mode & 0o200 != 0 {
        return Err(Errno::ACCESS);
    }
    let handle = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(from, old, handle, Mode::empty())?;
    set_mode(&handle, Mode::from_raw_mode((stat.mode | 0o200).into()))?;
    let moved = renameat_with(from, old, to, name, RenameFlags::NOREPLACE);
    let closed = set_mode(&handle, Mode::from_raw_mode(stat.mode.into()));
    moved.and(closed)
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn open_parent(path: &Path) -> rustix::io::Result<OwnedFd> {
    openat(CWD, path, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())
}

struct Removal<'a> {
    top: &'a OwnedFd,
    device: u64,
    moved: u64,
    /// Folders moved to the top: their names there, and their paths before.
    pending: Vec<(String, PathBuf)>,
}

impl Removal<'_> {
    fn empty(&mut self, folder: &OwnedFd, path: &Path, depth: usize) -> Result<(), TreeError> {
        let mut buffer = Vec::with_capacity(LISTED_AT_ONCE);
        loop {
            // Removing while listing may skip names on some file systems; so until none is left.
            let mut seen = false;
            rustix::fs::seek(folder, rustix::fs::SeekFrom::Start(0))
                .map_err(|errno| system("list", path, errno))?;
            let mut reader = RawDir::new(folder, buffer.spare_capacity_mut());
            while let Some(entry) = reader.next() {
                let entry = entry.map_err(|errno| system("list", path, errno))?;
                let name = entry.file_name().to_bytes();
                let is_own = depth == 0 && self.is_moved(name);
                if !matches!(name, b"." | b"..") && !is_own {
                    seen = true;
                    self.remove(folder, path, OsStr::from_bytes(name), depth)?;
                }
            }
            if !seen {
                return Ok(());
            }
        }
    }

    fn is_moved(&self, name: &[u8]) -> bool {
        name.starts_with(MOVED) && self.pending.iter().any(|(own, _)| own.as_bytes() == name)
    }

    fn remove(
        &mut self,
        folder: &OwnedFd,
        path: &Path,
        name: &OsStr,
        depth: usize,
    ) -> Result<(), TreeError> {
        match unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            // POSIX says EPERM for a folder; so may a system that protects the file.
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(errno) => return Err(system("remove", &path.join(name), errno)),
        }
        let whole = path.join(name);
        let fail = |act| {
            let whole = &whole;
            move |errno| system(act, whole, errno)
        };
        let stat = Stat::at(folder, name).map_err(fail("examine"))?;
        if stat.kind != Kind::Folder {
            return Err(system("remove", &whole, Errno::PERM));
        }
        let below = enter(folder.as_fd(), name, self.device).map_err(fail("open"))?;
        if depth < DEPTH {
            self.empty(&below, &whole, depth + 1)?;
            return unlinkat(folder, name, AtFlags::REMOVEDIR).map_err(fail("remove"));
        }
        loop {
            let own = format!("{}{}", String::from_utf8_lossy(MOVED), self.moved);
            self.moved += 1;
            if Stat::at(self.top, own.as_str()).is_ok() {
                continue;
            }
            renameat(folder, name, self.top, own.as_str()).map_err(fail("move"))?;
            self.pending.push((own, whole));
            return Ok(());
        }
    }
}

/// How the names of folders begin that were moved to the top of a doomed tree.
const MOVED: &[u8] = b".stead-removed-";

/// Opens a folder of the tree that is to be emptied, and makes it ours to empty.
fn enter(folder: BorrowedFd<'_>, name: &OsStr, device: u64) -> rustix::io::Result<OwnedFd> {
    let opened = match openat(folder, name, FOLDER, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let handle = openat(
                folder,
                name,
                OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            set_mode(&handle, Mode::RWXU)?;
            openat(folder, name, FOLDER, Mode::empty())?
        }
        other => other?,
    };
    let stat = Stat::of_open(&opened)?;
    if stat.mounted || stat.device != device {
        return Err(Errno::XDEV);
    }
    if stat.mode & 0o700 != 0o700 {
        // Not ours: then the removal says so, if it cannot do without.
        let _ = fchmod(&opened, Mode::RWXU);
    }
    Ok(opened)
}

/// Sets the bits of what is behind a handle that was opened for nothing but being one.
pub(crate) fn set_mode(handle: &OwnedFd, mode: Mode) -> rustix::io::Result<()> {
    chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), mode)
}

fn system(act: &'static str, path: &Path, errno: Errno) -> TreeError {
    TreeError::System { act, path: path.to_owned(), source: errno.into() }
}
