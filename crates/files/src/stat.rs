//! What the system says about one name in a folder.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Statx, StatxAttributes, StatxFlags, makedev, statx};
use rustix::path::Arg;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// Something without content that could be copied.
    Special(Special),
}

/// What a special file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Special {
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device, by characters or blocks.
    Device,
    /// Something this program has no word for.
    Unknown,
}

impl std::fmt::Display for Special {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::Unknown => "a file of unknown kind",
        })
    }
}

/// A moment by the clock of a file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Seconds since 1970.
    pub secs: i64,
    /// Nanoseconds within the second.
    pub nanos: u32,
}

/// How far a file's time may lag behind the clock: a tick of the slowest common kernel, with room.
const TICK: u32 = 20_000_000;

/// The same where times look like whole seconds.
const COARSE_SECS: i64 = 2;

impl Time {
    /// Now, by the clock that file systems use.
    pub fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        Self { secs: now.tv_sec, nanos: u32::try_from(now.tv_nsec).unwrap_or(0) }
    }

    /// Whether a change at `began` or later could have left this time on a file: what was seen of
    /// the file then does not prove that it is the same now.
    pub fn is_racy(self, began: Self) -> bool {
        self.quiet() >= began
    }

    /// The moment from which on a change would leave another time than this one.
    pub(crate) fn quiet(self) -> Self {
        let (secs, nanos) = if self.nanos == 0 { (COARSE_SECS, 0) } else { (0, TICK) };
        let nanos = self.nanos.saturating_add(nanos);
        let secs = self.secs.saturating_add(secs).saturating_add(i64::from(nanos / 1_000_000_000));
        Self { secs, nanos: nanos % 1_000_000_000 }
    }

    /// How long it is until this moment; at most what [`Time::quiet`] adds, and nothing for a
    /// moment farther ahead: then a clock was set, and no change now leaves that time.
    pub(crate) fn wait(self, now: Self) -> std::time::Duration {
        let secs = self.secs.saturating_sub(now.secs);
        let nanos = i64::from(self.nanos) - i64::from(now.nanos);
        let ahead = secs.saturating_mul(1_000_000_000).saturating_add(nanos);
        match u64::try_from(ahead) {
            Ok(ahead) if secs <= COARSE_SECS => std::time::Duration::from_nanos(ahead),
            _ => std::time::Duration::ZERO,
        }
    }
}

/// What the system says about one name; a symbolic link is described itself, never followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// The permission bits, with set-user, set-group and sticky.
    pub mode: u16,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// How many names the file has.
    pub links: u32,
    /// Bytes of content.
    pub size: u64,
    /// Bytes on the disk.
    pub stored: u64,
    /// The device's number.
    pub device: u64,
    /// The number within the device.
    pub inode: u64,
    /// When the content changed last, as far as the owner lets us know.
    pub modified: Time,
    /// When anything about it changed last; nobody can set it.
    pub changed: Time,
    /// Whether it is immutable or append-only.
    pub flagged: bool,
    /// Whether something is mounted here.
    pub mounted: bool,
}

impl Stat {
    /// What is at `name` in the folder.
    pub(crate) fn at(folder: impl AsFd, name: impl Arg) -> rustix::io::Result<Self> {
        statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS)
            .map(|found| Self::from_statx(&found))
    }

    /// What an open file is.
    pub(crate) fn of_open(file: impl AsFd) -> rustix::io::Result<Self> {
        statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)
            .map(|found| Self::from_statx(&found))
    }

    /// What is at an absolute path.
    ///
    /// # Errors
    /// The system's.
    pub fn of(path: &std::path::Path) -> io::Result<Self> {
        Ok(Self::at(rustix::fs::CWD, path)?)
    }

    fn from_statx(found: &Statx) -> Self {
        let kind = match FileType::from_raw_mode(found.stx_mode.into()) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Folder,
            FileType::Symlink => Kind::Link,
            FileType::Fifo => Kind::Special(Special::Pipe),
            FileType::Socket => Kind::Special(Special::Socket),
            FileType::CharacterDevice | FileType::BlockDevice => Kind::Special(Special::Device),
            FileType::Unknown => Kind::Special(Special::Unknown),
        };
        let time = |t: rustix::fs::StatxTimestamp| Time { secs: t.tv_sec, nanos: t.tv_nsec };
        let flags = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
        Self {
            kind,
            mode: found.stx_mode & 0o7777,
            uid: found.stx_uid,
            gid: found.stx_gid,
            links: found.stx_nlink,
            size: found.stx_size,
            stored: found.stx_blocks.saturating_mul(512),
            device: makedev(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            modified: time(found.stx_mtime),
            changed: time(found.stx_ctime),
            flagged: found.stx_attributes.intersects(flags),
            mounted: found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
        }
    }

    /// Whether both name one file.
    pub fn is_same_file(&self, other: &Self) -> bool {
        self.inode == other.inode && self.device == other.device
    }

    /// Whether nothing about the file changed between the two.
    pub(crate) fn is_unchanged(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.mode == other.mode
            && self.size == other.size
            && self.modified == other.modified
            && self.changed == other.changed
            && self.is_same_file(other)
    }
}
