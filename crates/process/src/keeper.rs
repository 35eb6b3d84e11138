//! Runs that outlive whoever started them, and leave what they leave.
//!
//! Two small processes stand behind such a run. The *keeper* takes over every process of it, also
//! one that left its group and its session; it ends when none is left, or ends them all when it gets
//! TERM. Its child, the *supervisor*, starts the command, holds the run's lock, ends the whole tree
//! when its time is over or a stop is asked for, and lets go of the lock as soon as the command has
//! ended by itself: what the command left goes on under the keeper. A supervisor that is killed takes
//! the run's processes with it, by the keeper's hand.
//!
//! A program with one thread forks its keeper ([`keep_here`]); a larger one starts it as a program
//! ([`keep_by`]) whose main is [`serve_keeper`]. The keeper is there, and can be recorded, before
//! the command is started ([`Poised::go`]): nothing ever runs that no record leads to.

mod guard;
mod relay;
mod said;
mod signals;
mod watch;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{PidfdFlags, Signal, pidfd_open};
use stead_core::step::{self, Moment};

use crate::group::{self, descendants};
use crate::identity::{ProcessIdentity, Stat, from_pid, to_pid};
use crate::launch::Launch;
use crate::pipe::Theirs;
use crate::run::{How, is_readable};
use crate::system::{self, Alone, Forked};
use crate::wire::{self, Part, Refusal};
use said::{Said, Wish};

pub use relay::{Finish, Stream};
pub use said::Outcome;
pub use signals::Signals;

/// How long the start of a command is waited for: far longer than a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a keeper that panicked exits with.
const PANICKED: i32 = 101;

/// What to run, and within which bounds. Standard input is `/dev/null`, nothing is inherited but
/// umask and resource limits, and the command leads a session without a terminal.
pub struct Errand {
    /// The program: a name looked up in `PATH` of [`environment`](Self::environment), or a path.
    pub program: OsString,
    /// The arguments after the program's name.
    pub arguments: Vec<OsString>,
    /// The whole environment.
    pub environment: BTreeMap<OsString, OsString>,
    /// The working directory, absolute.
    pub directory: PathBuf,
    /// How long the command may run before its tree is ended.
    pub time_limit: Duration,
    /// How long processes may take to end after a first signal before they get KILL.
    pub grace: Duration,
    /// Where its output goes.
    pub output: Output,
    /// A descriptor of the run's lock: the supervisor holds it until the command has ended, and
    /// nobody else does.
    pub held: OwnedFd,
    /// The file that says how the command ended, written when it has.
    pub outcome: PathBuf,
}

impl Errand {
    fn launch(&self) -> Launch<'_> {
        Launch {
            program: &self.program,
            arguments: &self.arguments,
            environment: &self.environment,
            directory: &self.directory,
        }
    }
}

/// Where a command's output goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// To its starter, which relays it. The run is ended when its starter goes.
    Streams,
    /// To a bounded file. The run goes on without its starter once that has recorded it.
    Log {
        /// The file, absolute; truncated if it exists.
        path: PathBuf,
        /// The most bytes that it may have.
        limit: u64,
    },
}

/// Why a command was not started.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// No executable of this name is in the command's `PATH`, or the path leads nowhere.
    #[error("there is no program {}", .0.display())]
    NotFound(PathBuf),
    /// The program is there but cannot be executed.
    #[error("cannot execute {}: {source}", program.display())]
    Program {
        /// The program as it was asked for.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The working directory cannot be entered.
    #[error("cannot enter {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The log cannot be opened.
    #[error("cannot write the log of the run: {0}")]
    Log(io::Error),
    /// Program, arguments or environment hold a zero byte, or a variable's name is none.
    #[error("the {0} cannot be passed to a program")]
    Unpassable(&'static str),
    /// The system refused a socket, a process or memory, or a helper of ours was killed.
    #[error("cannot start {}: {source}", program.display())]
    System {
        /// The program as it was asked for.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// A keeper that waits for the word to start the command. Dropping it ends the keeper.
#[derive(Debug)]
pub struct Poised {
    /// Who takes over everything that the run leaves, until a release.
    pub keeper: ProcessIdentity,
    control: OwnedFd,
    streams: Option<[File; 2]>,
    program: PathBuf,
    directory: PathBuf,
}

/// A command that was started. Dropping it ends a run with [`Output::Streams`].
#[derive(Debug)]
pub struct Kept {
    /// Who takes over everything that the run leaves, until a release.
    pub keeper: ProcessIdentity,
    /// Who holds the run's lock.
    pub supervisor: ProcessIdentity,
    /// The command's first process, which leads a session of its own.
    pub leader: ProcessIdentity,
    control: OwnedFd,
    streams: Option<[File; 2]>,
}

impl Poised {
    /// Starts the command, whose keeper the caller has recorded: from now on it goes on without its
    /// starter, if its output goes to a log.
    ///
    /// # Errors
    /// Every way in which the command cannot be executed is an error here, never an exit code.
    pub fn go(self) -> Result<Kept, KeepError> {
        let Self { keeper, control, streams, program, directory } = self;
        let failed = |source| KeepError::System { program: program.clone(), source };
        // Nobody is waited for before: on a busy machine each turn of another process takes long.
        wire::send(&control, &Wish::Go).map_err(failed)?;
        if !is_readable(control.as_fd(), Some(PATIENCE)).map_err(failed)? {
            return Err(failed(io::ErrorKind::TimedOut.into()));
        }
        let packet = wire::receive(&control).map_err(failed)?;
        let packet = packet.ok_or_else(|| failed(io::Error::other("the keeper was killed")))?;
        match packet.parse().map_err(failed)? {
            Said::Started { supervisor, leader } => {
                Ok(Kept { keeper, supervisor, leader, control, streams })
            }
            Said::Refused(refusal) => Err(refused(refusal, &program, &directory)),
            Said::Ended(_) => Err(failed(io::Error::other("the run ended before it began"))),
        }
    }
}

impl Kept {
    /// Ends the whole tree, beginning with `signal`: the errand's grace, then KILL. A second call
    /// shortens the grace to nothing.
    ///
    /// # Errors
    /// The system's; a run that has ended already is none.
    pub fn stop(&self, signal: Signal) -> io::Result<()> {
        match wire::send(&self.control, &Wish::Stop { signal: signal.as_raw() }) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPIPE | libc::ECONNRESET)) => {
                Ok(())
            }
            other => other,
        }
    }

    /// Waits until the command has ended, at most `limit` (`None`: without end; zero: just looks).
    /// Gives `None` when it still goes on. When it has ended, the run's lock is free; it is told
    /// once.
    ///
    /// # Errors
    /// The system's.
    pub fn ended(&self, limit: Option<Duration>) -> io::Result<Option<How>> {
        if !is_readable(self.control.as_fd(), limit)? {
            return Ok(None);
        }
        let said = wire::receive(&self.control)?.map(|packet| packet.parse::<Said>());
        Ok(Some(match said {
            Some(Ok(Said::Ended(how))) => how,
            // Its supervisor was killed, and the keeper ends what it leaves.
            _ => How::Lost,
        }))
    }
}

/// The descriptor is readable when the command has ended, and only then.
impl AsFd for Kept {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

/// Forks a keeper for the errand from this process, which must have one thread. Passes the step
/// `process.keep`.
///
/// # Errors
/// [`KeepError::Unpassable`], [`KeepError::System`].
pub fn keep_here(errand: Errand) -> Result<Poised, KeepError> {
    errand.launch().check().map_err(KeepError::Unpassable)?;
    let program = PathBuf::from(&errand.program);
    let directory = errand.directory.clone();
    let failed = |source| KeepError::System { program: program.clone(), source };
    let alone = alone().map_err(failed)?;
    let (mine, theirs) = wire::pair().map_err(failed)?;
    let starter = pidfd_open(rustix::process::getpid(), PidfdFlags::empty())
        .map_err(|error| failed(error.into()))?;
    let (streams, ends) = match errand.output {
        Output::Streams => {
            let (out, err) = (signals::pipe().map_err(failed)?, signals::pipe().map_err(failed)?);
            (Some([out.0, err.0]), Some([out.1, err.1]))
        }
        Output::Log { .. } => (None, None),
    };
    step::pass("process.keep", Moment::Before);
    let keeper = match system::fork(&alone).map_err(failed)? {
        Forked::Parent(pid) => pid,
        Forked::Child => {
            let code = catch_unwind(AssertUnwindSafe(|| {
                drop(mine);
                let pipes = streams.zip(ends);
                guard::keep(
                    &alone,
                    guard::Task { errand, control: theirs, starter: Some(starter), pipes },
                )
            }));
            system::exit_now(code.unwrap_or(PANICKED));
        }
    };
    step::pass("process.keep", Moment::After);
    drop((theirs, ends, errand));
    // Not reaped yet, whatever has become of it: the number is its own.
    let keeper = ProcessIdentity::of(from_pid(keeper)).map_err(failed)?;
    Ok(Poised { keeper, control: mine, streams, program, directory })
}

/// A thread that was waited for may be listed for a moment longer.
fn alone() -> io::Result<Alone> {
    let deadline = Instant::now() + Duration::from_secs(1);
    loop {
        match Alone::prove() {
            Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            other => return other,
        }
    }
}

/// Starts `keeper` with `arguments`, which must call [`serve_keeper`] first thing, as the keeper of
/// an errand whose output goes to a log. For a process that has threads or is large. Passes the
/// step `process.keep`.
///
/// # Errors
/// As [`keep_here`]; [`KeepError::Unpassable`] for an errand with [`Output::Streams`].
pub fn keep_by(keeper: &Path, arguments: &[&OsStr], errand: &Errand) -> Result<Poised, KeepError> {
    errand.launch().check().map_err(KeepError::Unpassable)?;
    let program = PathBuf::from(&errand.program);
    let failed = |source| KeepError::System { program: program.clone(), source };
    let Some((order, beside)) = said::order(errand) else {
        return Err(KeepError::Unpassable("streams of a starter with threads"));
    };
    let (mine, theirs) = wire::pair().map_err(failed)?;
    let (door, inside) = wire::pair().map_err(failed)?;
    step::pass("process.keep", Moment::Before);
    let mut child = std::process::Command::new(keeper)
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(inside))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let sent = wire::send(&door, &beside).and_then(|()| {
        wire::send_request(
            door.as_fd(),
            order,
            theirs.as_fd(),
            &Theirs::default(),
            Some(errand.held.as_fd()),
        )
    });
    drop(theirs);
    if let Err(error) = sent {
        // It has nothing of the errand yet; the first error is the one to tell.
        let _ = child.kill();
        let _ = child.wait();
        return Err(failed(error));
    }
    step::pass("process.keep", Moment::After);
    let keeper = ProcessIdentity::of(child.id()).map_err(failed)?;
    // The keeper lives on; whoever started it reaps it when it is gone before.
    std::thread::spawn(move || child.wait());
    let directory = errand.directory.clone();
    Ok(Poised { keeper, control: mine, streams: None, program, directory })
}

/// Serves as a keeper, with its starter's socket as standard input. To be called first thing in
/// `main`, before there is a second thread.
pub fn serve_keeper() -> ExitCode {
    let kept = Alone::prove().and_then(|alone| {
        let door = system::take_stdin()?;
        let task = said::receive(&door)?;
        drop(door);
        Ok(guard::keep(&alone, task))
    });
    match kept {
        Ok(code) if code == guard::EMPTY => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn refused(refusal: Refusal, program: &Path, directory: &Path) -> KeepError {
    let source = io::Error::from_raw_os_error(refusal.code);
    let program = program.to_owned();
    match refusal.part {
        Part::Lookup => KeepError::NotFound(program),
        Part::Program => KeepError::Program { program, source },
        Part::Directory => KeepError::Directory { path: directory.to_owned(), source },
        Part::Log => KeepError::Log(source),
        Part::Supervisor => KeepError::System { program, source },
    }
}

/// Tells each of `keepers` to end everything that it keeps, and waits at most `limit` until they
/// are gone; gives those that are not. One that has died is left out, whoever has its number now.
pub fn end_keepers(keepers: &[ProcessIdentity], limit: Duration) -> Vec<ProcessIdentity> {
    let deadline = Instant::now() + limit;
    let mut left: Vec<ProcessIdentity> = keepers.to_vec();
    for keeper in &left {
        let Some(pid) = to_pid(keeper.pid) else { continue };
        // Opened before the look: the signal reaches the process that was looked at, or nobody.
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if keeper.is_alive() {
            let _ = rustix::process::pidfd_send_signal(&handle, Signal::TERM);
            let _ = rustix::process::pidfd_send_signal(&handle, Signal::CONT);
        }
    }
    loop {
        left.retain(ProcessIdentity::is_alive);
        if left.is_empty() || Instant::now() >= deadline {
            return left;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The living processes below a keeper, by number and name.
pub fn kept_by(keeper: &ProcessIdentity) -> Vec<(u32, String)> {
    if !keeper.is_alive() {
        return Vec::new();
    }
    descendants(group::children(keeper.pid))
        .into_iter()
        .filter_map(|pid| Some((pid, Stat::of(pid).ok().filter(|stat| !stat.is_dead())?.name)))
        .collect()
}
