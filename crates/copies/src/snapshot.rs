//! An immutable, durable capture of a copy, named by its digest.

use stead_core::id::Digest;
use stead_files::{Manifest, RelPath};

/// A copy as it was when it was frozen. The contents of every eligible file that differs from the
/// base are blobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The digest of the manifest's encoded form, which is a blob: the snapshot's name.
    pub digest: Digest,
    /// The eligible paths, with the folders they need. Every file has its digest.
    pub manifest: Manifest,
    /// What else differs from the base: below ignored paths and in nested repositories, counted by
    /// the topmost folder. Never applied.
    pub beside: Vec<(RelPath, u64)>,
}
