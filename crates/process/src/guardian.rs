//! The main of the spawner process: it forks a supervisor for each request, ahead of it, and ends
//! what a killed supervisor leaves behind.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open};

use crate::group;
use crate::identity::{boot_id, from_pid};
use crate::run::{is_readable, timespec};
use crate::supervisor::{self, DONE, Inherited};
use crate::system::{self, Alone, Forked};
use crate::wire::{self, Packet, Part, Ready, Refusal, Report};

/// How often strays are killed again: soon at first, then ever more seldom, because what is left
/// then cannot be killed.
const STRAY_NAP: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// How long the engine waits at most to hear that a run is lost while strays are being ended.
const LOST_WAIT: Duration = Duration::from_secs(2);

/// What a supervisor that panicked exits with.
const PANICKED: i32 = 101;

/// Serves as the spawner, with the engine's socket as standard input, until the engine has closed
/// it and no run is left. To be called first thing in `main`, before there is a second thread.
///
/// Fails when standard input is no such socket or the system refuses what a spawner needs.
pub fn serve_spawner() -> ExitCode {
    match Guardian::new().and_then(|mut guardian| guardian.serve()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

struct Guardian {
    alone: Alone,
    engine: Option<OwnedFd>,
    children: OwnedFd,
    /// A descriptor of this very process, from which its supervisors see it die.
    itself: OwnedFd,
    /// The supervisor that gets the next request; none before the first one. It is there ahead of
    /// the request because a fork, and the page faults after it, would be most of a start's time.
    waiting: Option<Waiting>,
    /// The supervisors at work, each with a second descriptor of its run's socket: the engine does
    /// not hear the end of a run whose supervisor was killed before its processes are gone.
    runs: BTreeMap<u32, OwnedFd>,
    lost: Vec<OwnedFd>,
    strays: Option<Strays>,
}

/// A supervisor without a run. It ends by itself when `requests` is closed.
struct Waiting {
    pid: u32,
    requests: OwnedFd,
}

impl Waiting {
    /// It never sends, so all there is to read is its death.
    fn is_alive(&self) -> bool {
        matches!(is_readable(self.requests.as_fd(), Some(Duration::ZERO)), Ok(false))
    }
}

/// Set while there may be processes whose supervisor is gone.
struct Strays {
    since: Instant,
    next: Instant,
    nap: Duration,
}

impl Guardian {
    fn new() -> io::Result<Self> {
        let alone = Alone::prove()?;
        let engine = system::take_stdin()?;
        system::close_all_on_exec()?;
        // A leader of its own session hears no signal of a terminal; one started by hand may
        // already be one.
        let _ = rustix::process::setsid();
        let me = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(me))?;
        let _ = rustix::thread::set_name(c"stead-spawner");
        let itself = pidfd_open(me, PidfdFlags::empty())?;
        let children = system::child_signals()?;
        // Known here, it is known to every supervisor.
        boot_id()?;
        wire::send(&engine, &Ready {})?;
        Ok(Self {
            alone,
            engine: Some(engine),
            children,
            itself,
            waiting: None,
            runs: BTreeMap::new(),
            lost: Vec::new(),
            strays: None,
        })
    }

    fn serve(&mut self) -> io::Result<()> {
        loop {
            self.reap();
            self.end_strays();
            if self.engine.is_none() && self.runs.is_empty() && self.strays.is_none() {
                return Ok(());
            }
            let limit = self
                .strays
                .as_ref()
                .map(|strays| timespec(strays.next.saturating_duration_since(Instant::now())));
            let mut fds = vec![PollFd::new(&self.children, PollFlags::IN)];
            fds.extend(self.engine.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
            match poll(&mut fds, limit.as_ref()) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
            let (has_child, has_request) =
                (ready.next().unwrap_or(false), ready.next().unwrap_or(false));
            if has_child {
                let mut signals = [0u8; 512];
                // Which children changed is asked of `wait`.
                let _ = rustix::io::read(&self.children, &mut signals);
            }
            if has_request {
                self.take_request();
            }
        }
    }

    fn take_request(&mut self) {
        // Not later: a fork while a request is held here would keep its descriptors open.
        let ready = self.prepare();
        let Some(engine) = &self.engine else { return };
        match wire::receive(engine) {
            Ok(Some(packet)) if !packet.fds.is_empty() => self.give(packet, ready),
            // A request that lost its descriptors (too many are open here) has closed its socket,
            // which tells the engine.
            Ok(Some(_)) => {}
            Err(error) if error.raw_os_error() == Some(libc::EMFILE) => {}
            Ok(None) | Err(_) => {
                self.engine = None;
                self.waiting = None;
                return;
            }
        }
        // Should it fail, the next request tells.
        let _ = self.prepare();
    }

    /// Gives a request to the supervisor that waits.
    fn give(&mut self, mut packet: Packet, ready: io::Result<()>) {
        let given = ready.and_then(|()| {
            let waiting = self.waiting.take().ok_or(Errno::CHILD)?;
            wire::forward(&waiting.requests, &packet).map(|()| waiting.pid)
        });
        let run = packet.fds.swap_remove(0);
        match given {
            Ok(pid) => drop(self.runs.insert(pid, run)),
            Err(error) => {
                let refusal = Refusal::new(Part::Supervisor, &error);
                // An engine that is gone needs no refusal.
                let _ = wire::send(&run, &Report::Refused(refusal));
            }
        }
    }

    /// Sees to it that a supervisor waits.
    fn prepare(&mut self) -> io::Result<()> {
        if self.waiting.as_ref().is_some_and(Waiting::is_alive) {
            return Ok(());
        }
        let (requests, theirs) = wire::pair()?;
        match system::fork(&self.alone)? {
            Forked::Parent(pid) => self.waiting = Some(Waiting { pid: from_pid(pid), requests }),
            Forked::Child => {
                drop(requests);
                let code = catch_unwind(AssertUnwindSafe(|| self.become_supervisor(theirs)));
                system::exit_now(code.unwrap_or(PANICKED));
            }
        }
        Ok(())
    }

    /// In the child: gives up what is the spawner's, so that neither the engine nor another run
    /// waits for this process.
    fn become_supervisor(&mut self, requests: OwnedFd) -> i32 {
        self.engine = None;
        self.waiting = None;
        self.runs.clear();
        self.lost.clear();
        let spawner = self.itself.as_fd().try_clone_to_owned();
        let children = self.children.as_fd().try_clone_to_owned();
        match (spawner, children) {
            (Ok(spawner), Ok(children)) => {
                supervisor::supervise(Inherited { spawner, children, requests })
            }
            // The closed socket tells that none waits.
            (Err(_), _) | (_, Err(_)) => DONE,
        }
    }

    fn reap(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                // A supervisor that stands still ends nothing and holds what it holds for ever; a
                // command can do that to its own.
                Ok(Some((pid, status))) if status.stopped() => {
                    if self.is_supervisor(from_pid(pid)) {
                        let _ = kill_process(pid, Signal::CONT);
                    }
                }
                Ok(Some((pid, status))) => {
                    self.waiting.take_if(|waiting| waiting.pid == from_pid(pid));
                    let Some(run) = self.runs.remove(&from_pid(pid)) else { continue };
                    if status.exit_status() != Some(DONE) {
                        self.lost.push(run);
                        let now = Instant::now();
                        self.strays = Some(Strays { since: now, next: now, nap: STRAY_NAP.0 });
                    }
                }
                Err(Errno::INTR) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn is_supervisor(&self, pid: u32) -> bool {
        self.runs.contains_key(&pid) || self.waiting.as_ref().is_some_and(|w| w.pid == pid)
    }

    fn end_strays(&mut self) {
        if self.strays.is_none() {
            return;
        }
        let me = std::process::id();
        let mut roots = group::children(me);
        roots.retain(|child| !self.is_supervisor(*child));
        let Some(strays) = &mut self.strays else { return };
        let now = Instant::now();
        if roots.is_empty() {
            self.lost.clear();
            self.strays = None;
            return;
        }
        if now.duration_since(strays.since) > LOST_WAIT {
            self.lost.clear();
        }
        if now >= strays.next {
            group::signal_all(me, &group::descendants(roots), Signal::KILL);
            strays.next = now + strays.nap;
            strays.nap = (strays.nap * 2).min(STRAY_NAP.1);
        }
    }
}
