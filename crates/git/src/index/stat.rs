//! The stat data of an index entry: numbers of 32 bits, whatever the system has.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

/// A time of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// The low 32 bits of the seconds since 1970.
    pub secs: u32,
    /// The nanoseconds within the second.
    pub nanos: u32,
}

impl Time {
    /// From what the system says; times before 1970 and after 2106 wrap around, as in Git.
    pub fn new(secs: i64, nanos: u32) -> Self {
        Self { secs: low(secs.cast_unsigned()), nanos }
    }
}

/// What Git compares to know that a file is unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stat {
    /// The last change of its inode.
    pub ctime: Time,
    /// The last change of its bytes.
    pub mtime: Time,
    /// The low 32 bits of its device's number.
    pub device: u32,
    /// The low 32 bits of its inode's number.
    pub inode: u32,
    /// Its owner.
    pub user: u32,
    /// Its group.
    pub group: u32,
    /// The low 32 bits of its length in bytes; of a symbolic link, the length of its target.
    pub size: u32,
}

/// Of what a path itself leads to: ask with `symlink_metadata`.
impl From<&Metadata> for Stat {
    fn from(found: &Metadata) -> Self {
        let nanos = |nanos: i64| low(nanos.cast_unsigned());
        Self {
            ctime: Time::new(found.ctime(), nanos(found.ctime_nsec())),
            mtime: Time::new(found.mtime(), nanos(found.mtime_nsec())),
            device: low(found.dev()),
            inode: low(found.ino()),
            user: found.uid(),
            group: found.gid(),
            size: low(found.size()),
        }
    }
}

/// Of a name as a walk has seen it.
impl From<&stead_files::Stat> for Stat {
    fn from(found: &stead_files::Stat) -> Self {
        Self {
            ctime: Time::new(found.changed.secs, found.changed.nanos),
            mtime: Time::new(found.modified.secs, found.modified.nanos),
            device: low(found.device),
            inode: low(found.inode),
            user: found.uid,
            group: found.gid,
            size: low(found.size),
        }
    }
}

/// The low 32 bits, which are all that an index keeps of a number.
fn low(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_cut_as_git_cuts_them() {
        assert_eq!(low(0x1_2345_6789_u64 + 0xf_0000_0000), 0x2345_6789);
        assert_eq!(Time::new(-1, 5), Time { secs: u32::MAX, nanos: 5 });
    }

    #[test]
    fn both_ways_of_asking_say_the_same() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "four").unwrap();
        let one = Stat::from(&std::fs::symlink_metadata(file.path()).unwrap());
        let other = Stat::from(&stead_files::Stat::of(file.path()).unwrap());
        assert_eq!((one, one.size), (other, 4));
    }
}
