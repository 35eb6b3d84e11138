//! The one live owner of a root session.

mod actor;
mod admission;
mod asks;
mod commit;
mod conversation;
mod equip;
mod message;
mod propose;
mod recovery;
mod shells;
mod tools;
mod turns;
mod view;

pub(crate) use actor::{Actor, Shared};
pub(crate) use commit::{load, now};
pub(crate) use conversation::{body_text, text_body};
pub(crate) use message::{Busy, Handle, Message, Published, Surroundings};
pub(crate) use view::copy_state;
