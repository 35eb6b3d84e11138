//! Starting a program that outlives its starter.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;

use stead_core::step::{self, Moment};

/// Starts `program` in a process group of its own, with exactly `environment`, in `/`, without
/// input, its errors going nowhere. Gives the reading end of its standard output, on which it may
/// say when it is ready; end of file means that it ended before that.
///
/// Nobody waits for it: it is reaped by whoever starts it if that one lives long enough, else by
/// the system. Passes the step `process.detach`.
///
/// # Errors
/// The system's reason why the program cannot be started.
pub fn start_detached(
    program: &Path,
    arguments: &[&OsStr],
    environment: &BTreeMap<OsString, OsString>,
) -> io::Result<File> {
    step::pass("process.detach", Moment::Before);
    let mut child = std::process::Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    step::pass("process.detach", Moment::After);
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    Ok(File::from(OwnedFd::from(output)))
}
