//! Where a run's output goes: from the pipe that the command writes to into its log.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use crate::log::Log;

/// What a pipe holds at most, unless somebody asked for more.
pub(crate) const PIPE_SIZE: usize = 64 * 1024;

pub(crate) struct Sink {
    output: Option<File>,
    log: Log,
    buffer: Vec<u8>,
}

impl Sink {
    /// `output` is the end of a pipe that is read, without blocking; `buffer` is read into.
    pub(crate) fn new(output: File, log: Log, buffer: Vec<u8>) -> Self {
        Self { output: Some(output), log, buffer }
    }

    /// Readable when there is something to read; none when nothing comes any more.
    pub(crate) fn output(&self) -> Option<BorrowedFd<'_>> {
        self.output.as_ref().map(|output| output.as_fd())
    }

    /// Reads what is there now, but at most once; gives how much it was.
    pub(crate) fn read_some(&mut self) -> usize {
        let Some(output) = &mut self.output else { return 0 };
        loop {
            match output.read(&mut self.buffer) {
                Ok(length) if length > 0 => {
                    self.log.take(self.buffer.get(..length).unwrap_or_default());
                    return length;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return 0,
                Ok(_) | Err(_) => {
                    self.output = None;
                    return 0;
                }
            }
        }
    }

    /// Reads what is in the pipe, but not for ever what an escaped process goes on writing: what
    /// was in it before is not more than it can hold. Nothing is read afterwards.
    pub(crate) fn drain(&mut self) {
        let held = self.output.as_ref().map(rustix::pipe::fcntl_getpipe_size);
        let mut left = held.and_then(Result::ok).unwrap_or(PIPE_SIZE);
        while left > 0 {
            match self.read_some() {
                0 => break,
                length => left = left.saturating_sub(length),
            }
        }
        self.output = None;
    }

    /// Ends the log. Gives all bytes that came, and how many of them are not in the file.
    pub(crate) fn finish(self) -> (u64, u64) {
        self.log.finish()
    }
}
