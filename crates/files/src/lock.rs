//! Locks of the kernel on files: released by the death of every process that holds the descriptor,
//! never by the age of a file or by a process number in it.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// More than the longest holder line that is ever written.
const LONGEST_LINE: u64 = 4096;

/// How long a waiting taker sleeps between two tries: the first, and the longest.
const NAP: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// Why a lock could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The system refused to open, lock or describe the file.
    #[error("cannot {act} the lock {}: {source}", path.display())]
    System {
        /// `open`, `take`, `examine`, `write` or `read`.
        act: &'static str,
        /// The lock's file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A symbolic link is at the path: two names would make one lock of two.
    #[error("the lock {} is a symbolic link", .0.display())]
    SymbolicLink(PathBuf),
    /// A folder, a device, a socket or a pipe is at the path.
    #[error("the lock {} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The descriptor given to [`Lock::from_fd`] holds no lock, and another one does.
    #[error("the lock {} is held by somebody else", .0.display())]
    NotHeld(PathBuf),
}

/// Who said last that they hold a lock. For display only: nothing is decided on it, because it may
/// be stale or torn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The process number.
    pub pid: u32,
    /// When that process started, in clock ticks after the machine's start; 0 where unknown.
    pub start_time: u64,
    /// What it wanted the lock for, one line.
    pub purpose: String,
}

impl Holder {
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.strip_suffix('\n')?.splitn(3, ' ');
        Some(Self {
            pid: fields.next()?.parse().ok()?,
            start_time: fields.next()?.parse().ok()?,
            purpose: fields.next()?.to_owned(),
        })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.purpose)
    }
}

/// An exclusive lock, held as long as any descriptor of it is open.
///
/// Dropping it closes this process's descriptor and no more: a supervisor that was given another
/// one goes on holding the lock. The descriptor is close-on-exec. The file stays behind, unlocked;
/// it may be removed by whoever holds the lock.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock at `path` if nobody holds it, else gives `None`. The file is made if need be
    /// (`0600`); its folder must exist. `purpose` is written into it for display.
    ///
    /// Two descriptors in one process exclude each other too.
    pub fn try_exclusive(path: &Path, purpose: &str) -> Result<Option<Self>, LockError> {
        loop {
            let file = open(path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(system("take", path)(error.into())),
            }
            // The holder before us may have removed or replaced the file between our open and our
            // lock; a lock on a file that no path leads to would exclude nobody.
            if is_at(&file, path)? {
                let lock = Self { file, path: path.to_owned() };
                match lock.name_holder(purpose) {
                    // Who holds it is not told then; that it is held does not hang on it.
                    Err(LockError::System { source, .. }) if is_full(&source) => {}
                    named => named?,
                }
                return Ok(Some(lock));
            }
        }
    }

    /// Takes the lock at `path`, waiting at most `limit` for its holder; `None` if that was too
    /// short. Waiters are not served in order.
    pub fn exclusive_within(
        path: &Path,
        purpose: &str,
        limit: Duration,
    ) -> Result<Option<Self>, LockError> {
        let began = Instant::now();
        let mut nap = NAP.0;
        loop {
            if let Some(lock) = Self::try_exclusive(path, purpose)? {
                return Ok(Some(lock));
            }
            let left = limit.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(nap.min(left));
            nap = (nap * 2).min(NAP.1);
        }
    }

    /// Takes over a descriptor of a lock that another process or another part of this one took.
    /// `path` is only for messages.
    ///
    /// # Errors
    /// [`LockError::NotHeld`] when the descriptor does not hold the lock and cannot take it.
    pub fn from_fd(fd: OwnedFd, path: &Path) -> Result<Self, LockError> {
        // On a descriptor that holds the lock this changes nothing.
        match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { file: File::from(fd), path: path.to_owned() }),
            Err(Errno::WOULDBLOCK) => Err(LockError::NotHeld(path.to_owned())),
            Err(error) => Err(system("take", path)(error.into())),
        }
    }

    /// Gives up the descriptor without releasing the lock.
    pub fn into_fd(self) -> OwnedFd {
        self.file.into()
    }

    /// Another descriptor of the same lock, close-on-exec, to pass to a supervisor: the lock is
    /// released when both are closed.
    pub fn share(&self) -> Result<OwnedFd, LockError> {
        self.file.as_fd().try_clone_to_owned().map_err(system("open", &self.path))
    }

    /// The lock's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn name_holder(&self, purpose: &str) -> Result<(), LockError> {
        let purpose: String =
            purpose.chars().map(|c| if c.is_control() { ' ' } else { c }).take(1000).collect();
        let line = format!("{} {} {purpose}\n", std::process::id(), own_start_time());
        self.file
            .set_len(0)
            .and_then(|()| self.file.write_all_at(line.as_bytes(), 0))
            .map_err(system("write", &self.path))
    }
}

impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Who said last that they hold the lock at `path`; `None` when there is no file or no whole line
/// in it. It does not say whether the lock is held now.
pub fn holder(path: &Path) -> Result<Option<Holder>, LockError> {
    let file = match OpenOptions::new().read(true).custom_flags(flags()).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(path, error)),
    };
    let mut bytes = Vec::new();
    file.take(LONGEST_LINE).read_to_end(&mut bytes).map_err(system("read", path))?;
    Ok(std::str::from_utf8(&bytes).ok().and_then(Holder::parse))
}

fn open(path: &Path) -> Result<File, LockError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags())
        .open(path)
        .map_err(|error| refused(path, error))?;
    if file.metadata().map_err(system("examine", path))?.is_file() {
        Ok(file)
    } else {
        Err(LockError::NotAFile(path.to_owned()))
    }
}

fn flags() -> i32 {
    // Without NONBLOCK a pipe at the path would hold the open up for ever.
    (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed()
}

fn refused(path: &Path, error: io::Error) -> LockError {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::LOOP) => LockError::SymbolicLink(path.to_owned()),
        Some(Errno::ISDIR | Errno::NXIO) => LockError::NotAFile(path.to_owned()),
        _ => system("open", path)(error),
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

fn is_at(file: &File, path: &Path) -> Result<bool, LockError> {
    let locked = file.metadata().map_err(system("examine", path))?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(found.ino() == locked.ino() && found.dev() == locked.dev()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(system("examine", path)(error)),
    }
}

fn system(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LockError {
    let path = path.to_owned();
    move |source| LockError::System { act, path, source }
}

/// Field 22 of `/proc/self/stat`, counted after the command's name, which may hold anything.
fn own_start_time() -> u64 {
    fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|text| text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok())
        .unwrap_or(0)
}
