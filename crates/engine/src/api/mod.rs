//! The API: what faces send and what they get, over HTTP and JSON on a Unix socket.
//!
//! Requests end in `Params`, answers in `Response`, pushes in `Notification`.

mod copies;
mod garbage;
mod permissions;
mod requests;
mod status;
mod views;

pub use copies::*;
pub use garbage::*;
pub use permissions::*;
pub use requests::*;
pub use status::{Failure, http_status};
pub use views::*;

/// The version of this API; both sides compare it, and the build, before anything else.
pub const PROTOCOL: u32 = 1;
