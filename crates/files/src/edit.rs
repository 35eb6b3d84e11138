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
use crate::path::{PathError, RelPath, Target};
use crate::remove::{remove_tree, set_mode};
use crate::root::{RootFolder, open_file};
use crate::stat::{Kind, Stat};

const NEW: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

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
    /// Something that is not there yet, and the place it will have: `tag` and `number` in a name
    /// of [`crate::is_temporary`] in `folder`, which need not be the target's own. So a journal can
    /// name it before it exists.
    ///
    /// # Errors
    /// The tag cannot be part of a name.
    pub fn planned(
        target: Target,
        folder: &RelPath,
        tag: &str,
        number: usize,
    ) -> Result<Self, PathError> {
        let beside = folder.join(format!("{TEMPORARY}{tag}-{number}"))?;
        Ok(Self { target, beside })
    }

    /// What a journal named: a target and the place beside it.
    pub fn at(target: Target, beside: RelPath) -> Self {
        Self { target, beside }
    }

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
        let file = openat(&folder, name, NEW, Mode::RUSR | Mode::WUSR)
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

    /// Makes an empty file at a planned place, only for its owner, and opens it for writing. Whoever
    /// fails to fill it removes it by [`RootFolder::unstage`].
    ///
    /// # Errors
    /// [`TreeError::Exists`] when something is there, which stays.
    pub fn create(&self, staged: &Staged) -> Result<std::fs::File, TreeError> {
        let folder = self.folder(&parent(&staged.beside))?;
        let file = openat(&folder, staged.beside.name(), NEW, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| self.taken(&staged.beside, "create", errno))?;
        Ok(file.into())
    }

    /// Makes a symbolic link at a planned place, which says literally `text`.
    ///
    /// # Errors
    /// [`TreeError::Exists`] when something is there, which stays.
    pub fn create_link(&self, staged: &Staged, text: &[u8]) -> Result<(), TreeError> {
        let folder = self.folder(&parent(&staged.beside))?;
        symlinkat(text, &folder, staged.beside.name())
            .map_err(|errno| self.taken(&staged.beside, "create", errno))
    }

    /// Moves what is at the target beside it, where nothing may be: a file or link that is to go,
    /// or a new one on its way back. Passes the step `files.place`.
    ///
    /// # Errors
    /// [`TreeError::Exists`] when something is beside the target already; both stay.
    pub fn set_aside(&self, staged: &Staged) -> Result<(), TreeError> {
        let (from, to) = (staged.target.path(), &staged.beside);
        self.rename_from(from, to, Some(RenameFlags::NOREPLACE))
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
        self.rename_from(&staged.beside, staged.target.path(), flags)
    }

    fn rename_from(
        &self,
        from: &RelPath,
        to: &RelPath,
        flags: Option<RenameFlags>,
    ) -> Result<(), TreeError> {
        let (above, below) = (parent(from), parent(to));
        let source = self.folder(&above)?;
        let other = if above == below { None } else { Some(self.folder(&below)?) };
        let place = other.as_ref().unwrap_or(&source);
        step::pass("files.place", Moment::Before);
        match flags {
            None => renameat(&source, from.name(), place, to.name()),
            Some(flags) => renameat_with(&source, from.name(), place, to.name(), flags),
        }
        .map_err(|errno| self.taken(to, "rename", errno))?;
        step::pass("files.place", Moment::After);
        Ok(())
    }

    fn taken(&self, path: &RelPath, act: &'static str, errno: Errno) -> TreeError {
        match errno {
            Errno::EXIST => TreeError::Exists(self.full(path)),
            _ => self.refused(act, path, errno),
        }
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
