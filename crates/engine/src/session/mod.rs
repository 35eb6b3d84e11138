//! The one live owner of a root session.

mod actor;
mod admission;
mod asks;
mod commit;
mod conversation;
mod equip;
mod frozen;
mod hooks;
mod message;
mod propose;
mod recovery;
mod seed;
mod shells;
mod tools;
mod turns;
mod view;

pub(crate) use actor::{Actor, Shared};
pub(crate) use commit::{load, now};
pub(crate) use conversation::{body_text, text_body};
pub(crate) use hooks::{Cancel, Judged, Subject, check as check_hooks, surroundings};
pub(crate) use message::{Busy, Handle, Message, Published, Surroundings};
pub(crate) use view::copy_state;
