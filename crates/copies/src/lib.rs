//! A task's private copies: made from the originals as a whole or not at all, frozen for review,
//! and brought back by an apply that is whole or not at all.
//!
//! Everything is synchronous and works without the engine; what happened is told to the caller,
//! who appends it to the log. Nothing is written inside an original but by an apply.

mod admit;
mod base;
mod base_code;
mod contents;
mod depot;
mod error;
mod found;
mod freeze;
mod home;
mod keep;
mod layout;
mod note;
mod refusal;
mod rules;
mod scope;
mod snapshot;
mod staging;
mod trash;

pub use admit::{Admitted, AdmittedSlot, MOST_ROOTS, Request, admit};
pub use base::{Base, IndexedFile};
pub use base_code::BaseError;
pub use contents::Contents;
pub use error::CopyError;
pub use found::{Found, FoundDepot, FoundTask, forget_depot, found, live_blobs, tasks};
pub use freeze::freeze;
pub use home::Home;
pub use layout::{Checkout, Layout, RootKind, Slot};
pub use note::{Note, NoteKind};
pub use refusal::{MakeError, Obstruction, Refused};
pub use rules::Rules;
pub use snapshot::Snapshot;
pub use staging::{StagedFolder, clear_staging, staged};
pub use trash::{TrashRecord, Trashed, discard, empty_trash, restore, trashed};
