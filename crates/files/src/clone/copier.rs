//! One folder's files, links and subfolders, made in the copy.

use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, chownat, fchmod, futimens, mkdirat,
    openat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::carry::{Attributes, Owner};
use super::report::{Made, ObstacleKind, Tally};
use super::tree::CloneOptions;
use crate::content::{self, Buffer, Fault, Means, Way};
use crate::error::{TreeError, at};
use crate::listing::{Found, FoundFolder};
use crate::manifest::Seen;
use crate::root::{RootFolder, open_file};
use crate::stat::{Kind, Stat, Time};
use crate::watch::Meter;

/// What one thread keeps.
pub(super) struct Hand {
    /// Whether new files get exactly the bits that are asked for.
    pub(super) exact: bool,
    pub(super) buffer: Buffer,
    pub(super) tally: Tally,
}

/// What all threads share.
pub(super) struct Copier<'a> {
    pub(super) source: &'a RootFolder,
    pub(super) copy: &'a RootFolder,
    pub(super) options: &'a CloneOptions<'a>,
    pub(super) means: &'a Means,
    pub(super) owner: Owner,
    pub(super) meter: &'a Meter<'a>,
}

/// Folders with other bits than these are made so that their owner can fill them, and get their
/// own bits when everything else is done.
const FILLABLE: u16 = 0o700;

pub(super) fn gets_bits_late(mode: u16) -> bool {
    mode & FILLABLE != FILLABLE || mode & 0o7000 != 0
}

/// What became of an entry.
enum Done {
    Made(Made),
    /// It is there and nothing is kept of it, or it was not to be had.
    Passed,
    Refused(ObstacleKind),
}

impl Copier<'_> {
    /// Makes an empty subfolder.
    pub(super) fn make_folder(
        &self,
        into: &OwnedFd,
        folder: &FoundFolder,
        found: &Found,
        hand: &mut Hand,
    ) -> Result<(), TreeError> {
        let mode = if gets_bits_late(found.stat.mode) { FILLABLE } else { found.stat.mode };
        let fail = |act, errno| at(act, self.copy.path(), &folder.path.child(&found.name), errno);
        let name = &*found.name;
        mkdirat(into, name, bits(mode)).map_err(|errno| fail("create", errno))?;
        if !hand.exact && mode != FILLABLE {
            // The caller's umask may have cut some; the folder is new and ours.
            let made = openat(into, name, FOLDER, Mode::empty()).map_err(|e| fail("open", e))?;
            fchmod(&made, bits(mode)).map_err(|errno| fail("set the permissions of", errno))?;
        }
        Ok(())
    }

    /// What a folder itself has besides bits and times; those come last.
    pub(super) fn dress_folder(
        &self,
        from: &OwnedFd,
        to: &OwnedFd,
        folder: &FoundFolder,
        hand: &mut Hand,
    ) -> Result<(), TreeError> {
        let stat = &folder.stat;
        let mut obstacle = self.owner.refuses(stat);
        if obstacle.is_none() {
            obstacle = self.owner.give(to, stat).err();
        }
        if stat.flagged {
            obstacle.get_or_insert(ObstacleKind::Flagged);
        }
        let attributes = Attributes::of(from).map_err(|errno| {
            at("list the attributes of", self.source.path(), &folder.path, errno)
        })?;
        if !attributes.carried.is_empty() {
            hand.tally.attributes.push(folder.path.clone());
            obstacle = obstacle.or(attributes.carry(from, to).err());
        }
        if let Some(obstacle) = obstacle.or(attributes.obstacle) {
            hand.tally.obstacles.insert(folder.path.clone(), obstacle);
        }
        Ok(())
    }

    /// The last of a folder that is filled.
    pub(super) fn close_folder(&self, to: &OwnedFd, folder: &FoundFolder) -> Result<(), TreeError> {
        futimens(to, &times(folder.stat.modified))
            .map_err(|errno| at("set the time of", self.copy.path(), &folder.path, errno))
    }

    /// Copies a file or link; what is kept of a file for the manifest, if one is wanted. One that
    /// vanished or became something else is passed over: the look at the end tells.
    pub(super) fn entry(
        &self,
        from: &OwnedFd,
        to: &OwnedFd,
        folder: &FoundFolder,
        found: &Found,
        hand: &mut Hand,
    ) -> Result<Option<Made>, TreeError> {
        let stat = &found.stat;
        let obstacle = match stat.kind {
            Kind::Folder => None,
            Kind::Special(special) => Some(ObstacleKind::Special(special)),
            Kind::File | Kind::Link => {
                self.owner.refuses(stat).or_else(|| stat.flagged.then_some(ObstacleKind::Flagged))
            }
        };
        let done = match (obstacle, stat.kind) {
            (None, Kind::File) => self.file(from, to, folder, found, hand)?,
            (None, Kind::Link) => {
                self.link(to, folder, found)?;
                Done::Passed
            }
            (None, _) => Done::Passed,
            (Some(obstacle), _) => Done::Refused(obstacle),
        };
        Ok(match done {
            Done::Made(made) => Some(made),
            Done::Passed => None,
            Done::Refused(obstacle) => {
                hand.tally.obstacles.insert(folder.path.child(&found.name), obstacle);
                None
            }
        })
    }

    fn link(&self, to: &OwnedFd, folder: &FoundFolder, found: &Found) -> Result<(), TreeError> {
        let fail = |act, errno| at(act, self.copy.path(), &folder.path.child(&found.name), errno);
        let (name, target) = (&*found.name, found.target.as_deref().unwrap_or_default());
        symlinkat(target, to, name).map_err(|errno| fail("create", errno))?;
        let itself = AtFlags::SYMLINK_NOFOLLOW;
        if let Some((uid, gid)) = self.owner.wanted(&found.stat) {
            // A link's owner decides nothing; who may not give it away keeps it.
            let _ = chownat(to, name, uid, gid, itself);
        }
        utimensat(to, name, &times(found.stat.modified), itself)
            .map_err(|errno| fail("set the time of", errno))
    }

    fn file(
        &self,
        from: &OwnedFd,
        to: &OwnedFd,
        folder: &FoundFolder,
        found: &Found,
        hand: &mut Hand,
    ) -> Result<Done, TreeError> {
        let stat = &found.stat;
        let name = &*found.name;
        let path = || folder.path.child(name);
        let read = |act, errno| at(act, self.source.path(), &path(), errno);
        let write = |act, errno| at(act, self.copy.path(), &path(), errno);
        let source = match open_file(from, name) {
            Ok(source) => source,
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::NOTDIR) => {
                hand.tally.missed.insert(path());
                return Ok(Done::Passed);
            }
            Err(Errno::ACCESS) => return Ok(Done::Refused(ObstacleKind::Unreadable)),
            Err(errno) => return Err(read("open", errno)),
        };
        let attributes =
            Attributes::of(&source).map_err(|errno| read("list the attributes of", errno))?;
        if let Some(obstacle) = attributes.obstacle {
            return Ok(Done::Refused(obstacle));
        }
        let new = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let copy = openat(to, name, new, bits(stat.mode & 0o777))
            .map_err(|errno| write("create", errno))?;
        let dressed = self.owner.give(&copy, stat).and_then(|()| attributes.carry(&source, &copy));
        if let Err(obstacle) = dressed {
            unlinkat(to, name, AtFlags::empty()).map_err(|errno| write("remove", errno))?;
            return Ok(Done::Refused(obstacle));
        }
        let wants_digest = self.options.digests.wants(path, stat);
        let cancelled = || self.meter.is_cancelled();
        let copied = content::copy(
            &source,
            stat,
            &copy,
            self.means,
            wants_digest,
            &mut hand.buffer,
            &cancelled,
        );
        let digest = match copied {
            Ok((way, digest)) => {
                match way {
                    _ if stat.size == 0 => {}
                    Way::Reflink => hand.tally.reflinked += 1,
                    Way::Bytes => hand.tally.written += 1,
                }
                digest
            }
            Err(Fault::Cancelled) => return Err(TreeError::Cancelled),
            // It became something else.
            Err(Fault::Read(Errno::SPIPE | Errno::ISDIR | Errno::AGAIN | Errno::INVAL)) => {
                hand.tally.missed.insert(path());
                None
            }
            Err(Fault::Read(errno)) => return Err(read("read", errno)),
            Err(Fault::Write(errno)) => return Err(write("write", errno)),
        };
        // Writing and giving away take set-user and set-group off, so those come after.
        if !hand.exact || stat.mode & 0o7000 != 0 {
            fchmod(&copy, bits(stat.mode))
                .map_err(|errno| write("set the permissions of", errno))?;
        }
        futimens(&copy, &times(stat.modified)).map_err(|errno| write("set the time of", errno))?;
        if !attributes.carried.is_empty() {
            hand.tally.attributes.push(path());
        }
        if self.options.manifest {
            let seen = Stat::of_open(&copy).map_err(|errno| write("examine", errno))?;
            return Ok(Done::Made(Made { digest, seen: Some(Seen::of(&seen)) }));
        }
        Ok(Done::Passed)
    }
}

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

pub(super) fn bits(mode: u16) -> Mode {
    Mode::from_raw_mode(mode.into())
}

/// Sets the time of the last change and leaves that of the last access as it is.
fn times(modified: Time) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: modified.secs, tv_nsec: modified.nanos.into() },
    }
}
