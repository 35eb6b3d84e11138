//! The starter's side of a run whose output goes to it.

use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::Signal;

use super::said::Said;
use super::{Kept, Signals};
use crate::run::{How, timespec};
use crate::wire;

/// How long an unfinished line is kept back, so that lines of several runs do not mix.
const PARTIAL: Duration = Duration::from_millis(50);

/// The longest line that is kept back.
const LONGEST: usize = 64 * 1024;

/// How long the keeper of a supervisor that was killed may take to end the run's processes.
const CLEARING: Duration = Duration::from_secs(10);

/// Which output something was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// What a relayed run came to.
#[derive(Debug)]
pub struct Finish {
    /// How the command ended.
    pub how: How,
    /// The first signal that this process got meanwhile, which ended the run.
    pub signal: Option<Signal>,
    /// Why the output could not be passed on any more, which ended the run.
    pub broken: Option<io::Error>,
}

struct Pipe {
    stream: Stream,
    held: Vec<u8>,
    since: Instant,
    is_open: bool,
}

impl Kept {
    /// Passes the output on, whole lines at a time as far as they come soon, until the command has
    /// ended; what it left behind may go on writing, which nobody waits for. Each of `signals` ends
    /// the run: the first is forwarded, the second kills.
    ///
    /// # Errors
    /// The system's; the run is ended by dropping it then.
    pub fn relay(
        mut self,
        signals: &Signals,
        mut write: impl FnMut(Stream, &[u8]) -> io::Result<()>,
    ) -> io::Result<Finish> {
        let mut pipes = [Stream::Output, Stream::Error].map(|stream| Pipe {
            stream,
            held: Vec::new(),
            since: Instant::now(),
            is_open: true,
        });
        let mut finish = Finish { how: How::Lost, signal: None, broken: None };
        let mut buffer = vec![0; LONGEST];
        loop {
            let now = Instant::now();
            let limit = pipes
                .iter()
                .filter(|pipe| !pipe.held.is_empty())
                .map(|pipe| (pipe.since + PARTIAL).saturating_duration_since(now))
                .min();
            let ready = self.wait(signals, &pipes, limit)?;
            let [has_said, has_signal, ..] = ready;
            // What the command wrote before its end is in the pipes before the end is said; a pipe
            // is read to what it can hold, not to an end that others may put off.
            let said = if has_said { Some(wire::receive(&self.control)?) } else { None };
            let rounds = if said.is_some() { 1 + PIPE_ROUNDS } else { 1 };
            for (file, pipe) in self.streams.iter_mut().flatten().zip(&mut pipes) {
                for _ in 0..rounds {
                    if !pipe.is_open || !pipe.take(file, &mut buffer) {
                        break;
                    }
                    pipe.pass(&mut write, &mut finish, false);
                }
                let is_late = pipe.since.elapsed() >= PARTIAL;
                pipe.pass(&mut write, &mut finish, is_late || said.is_some());
            }
            if let Some(said) = said {
                if let Some(Ok(Said::Ended(how))) = said.map(|packet| packet.parse::<Said>()) {
                    finish.how = how;
                } else {
                    self.wait_for_keeper();
                }
                return Ok(finish);
            }
            if has_signal {
                while let Some(signal) = signals.next() {
                    let again = finish.signal.replace(finish.signal.unwrap_or(signal)).is_some();
                    self.stop(if again { Signal::KILL } else { signal })?;
                }
            }
            if finish.broken.is_some() && finish.signal.is_none() {
                finish.signal = Some(Signal::PIPE);
                self.stop(Signal::TERM)?;
            }
        }
    }

    fn wait(
        &self,
        signals: &Signals,
        pipes: &[Pipe; 2],
        limit: Option<Duration>,
    ) -> io::Result<[bool; 4]> {
        let [out, err] = match &self.streams {
            Some([out, err]) => [Some(out.as_fd()), Some(err.as_fd())],
            None => [None, None],
        };
        let [is_out, is_err] = [0, 1].map(|at| pipes.get(at).is_some_and(|pipe| pipe.is_open));
        let watched = [
            Some(self.control.as_fd()),
            Some(signals.as_fd()),
            out.filter(|_| is_out),
            err.filter(|_| is_err),
        ];
        let mut fds: Vec<PollFd<'_>> = watched
            .iter()
            .flatten()
            .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
            .collect();
        match poll(&mut fds, limit.map(timespec).as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut rest = fds.iter().map(|fd| !fd.revents().is_empty());
        Ok(watched.map(|fd| fd.is_some() && rest.next().unwrap_or(false)))
    }

    /// The supervisor was killed; the keeper is ending what it leaves.
    fn wait_for_keeper(&self) {
        let deadline = Instant::now() + CLEARING;
        while self.keeper.is_alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// How many buffers hold what a pipe holds, whoever made it larger: Linux gives 1 MiB at most to
/// those who are not root.
const PIPE_ROUNDS: usize = 16;

impl Pipe {
    /// Reads what is there, at most a buffer; says whether there may be more.
    fn take(&mut self, file: &mut std::fs::File, buffer: &mut [u8]) -> bool {
        match file.read(buffer) {
            Ok(0) => {
                self.is_open = false;
                false
            }
            Ok(length) => {
                if self.held.is_empty() {
                    self.since = Instant::now();
                }
                self.held.extend_from_slice(buffer.get(..length).unwrap_or_default());
                true
            }
            Err(error) => {
                self.is_open =
                    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
                false
            }
        }
    }

    /// Passes on the whole lines, or everything.
    fn pass(
        &mut self,
        write: &mut impl FnMut(Stream, &[u8]) -> io::Result<()>,
        finish: &mut Finish,
        everything: bool,
    ) {
        let whole = self.held.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let is_all = everything || !self.is_open || self.held.len() >= LONGEST;
        let count = if is_all { self.held.len() } else { whole };
        if count == 0 {
            return;
        }
        let rest = self.held.split_off(count);
        if finish.broken.is_none()
            && let Err(error) = write(self.stream, &self.held)
        {
            finish.broken = Some(error);
        }
        self.held = rest;
        self.since = Instant::now();
    }
}
