//! The supervisor of a kept run: it holds the lock while the command runs, and no longer.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitStatus};

use super::said::{Outcome, Said, Wish};
use super::signals::Signals;
use super::{Errand, Output};
use crate::group::{self, GIVE_UP};
use crate::identity::{ProcessIdentity, from_pid};
use crate::log::Log;
use crate::run::{How, timespec};
use crate::sink::{PIPE_SIZE, Sink};
use crate::supervisor::{DONE, LEFT_SOME};
use crate::wire::{self, Part, Refusal};

/// What a supervisor takes over from its keeper.
pub(super) struct Inherited {
    pub(super) control: OwnedFd,
    /// Readable when the keeper has died.
    pub(super) keeper: OwnedFd,
    pub(super) signals: Signals,
    /// Where the command writes.
    pub(super) ends: [OwnedFd; 2],
    /// The pipe that is read here, when the output goes to a log.
    pub(super) output: Option<File>,
}

/// Serves one run from its start to its end; gives the exit code.
pub(super) fn supervise(errand: Errand, inherited: Inherited) -> i32 {
    let Inherited { control, keeper, signals, ends, output } = inherited;
    match is_told_to_go(&control) {
        Ok(true) => {}
        // Its starter is gone or has thought better of it.
        Ok(false) | Err(_) => return DONE,
    }
    let started = enter()
        .map_err(|error| Refusal::new(Part::Supervisor, &error))
        .and_then(|()| sink(&errand, output))
        .and_then(|sink| Ok((sink, start(&errand, &ends)?)));
    drop(ends);
    let (sink, leader) = match started {
        Ok(started) => started,
        Err(refusal) => {
            // A starter that is gone needs no refusal.
            let _ = wire::send(&control, &Said::Refused(refusal));
            return DONE;
        }
    };
    let mut watch = Watch {
        control: Some(control),
        keeper: Some(keeper),
        signals,
        leader,
        sink,
        phase: Phase::Running { until: Instant::now().checked_add(errand.time_limit) },
        errand,
        status: None,
        cause: None,
        childless: false,
    };
    watch.announce();
    watch.until_ended();
    watch.finish()
}

/// Waits for the word to start; says whether it came.
fn is_told_to_go(control: &OwnedFd) -> io::Result<bool> {
    let Some(packet) = wire::receive(control)? else { return Ok(false) };
    Ok(matches!(packet.parse::<Wish>()?, Wish::Go))
}

fn enter() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let _ = rustix::thread::set_name(c"stead-run");
    Ok(())
}

fn sink(errand: &Errand, output: Option<File>) -> Result<Option<Sink>, Refusal> {
    let (Output::Log { path, limit }, Some(output)) = (&errand.output, output) else {
        return Ok(None);
    };
    let log = Log::create(path, *limit).map_err(|error| Refusal::new(Part::Log, &error))?;
    Ok(Some(Sink::new(output, log, vec![0; PIPE_SIZE])))
}

fn start(errand: &Errand, [out, err]: &[OwnedFd; 2]) -> Result<Pid, Refusal> {
    let null = File::open("/dev/null").map_err(|error| Refusal::new(Part::Supervisor, &error))?;
    errand.launch().start([null.as_fd(), out.as_fd(), err.as_fd()])
}

#[derive(Clone, Copy)]
enum Phase {
    /// The command runs; `None` is a limit beyond the clock's range.
    Running { until: Option<Instant> },
    /// A first signal was sent.
    Ending { until: Instant },
    /// KILL is sent again and again.
    Killing { next: Instant, until: Instant },
}

struct Watch {
    control: Option<OwnedFd>,
    keeper: Option<OwnedFd>,
    signals: Signals,
    errand: Errand,
    leader: Pid,
    sink: Option<Sink>,
    phase: Phase,
    status: Option<WaitStatus>,
    /// Why the tree is being ended before the command ended by itself.
    cause: Option<How>,
    childless: bool,
}

impl Watch {
    fn announce(&mut self) {
        let said = ProcessIdentity::of(from_pid(self.leader)).and_then(|leader| {
            let Some(control) = &self.control else { return Ok(()) };
            let supervisor = ProcessIdentity::of_self()?;
            wire::send(control, &Said::Started { supervisor, leader })
        });
        if said.is_err() {
            self.lose_starter();
        }
    }

    fn until_ended(&mut self) {
        loop {
            self.childless = group::reap(self.leader, &mut self.status);
            let now = Instant::now();
            match self.phase {
                // What it left lives on: that is what a place is for.
                Phase::Running { .. } if self.status.is_some() => return,
                Phase::Running { until: Some(until) } if now >= until => {
                    self.end(How::TimedOut, Signal::TERM);
                }
                Phase::Ending { .. } | Phase::Killing { .. } if self.childless => return,
                Phase::Ending { until } if now >= until => self.kill(),
                Phase::Killing { until, .. } if now >= until => return,
                Phase::Killing { next, until } if now >= next => {
                    group::signal_own(Signal::KILL);
                    self.phase = Phase::Killing { next: now + group::BETWEEN_WALKS, until };
                }
                _ => {}
            }
            self.wait();
        }
    }

    /// Begins to end the tree; asked for a second time, it ends it without further grace.
    fn end(&mut self, cause: How, signal: Signal) {
        match self.phase {
            Phase::Running { .. } => {
                if self.status.is_none() {
                    self.cause = Some(cause);
                }
                group::signal_own(signal);
                self.phase = Phase::Ending { until: Instant::now() + self.errand.grace };
            }
            Phase::Ending { .. } if cause == How::Stopped => self.kill(),
            Phase::Ending { .. } | Phase::Killing { .. } => {}
        }
    }

    fn kill(&mut self) {
        let now = Instant::now();
        self.phase = Phase::Killing { next: now, until: now + GIVE_UP };
    }

    fn wait(&mut self) {
        let until = match self.phase {
            Phase::Running { until } => until,
            Phase::Ending { until } => Some(until),
            Phase::Killing { next, .. } => Some(next),
        };
        let limit = until.map(|until| timespec(until.saturating_duration_since(Instant::now())));
        let output = self.sink.as_ref().and_then(Sink::output);
        let watched = [
            Some(self.signals.as_fd()),
            self.control.as_ref().map(AsFd::as_fd),
            self.keeper.as_ref().map(AsFd::as_fd),
            output,
        ];
        let mut fds: Vec<PollFd<'_>> = watched
            .iter()
            .flatten()
            .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
            .collect();
        if poll(&mut fds, limit.as_ref()).is_err() {
            return;
        }
        let mut rest = fds.iter().map(|fd| !fd.revents().is_empty());
        let [_, has_wish, has_death, has_output] =
            watched.map(|fd| fd.is_some() && rest.next().unwrap_or(false));
        if has_output && let Some(sink) = &mut self.sink {
            sink.read_some();
        }
        while let Some(signal) = self.signals.next() {
            if signal != Signal::CHILD {
                self.end(How::Stopped, Signal::TERM);
            }
        }
        if has_wish {
            self.hear();
        }
        if has_death {
            // Nobody would take over what the command leaves.
            self.keeper = None;
            self.end(How::Lost, Signal::TERM);
        }
    }

    fn hear(&mut self) {
        let Some(control) = &self.control else { return };
        match wire::receive(control).ok().flatten().map(|packet| packet.parse::<Wish>()) {
            Some(Ok(Wish::Stop { signal })) => {
                self.end(How::Stopped, Signal::from_named_raw(signal).unwrap_or(Signal::TERM));
            }
            Some(Ok(Wish::Go) | Err(_)) => {}
            None => self.lose_starter(),
        }
    }

    /// A run whose output goes to a log is recorded and goes on.
    fn lose_starter(&mut self) {
        self.control = None;
        if self.sink.is_none() {
            self.end(How::Stopped, Signal::TERM);
        }
    }

    fn finish(self) -> i32 {
        let is_whole = self.cause.is_none() || self.childless;
        let how = How::of(self.cause, self.status);
        if let Some(mut sink) = self.sink {
            // What was in the pipe when the command ended is its output; what others add is not
            // waited for.
            sink.drain();
            sink.finish();
        }
        // Whoever started it hears of the end all the same.
        let _ = Outcome::write(&self.errand.outcome, how);
        // Whoever hears of the end finds the lock free.
        drop(self.errand);
        if let Some(control) = &self.control {
            let _ = wire::send(control, &Said::Ended(how));
        }
        if is_whole { DONE } else { LEFT_SOME }
    }
}
