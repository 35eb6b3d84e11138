//! Trees: walked, captured, copied, compared, changed and removed, against what other programs say
//! about them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stderr)] // the helpers of tests are not exempt by themselves

mod capture;
mod copy;
mod edit;
mod kit;
mod random;
mod remove;
mod walk;
