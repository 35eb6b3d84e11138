//! How much room a file system has.

use std::path::Path;

use crate::error::TreeError;

/// Room on the file system of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes that this user may still write.
    pub free: u64,
    /// Bytes in all.
    pub total: u64,
    /// Files that can still be made; none where the file system has no such limit.
    pub free_files: Option<u64>,
}

impl Space {
    /// The room where `folder` is.
    pub fn of(folder: &Path) -> Result<Self, TreeError> {
        let found = rustix::fs::statvfs(folder).map_err(|errno| TreeError::System {
            act: "ask for the free space of",
            path: folder.to_owned(),
            source: errno.into(),
        })?;
        Ok(Self {
            free: found.f_bavail.saturating_mul(found.f_frsize),
            total: found.f_blocks.saturating_mul(found.f_frsize),
            free_files: (found.f_files > 0).then_some(found.f_favail),
        })
    }
}
