//! The root session's aggregate: its state, its commands and the two functions over them.

mod command;
mod copies;
mod decide;
mod delegate;
mod message;
mod person;
mod replay;
mod spawn;
mod state;
mod tasks;
mod turn;

pub use command::{Command, Decision, Outcomes, Planned};
pub use copies::{applicable, idle_layout, reviewable};
pub use decide::decide;
pub use message::interrupt;
pub use replay::{live, replay};
pub use state::{Branch, Evolved, State, World};

#[cfg(test)]
mod tests;
