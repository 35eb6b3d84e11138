//! Changes below an open root, one name each: staged beside their target, then put in place by
//! one rename. Every call finds its way anew, component by component, over no link.
//!
//! Nothing here is synced; who changes many names syncs once, by [`RootFolder::sync`].

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, fchmod, mkdirat, openat, readlinkat, renameat,
    renameat_with, symlinkat, syncfs, unlinkat,
};
use rustix::io::Errno;
use stead_core::step::{self, Moment};

use crate::atomic::TEMPORARY;
use crate::error::TreeError;
use crate::path::{RelPath, Target};
use crate::remove::{remove_tree, set_mode};
use crate::root::{RootFolder, open_file};
use crate::stat::{Kind, Stat};

/// Something new beside its target, under a name that [`crate::is_temporary`] knows.
///
/// It does not go by itself: [`RootFolder::unstage`] removes it, and after an exchange what it
/// then holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    target: Target,
    beside: RelPath,
}

impl Staged {
    /// Where it is to go.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Where it is.
    pub fn beside(&self) -> &RelPath {
        &self.beside
    }
}

impl RootFolder {
    /// Writes a new file beside `target`, with exactly these permission bits.
    pub fn stage_file(
        &self,
        target: &Target,
        content: &mut dyn Read,
        mode: u16,
    ) -> Result<Staged, TreeError> {
        let (folder, staged) = self.staging(target)?;
        let name = staged.beside.name();
        let new =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&folder, name, new, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| self.refused("create", &staged.beside, errno))?;
        let mut file = std::fs::File::from(file);
        let written = std::io::copy(content, &mut file).map_err(|source| TreeError::System {
            act: "write",
            path: self.full(target.path()),
            source,
        });
        let done = written.and_then(|_| {
            fchmod(&file, Mode::from_raw_mode(mode.into()))
                .map_err(|errno| self.refused("set the permissions of", target.path(), errno))
        });
        if let Err(error) = done {
            let _ = unlinkat(&folder, name, AtFlags::empty());
            return Err(error);
        }
        Ok(staged)
    }

    /// Makes a new symbolic link beside `target`, which says literally `text`.
    pub fn stage_link(&self, target: &Target, text: &[u8]) -> Result<Staged, TreeError> {
        let (folder, staged) = self.staging(target)?;
        symlinkat(text, &folder, staged.beside.name())
            .map_err(|errno| self.refused("create", &staged.beside, errno))?;
        Ok(staged)
    }

    /// Puts what was staged at its target, where nothing may be. Passes the step `files.place`.
    ///
    /// # Errors
    /// [`TreeError::Exists`] when something is there, which stays.
    pub fn place_new(&self, staged: &Staged) -> Result<(), TreeError> {
        self.rename(staged, Some(RenameFlags::NOREPLACE))
    }

    /// Puts what was staged at its target, over a file or link that may be there. Passes the step
    /// `files.place`.
    pub fn place_over(&self, staged: &Staged) -> Result<(), TreeError> {
        self.rename(staged, None)
    }

    /// Exchanges what was staged and what is at the target, at one moment; the old is then beside
    /// it, to be looked at, exchanged back or unstaged. Passes the step `files.place`.
    pub fn exchange(&self, staged: &Staged) -> Result<(), TreeError> {
        self.rename(staged, Some(RenameFlags::EXCHANGE))
    }

    /// Removes what is beside the target: the new before a rename, the old after an exchange, also
    /// a folder. Whether anything was there.
    pub fn unstage(&self, staged: &Staged) -> Result<bool, TreeError> {
        let parent = parent(&staged.beside);
        let folder = self.folder(&parent)?;
        remove_tree(&folder, OsStr::from_bytes(staged.beside.name()), &self.full(&parent))
    }

    /// Makes an empty folder with exactly these bits.
    pub fn make_folder(&self, target: &Target, mode: u16) -> Result<(), TreeError> {
        let folder = self.folder(&parent(target.path()))?;
        let name = target.path().name();
        step::pass("files.place", Moment::Before);
        mkdirat(&folder, name, Mode::RWXU).map_err(|errno| match errno {
            Errno::EXIST => TreeError::Exists(self.full(target.path())),
            _ => self.refused("create", target.path(), errno),
        })?;
        let made = self.set_mode(target, mode);
        step::pass("files.place", Moment::After);
        made
    }

    /// Removes an empty folder. Passes the step `files.place`.
    pub fn remove_folder(&self, target: &Target) -> Result<(), TreeError> {
        self.unlink(target, AtFlags::REMOVEDIR)
    }

    /// Removes a file or link. Passes the step `files.place`.
    pub fn remove_file(&self, target: &Target) -> Result<(), TreeError> {
        self.unlink(target, AtFlags::empty())
    }

    /// Sets the permission bits of a file or folder; a link has none and is an error.
    pub fn set_mode(&self, target: &Target, mode: u16) -> Result<(), TreeError> {
        let folder = self.folder(&parent(target.path()))?;
        let fail = |errno| self.refused("set the permissions of", target.path(), errno);
        let handle = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = openat(&folder, target.path().name(), handle, Mode::empty()).map_err(fail)?;
        if Stat::of_open(&handle).map_err(fail)?.kind == Kind::Link {
            return Err(fail(Errno::LOOP));
        }
        set_mode(&handle, Mode::from_raw_mode(mode.into())).map_err(fail)
    }

    /// Opens a regular file for reading, with what it is.
    pub fn open_file(&self, path: &RelPath) -> Result<(std::fs::File, Stat), TreeError> {
        let folder = self.folder(&parent(path))?;
        let file =
            open_file(&folder, path.name()).map_err(|errno| self.refused("open", path, errno))?;
        let stat = Stat::of_open(&file).map_err(|errno| self.refused("examine", path, errno))?;
        if stat.kind == Kind::File {
            Ok((file.into(), stat))
        } else {
            Err(TreeError::NotBeneath(self.full(path)))
        }
    }

    /// What a symbolic link says.
    pub fn read_link(&self, path: &RelPath) -> Result<Vec<u8>, TreeError> {
        let folder = self.folder(&parent(path))?;
        readlinkat(&folder, path.name(), Vec::new())
            .map(std::ffi::CString::into_bytes)
            .map_err(|errno| self.refused("read", path, errno))
    }

    /// Writes to the disk what the whole file system of the root still has in memory, also what
    /// others wrote.
    pub fn sync(&self) -> Result<(), TreeError> {
        syncfs(self).map_err(|errno| self.refused("sync", &RelPath::root(), errno))
    }

    fn staging(&self, target: &Target) -> Result<(OwnedFd, Staged), TreeError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let parent = parent(target.path());
        let folder = self.folder(&parent)?;
        let process = std::process::id();
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("{TEMPORARY}{process}-tree-{number}");
            // A killed process that had our number may have left one behind.
            if Stat::at(&folder, name.as_str()).is_err() {
                let beside = parent.child(name.as_bytes());
                return Ok((folder, Staged { target: target.clone(), beside }));
            }
        }
    }

    fn rename(&self, staged: &Staged, flags: Option<RenameFlags>) -> Result<(), TreeError> {
        let target = staged.target.path();
        let folder = self.folder(&parent(target))?;
        let (from, to) = (staged.beside.name(), target.name());
        step::pass("files.place", Moment::Before);
        match flags {
            None => renameat(&folder, from, &folder, to),
            Some(flags) => renameat_with(&folder, from, &folder, to, flags),
        }
        .map_err(|errno| match errno {
            Errno::EXIST => TreeError::Exists(self.full(target)),
            _ => self.refused("rename", target, errno),
        })?;
        step::pass("files.place", Moment::After);
        Ok(())
    }

    fn unlink(&self, target: &Target, flags: AtFlags) -> Result<(), TreeError> {
        let folder = self.folder(&parent(target.path()))?;
        step::pass("files.place", Moment::Before);
        unlinkat(&folder, target.path().name(), flags)
            .map_err(|errno| self.refused("remove", target.path(), errno))?;
        step::pass("files.place", Moment::After);
        Ok(())
    }
}

fn parent(path: &RelPath) -> RelPath {
    path.parent().unwrap_or_else(RelPath::root)
}
