//! What tests share: waiting without luck, skipping out loud, homes of their own.
//!
//! A test removes only what it recorded as its own: everything here lives below temporary folders
//! of this process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::missing_panics_doc,
    reason = "a fixture that cannot be made is a failed test, and says so"
)]

mod skip;
mod user;
mod wait;
mod world;

pub use skip::skip;
pub use user::as_a_plain_user;
pub use wait::{until, within};
pub use world::World;
