//! The ends of a command's standard streams that whoever started it keeps.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use crate::command::Pipes;
use crate::run::timespec;

/// Why a pipe to a command could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum PipeError {
    /// No process of the command reads its standard input any more.
    #[error("the command reads no more")]
    Closed,
    /// The command did not read what was written in time.
    #[error("the command did not read on within {limit:?}")]
    TimedOut {
        /// The time it had.
        limit: Duration,
        /// How many bytes it can still read: they are in the pipe, or it has them.
        written: usize,
    },
    /// The system refused.
    #[error("cannot talk to the command: {0}")]
    System(#[from] io::Error),
}

/// The writing end of a command's standard input. Dropping it ends the command's input, once what
/// was written has been read.
///
/// It never blocks by itself, so its descriptor can be given to an async runtime.
#[derive(Debug)]
pub struct Stdin(File);

impl Stdin {
    /// Writes all of `bytes`, waiting at most `limit` in all for a command that reads slowly or not
    /// at all. A pipe holds up to 64 KiB: so much is written although nobody reads.
    ///
    /// # Errors
    /// [`PipeError::Closed`], [`PipeError::TimedOut`], [`PipeError::System`]. A part of `bytes` may
    /// have been written.
    pub fn write(&mut self, bytes: &[u8], limit: Duration) -> Result<(), PipeError> {
        let deadline = Instant::now().checked_add(limit);
        let mut left = bytes;
        while !left.is_empty() {
            match self.0.write(left) {
                Ok(written) => left = left.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    return Err(PipeError::Closed);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !is_ready(self.0.as_fd(), PollFlags::OUT, deadline)? {
                        let written = bytes.len() - left.len();
                        return Err(PipeError::TimedOut { limit, written });
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The reading end of a command's standard output. A command that writes what nobody reads waits:
/// a pipe holds up to 64 KiB, and nothing else keeps it. Dropping it closes the pipe: the command is told
/// by the system when it writes next.
///
/// It never blocks by itself, so its descriptor can be given to an async runtime.
#[derive(Debug)]
pub struct Stdout(File);

impl Stdout {
    /// Reads what is there, at most as much as `buffer` holds, waiting at most `limit` for it.
    /// Gives how much came; 0 when no process of the command writes any more; `None` when nothing
    /// came in time.
    ///
    /// # Errors
    /// [`PipeError::System`].
    pub fn read(&mut self, buffer: &mut [u8], limit: Duration) -> Result<Option<usize>, PipeError> {
        let deadline = Instant::now().checked_add(limit);
        loop {
            match self.0.read(buffer) {
                Ok(length) => return Ok(Some(length)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !is_ready(self.0.as_fd(), PollFlags::IN, deadline)? {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The descriptor is writable when some of the pipe is free, or nobody reads any more.
impl AsFd for Stdin {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The descriptor is readable when there is something to read, or nobody writes any more.
impl AsFd for Stdout {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Stdin> for OwnedFd {
    fn from(stdin: Stdin) -> Self {
        stdin.0.into()
    }
}

impl From<Stdout> for OwnedFd {
    fn from(stdout: Stdout) -> Self {
        stdout.0.into()
    }
}

/// The ends that whoever starts the command keeps.
#[derive(Default)]
pub(crate) struct Mine {
    pub(crate) stdin: Option<Stdin>,
    pub(crate) stdout: Option<Stdout>,
}

/// The ends that the command gets. Nobody else may keep one: an end of the input or the output
/// would not be seen.
#[derive(Debug, Default)]
pub(crate) struct Theirs {
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<OwnedFd>,
}

/// Makes the pipes. Only the ends that are kept do not block.
pub(crate) fn make(pipes: Pipes) -> io::Result<(Mine, Theirs)> {
    let (mut mine, mut theirs) = (Mine::default(), Theirs::default());
    if pipes.has_stdin() {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&write, OFlags::NONBLOCK)?;
        mine.stdin = Some(Stdin(write.into()));
        theirs.stdin = Some(read);
    }
    if pipes.has_stdout() {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&read, OFlags::NONBLOCK)?;
        mine.stdout = Some(Stdout(read.into()));
        theirs.stdout = Some(write);
    }
    Ok((mine, theirs))
}

/// Waits until the pipe can be used; no `deadline` is one beyond the clock's range.
fn is_ready(
    pipe: BorrowedFd<'_>,
    wanted: PollFlags,
    deadline: Option<Instant>,
) -> io::Result<bool> {
    loop {
        let left = deadline.map(|until| timespec(until.saturating_duration_since(Instant::now())));
        match poll(&mut [PollFd::from_borrowed_fd(pipe, wanted)], left.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
