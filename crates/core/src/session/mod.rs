//! The root session's aggregate: its state, its commands and the two functions over them.

mod branch;
mod budget;
mod command;
mod compact;
mod copies;
mod decide;
mod delegate;
mod fork;
mod hooks;
mod ledger;
mod left;
mod message;
mod notes;
mod person;
mod replay;
mod restore;
mod rules;
mod shells;
mod spawn;
mod state;
mod tasks;
mod turn;
mod world;

pub use branch::Branch;
pub use budget::over_budget;
pub use command::{Command, Decision, Outcomes, Planned};
pub use copies::{applicable, idle_layout, reviewable};
pub use decide::decide;
pub use fork::{Taken, take};
pub use ledger::Ledger;
pub use message::interrupt;
pub use notes::{STALE_TURNS, stale_tasks};
pub use replay::{live, replay};
pub use state::{Evolved, State};
pub use world::{Capture, World};

#[cfg(test)]
mod tests;
