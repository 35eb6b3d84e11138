//! The rules, shown case by case, and held against random sequences of commands.

mod calls;
mod delegated;
mod invariants;
mod log;
mod messages;
mod names;
mod permissions;
mod properties;
mod recovery;
mod rewinds;
mod steps;
mod stored;
mod targets;
mod tasks;
mod turns;
