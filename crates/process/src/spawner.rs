//! The engine's handle on the spawner process.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::net::sockopt::Timeout;
use rustix::process::{Signal, kill_process};
use stead_core::step::{self, Moment};

use crate::command::Command;
use crate::identity::{ProcessIdentity, to_pid};
use crate::pipe;
use crate::run::{Run, is_readable};
use crate::wire::{self, Part, Ready, Refusal, Report};

/// How long an answer of the spawner or of a supervisor is waited for: far longer than a loaded
/// machine needs, so that only a stuck one (a dead network directory, a stopped spawner) is hit.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why a command or the spawner itself was not started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The spawner's program could not be started, or it is no spawner.
    #[error("cannot start the spawner {}: {source}", program.display())]
    Spawner {
        /// The spawner's program.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The spawner has died; a new one can be started.
    #[error("the spawner (process {0}) is gone")]
    Gone(u32),
    /// Spawner or supervisor was killed between the request and its answer: the command may have
    /// been started, and is being ended then.
    #[error("it is not known whether {} was started: what was to start it was killed", .0.display())]
    Unknown(PathBuf),
    /// Nothing was heard for 30 s. Should the command start after all, it is ended at once.
    #[error("it is not known whether {} was started: nothing was heard for 30 s", .0.display())]
    NoAnswer(PathBuf),
    /// No executable of this name is in the command's `PATH`, or the path leads nowhere.
    #[error("there is no program {}", .0.display())]
    NotFound(PathBuf),
    /// The program is there but cannot be executed: permissions, a missing interpreter, no
    /// executable format, arguments and environment too long for the system.
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
    #[error("cannot write the log {}: {source}", path.display())]
    Log {
        /// The log's file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Directory or log is a relative path, which would mean nothing in another process.
    #[error("{} is not absolute", .0.display())]
    Relative(PathBuf),
    /// Program, arguments or environment hold a zero byte, or a variable's name is empty or holds
    /// `=`. Says which part, not its content, which may be secret.
    #[error("the {0} cannot be passed to a program")]
    Unpassable(&'static str),
    /// The system refused a socket, a process or memory.
    #[error("cannot start {}: {source}", program.display())]
    System {
        /// The program as it was asked for.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// The spawner process, as its owner sees it. May be used from many threads at once.
///
/// Dropping it lets the spawner end as soon as its last run has ended.
#[derive(Debug)]
pub struct Spawner {
    socket: OwnedFd,
    identity: ProcessIdentity,
    child: Child,
}

impl Spawner {
    /// Starts `program` with `arguments`, which must call [`serve_spawner`](crate::serve_spawner)
    /// first thing, while it has one thread. It gets an empty environment, `/` as its directory and
    /// no output. Passes the step `process.spawner-start`.
    ///
    /// # Errors
    /// [`SpawnError::Spawner`].
    pub fn start(program: &Path, arguments: &[&OsStr]) -> Result<Self, SpawnError> {
        let failed = |source| SpawnError::Spawner { program: program.to_owned(), source };
        let (mine, theirs) = wire::pair().map_err(failed)?;
        // A stopped spawner would otherwise hold up its callers once the socket is full.
        rustix::net::sockopt::set_socket_timeout(&mine, Timeout::Send, Some(PATIENCE))
            .map_err(|error| failed(error.into()))?;
        step::pass("process.spawner-start", Moment::Before);
        let mut child = std::process::Command::new(program)
            .args(arguments)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        step::pass("process.spawner-start", Moment::After);
        let identity = greet(mine.as_fd(), child.id());
        match identity {
            Ok(identity) => Ok(Self { socket: mine, identity, child }),
            Err(source) => {
                // It may hang instead of answering; the first error is the one to tell.
                let _ = child.kill();
                let _ = child.wait();
                Err(failed(source))
            }
        }
    }

    /// Starts `command` and returns when it has been executed, not when it has ended. Passes the
    /// step `process.start`.
    ///
    /// # Errors
    /// Every way in which the command cannot be executed is an error here, never an exit code.
    pub fn run(&self, command: &Command) -> Result<Run, SpawnError> {
        check(command)?;
        let failed = |source| SpawnError::System { program: (&command.program).into(), source };
        let (mine, theirs) = wire::pair().map_err(failed)?;
        let held = command.held.as_ref().map(AsFd::as_fd);
        let (kept, ends) = pipe::make(command.pipes).map_err(failed)?;
        self.awaken();
        step::pass("process.start", Moment::Before);
        wire::send_request(self.socket.as_fd(), command.into(), theirs.as_fd(), &ends, held)
            .map_err(|error| match error.raw_os_error() {
                Some(libc::EPIPE | libc::ECONNRESET) => SpawnError::Gone(self.identity.pid),
                Some(libc::EAGAIN) => SpawnError::NoAnswer((&command.program).into()),
                _ => failed(error),
            })?;
        drop((theirs, ends));
        if !is_readable(mine.as_fd(), Some(PATIENCE)).map_err(failed)? {
            return Err(SpawnError::NoAnswer((&command.program).into()));
        }
        step::pass("process.start", Moment::After);
        let Some(packet) = wire::receive(&mine).map_err(failed)? else {
            return Err(SpawnError::Unknown((&command.program).into()));
        };
        match packet.parse().map_err(failed)? {
            Report::Started(leader) => Ok(Run::new(leader, kept, mine)),
            Report::Refused(refusal) => Err(refused(command, refusal)),
            Report::Ended(_) => Err(failed(io::Error::other("the run ended before it began"))),
        }
    }

    /// A spawner that was stopped goes on: it would start nothing, and end nothing either. Its
    /// number is its own for as long as this value, which reaps it.
    fn awaken(&self) {
        if let Some(pid) = to_pid(self.identity.pid) {
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    /// The spawner process.
    pub fn identity(&self) -> ProcessIdentity {
        self.identity.clone()
    }

    /// Whether the spawner has died, so that a new one is needed. Its runs have ended then or are
    /// being ended.
    pub fn is_gone(&self) -> bool {
        !matches!(is_readable(self.socket.as_fd(), Some(Duration::ZERO)), Ok(false))
    }
}

/// The descriptor is readable when the spawner has died, and only then.
impl AsFd for Spawner {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.awaken();
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        // A dead one is reaped now; a living one goes to the init process with its owner.
        let _ = self.child.try_wait();
    }
}

fn greet(socket: BorrowedFd<'_>, pid: u32) -> io::Result<ProcessIdentity> {
    if !is_readable(socket, Some(PATIENCE))? {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let packet = wire::receive(socket)?
        .ok_or_else(|| io::Error::other("it ended at once; is it a spawner?"))?;
    let _: Ready = packet.parse()?;
    ProcessIdentity::of(pid)
}

fn check(command: &Command) -> Result<(), SpawnError> {
    for path in [&command.directory, &command.log] {
        if !path.is_absolute() {
            return Err(SpawnError::Relative(path.clone()));
        }
    }
    command.launch().check().map_err(SpawnError::Unpassable)
}

fn refused(command: &Command, refusal: Refusal) -> SpawnError {
    let source = io::Error::from_raw_os_error(refusal.code);
    let program = PathBuf::from(&command.program);
    match refusal.part {
        Part::Lookup => SpawnError::NotFound(program),
        Part::Program => SpawnError::Program { program, source },
        Part::Directory => SpawnError::Directory { path: command.directory.clone(), source },
        Part::Log => SpawnError::Log { path: command.log.clone(), source },
        Part::Supervisor => SpawnError::System { program, source },
    }
}
