//! A task's private copies: made from the originals as a whole or not at all, frozen for review,
//! and brought back by an apply that is whole or not at all.
//!
//! Everything is synchronous and works without the engine; what happened is told to the caller,
//! who appends it to the log. Nothing is written inside an original but by an apply.

mod apply;
mod base;
mod changes;
mod diff;
mod home;
mod journal;
mod layout;
mod recover;
mod review;
mod snapshot;

pub use apply::{
    Apply, ApplyRefused, ApplyRequest, Cause, Clash, Cleared, Conflict, Outcome, Written,
};
pub use base::{Base, IndexedFile};
pub use changes::{Change, State, Unknown, changes};
pub use diff::{DiffOptions, Diffed, ReadContent, Side, diff, headline};
pub use home::Home;
pub use journal::{Finished, Header, JournalError, Leftover, Rescue, leftovers};
pub use layout::{Checkout, Layout, RootKind, Slot};
pub use recover::{Recorded, RecoverError, forget, recover};
pub use review::{Review, ReviewError};
pub use snapshot::Snapshot;
