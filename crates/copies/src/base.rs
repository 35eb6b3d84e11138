//! What a copy was made from: kept to compare with and to judge the original by.

use std::path::PathBuf;

use stead_core::id::Digest;
use stead_files::{Entry, Manifest, Node, RelPath};
use stead_git::ObjectId;

use crate::error::CopyError;
use crate::home::Home;
use crate::rules::Rules;
use crate::scope::Scope;
use crate::snapshot::Snapshot;

/// The state of a root that a copy's changes are told against: admission's, or the snapshot that
/// was applied last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Every path of the copy. Eligible files have digests, and their contents can be read with
    /// [`Contents`](crate::Contents) from the blobs or, where these do not hold one, from Git.
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
    /// The ignore rules of admission, which judge what is new in the copy.
    pub rules: Rules,
    /// The commit of the original's HEAD at admission; none for a plain folder and before the
    /// first commit.
    pub commit: Option<ObjectId>,
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

impl Base {
    /// Reads the base that a layout or the log names.
    ///
    /// # Errors
    /// [`CopyError::Blob`] when it is gone, damaged or from a newer program.
    pub fn load(home: &Home, digest: &Digest) -> Result<Self, CopyError> {
        let damaged = |reason: String| CopyError::Blob { digest: *digest, reason };
        let bytes = home.blobs().get(digest)?.ok_or_else(|| damaged("it is gone".to_owned()))?;
        Self::decode(&bytes).map_err(|error| damaged(error.to_string()))
    }

    /// Stores the base durably; its name.
    ///
    /// # Errors
    /// The store's.
    pub fn save(&self, home: &Home) -> Result<Digest, CopyError> {
        crate::keep::put_durably(home, self.encode())
    }

    /// What is never eligible: below ignored paths, in nested repositories, and what was left out.
    pub(crate) fn scope(&self) -> Scope {
        Scope::new(self.ignored.iter().chain(&self.nested).chain(&self.left_out).cloned())
    }

    /// Whether review and apply cover `path`, which the base has.
    pub fn covers(&self, path: &RelPath) -> bool {
        !self.scope().holds(path)
    }

    /// The part of the manifest that review and apply cover: what a snapshot is compared with.
    pub fn eligible(&self) -> Manifest {
        let scope = self.scope();
        let entries = self.manifest.entries().iter().filter(|entry| !scope.holds(&entry.path));
        Manifest::new(self.manifest.taken(), entries.cloned().collect())
            // A part of an ordered manifest is one, because what is below a path goes with it.
            .unwrap_or_else(|_| self.manifest.clone())
    }

    /// What is covered and at or below one of these `repositories`, which folders of the copy became
    /// since: neither changed nor removed by a copy, because no review can look there.
    pub(crate) fn held_by(&self, repositories: &[RelPath]) -> impl Iterator<Item = &Entry> {
        let scope = self.scope();
        let held = repositories.iter().flat_map(|path| self.manifest.within(path));
        held.filter(move |entry| !scope.holds(&entry.path))
    }

    /// The base after `snapshot` was applied: what it covers is the snapshot's, everything else
    /// stays as admission found it, the ignore rules too: what is covered is decided once.
    ///
    /// # Errors
    /// [`ManifestError::Order`](stead_files::ManifestError) when the snapshot puts something that
    /// is no folder where an uncovered path of the base is.
    pub fn after(&self, snapshot: &Snapshot) -> Result<Self, CopyError> {
        let scope = self.scope();
        let old = self.manifest.entries().iter().filter(|entry| scope.holds(&entry.path));
        let new = snapshot.manifest.entries().iter().map(|entry| self.seen_as_before(entry));
        let mut entries: Vec<Entry> = old.cloned().chain(new).collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let manifest = Manifest::new(self.manifest.taken(), entries)?;
        Ok(Self { manifest, ..self.clone() })
    }

    /// A snapshot does not say what the system saw. Where the content is that of the base, what it
    /// saw then still spares the next freeze the reading.
    fn seen_as_before(&self, entry: &Entry) -> Entry {
        let mut entry = entry.clone();
        entry.seen = match (&entry.node, self.manifest.get(&entry.path)) {
            (Node::File { .. }, Some(before)) if before.node == entry.node => before.seen,
            _ => None,
        };
        entry
    }
}
