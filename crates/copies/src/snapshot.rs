//! An immutable, durable capture of a copy, named by its digest.

use stead_core::id::Digest;
use stead_files::{Manifest, RelPath};

use crate::error::CopyError;
use crate::home::Home;

/// A copy as it was when it was frozen. The contents of every eligible file that differs from the
/// base are blobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The digest of the manifest's encoded form, which is a blob: the snapshot's name. Two
    /// freezes of equal copies have one name: the manifest says nothing of times and inodes.
    pub digest: Digest,
    /// The eligible paths, with the folders they need. Every file has its digest.
    pub manifest: Manifest,
    /// What else differs from the base: below ignored paths and in nested repositories, counted by
    /// the topmost folder. Never applied. Known to the freeze alone: [`Snapshot::load`] gives none.
    pub beside: Vec<(RelPath, u64)>,
    /// Folders that hold something of the base and became repositories of their own in the copy. The
    /// manifest has what is there as the base has it: nobody can review it, so it is not changed.
    /// Known to the freeze alone, as `beside`.
    pub repositories: Vec<RelPath>,
    /// Commits that the copy's HEAD has and admission's has not; none when the copy's repository
    /// cannot be asked, or there is none. They are never moved by an apply. Known to the freeze
    /// alone, as `beside`.
    pub commits: Option<u64>,
}

impl Snapshot {
    /// The snapshot of that name, as far as its name covers it: the manifest.
    ///
    /// # Errors
    /// [`CopyError::Blob`] when it is gone, damaged or from a newer program.
    pub fn load(home: &Home, digest: &Digest) -> Result<Self, CopyError> {
        let damaged = |reason: String| CopyError::Blob { digest: *digest, reason };
        let bytes = home.blobs().get(digest)?.ok_or_else(|| damaged("it is gone".to_owned()))?;
        let manifest = Manifest::decode(&bytes).map_err(|error| damaged(error.to_string()))?;
        Ok(Self {
            digest: *digest,
            manifest,
            beside: Vec::new(),
            repositories: Vec::new(),
            commits: None,
        })
    }
}
