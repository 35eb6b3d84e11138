//! Writing exactly the reviewed snapshot to the original (2.8), whole or not at all.

mod check;
mod conflict;
mod destination;
mod entries;
mod index_lock;
mod look;
mod names;
mod plan;
mod refused;
mod room;
mod settle;
mod stage;
mod swap;
mod verify;
mod write;

pub use check::{Apply, ApplyRequest};
pub use conflict::{Clash, Conflict};
pub use destination::checkout;
pub(crate) use destination::open_admitted;
pub(crate) use index_lock::IndexLock;
pub use refused::ApplyRefused;
pub(crate) use room::Reserve;
pub(crate) use settle::{Way, settle};
pub(crate) use write::rescue_folder;
pub use write::{Cause, Cleared, Outcome, Written};
