//! The rules of stead: pure, without I/O, clock, randomness or environment.
//!
//! Everything here is a function over values. Time, ids and what the world looks like are
//! arguments; an outcome is a list of events or a refusal.

pub mod bound;
pub mod delegated;
pub mod env;
pub mod event;
mod hex;
pub mod id;
pub mod layout;
pub mod line;
pub mod mail;
pub mod path;
pub mod permission;
pub mod refusal;
pub mod roster;
pub mod session;
pub mod settings;
pub mod step;
pub mod task;
pub mod wait;
