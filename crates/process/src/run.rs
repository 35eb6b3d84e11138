//! A run, seen from the engine: wait for it, stop it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::WaitStatus;
use serde::{Deserialize, Serialize};

use crate::identity::ProcessIdentity;
use crate::pipe::{Mine, Stdin, Stdout};
use crate::wire::{self, Report, Wish};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// The command exited by itself with this code.
    Exited(i32),
    /// The command was ended by this signal, which stead did not send.
    Signalled(i32),
    /// Its time was over, and its tree was ended.
    TimedOut,
    /// [`Run::stop`] was called, and its tree was ended.
    Stopped,
    /// Its supervisor or the spawner died; its tree was ended, its exit code is not known. If it
    /// was the supervisor, nothing was counted either, and the log lacks its tail.
    Lost,
}

impl How {
    /// `cause` is why the tree was ended before the command ended by itself, `status` the command's
    /// own, if it was seen.
    pub(crate) fn of(cause: Option<Self>, status: Option<WaitStatus>) -> Self {
        let exited = || status?.exit_status().map(Self::Exited);
        let signalled = || status?.terminating_signal().map(Self::Signalled);
        cause.or_else(exited).or_else(signalled).unwrap_or(Self::Lost)
    }
}

/// The outcome of a run. When it can be read, no process of the run is left, but for what
/// [`left`](Self::left) names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// How the command itself ended.
    pub how: How,
    /// The names of processes that were still there 100 ms after the command had ended by itself,
    /// and were ended then; at most 16.
    pub survivors: Vec<String>,
    /// How many such processes there were.
    pub survivor_count: usize,
    /// Process numbers that could not be ended within 5 s of KILL (another user's, or stuck in the
    /// kernel); the spawner goes on trying.
    pub left: Vec<u32>,
    /// All bytes that the command and its processes wrote, but for a piped standard output.
    pub bytes: u64,
    /// Those of them that are not in the log: between its head and its tail, where the log has the
    /// marker, or because the log could not be written.
    pub omitted: u64,
}

impl Ended {
    fn lost() -> Self {
        Self {
            how: How::Lost,
            survivors: Vec::new(),
            survivor_count: 0,
            left: Vec::new(),
            bytes: 0,
            omitted: 0,
        }
    }
}

/// Why a run could not be waited for or stopped.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The system refused, or what came over the run's socket was no report.
    #[error("cannot {act} the run of process {pid}: {source}")]
    System {
        /// `wait for` or `stop`.
        act: &'static str,
        /// The command's process number.
        pid: u32,
        /// The system's reason.
        source: io::Error,
    },
}

/// A command that was started. Dropping it ends the run, as the death of the engine does.
#[derive(Debug)]
pub struct Run {
    /// The command's first process, which leads a session of its own.
    pub leader: ProcessIdentity,
    /// Writes to its standard input, if [`Command::pipes`](crate::Command::pipes) asked for it; to
    /// be taken out or dropped by whoever has written all.
    pub stdin: Option<Stdin>,
    /// Reads its standard output, if that was asked for. What it holds when the run has ended can
    /// still be read.
    pub stdout: Option<Stdout>,
    socket: OwnedFd,
    ended: Option<Ended>,
}

impl Run {
    pub(crate) fn new(leader: ProcessIdentity, pipes: Mine, socket: OwnedFd) -> Self {
        let Mine { stdin, stdout } = pipes;
        Self { leader, stdin, stdout, socket, ended: None }
    }

    /// Waits until the run has ended, at most `limit` (`None`: without end; zero: just looks).
    /// Gives `None` when it still goes on, and the same outcome again once it has ended.
    pub fn wait(&mut self, limit: Option<Duration>) -> Result<Option<Ended>, RunError> {
        if self.ended.is_none()
            && is_readable(self.socket.as_fd(), limit).map_err(self.failed("wait for"))?
        {
            let packet = wire::receive(&self.socket).map_err(self.failed("wait for"))?;
            self.ended = Some(match packet {
                None => Ended::lost(),
                Some(packet) => match packet.parse().map_err(self.failed("wait for"))? {
                    Report::Ended(ended) => ended,
                    Report::Started(_) | Report::Refused(_) => Ended::lost(),
                },
            });
        }
        Ok(self.ended.clone())
    }

    /// Asks the supervisor to end the whole tree: TERM, the command's grace, KILL. Returns at once;
    /// [`wait`](Self::wait) tells when it is done. A run that has ended is left as it is.
    pub fn stop(&self) -> Result<(), RunError> {
        match wire::send(&self.socket, &Wish::Stop) {
            // It has ended in the meantime.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPIPE | libc::ECONNRESET)) => {
                Ok(())
            }
            other => other.map_err(self.failed("stop")),
        }
    }

    fn failed(&self, act: &'static str) -> impl Fn(io::Error) -> RunError + use<> {
        let pid = self.leader.pid;
        move |source| RunError::System { act, pid, source }
    }
}

/// The descriptor is readable when the run has ended, and only then.
impl AsFd for Run {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Waits at most `limit` until `socket` has a packet or its other end is closed.
pub(crate) fn is_readable(socket: BorrowedFd<'_>, limit: Option<Duration>) -> io::Result<bool> {
    let deadline = limit.map(|limit| Instant::now().checked_add(limit));
    loop {
        let left = match deadline {
            // A limit beyond the clock's range is no limit.
            None | Some(None) => None,
            Some(Some(deadline)) => {
                Some(timespec(deadline.saturating_duration_since(Instant::now())))
            }
        };
        match poll(&mut [PollFd::from_borrowed_fd(socket, PollFlags::IN)], left.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
