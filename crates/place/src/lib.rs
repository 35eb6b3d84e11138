//! Places: directories equipped for the processes of an agent.
//!
//! A place is a directory that stead did not make, plus what stead adds outside of it: a scratch
//! folder that is `TMPDIR`, the environment, the socket on which its processes are that agent.

mod environment;
mod place;

pub use environment::Identity;
pub use place::{Place, PlaceError};
