//! What a file or folder is, apart from the path that leads to it now.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Statx, StatxFlags, makedev, statx};
use serde::{Deserialize, Serialize};

/// When a file was born, by the clock of its file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Birth {
    /// Seconds since 1970.
    pub secs: i64,
    /// Nanoseconds within the second.
    pub nanos: u32,
}

/// A file's or folder's identity, which can be stored and compared with what a path leads to later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    /// The device's number; it may change when the machine starts anew.
    pub device: u64,
    /// The number within the device; it may be given again after a removal.
    pub inode: u64,
    /// The time of birth, where the file system keeps one.
    pub birth: Option<Birth>,
}

impl FileIdentity {
    /// The identity of what is at `path`; a symbolic link there is not followed.
    ///
    /// # Errors
    /// The system's.
    pub fn of(path: &Path) -> io::Result<Self> {
        Ok(Self::from_statx(&statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted())?))
    }

    /// The identity of an open file.
    ///
    /// # Errors
    /// The system's.
    pub fn of_open(file: impl AsFd) -> io::Result<Self> {
        Ok(Self::from_statx(&statx(file, "", AtFlags::EMPTY_PATH, wanted())?))
    }

    fn from_statx(found: &Statx) -> Self {
        let has_birth = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
        Self {
            device: makedev(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            birth: has_birth
                .then_some(Birth { secs: found.stx_btime.tv_sec, nanos: found.stx_btime.tv_nsec }),
        }
    }

    /// Whether both are the same file.
    ///
    /// The inode must match, the time of birth where both have one, and the device only if both
    /// were seen in the same boot (`same_boot`). Without a time of birth a reused inode cannot be
    /// told from the old one, so the caller compares the canonical path too.
    pub fn is_same(&self, other: &Self, same_boot: bool) -> bool {
        let births_agree = match (self.birth, other.birth) {
            (Some(mine), Some(others)) => mine == others,
            _ => true,
        };
        self.inode == other.inode && births_agree && (!same_boot || self.device == other.device)
    }
}

fn wanted() -> StatxFlags {
    StatxFlags::INO | StatxFlags::BTIME
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    #[test]
    fn a_moved_folder_is_the_same_and_a_new_one_at_its_path_is_not() {
        let base = tempfile::tempdir().unwrap();
        let (old, new) = (base.path().join("old"), base.path().join("new"));
        fs::create_dir(&old).unwrap();
        let before = FileIdentity::of(&old).unwrap();
        fs::rename(&old, &new).unwrap();
        fs::create_dir(&old).unwrap();
        assert!(before.is_same(&FileIdentity::of(&new).unwrap(), true));
        assert!(!before.is_same(&FileIdentity::of(&old).unwrap(), true));
        let open = fs::File::open(&new).unwrap();
        assert_eq!(before, FileIdentity::of_open(&open).unwrap());
    }

    fn identities() -> impl Strategy<Value = FileIdentity> {
        let birth = proptest::option::of((0i64..3, 0u32..2));
        (0u64..2, 0u64..3, birth).prop_map(|(device, inode, birth)| FileIdentity {
            device,
            inode,
            birth: birth.map(|(secs, nanos)| Birth { secs, nanos }),
        })
    }

    proptest! {
        #[test]
        fn sameness_is_symmetric_and_weaker_across_boots(a in identities(), b in identities()) {
            prop_assert_eq!(a.is_same(&b, true), b.is_same(&a, true));
            prop_assert_eq!(a.is_same(&b, false), b.is_same(&a, false));
            prop_assert!(!a.is_same(&b, true) || a.is_same(&b, false));
            prop_assert!(a.is_same(&a, true));
        }

        #[test]
        fn an_identity_survives_being_stored(a in identities()) {
            let text = serde_json::to_string(&a).unwrap();
            prop_assert_eq!(serde_json::from_str::<FileIdentity>(&text).unwrap(), a);
        }
    }
}
