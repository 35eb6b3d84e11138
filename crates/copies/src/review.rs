//! What a person looks at before an apply, and what the apply is held to.

use std::path::PathBuf;

use stead_core::id::{Digest, SlotName};
use stead_core::layout::{AbsoluteDir, Access};
use stead_files::RelPath;

use crate::bars::{Barred, barred};
use crate::changes::{Change, Unknown, changes};
use crate::{Base, Checkout, Home, Layout, Snapshot};

/// A frozen snapshot against its base (2.7): everything that the person sees, and that apply
/// compares again. An apply is of one review; the digest says which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// The private copy that was frozen.
    pub copy: PathBuf,
    /// Where an apply would write: the original.
    pub destination: AbsoluteDir,
    /// Whether the layout lets it be written; a read-only root can be reviewed (2.7, 5).
    pub access: Access,
    /// The snapshot.
    pub snapshot: Digest,
    /// The digest over base, snapshot and the changes in their order.
    pub digest: Digest,
    /// What the original had checked out at this moment; none for a plain folder (P7).
    pub checkout: Option<Checkout>,
    /// The eligible changes, in the order of paths.
    pub changes: Vec<Change>,
    /// Of these, what no apply can bring: with any of them every apply is refused, as a whole.
    pub barred: Vec<Barred>,
    /// What else differs and is never applied: below ignored paths and in nested repositories, by
    /// the topmost folder, with the number of files.
    pub beside: Vec<(RelPath, u64)>,
    /// Of these, the folders that became repositories of their own in the copy: what the original
    /// has there stays as it is.
    pub repositories: Vec<RelPath>,
    /// How many commits were made in the copy; none when that is not known. An apply brings files,
    /// `stead submit` brings commits.
    pub commits: Option<u64>,
}

/// Why there is no review.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// The layout has no such slot.
    #[error("the task has no slot {slot}; it has {}", names(valid))]
    UnknownSlot {
        /// The slot asked for.
        slot: SlotName,
        /// Those that there are.
        valid: Vec<SlotName>,
    },
    /// What the copy was made from is not wholly known.
    #[error(transparent)]
    Unknown(#[from] Unknown),
}

pub(crate) fn names(slots: &[SlotName]) -> String {
    slots.iter().map(SlotName::as_str).collect::<Vec<_>>().join(", ")
}

impl Review {
    /// The review of `snapshot`, a frozen copy of `slot`. Whether nobody works in the layout is for
    /// the caller (2.7, 1). `checkout` is what the original has checked out now.
    ///
    /// # Errors
    /// [`ReviewError`].
    pub fn new(
        home: &Home,
        layout: &Layout,
        slot: &SlotName,
        base: &Base,
        snapshot: &Snapshot,
        checkout: Option<Checkout>,
    ) -> Result<Self, ReviewError> {
        let Some(found) = layout.slots.iter().find(|found| found.slot == *slot) else {
            let valid = layout.slots.iter().map(|found| found.slot.clone()).collect();
            return Err(ReviewError::UnknownSlot { slot: slot.clone(), valid });
        };
        let changes = changes(base, snapshot)?;
        Ok(Self {
            copy: home.copy(&layout.session, layout.task, slot),
            destination: found.source.clone(),
            access: found.access,
            snapshot: snapshot.digest,
            digest: digest(base, snapshot, &changes),
            checkout,
            barred: barred(base, &changes),
            changes,
            beside: snapshot.beside.clone(),
            repositories: snapshot.repositories.clone(),
            commits: snapshot.commits,
        })
    }
}

/// The digest that a review and its apply agree on.
pub(crate) fn digest(base: &Base, snapshot: &Snapshot, changes: &[Change]) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"stead-review 1\n");
    hasher.update(base.manifest.digest().as_bytes());
    hasher.update(snapshot.digest.as_bytes());
    for change in changes {
        // The stored form tells every two changes apart, and a line feed is never in it.
        hasher.update(&serde_json::to_vec(change).unwrap_or_default());
        hasher.update(b"\n");
    }
    Digest::from_bytes(*hasher.finalize().as_bytes())
}
