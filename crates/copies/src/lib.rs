//! A task's private copies: made from the originals as a whole or not at all, frozen for review,
//! and brought back by an apply that is whole or not at all.
//!
//! Everything is synchronous and works without the engine; what happened is told to the caller,
//! who appends it to the log. Nothing is written inside an original but by an apply.

mod base;
mod home;
mod layout;
mod snapshot;

pub use base::{Base, IndexedFile};
pub use home::Home;
pub use layout::{Checkout, Layout, RootKind, Slot};
pub use snapshot::Snapshot;
