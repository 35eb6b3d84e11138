//! What a file has besides content and permission bits: its owner and extended attributes.

use std::os::fd::OwnedFd;

use rustix::fs::{Gid, Uid, XattrFlags, fchown, fgetxattr, flistxattr, fsetxattr};
use rustix::io::Errno;

use super::report::ObstacleKind;
use crate::stat::Stat;

/// What extended attributes a file has, sorted by what becomes of them.
#[derive(Default)]
pub(super) struct Attributes {
    /// Names to be carried.
    pub(super) carried: Vec<Vec<u8>>,
    /// The first that cannot be.
    pub(super) obstacle: Option<ObstacleKind>,
}

/// Room for the names that nearly every file has: none, or a security label.
const USUAL: usize = 256;

impl Attributes {
    pub(super) fn of(file: &OwnedFd) -> rustix::io::Result<Self> {
        let mut attributes = Self::default();
        let mut room = [0_u8; USUAL];
        let mut large = Vec::new();
        let names = match flistxattr(file, &mut room) {
            Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(attributes),
            Ok(length) => room.get(..length).unwrap_or_default(),
            Err(Errno::RANGE) => {
                // The kernel's own limit for a list.
                large.resize(64 * 1024, 0);
                let length = flistxattr(file, large.as_mut_slice())?;
                large.get(..length).unwrap_or_default()
            }
            Err(errno) => return Err(errno),
        };
        for name in names.split(|b| *b == 0).filter(|name| !name.is_empty()) {
            if name.starts_with(b"user.") {
                attributes.carried.push(name.to_vec());
            } else if name.starts_with(b"system.posix_acl_") {
                attributes.obstacle = Some(ObstacleKind::Acl);
            } else if name == b"security.capability" || name.starts_with(b"trusted.") {
                let name = String::from_utf8_lossy(name).into_owned();
                attributes.obstacle.get_or_insert(ObstacleKind::Attribute(name));
            }
            // Labels (`security.selinux`) and properties (`btrfs.compression`, an NFS server's own
            // lists) belong to the place, not to the file.
        }
        Ok(attributes)
    }

    /// Sets what is carried on the copy.
    pub(super) fn carry(&self, from: &OwnedFd, to: &OwnedFd) -> Result<(), ObstacleKind> {
        for name in &self.carried {
            carry_one(from, to, name)
                .map_err(|_| ObstacleKind::Attribute(String::from_utf8_lossy(name).into_owned()))?;
        }
        Ok(())
    }
}

fn carry_one(from: &OwnedFd, to: &OwnedFd, name: &[u8]) -> rustix::io::Result<()> {
    // The kernel's own limit for a value.
    let mut value = vec![0; 64 * 1024];
    let length = fgetxattr(from, name, value.as_mut_slice())?;
    fsetxattr(to, name, value.get(..length).unwrap_or_default(), XattrFlags::empty())
}

/// Who owns what is made in the copy, and who may give it away.
#[derive(Clone, Copy)]
pub(super) struct Owner {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) is_root: bool,
}

impl Owner {
    /// Whether a copy of `stat` belongs to whom the source belongs to, or can be given to them.
    pub(super) fn refuses(&self, stat: &Stat) -> Option<ObstacleKind> {
        (stat.uid != self.uid && !self.is_root).then_some(ObstacleKind::Owner(stat.uid))
    }

    /// Gives a new file to whom its source belongs to. A group that this user is not in is not
    /// kept: as with `cp -a`, the bits are, and they now speak of the user's own group.
    pub(super) fn give(&self, file: &OwnedFd, stat: &Stat) -> Result<(), ObstacleKind> {
        if let Some((uid, gid)) = self.wanted(stat) {
            let given = fchown(file, uid, gid);
            if given.is_err() && uid.is_some() {
                return Err(ObstacleKind::Owner(stat.uid));
            }
        }
        Ok(())
    }

    /// What must be set; nothing in the usual case.
    pub(super) fn wanted(&self, stat: &Stat) -> Option<(Option<Uid>, Option<Gid>)> {
        let uid = (stat.uid != self.uid).then(|| Uid::from_raw(stat.uid));
        let gid = (stat.gid != self.gid).then(|| Gid::from_raw(stat.gid));
        (uid.is_some() || gid.is_some()).then_some((uid, gid))
    }
}
