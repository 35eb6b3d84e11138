//! stead: runs a team of coding agents on a person's own machine.
//!
//! The program: arguments, output, the terminal view. Nothing is decided here; everything about
//! sessions goes through the engine.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is the one crate that prints (architecture, rule 2)"
)]
#![allow(
    clippy::format_push_string,
    reason = "`write!` to a string has a `Result` that is never an error"
)]

mod clean;
mod cli;
mod context;
mod exit;
mod live;
mod output;
mod render;
#[cfg(feature = "steps")]
mod steps;

use std::process::ExitCode;

fn main() -> ExitCode {
    // The spawner forks: it must be reached while this process has one thread.
    if std::env::args_os().nth(1).is_some_and(|first| first == cli::SPAWNER) {
        return stead_process::serve_spawner();
    }
    #[cfg(feature = "steps")]
    stead_core::step::observe(steps::observe);
    cli::run()
}
