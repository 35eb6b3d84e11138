//! The bytes of a base's or snapshot's files.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;

use stead_core::id::RootId;
use stead_files::{Entry, Node};
use stead_git::{Git, ObjectId, Repository};

use crate::base::Base;
use crate::depot::Depot;
use crate::error::CopyError;
use crate::home::Home;
use crate::keep::digest_of;

/// Reads what files of a base, and of snapshots of the same copy, had in them: from the blobs, else
/// from the depot, as it is stored and through no filter. Neither the copy nor the original is
/// looked at, whatever became of them.
pub struct Contents<'a> {
    home: &'a Home,
    depot: Option<Repository>,
    objects: HashMap<&'a [u8], ObjectId>,
}

impl<'a> Contents<'a> {
    /// Up to five processes where the root has a depot, none else.
    ///
    /// # Errors
    /// Git's.
    pub fn of(home: &'a Home, git: &Git, root: &RootId, base: &'a Base) -> Result<Self, CopyError> {
        let depot =
            if base.index.is_empty() { None } else { Depot::of(home, root).repository(git)? };
        let files = base.index.iter();
        let objects = files.map(|file| (file.path.as_os_str().as_bytes(), file.object)).collect();
        Ok(Self { home, depot, objects })
    }

    /// The bytes of one file.
    ///
    /// # Errors
    /// [`CopyError::Content`] when they are nowhere, or the entry is no file with a digest.
    pub fn read(&self, entry: &Entry) -> Result<Vec<u8>, CopyError> {
        let mut all = self.read_all(&[entry])?;
        all.pop().ok_or_else(|| gone(entry))
    }

    /// The bytes of several files, in their order; one process for all that Git has.
    ///
    /// # Errors
    /// As [`Contents::read`], for the first that fails.
    pub fn read_all(&self, entries: &[&Entry]) -> Result<Vec<Vec<u8>>, CopyError> {
        let mut found: Vec<Option<Vec<u8>>> = Vec::with_capacity(entries.len());
        let mut asked: Vec<(usize, ObjectId)> = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            let Node::File { digest: Some(digest), .. } = &entry.node else {
                return Err(gone(entry));
            };
            let kept = self.home.blobs().get(digest)?;
            if kept.is_none() {
                let object = self.objects.get(entry.path.as_bytes()).ok_or_else(|| gone(entry))?;
                asked.push((at, *object));
            }
            found.push(kept);
        }
        if let Some(depot) = self.depot.as_ref().filter(|_| !asked.is_empty()) {
            let ids: Vec<ObjectId> = asked.iter().map(|(_, id)| *id).collect();
            for ((at, _), bytes) in asked.iter().zip(depot.blobs(&ids)?) {
                if let Some(place) = found.get_mut(*at) {
                    *place = bytes;
                }
            }
        }
        entries.iter().zip(found).map(|(entry, bytes)| proved(entry, bytes)).collect()
    }
}

/// Bytes are the file's only if their digest says so.
fn proved(entry: &Entry, bytes: Option<Vec<u8>>) -> Result<Vec<u8>, CopyError> {
    match (&entry.node, bytes) {
        (Node::File { digest: Some(digest), .. }, Some(bytes)) if digest_of(&bytes) == *digest => {
            Ok(bytes)
        }
        _ => Err(gone(entry)),
    }
}

fn gone(entry: &Entry) -> CopyError {
    let digest = match &entry.node {
        Node::File { digest, .. } => *digest,
        _ => None,
    };
    CopyError::Content { path: entry.path.clone(), digest }
}
