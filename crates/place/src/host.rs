//! The folder of this user's facts about this host, and its locks.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stead_files::{FileIdentity, Lock, holder, is_network_file_system, private_dir};
use stead_process::ProcessIdentity;

use crate::error::HostError;
use crate::ports::PortRange;

/// How long a lock is waited for that is held for moments only, on a loaded machine too.
const PATIENCE: Duration = Duration::from_secs(20);

/// The longest path of a scratch folder, in bytes: a socket in it must stay under 104.
const LONGEST_SCRATCH: usize = 64;

/// `$XDG_STATE_HOME/stead/host`: places, ports, runs and the line for room. Everything here works
/// without the engine.
///
/// Locks are taken in this order, none while a run runs: a place's release, the bound, the
/// registry of places.
#[derive(Debug, Clone)]
pub struct Host {
    root: PathBuf,
    short: PathBuf,
    user: u32,
    ports: PortRange,
}

impl Host {
    /// The host whose facts are at `root`, looked at by nobody yet. `short` is a folder for
    /// scratch folders when paths below `root` are too long for sockets; `user` chooses the first
    /// block of ports that is tried.
    pub fn new(root: &Path, short: &Path, user: u32, ports: PortRange) -> Self {
        Self { root: root.to_owned(), short: short.to_owned(), user, ports }
    }

    /// Makes what is missing; refuses a folder that others may write, or that is not local.
    pub(crate) fn prepare(&self) -> Result<(), HostError> {
        let examined = is_network_file_system(&self.root);
        if examined.map_err(HostError::system("examine", &self.root))? {
            return Err(HostError::Network(self.root.clone()));
        }
        for folder in [&self.root, &self.runs(), &self.line(), &self.releases()] {
            private_dir(folder)?;
        }
        Ok(())
    }

    /// Where the search for ports begins: elsewhere for each user and each folder of facts, because
    /// none of them knows what the others hold.
    pub(crate) fn seed(&self) -> Result<u32, HostError> {
        let root =
            FileIdentity::of(&self.root).map_err(HostError::system("examine", &self.root))?;
        let low = u32::try_from(root.inode & u64::from(u32::MAX)).unwrap_or(0);
        Ok(self.user.wrapping_add(low))
    }

    pub(crate) fn ports(&self) -> PortRange {
        self.ports
    }

    /// The registry of places.
    pub(crate) fn registry(&self) -> PathBuf {
        self.root.join("places.json")
    }

    /// One folder for each run.
    pub(crate) fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// One ticket for each that waits for room.
    pub(crate) fn line(&self) -> PathBuf {
        self.root.join("line")
    }

    /// One lock for each place that is being released.
    fn releases(&self) -> PathBuf {
        self.root.join("releasing")
    }

    pub(crate) fn release_of(&self, hold: &str) -> PathBuf {
        self.releases().join(format!("{hold}.lock"))
    }

    /// Where a record goes that cannot be read.
    pub(crate) fn aside(&self) -> PathBuf {
        self.root.join("aside")
    }

    /// Where a place's scratch folder is made.
    pub(crate) fn scratch(&self, hold: &str) -> Result<PathBuf, HostError> {
        let usual = self.root.join("scratch").join(hold);
        if usual.as_os_str().len() <= LONGEST_SCRATCH {
            return Ok(usual);
        }
        // It is in a folder that everybody may write in; whoever made it first is looked at.
        private_dir(&self.short)?;
        // The short folder may be that of several hosts, each with a `p1` of its own.
        let root =
            FileIdentity::of(&self.root).map_err(HostError::system("examine", &self.root))?;
        Ok(self.short.join(format!("{:x}-{hold}", root.inode)))
    }

    pub(crate) fn lock_registry(&self, purpose: &str) -> Result<Lock, HostError> {
        lock(&self.root.join("places.lock"), purpose)
    }

    pub(crate) fn lock_bound(&self, purpose: &str) -> Result<Lock, HostError> {
        lock(&self.root.join("bound.lock"), purpose)
    }
}

fn lock(path: &Path, purpose: &str) -> Result<Lock, HostError> {
    Lock::exclusive_within(path, purpose, PATIENCE)?.ok_or_else(|| HostError::Stuck {
        path: path.to_owned(),
        holder: holder(path).unwrap_or_default(),
    })
}

/// Whether somebody holds the lock at `path`; nobody does where no file is. Changes no file: what
/// it takes for a moment is a shared lock, which only those who take the lock could notice, and
/// they wait.
pub(crate) fn is_held(path: &Path) -> Result<bool, HostError> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(HostError::system("open", path)(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(fs::TryLockError::WouldBlock) => Ok(true),
        Err(fs::TryLockError::Error(error)) => Err(HostError::system("examine", path)(error)),
    }
}

/// The names in a folder of ours; none when there is no such folder.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>, HostError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(HostError::system("list", folder)(error)),
    };
    entries
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_, _>>()
        .map_err(HostError::system("list", folder))
}

/// Milliseconds after 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// How long ago that was, by a clock that may have been set back since.
pub(crate) fn since(at: u64) -> Duration {
    Duration::from_millis(now().saturating_sub(at))
}

/// This process, whose boot is the present one.
pub(crate) fn this_process() -> Result<ProcessIdentity, HostError> {
    ProcessIdentity::of_self().map_err(HostError::system("read", Path::new("/proc/self/stat")))
}
