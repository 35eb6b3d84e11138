//! File contents put into the blobs, and made durable together.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags, ioctl_ficlone, openat, syncfs};
use stead_core::id::Digest;
use stead_core::step::{self, Moment};
use stead_files::{RelPath, RootFolder, TreeError, private_dir};
use stead_store::{Blobs, Body};

use crate::error::{CopyError, failed};
use crate::home::Home;

/// Up to so many files are synced one by one; more cost less when the file system is synced whole.
const FEW: usize = 16;

/// Puts contents into the blobs; [`Keeper::settle`] makes all of them durable at once.
pub(crate) struct Keeper {
    home: PathBuf,
    blobs: Blobs,
    kept: Vec<PathBuf>,
}

impl Keeper {
    pub(crate) fn new(home: &Home) -> Self {
        Self { home: home.path().to_owned(), blobs: home.blobs(), kept: Vec::new() }
    }

    /// Keeps bytes; their name.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<Digest, CopyError> {
        let digest = digest_of(bytes);
        if !self.has(&digest, wide(bytes.len()))? {
            let mut new = New::create(&self.blobs.path(&digest))?;
            new.file.write_all(bytes).map_err(failed("write", &new.to))?;
            self.kept.push(new.settle()?);
        }
        Ok(digest)
    }

    /// Keeps the content of the file at `path` below `root`, which has `size` bytes and this
    /// digest; whether it still has. What it shares with the file it shares until one is written.
    pub(crate) fn file(
        &mut self,
        root: &RootFolder,
        path: &RelPath,
        size: u64,
        digest: &Digest,
    ) -> Result<bool, CopyError> {
        if self.has(digest, size)? {
            return Ok(true);
        }
        let full = root.full(path);
        let Some(mut from) = open_beneath(root, path)? else { return Ok(false) };
        let mut new = New::create(&self.blobs.path(digest))?;
        if ioctl_ficlone(&new.file, &from).is_err() {
            io::copy(&mut from, &mut new.file).map_err(failed("copy", &full))?;
        }
        // Read from the new file, which nobody else writes.
        let mut hasher = blake3::Hasher::new();
        File::open(&new.path)
            .and_then(|file| hasher.update_reader(file).map(|_| ()))
            .map_err(failed("read", &new.path))?;
        if hasher.finalize().as_bytes() != digest.as_bytes() {
            return Ok(false);
        }
        self.kept.push(new.settle()?);
        Ok(true)
    }

    /// Whether the blob is there already. Its age begins anew, so that no collection of garbage
    /// takes it before something refers to it.
    fn has(&mut self, digest: &Digest, size: u64) -> Result<bool, CopyError> {
        let path = self.blobs.path(digest);
        // A pipe at the path would hold the open up for ever.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = match OpenOptions::new().write(true).custom_flags(flags).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(CopyError::system("open", &path, error)),
        };
        let found = file.metadata().map_err(failed("examine", &path))?;
        if !found.is_file() || found.len() != size {
            return Ok(false);
        }
        let now = FileTimes::new().set_modified(SystemTime::now());
        file.set_times(now).map_err(failed("set the time of", &path))?;
        self.kept.push(path);
        Ok(true)
    }

    /// Makes everything durable that was kept. Passes the step `copies.keep`.
    pub(crate) fn settle(self) -> Result<(), CopyError> {
        if self.kept.is_empty() {
            return Ok(());
        }
        step::pass("copies.keep", Moment::Before);
        if self.kept.len() > FEW {
            sync_file_system(&self.home)?;
        } else {
            for path in &self.kept {
                sync(path)?;
                let folder = path.parent().unwrap_or(path);
                sync(folder)?;
                sync(folder.parent().unwrap_or(folder))?;
            }
        }
        step::pass("copies.keep", Moment::After);
        Ok(())
    }
}

/// Stores bytes as a blob, durably.
pub(crate) fn put_durably(home: &Home, bytes: Vec<u8>) -> Result<Digest, CopyError> {
    let body = Body::new(bytes);
    home.blobs().put(&body)?;
    Ok(body.digest())
}

/// Makes the entries of a folder, or the bytes of a file, survive a power cut.
pub(crate) fn sync(path: &Path) -> Result<(), CopyError> {
    File::open(path).and_then(|opened| opened.sync_all()).map_err(failed("sync", path))
}

/// Makes everything on the file system of `folder` survive a power cut.
pub(crate) fn sync_file_system(folder: &Path) -> Result<(), CopyError> {
    let opened = File::open(folder).map_err(failed("open", folder))?;
    syncfs(&opened).map_err(|errno| CopyError::system("sync", folder, errno.into()))
}

/// All of the regular file at `path` below `root`.
pub(crate) fn read_beneath(root: &RootFolder, path: &RelPath) -> Result<Vec<u8>, CopyError> {
    let mut bytes = Vec::new();
    if let Some(mut file) = open_beneath(root, path)? {
        file.read_to_end(&mut bytes).map_err(failed("read", &root.full(path)))?;
    }
    Ok(bytes)
}

/// Opens a regular file below `root` over no link; none when something else is there, or nothing.
pub(crate) fn open_beneath(root: &RootFolder, path: &RelPath) -> Result<Option<File>, CopyError> {
    use rustix::io::Errno;
    let parent = path.parent().unwrap_or_else(RelPath::root);
    let gone = |error: &TreeError| {
        matches!(error, TreeError::NotBeneath(_)) || error.errno() == Some(Errno::NOENT)
    };
    let folder = match root.folder(&parent) {
        Ok(folder) => folder,
        Err(error) if gone(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match openat(&folder, path.name(), flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(CopyError::system("open", &root.full(path), errno.into())),
    };
    let found = file.metadata().map_err(failed("examine", &root.full(path)))?;
    Ok(found.is_file().then_some(file))
}

pub(crate) fn digest_of(bytes: &[u8]) -> Digest {
    Digest::from_bytes(*blake3::hash(bytes).as_bytes())
}

fn wide(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A file beside its destination that is removed again unless it reaches it. Its name is one that
/// the collection of garbage knows as half written.
struct New {
    path: PathBuf,
    file: File,
    to: PathBuf,
    settled: bool,
}

impl New {
    fn create(to: &Path) -> Result<Self, CopyError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let folder = to.parent().unwrap_or(to);
        if !folder.is_dir() {
            private_dir(folder)?;
        }
        let process = std::process::id();
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".stead-new-{process}-kept-{number}"));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok(Self { path, file, to: to.to_owned(), settled: false }),
                // A killed process that had our number left one behind.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(CopyError::system("create", &path, error)),
            }
        }
    }

    fn settle(mut self) -> Result<PathBuf, CopyError> {
        fs::rename(&self.path, &self.to).map_err(failed("rename", &self.to))?;
        self.settled = true;
        Ok(self.to.clone())
    }
}

impl Drop for New {
    fn drop(&mut self) {
        if !self.settled {
            // The error that brought us here matters more than one about the leftover.
            let _ = fs::remove_file(&self.path);
        }
    }
}
