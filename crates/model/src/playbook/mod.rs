//! Scripted answers in a TOML file, for demos, tests and code modifications without a model.
//!
//! `docs/playbook.md` is the reference. `read` reads fields and knows their lines, `parse` builds
//! the script, `check` compares its steps with each other, `heard` takes a conversation apart, `play`
//! answers it.

mod check;
mod error;
mod fill;
mod heard;
mod parse;
mod play;
mod read;
mod script;
#[cfg(test)]
mod tests;

pub use error::PlaybookError;
pub use script::Playbook;
