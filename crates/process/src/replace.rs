//! A command in the place of this process.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use stead_core::step::{self, Moment};

/// Executes the program instead of this one, with exactly `environment`, in `directory`; standard
/// input, output and error stay. Passes the step `process.replace`.
///
/// # Errors
/// Comes back only when the program cannot be executed.
pub fn become_command(
    program: &OsString,
    arguments: &[OsString],
    environment: &BTreeMap<OsString, OsString>,
    directory: &Path,
) -> Result<Infallible, io::Error> {
    step::pass("process.replace", Moment::Before);
    Err(std::process::Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment)
        .current_dir(directory)
        .exec())
}
