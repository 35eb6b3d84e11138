//! A task's private copies: made from the originals as a whole or not at all, frozen for review,
//! and brought back by an apply that is whole or not at all.
//!
//! Everything is synchronous and works without the engine; what happened is told to the caller,
//! who appends it to the log. Nothing is written inside an original but by an apply.

mod admit;
mod base;
mod base_code;
mod depot;
mod error;
mod home;
mod keep;
mod layout;
mod note;
mod refusal;
mod rules;
mod scope;
mod snapshot;
mod staging;
mod withdraw;

pub use admit::{Admitted, AdmittedSlot, MOST_ROOTS, Request, admit};
pub use base::{Base, IndexedFile};
pub use base_code::BaseError;
pub use error::CopyError;
pub use home::Home;
pub use layout::{Checkout, Layout, RootKind, Slot};
pub use note::{Note, NoteKind};
pub use refusal::{AdmitError, Obstruction, Refused};
pub use rules::Rules;
pub use snapshot::Snapshot;
pub use staging::{StagedFolder, clear_staging, staged};
pub use withdraw::{withdraw, withdraw_others};
