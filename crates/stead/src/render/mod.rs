//! What people read: pure functions from the engine's answers to text.

mod event;
mod lists;
mod moments;
mod reply;
mod tree;
mod words;

pub(crate) use event::{Teller, decoded};
pub(crate) use lists::{permissions, sessions, task, tasks};
pub(crate) use moments::{clock, lasting, moment};
pub(crate) use reply::about;
pub(crate) use tree::tree;
pub(crate) use words::{activity, answer, counted, ended, mode, outcome, placement, status};
