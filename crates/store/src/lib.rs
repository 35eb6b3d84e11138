//! The store of one home: streams of events in SQLite, the bodies that they refer to, request ids
//! and leases.
//!
//! One process writes a home, through one thread ([`Store`]); any number read it, with or without
//! that process ([`Reader`]). Nothing is acknowledged before it survives a power cut. Everything is
//! synchronous; [`Store::submit`] is the one call made for callers that must not block.

mod append;
mod blob;
mod check;
mod error;
mod garbage;
mod lease;
mod log;
mod migrate;
mod reader;
mod request;
mod sql;
mod store;
mod tip;
mod unfinished;
mod writer;

pub use append::{Append, Appended};
pub use blob::{Blobs, Body, INLINE_BYTES};
pub use check::{Finding, Report};
pub use error::StoreError;
pub use garbage::{Garbage, Sweep};
pub use lease::{Lease, LeaseHolder, LeaseName};
pub use log::{Record, SessionSummary};
pub use reader::Reader;
pub use store::Store;
