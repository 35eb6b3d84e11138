//! Bringing a copy back: real folders, real repositories, real crashes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests, which clippy does not know as such"
)]

mod closed;
mod conflicts;
mod crash;
mod during;
mod kit;
mod power_cut;
mod random;
mod refusals;
mod written;
