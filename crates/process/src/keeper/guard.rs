//! The keeper itself: it takes over what a run leaves, and ends it when it is told to.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open};

use super::said::Said;
use super::signals::{Signals, close_all_but, pipe};
use super::watch::{self, Inherited};
use super::{Errand, Output, PANICKED};
use crate::group;
use crate::run::timespec;
use crate::sink::PIPE_SIZE;
use crate::supervisor::DONE;
use crate::system::{self, Alone, Forked};
use crate::wire::{self, Part, Refusal};

/// What a keeper exits with when nothing is left.
pub(super) const EMPTY: i32 = 0;

/// How often what is being killed is killed again: soon at first, then ever more seldom, because
/// what is left then cannot be killed.
const NAP: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// What a keeper is started with.
pub(super) struct Task {
    pub(super) errand: Errand,
    /// The supervisor's end of the socket to the starter.
    pub(super) control: OwnedFd,
    /// Readable when the starter that relays the output is gone.
    pub(super) starter: Option<OwnedFd>,
    /// The pipes of standard output and error, reading and writing ends; else one is made here.
    pub(super) pipes: Option<([File; 2], [OwnedFd; 2])>,
}

/// Starts the supervisor and stays until nothing of the run is left; gives the exit code.
pub(super) fn keep(alone: &Alone, task: Task) -> i32 {
    match Keeper::start(alone, task) {
        Ok(mut keeper) => keeper.serve(),
        Err((control, error)) => {
            // A starter that is gone needs no refusal.
            let _ = wire::send(&control, &Said::Refused(Refusal::new(Part::Supervisor, &error)));
            EMPTY
        }
    }
}

struct Keeper {
    signals: Signals,
    supervisor: Option<Pid>,
    starter: Option<OwnedFd>,
    /// What the run left goes on writing to these; nobody may be ended by a pipe that nobody reads.
    outputs: Vec<File>,
    grace: Duration,
    ending: Option<Ending>,
}

/// Set while everything is being ended.
struct Ending {
    next: Instant,
    nap: Duration,
}

impl Keeper {
    fn start(alone: &Alone, task: Task) -> Result<Self, (OwnedFd, io::Error)> {
        let Task { errand, control, starter, pipes } = task;
        let prepared = enter(&errand, &control, starter.as_ref(), pipes.as_ref())
            .and_then(|prepared| Ok((prepared, pipes.map_or_else(one_pipe, Ok)?)));
        let ((signals, itself), (outputs, ends)) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Err((control, error)),
        };
        let forked = match system::fork(alone) {
            Ok(forked) => forked,
            Err(error) => return Err((control, error)),
        };
        let Forked::Parent(supervisor) = forked else {
            let code = catch_unwind(AssertUnwindSafe(|| {
                drop(starter);
                let output = match errand.output {
                    Output::Streams => None,
                    Output::Log { .. } => outputs.into_iter().next(),
                };
                watch::supervise(
                    errand,
                    Inherited { control, keeper: itself, signals, ends, output },
                )
            }));
            system::exit_now(code.unwrap_or(PANICKED));
        };
        // What was for the supervisor alone is given up with the rest of `errand` and `control`:
        // above all the run's lock, which must be free when the supervisor is gone.
        let grace = errand.grace;
        Ok(Self {
            signals,
            supervisor: Some(supervisor),
            starter,
            outputs: outputs.into(),
            grace,
            ending: None,
        })
    }

    fn serve(&mut self) -> i32 {
        loop {
            if self.reap() {
                return EMPTY;
            }
            if let Some(ending) = &mut self.ending {
                let now = Instant::now();
                if now >= ending.next {
                    group::signal_own(Signal::KILL);
                    ending.next = now + ending.nap;
                    ending.nap = (ending.nap * 2).min(NAP.1);
                }
            }
            self.wait();
        }
    }

    /// Takes the status of all children that ended; says whether none is left. As a subreaper this
    /// process becomes the parent of all that the supervisor leaves.
    fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if self.supervisor == Some(pid) => {
                    self.supervisor = None;
                    if status.exit_status() != Some(DONE) {
                        // It was killed, or could not end all: nothing is to outlive such a run.
                        self.ending = Some(Ending { next: Instant::now(), nap: NAP.0 });
                    }
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    fn wait(&mut self) {
        let limit = self
            .ending
            .as_ref()
            .map(|ending| timespec(ending.next.saturating_duration_since(Instant::now())));
        // While a starter relays the output, none of it may be taken away.
        let starter = if self.supervisor.is_none() { self.starter.as_ref() } else { None };
        let drains = self.supervisor.is_none() && starter.is_none();
        let outputs: &[File] = if drains { &self.outputs } else { &[] };
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        fds.extend(starter.map(|starter| PollFd::new(starter, PollFlags::IN)));
        fds.extend(outputs.iter().map(|output| PollFd::new(output, PollFlags::IN)));
        if poll(&mut fds, limit.as_ref()).is_err() {
            return;
        }
        let is_gone = starter.is_some() && fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        drop(fds);
        if is_gone {
            self.starter = None;
        }
        if drains {
            self.outputs.retain_mut(is_open_after_draining);
        }
        while let Some(signal) = self.signals.next() {
            if signal != Signal::CHILD {
                self.release();
            }
        }
    }

    /// Ends everything: TERM to all, the supervisor included, which then ends its run in its own
    /// way; KILL after the grace, which the supervisor has used by then.
    fn release(&mut self) {
        if self.ending.is_none() {
            group::signal_own(Signal::TERM);
            let extra = if self.supervisor.is_some() { Duration::from_secs(1) } else { NAP.0 };
            self.ending = Some(Ending { next: Instant::now() + self.grace + extra, nap: NAP.0 });
        }
    }
}

fn enter(
    errand: &Errand,
    control: &OwnedFd,
    starter: Option<&OwnedFd>,
    pipes: Option<&([File; 2], [OwnedFd; 2])>,
) -> io::Result<(Signals, OwnedFd)> {
    let mut kept: Vec<BorrowedFd<'_>> = vec![errand.held.as_fd(), control.as_fd()];
    kept.extend(starter.map(AsFd::as_fd));
    if let Some((read, write)) = pipes {
        kept.extend(read.iter().map(AsFd::as_fd));
        kept.extend(write.iter().map(AsFd::as_fd));
    }
    close_all_but(&kept)?;
    // A leader of its own session hears no signal of a terminal; one started by hand may already
    // be one.
    let _ = rustix::process::setsid();
    std::env::set_current_dir("/")?;
    let me = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(me))?;
    // For those who look at the list of processes.
    let _ = rustix::thread::set_name(c"stead-keeper");
    let itself = pidfd_open(me, PidfdFlags::empty())?;
    let all = [Signal::CHILD, Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];
    Ok((Signals::watch(&all)?, itself))
}

/// One pipe for both outputs, whose second reading end is never read.
fn one_pipe() -> io::Result<([File; 2], [OwnedFd; 2])> {
    let (read, write) = pipe()?;
    Ok(([read.try_clone()?, read], [write.try_clone()?, write]))
}

/// Reads what is there, but not for ever; says whether somebody may write more.
fn is_open_after_draining(output: &mut File) -> bool {
    let mut buffer = vec![0; PIPE_SIZE];
    match output.read(&mut buffer) {
        Ok(0) => false,
        Ok(_) => true,
        Err(error) => {
            matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        }
    }
}
