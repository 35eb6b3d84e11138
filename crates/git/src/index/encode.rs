//! Writing an index, of version 2, or 3 where an entry needs it.

use std::os::unix::ffi::OsStrExt as _;

use sha1::Digest as _;

use super::decode::{ASSUMED, EXTENDED, INTENDED, LENGTH, SKIPPED};
use super::{Entry, Index, IndexError};
use crate::object::ObjectFormat;

impl Index {
    /// The bytes of the file, its checksum included. Of the extensions only the trees are written.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] when there are more entries than the format can count.
    pub fn encode(&self) -> Result<Vec<u8>, IndexError> {
        let too_long = |_| IndexError::Damaged("there are too many entries");
        let is_extended = self.entries.iter().any(|entry| further(entry) != 0);
        let version: u32 = if is_extended { 3 } else { 2 };
        let count = u32::try_from(self.entries.len()).map_err(too_long)?;
        let mut bytes = Vec::with_capacity(self.entries.len() * 128 + 1024);
        bytes.extend_from_slice(b"DIRC");
        bytes.extend_from_slice(&version.to_be_bytes());
        bytes.extend_from_slice(&count.to_be_bytes());
        for entry in &self.entries {
            write(entry, &mut bytes);
        }
        if let Some(tree) = &self.tree {
            bytes.extend_from_slice(b"TREE");
            bytes.extend_from_slice(&u32::try_from(tree.len()).map_err(too_long)?.to_be_bytes());
            bytes.extend_from_slice(tree);
        }
        let sum = checksum(&bytes, self.format);
        bytes.extend_from_slice(&sum);
        Ok(bytes)
    }
}

fn further(entry: &Entry) -> u16 {
    let bit = |is_set: bool, bit| if is_set { bit } else { 0 };
    bit(entry.is_skipped, SKIPPED) | bit(entry.is_intended, INTENDED)
}

fn write(entry: &Entry, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    let stat = entry.stat;
    let numbers = [
        stat.ctime.secs,
        stat.ctime.nanos,
        stat.mtime.secs,
        stat.mtime.nanos,
        stat.device,
        stat.inode,
        entry.kind.mode(),
        stat.user,
        stat.group,
        stat.size,
    ];
    for number in numbers {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    bytes.extend_from_slice(entry.id.as_bytes());
    let path = entry.path.as_os_str().as_bytes();
    let further = further(entry);
    let mut flags = u16::try_from(path.len()).unwrap_or(LENGTH).min(LENGTH);
    flags |= u16::from(entry.stage & 3) << 12;
    if entry.is_assumed_unchanged {
        flags |= ASSUMED;
    }
    if further == 0 {
        bytes.extend_from_slice(&flags.to_be_bytes());
    } else {
        bytes.extend_from_slice(&(flags | EXTENDED).to_be_bytes());
        bytes.extend_from_slice(&further.to_be_bytes());
    }
    bytes.extend_from_slice(path);
    let length = bytes.len() - start;
    bytes.resize(bytes.len() + 8 - length % 8, 0);
}

/// The checksum at the end of an index.
pub(super) fn checksum(content: &[u8], format: ObjectFormat) -> Vec<u8> {
    match format {
        ObjectFormat::Sha1 => sha1::Sha1::digest(content).to_vec(),
        ObjectFormat::Sha256 => sha2::Sha256::digest(content).to_vec(),
    }
}
