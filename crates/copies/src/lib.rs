//! A task's private copies: made from the originals as a whole or not at all, frozen for review,
//! and brought back by an apply that is whole or not at all.
//!
//! Everything is synchronous and works without the engine; what happened is told to the caller,
//! who appends it to the log. Nothing is written inside an original but by an apply.

mod admit;
mod apply;
mod bars;
mod base;
mod base_code;
mod changes;
mod contents;
mod depot;
mod diff;
mod error;
mod flush;
mod found;
mod freeze;
mod home;
mod journal;
mod keep;
mod layout;
mod note;
mod recover;
mod refusal;
mod review;
mod rules;
mod scope;
mod snapshot;
mod staging;
mod trash;
mod unapplied;
mod withdraw;

pub use admit::{Admitted, AdmittedSlot, Request, admit, check_root};
pub use apply::{
    Apply, ApplyRefused, ApplyRequest, Cause, Clash, Cleared, Conflict, Outcome, Written, checkout,
};
pub use bars::{Bar, Barred};
pub use base::{Base, IndexedFile};
pub use base_code::BaseError;
pub use changes::{Change, State, Unknown, changes};
pub use contents::Contents;
pub use diff::{DiffOptions, Diffed, ReadContent, Side, diff, headline};
pub use error::CopyError;
pub use flush::{flush, flush_all};
pub use found::{
    Found, FoundDepot, FoundTask, forget_depot, forget_layout, found, live_blobs, tasks,
};
pub use freeze::freeze;
pub use home::Home;
pub use journal::{Finished, Header, JournalError, Leftover, Rescue, kept_journal, leftovers};
pub use layout::{Checkout, Layout, RootKind, Slot, checked_out};
pub use note::{Note, NoteKind};
pub use recover::{Recorded, RecoverError, forget, give_up, recover};
pub use refusal::{MakeError, Obstruction, Refused};
pub use review::{Review, ReviewError};
pub use rules::Rules;
pub use snapshot::Snapshot;
pub use staging::{StagedFolder, clear_staging, staged};
pub use trash::{TrashRecord, Trashed, discard, empty_trash, restore, trashed};
pub use unapplied::{Unapplied, unapplied};
pub use withdraw::{withdraw, withdraw_others};
