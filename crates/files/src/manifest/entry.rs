//! A manifest and its entries.

use stead_core::id::Digest;

use super::ManifestError;
use crate::path::RelPath;
use crate::stat::{Special, Stat, Time};

/// What a path stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A regular file.
    File {
        /// Bytes of content.
        size: u64,
        /// Of the content; none when nobody read it.
        digest: Option<Digest>,
    },
    /// A folder, also an empty one.
    Folder,
    /// A symbolic link and its literal target.
    Link(Box<[u8]>),
    /// A pipe, socket or device.
    Special(Special),
    /// A file that exists and was kept back; it is never a deletion and never compared.
    Withheld {
        /// Bytes of content.
        size: u64,
    },
}

/// What the system said about a file when its content was known. It says whether the file must be
/// read again and is no part of what the tree *is*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The device's number; it may change when the machine starts anew.
    pub device: u64,
    /// The number within the device.
    pub inode: u64,
    /// The time of the last change of content.
    pub modified: Time,
    /// The time of the last change of anything.
    pub changed: Time,
}

impl Seen {
    /// What matters of `stat`.
    pub fn of(stat: &Stat) -> Self {
        Self {
            device: stat.device,
            inode: stat.inode,
            modified: stat.modified,
            changed: stat.changed,
        }
    }

    /// Whether the file was the same then, except for its device's number.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.inode == other.inode
            && self.modified == other.modified
            && self.changed == other.changed
    }
}

/// One path of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path; never the root itself.
    pub path: RelPath,
    /// The permission bits; 0 for links, which have none.
    pub mode: u16,
    /// What it stands for.
    pub node: Node,
    /// What the system said, if that was kept.
    pub seen: Option<Seen>,
}

impl Entry {
    /// Whether both are the same, whatever the system said about them.
    pub fn is_identical(&self, other: &Self) -> bool {
        self.path == other.path && self.mode == other.mode && self.node == other.node
    }
}

/// What is in a tree, in the order of paths, each path once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    taken: Time,
    entries: Vec<Entry>,
}

impl Manifest {
    /// A manifest of entries in the order of their paths, seen at `taken` or later.
    pub fn new(taken: Time, entries: Vec<Entry>) -> Result<Self, ManifestError> {
        let mut before: Option<&Entry> = None;
        for entry in &entries {
            if entry.path.is_root() {
                return Err(ManifestError::Order(entry.path.clone()));
            }
            if let Some(before) = before {
                // What is below a path follows it at once, so one look back is enough.
                let inside = entry.path.is_within(&before.path);
                if entry.path <= before.path || (inside && before.node != Node::Folder) {
                    return Err(ManifestError::Order(entry.path.clone()));
                }
            }
            before = Some(entry);
        }
        Ok(Self { taken, entries })
    }

    /// When it began to be taken: what changed at that moment or later is not proved by
    /// [`Entry::seen`].
    pub fn taken(&self) -> Time {
        self.taken
    }

    /// The entries in the order of paths.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entries without the manifest.
    pub fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    /// The entry of a path.
    pub fn get(&self, path: &RelPath) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| entry.path.cmp(path)).ok()?;
        self.entries.get(at)
    }

    /// [`get`](Self::get) for many paths: one that follows the one asked before, but for folders, is
    /// found at once.
    pub fn finder<'a>(&'a self) -> impl FnMut(&RelPath) -> Option<&'a Entry> {
        let mut rest: &[Entry] = &[];
        move |path| {
            let skipped = rest.iter().take_while(|entry| entry.node == Node::Folder).count();
            rest = rest.get(skipped..).unwrap_or_default();
            if rest.first().is_none_or(|entry| entry.path != *path) {
                let at = self.entries.binary_search_by(|entry| entry.path.cmp(path)).ok()?;
                rest = self.entries.get(at..)?;
            }
            let (found, after) = rest.split_first()?;
            rest = after;
            Some(found)
        }
    }

    /// The entry of a path and all below it.
    pub fn within(&self, path: &RelPath) -> &[Entry] {
        let from = self.entries.partition_point(|entry| entry.path < *path);
        let rest = self.entries.get(from..).unwrap_or_default();
        let length = rest.partition_point(|entry| entry.path.is_within(path));
        rest.get(..length).unwrap_or_default()
    }

    /// Whether every file has its digest, so that [`Manifest::digest`] says all about the tree.
    pub fn is_complete(&self) -> bool {
        !self.entries.iter().any(|entry| matches!(entry.node, Node::File { digest: None, .. }))
    }
}
