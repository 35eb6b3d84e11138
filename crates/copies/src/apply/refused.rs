//! Why an apply was refused before anything was written.

use std::path::PathBuf;

use stead_core::id::{Digest, SlotName};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_files::{FolderError, Holder, LockError, RelPath, TreeError};
use stead_git::{GitError, Operation};

use super::conflict::{Clash, Conflict};
use crate::bars::Bar;
use crate::changes::Unknown;
use crate::layout::Checkout;
use crate::review::names;

/// Why an apply was refused. Nothing at the destination was written, not even a time.
#[derive(Debug, thiserror::Error)]
pub enum ApplyRefused {
    /// The layout has no such slot.
    #[error("the task has no slot {slot}; it has {}", names(valid))]
    UnknownSlot {
        /// The slot asked for.
        slot: SlotName,
        /// Those that there are.
        valid: Vec<SlotName>,
    },
    /// P1: what is to be applied is not what was reviewed.
    #[error("the snapshot {0} was not reviewed, or the review is of another one")]
    NotReviewed(Digest),
    /// P2: the layout lets the root be read only.
    #[error("{0} is read-only for this task")]
    ReadOnly(SlotName),
    /// P3: there is no copy of that layout in this home.
    #[error("{} is no private copy of this home", .0.display())]
    NotOurs(PathBuf),
    /// P4: a newer or older program made the copy.
    #[error("the layout file has version {0}, which this program cannot vouch for")]
    Version(u32),
    /// P5: the folder is not the one that was admitted.
    #[error("{} is not the folder that was admitted: {why}", path.display())]
    DestinationChanged {
        /// The destination.
        path: PathBuf,
        /// What is different.
        why: &'static str,
    },
    /// P6: the home and the destination's index are on two disks.
    #[error("{} and {} are not on one disk", home.display(), index.display())]
    OtherDevice {
        /// The home.
        home: PathBuf,
        /// The folder of the index.
        index: PathBuf,
    },
    /// P7: something else is checked out than at the review.
    #[error(
        "the checkout changed since the review: it was {}, it is {}",
        said(reviewed.as_ref()),
        said(now.as_ref())
    )]
    CheckoutChanged {
        /// At the review.
        reviewed: Option<Checkout>,
        /// Now.
        now: Option<Checkout>,
    },
    /// P7: the person has begun something and not ended it.
    #[error("a {} is in progress in {}", operation.command(), path.display())]
    InProgress {
        /// What.
        operation: Operation,
        /// Where.
        path: PathBuf,
    },
    /// P7: somebody holds the index, longer than an editor does.
    #[error("{} exists: somebody else writes the index, or left it behind", .0.display())]
    IndexLocked(PathBuf),
    /// P8, P9 and names that collide: every path that keeps the apply from being written.
    #[error("{} in conflict", paths(.0))]
    Conflicts(Vec<Conflict>),
    /// P10, P11: a change that no apply can bring, as the review said.
    #[error("{path}: {bar}")]
    Barred {
        /// The path.
        path: RelPath,
        /// Why.
        bar: Bar,
    },
    /// P11: what cannot be carried.
    #[error("{path}: {what}")]
    Unsupported {
        /// The path.
        path: RelPath,
        /// What it is or has.
        what: &'static str,
    },
    /// P12: the place refuses. Not to be offered again before something there changes.
    #[error("the place refuses: {0}")]
    Place(#[source] TreeError),
    /// P12: there is not enough room.
    #[error("{needed} bytes are needed in {}, {free} are free", path.display())]
    NoSpace {
        /// The destination.
        path: PathBuf,
        /// Bytes that the new files take.
        needed: u64,
        /// Bytes that may be written.
        free: u64,
    },
    /// Another apply to this root is under way.
    #[error("another apply writes this root{}", by(.0.as_ref()))]
    Busy(Option<Holder>),
    /// An apply to this root was cut short, and its journal comes first.
    #[error("an earlier apply to this root was cut short: {}", .0.display())]
    Unfinished(PathBuf),
    /// The snapshot's contents are not all there.
    #[error("the contents {0} are missing or damaged in the home")]
    Missing(Digest),
    /// What the copy was made from is not wholly known.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The destination could not be looked at.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Git could not be asked, or its index not read.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The root's lock could not be tried.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The folder of journals cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

fn said(checkout: Option<&Checkout>) -> String {
    match checkout {
        None => "no repository".into(),
        Some(Checkout::Branch(name)) => {
            name.strip_prefix("refs/heads/").unwrap_or(name).escape_debug().to_string()
        }
        Some(Checkout::Detached(commit)) => format!("the commit {commit}"),
    }
}

fn by(holder: Option<&Holder>) -> String {
    holder.map(|holder| format!(": {holder}")).unwrap_or_default()
}

/// As many conflicts as one line names.
const NAMED: usize = 5;

fn paths(conflicts: &[Conflict]) -> String {
    let mut text: Vec<String> =
        conflicts.iter().take(NAMED).map(|c| format!("{} ({})", c.path, c.clash)).collect();
    if let Some(more @ 1..) = conflicts.len().checked_sub(NAMED) {
        text.push(format!("and {more} more"));
    }
    let verb = if conflicts.len() == 1 { " is" } else { " are" };
    text.join(", ") + verb
}

impl ApplyRefused {
    /// What the faces answer.
    pub fn refusal(&self) -> Refusal {
        let (kind, hint) = self.kind_and_hint();
        let refusal = Refusal::new(kind, self.to_string());
        if hint.is_empty() { refusal } else { refusal.hint(hint) }
    }

    fn kind_and_hint(&self) -> (RefusalKind, &'static str) {
        use RefusalKind as Kind;
        match self {
            Self::UnknownSlot { .. } => (Kind::NotFound, "`stead task` lists a task's slots"),
            Self::NotReviewed(_) => (Kind::WrongState, "run `stead task review` first"),
            Self::ReadOnly(_) => (Kind::NotAllowed, "a read-only root can only be reviewed"),
            Self::NotOurs(_) => (Kind::NotAllowed, "`stead doctor` says what this home holds"),
            Self::Version(_) => (Kind::Unreadable, "use the stead that made the copy"),
            Self::DestinationChanged { .. } => {
                (Kind::Conflict, "`stead roots rebind` names the folder anew")
            }
            Self::OtherDevice { .. } => {
                (Kind::WrongState, "put STEAD_HOME on the disk of the repository")
            }
            Self::CheckoutChanged { .. } => {
                (Kind::Conflict, "switch back, or run `stead task review` again")
            }
            Self::InProgress { .. } => (Kind::WrongState, "finish or abort it, then apply again"),
            Self::IndexLocked(_) => {
                (Kind::WrongState, "wait for the program that holds it; `stead doctor` looks")
            }
            Self::Conflicts(all) if all.iter().any(|one| one.clash == Clash::TakenBack) => (
                Kind::Conflict,
                "an apply goes on from the last one: copy these files here from the private copy, \
                 then apply again",
            ),
            Self::Conflicts(_) => {
                let helps = "bring what you want of yours into the copy, put these files back as \
                             it was made from them, and review again";
                (Kind::Conflict, helps)
            }
            Self::Barred { .. } => {
                (Kind::NotAllowed, "take it away in the copy, or rename it, then review again")
            }
            Self::Unsupported { .. } => {
                (Kind::NotAllowed, "change it in the copy or in the folder, then review again")
            }
            Self::Place(_) | Self::NoSpace { .. } => {
                (Kind::Failed, "make the folder writable, with room, then apply again")
            }
            Self::Busy(_) => (Kind::WrongState, "`stead doctor` says what is under way"),
            Self::Unfinished(_) => (Kind::WrongState, "run `stead doctor`"),
            Self::Missing(_) => (Kind::Unreadable, "run `stead task review` again"),
            Self::Unknown(_) => (Kind::Unreadable, ""),
            Self::Tree(_) | Self::Git(_) | Self::Lock(_) | Self::Folder(_) => (Kind::Failed, ""),
        }
    }

    /// Whether it is the place's fault and is not to be offered again (case 73).
    pub fn is_place(&self) -> bool {
        matches!(self, Self::Place(_) | Self::NoSpace { .. })
    }
}
