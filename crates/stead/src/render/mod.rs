//! What people read: pure functions from the engine's answers to text.

mod copies;
mod event;
mod lists;
mod moments;
mod reply;
mod tree;
mod words;

pub(crate) use copies::{cut_short, review, slots};
pub(crate) use event::{Said, Teller, decoded};
pub(crate) use lists::{permissions, sessions, task, tasks};
pub(crate) use moments::{clock, lasting, moment};
pub(crate) use reply::about;
pub(crate) use tree::tree;
pub(crate) use words::{
    activity, answer, applied, copy_state, copying, counted, ended, mode, outcome, placement, size,
    status,
};
