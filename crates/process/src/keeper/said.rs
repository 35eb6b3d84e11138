//! What a starter, its keeper and its supervisor say to each other, and what is written at the end.

use std::fs;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::guard::Task;
use super::{Errand, Output};
use crate::command::{Order, Pipes, Raw};
use crate::identity::ProcessIdentity;
use crate::run::How;
use crate::wire::{self, Refusal};

/// What a supervisor says to the starter.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Said {
    Started { supervisor: ProcessIdentity, leader: ProcessIdentity },
    Refused(Refusal),
    Ended(How),
}

/// What a starter says to the supervisor.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Wish {
    /// The run is recorded: the command may start, and outlive its starter.
    Go,
    Stop {
        signal: i32,
    },
}

/// What of an errand has no room in an [`Order`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Beside {
    outcome: Raw,
}

/// How a command ended, as the file in its run's folder says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The version of this form: 1.
    pub version: u32,
    /// How the command itself ended.
    pub how: How,
    /// When, in milliseconds after 1970.
    pub at: u64,
}

impl Outcome {
    /// Reads an outcome; `None` while there is none that can be read.
    pub fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Writes how a command ended, whole or not at all. No power cut is feared: no process of this
    /// boot survives one either.
    pub(super) fn write(path: &Path, how: How) -> io::Result<()> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let bytes = serde_json::to_vec(&Self { version: 1, how, at })?;
        let new = path.with_extension("new");
        fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&new)?
            .write_all(&bytes)?;
        fs::rename(new, path)
    }
}

/// The two halves in which an errand travels; `None` when its output cannot.
pub(super) fn order(errand: &Errand) -> Option<(Order, Beside)> {
    let Output::Log { path, limit } = &errand.output else { return None };
    let order = Order {
        program: errand.program.as_os_str().into(),
        arguments: errand.arguments.iter().map(|a| a.as_os_str().into()).collect(),
        environment: errand
            .environment
            .iter()
            .map(|(name, value)| (name.as_os_str().into(), value.as_os_str().into()))
            .collect(),
        directory: errand.directory.as_os_str().into(),
        time_limit: errand.time_limit,
        grace: errand.grace,
        pipes: Pipes::None,
        log: path.as_os_str().into(),
        log_limit: *limit,
    };
    Some((order, Beside { outcome: errand.outcome.as_os_str().into() }))
}

/// Reads an errand that was sent with a descriptor of its control socket and its lock.
pub(super) fn receive(door: &OwnedFd) -> io::Result<Task> {
    let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let beside: Beside = wire::receive(door)?.ok_or_else(ended)?.parse()?;
    let mut packet = wire::receive(door)?.ok_or_else(ended)?;
    if packet.fds.is_empty() {
        return Err(Errno::MFILE.into());
    }
    let control = packet.fds.remove(0);
    let (command, _) = packet.into_command()?;
    let errand = Errand {
        program: command.program,
        arguments: command.arguments,
        environment: command.environment,
        directory: command.directory,
        time_limit: command.time_limit,
        grace: command.grace,
        output: Output::Log { path: command.log, limit: command.log_limit },
        held: command.held.ok_or(Errno::BADF)?,
        outcome: beside.outcome.into_os_string().into(),
    };
    Ok(Task { errand, control, starter: None, pipes: None })
}
