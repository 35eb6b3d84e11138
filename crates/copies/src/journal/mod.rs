//! The journal of an apply: what it changes and where the other side of each change waits.

mod file;
mod record;

pub(crate) use file::{Journal, lock_of, path_of};
pub use file::{JournalError, Leftover, kept_journal, leftovers};
pub use record::{Finished, Header, Rescue};
pub(crate) use record::{Step, VERSION};
