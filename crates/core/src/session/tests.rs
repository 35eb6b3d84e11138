//! The rules, shown case by case, and held against random sequences of commands.

mod budgets;
mod calls;
mod compactions;
mod damaged;
mod delegated;
mod forks;
mod hooks;
mod invariants;
mod log;
mod messages;
mod names;
mod permissions;
mod properties;
mod recovery;
mod rewinds;
mod rules;
mod shells;
mod steps;
mod stored;
mod targets;
mod tasks;
mod turns;
