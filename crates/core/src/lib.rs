//! The rules of stead: pure, without I/O, clock, randomness or environment.
//!
//! Everything here is a function over values. Time, ids and what the world looks like are
//! arguments; an outcome is a list of events or a refusal.

pub mod event;
pub mod id;
pub mod layout;
pub mod path;
pub mod permission;
pub mod refusal;
pub mod step;
pub mod task;
