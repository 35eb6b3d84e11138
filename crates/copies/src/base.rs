//! What a copy was made from: kept to compare with and to judge the original by.

use std::path::PathBuf;

use stead_files::{Manifest, RelPath};
use stead_git::ObjectId;

/// The state of a root that a copy's changes are told against: admission's, or the snapshot that
/// was applied last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Every path of the copy. Eligible files have digests, and their contents can be read with
    /// [`Contents`](crate::Contents) from the blobs or, where `blobs` does not hold one, from Git.
    pub manifest: Manifest,
    /// The index of the original at admission; empty for a plain folder. Gitlinks are left out.
    pub index: Vec<IndexedFile>,
    /// What the ignore rules of admission ignored, by the topmost: below these nothing is eligible.
    pub ignored: Vec<RelPath>,
    /// Nested repositories and submodules: carried, never part of a review.
    pub nested: Vec<RelPath>,
    /// Left out of the copy, and named: registered work trees inside the root, special files among
    /// ignored ones.
    pub left_out: Vec<RelPath>,
}

/// A file as the index had it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedFile {
    /// Where.
    pub path: PathBuf,
    /// Git's mode: `0o100644`, `0o100755` or `0o120000`.
    pub mode: u32,
    /// Its contents.
    pub object: ObjectId,
}
