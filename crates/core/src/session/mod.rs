//! The root session's aggregate: its state, its commands and the two functions over them.

mod command;
mod decide;
mod replay;
mod spawn;
mod state;
mod turn;

pub use command::{Command, Decision, Outcomes, Planned};
pub use decide::{decide, interrupt};
pub use replay::{live, replay};
pub use state::{Branch, Evolved, State, World};

#[cfg(test)]
mod tests;
