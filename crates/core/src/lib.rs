//! The rules of stead: pure, without I/O, clock, randomness or environment.
//!
//! Everything here is a function over values. Time, ids and what the world looks like are
//! arguments; an outcome is a list of events or a refusal.

pub mod bound;
pub mod budget;
mod command_line;
pub mod compaction;
pub mod context;
pub mod delegated;
pub mod env;
pub mod event;
mod hex;
pub mod hook;
pub mod id;
pub mod layout;
pub mod line;
pub mod lineage;
pub mod mail;
pub mod path;
pub mod permission;
pub mod profile;
pub mod refusal;
pub mod roster;
pub mod rule;
pub mod session;
pub mod settings;
pub mod shell;
pub mod step;
pub mod task;
pub mod usage;
pub mod wait;
