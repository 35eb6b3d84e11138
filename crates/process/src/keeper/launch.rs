//! Starting the command of an errand.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use rustix::io::Errno;
use rustix::process::Pid;

use super::{Errand, KeepError};
use crate::system;
use crate::wire::{Part, Refusal};

/// Refuses what no program can be given.
pub(super) fn check(errand: &Errand) -> Result<(), KeepError> {
    let has_zero = |text: &OsStr| text.as_bytes().contains(&0);
    if errand.program.is_empty() || has_zero(&errand.program) {
        return Err(KeepError::Unpassable("program's name"));
    }
    if errand.arguments.iter().any(|argument| has_zero(argument)) {
        return Err(KeepError::Unpassable("arguments"));
    }
    let is_no_name = |name: &OsStr| name.is_empty() || name.as_bytes().contains(&b'=');
    if errand.environment.iter().any(|(n, v)| is_no_name(n) || has_zero(n) || has_zero(v)) {
        return Err(KeepError::Unpassable("environment"));
    }
    Ok(())
}

/// Starts the command; its output goes to `out` and `err`.
pub(super) fn launch(
    errand: &Errand,
    out: BorrowedFd<'_>,
    err: BorrowedFd<'_>,
) -> Result<Pid, Refusal> {
    let part = |part| move |error: io::Error| Refusal::new(part, &error);
    // The supervisor serves this one command, so its own directory may be the command's.
    std::env::set_current_dir(&errand.directory).map_err(part(Part::Directory))?;
    let program = find(errand).map_err(part(Part::Lookup))?;
    let null = File::open("/dev/null").map_err(part(Part::Supervisor))?;
    let mut arguments = vec![zero_ended(&errand.program)];
    arguments.extend(errand.arguments.iter().map(|argument| zero_ended(argument)));
    let environment: Vec<CString> = errand
        .environment
        .iter()
        .map(|(name, value)| {
            let mut pair = name.clone();
            pair.push("=");
            pair.push(value);
            zero_ended(&pair)
        })
        .collect();
    let stdio = [null.as_fd(), out, err];
    let leader = system::launch(&zero_ended(program.as_os_str()), &arguments, &environment, stdio)
        .map_err(part(Part::Program))?;
    // Nothing of the command's is to be held by the one who watches it.
    let _ = std::env::set_current_dir("/");
    Ok(leader)
}

/// [`check`] has refused zero bytes.
fn zero_ended(text: &OsStr) -> CString {
    CString::new(text.as_bytes()).unwrap_or_default()
}

/// Looks the program up as a shell would, by the command's own `PATH`.
fn find(errand: &Errand) -> io::Result<PathBuf> {
    let program = &errand.program;
    if program.as_bytes().contains(&b'/') {
        rustix::fs::access(program, Access::EXISTS)?;
        return Ok(program.into());
    }
    let usual = OsString::from("/usr/local/bin:/usr/bin:/bin");
    let path = errand.environment.get(OsStr::new("PATH")).unwrap_or(&usual);
    let mut refused = None;
    for folder in std::env::split_paths(path) {
        // An empty entry means the working directory, which a bare name would not.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
        let candidate = folder.join(program);
        if candidate.is_file() {
            match rustix::fs::access(&candidate, Access::EXEC_OK) {
                Ok(()) => return Ok(candidate),
                Err(_) => refused = refused.or(Some(candidate)),
            }
        }
    }
    // Starting one that may not be executed gives the error that says so.
    refused.ok_or_else(|| Errno::NOENT.into())
}
