//! The supervisor of one run: a forked copy of the spawner that starts the command, watches it and
//! leaves no process of it behind.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal, WaitStatus};

use crate::command::Command;
use crate::group::{self, GIVE_UP};
use crate::identity::{ProcessIdentity, Stat, from_pid};
use crate::log::Log;
use crate::pipe::Theirs;
use crate::run::{Ended, How, timespec};
use crate::sink::{PIPE_SIZE, Sink};
use crate::wire::{self, Part, Refusal, Report, Wish};

/// How long the descendants of a command that ended by itself may go on, and its output be read.
const LEAK_GRACE: Duration = Duration::from_millis(100);

/// The most grace that leftovers of a command get which ended by itself.
const LEFTOVER_GRACE: Duration = Duration::from_millis(500);

/// How many survivors are named.
const MOST_NAMES: usize = 16;

/// What a supervisor exits with: after a whole run, and when it leaves processes to the guardian.
pub(crate) const DONE: i32 = 0;
pub(crate) const LEFT_SOME: i32 = 3;

/// The descriptors that a supervisor takes over from its spawner.
pub(crate) struct Inherited {
    /// Readable when the spawner has died.
    pub(crate) spawner: OwnedFd,
    /// Readable when a child has changed.
    pub(crate) children: OwnedFd,
    /// Where the one request comes from that this supervisor serves, with the run's socket, whose
    /// other end the engine has, as its first descriptor.
    pub(crate) requests: OwnedFd,
}

/// Waits for a request and serves its run to the end; gives the exit code.
pub(crate) fn supervise(inherited: Inherited) -> i32 {
    let Inherited { spawner, children, requests } = inherited;
    let prepared = Prepared::new();
    // The spawner needs nobody any more, or it is gone.
    let Ok(Some(mut packet)) = wire::receive(&requests) else { return DONE };
    drop(requests);
    if packet.fds.is_empty() {
        // They were lost on the way: too many are open here. The spawner closes the run's socket.
        return DONE;
    }
    let engine = packet.fds.remove(0);
    let started = prepared
        .and_then(|prepared| Ok((prepared, packet.into_command()?)))
        .map_err(|error| Refusal::new(Part::Supervisor, &error))
        .and_then(|(prepared, (command, ends))| {
            Ok((prepared.start(&command, ends)?, prepared, command))
        });
    let ((log, leader), prepared, command) = match started {
        Ok(started) => started,
        Err(refusal) => {
            // An engine that is gone needs no refusal.
            let _ = wire::send(&engine, &Report::Refused(refusal));
            return DONE;
        }
    };
    let Prepared { null, read, write, buffer } = prepared;
    // What the command has is not to be held here, so that the end of its output is seen.
    drop((null, write));
    let mut watch = Watch {
        spawner,
        children,
        engine,
        leader,
        sink: Sink::new(read, log, buffer),
        grace: command.grace,
        status: None,
        cause: None,
        phase: Phase::Running { until: Instant::now().checked_add(command.time_limit) },
        childless: false,
        survivors: Vec::new(),
        survivor_count: 0,
        engine_gone: false,
        spawner_gone: false,
    };
    watch.announce();
    watch.until_ended();
    watch.finish(command.held)
}

/// What can be done for a run before it is asked for.
struct Prepared {
    null: File,
    read: File,
    write: OwnedFd,
    buffer: Vec<u8>,
}

impl Prepared {
    fn new() -> io::Result<Self> {
        rustix::process::setsid()?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        // For those who look at the list of processes.
        let _ = rustix::thread::set_name(c"stead-run");
        let null = File::open("/dev/null")?;
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&read, OFlags::NONBLOCK)?;
        Ok(Self { null, read: File::from(read), write, buffer: vec![0; PIPE_SIZE] })
    }

    /// Starts the command. Its ends of its pipes are its own alone afterwards.
    fn start(&self, command: &Command, ends: Theirs) -> Result<(Log, Pid), Refusal> {
        let log = Log::create(&command.log, command.log_limit)
            .map_err(|error| Refusal::new(Part::Log, &error))?;
        let Theirs { stdin, stdout } = ends;
        let stdin = stdin.as_ref().map_or(self.null.as_fd(), AsFd::as_fd);
        let stdout = stdout.as_ref().unwrap_or(&self.write).as_fd();
        let stdio = [stdin, stdout, self.write.as_fd()];
        Ok((log, command.launch().start(stdio)?))
    }
}

#[derive(Clone, Copy)]
enum Phase {
    /// The command runs; `None` is a limit beyond the clock's range.
    Running { until: Option<Instant> },
    /// It has ended by itself, but not all that it started.
    Leaking { until: Instant },
    /// TERM was sent.
    Ending { until: Instant },
    /// KILL is sent again and again.
    Killing { next: Instant, until: Instant },
}

struct Watch {
    spawner: OwnedFd,
    children: OwnedFd,
    engine: OwnedFd,
    leader: Pid,
    sink: Sink,
    grace: Duration,
    status: Option<WaitStatus>,
    /// Why the tree is being ended before the command ended by itself.
    cause: Option<How>,
    phase: Phase,
    childless: bool,
    survivors: Vec<String>,
    survivor_count: usize,
    engine_gone: bool,
    spawner_gone: bool,
}

impl Watch {
    fn announce(&mut self) {
        let said = ProcessIdentity::of(from_pid(self.leader))
            .and_then(|leader| wire::send(&self.engine, &Report::Started(leader)));
        if said.is_err() {
            self.engine_gone = true;
            self.end(How::Stopped);
        }
    }

    fn until_ended(&mut self) {
        loop {
            // As a subreaper this process becomes the parent of every orphan of the tree, so without
            // children the tree is empty.
            self.childless = group::reap(self.leader, &mut self.status);
            if self.childless {
                self.sink.drain();
                return;
            }
            let now = Instant::now();
            match self.phase {
                Phase::Running { .. } if self.status.is_some() => {
                    self.phase = Phase::Leaking { until: now + LEAK_GRACE };
                }
                Phase::Running { until: Some(until) } if now >= until => self.end(How::TimedOut),
                Phase::Leaking { until } if now >= until => {
                    // Nobody is waited for who holds the pipe open.
                    self.sink.drain();
                    self.end_leftovers();
                }
                Phase::Ending { until } if now >= until => {
                    self.phase = Phase::Killing { next: now, until: now + GIVE_UP };
                }
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

    /// Begins to end the tree of a command that still runs, or whose leftovers do.
    fn end(&mut self, cause: How) {
        if !matches!(self.phase, Phase::Running { .. } | Phase::Leaking { .. }) {
            return;
        }
        if self.status.is_none() {
            self.cause = Some(cause);
        }
        group::signal_own(Signal::TERM);
        self.phase = Phase::Ending { until: Instant::now() + self.grace };
    }

    fn end_leftovers(&mut self) {
        let members = group::own();
        let alive: Vec<Stat> = members
            .iter()
            .filter_map(|pid| Stat::of(*pid).ok())
            .filter(|stat| !stat.is_dead())
            .collect();
        self.survivor_count = alive.len();
        self.survivors = alive.into_iter().map(|stat| stat.name).take(MOST_NAMES).collect();
        group::signal_all(std::process::id(), &members, Signal::TERM);
        self.phase = Phase::Ending { until: Instant::now() + self.grace.min(LEFTOVER_GRACE) };
    }

    fn wait(&mut self) {
        let until = match self.phase {
            Phase::Running { until } => until,
            Phase::Leaking { until } | Phase::Ending { until } => Some(until),
            Phase::Killing { next, .. } => Some(next),
        };
        let limit = until.map(|until| timespec(until.saturating_duration_since(Instant::now())));
        let Self { spawner, children, engine, sink, .. } = self;
        // The descriptors of the gone stay readable and would wake us for ever.
        let mut fds = vec![PollFd::new(children, PollFlags::IN)];
        if !self.engine_gone {
            fds.push(PollFd::new(engine, PollFlags::IN));
        }
        if !self.spawner_gone {
            fds.push(PollFd::new(spawner, PollFlags::IN));
        }
        let output = sink.output();
        fds.extend(output.map(|output| PollFd::from_borrowed_fd(output, PollFlags::IN)));
        if poll(&mut fds, limit.as_ref()).is_err() {
            return;
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let mut rest = fds.iter();
        let has_child = rest.next().is_some_and(is_ready);
        let has_wish = !self.engine_gone && rest.next().is_some_and(is_ready);
        let has_death = !self.spawner_gone && rest.next().is_some_and(is_ready);
        let has_output = output.is_some() && rest.next().is_some_and(is_ready);
        if has_child {
            let mut signals = [0u8; 512];
            // Which children changed is asked of `wait`; signals of one kind merge anyway.
            let _ = rustix::io::read(children, &mut signals);
        }
        if has_output {
            self.sink.read_some();
        }
        if has_wish {
            self.hear();
        }
        if has_death {
            self.spawner_gone = true;
            self.end(How::Lost);
        }
    }

    fn hear(&mut self) {
        let wish = wire::receive(&self.engine).ok().flatten();
        if wish.is_none() {
            self.engine_gone = true;
        }
        match wish.map(|packet| packet.parse::<Wish>()) {
            // A command that has ended by itself is being cleared away already.
            Some(Ok(Wish::Stop)) if matches!(self.phase, Phase::Leaking { .. }) => {}
            Some(Err(_)) => {}
            None | Some(Ok(Wish::Stop)) => self.end(How::Stopped),
        }
    }

    fn finish(self, held: Option<OwnedFd>) -> i32 {
        let left = if self.childless { Vec::new() } else { group::own() };
        let (bytes, omitted) = self.sink.finish();
        let code = if left.is_empty() { DONE } else { LEFT_SOME };
        let how = How::of(self.cause, self.status);
        let (survivors, survivor_count) = (self.survivors, self.survivor_count);
        let ended = Ended { how, survivors, survivor_count, left, bytes, omitted };
        // Whoever hears of the end finds the lock free.
        drop(held);
        let _ = wire::send(&self.engine, &Report::Ended(ended));
        code
    }
}
