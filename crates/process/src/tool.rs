//! A short program run to its end: its answer is bounded in time and in size.
//!
//! For questions to programs such as `git`, which a process with many threads may ask at any time:
//! the start takes the quick way (`posix_spawn`), whatever the size of the asking process. What an
//! agent runs goes through the [`Spawner`](crate::Spawner) instead.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use stead_core::step::{self, Moment};

use crate::group::GIVE_UP;

/// How long a tool may run when nothing else is said.
const TIME_LIMIT: Duration = Duration::from_mins(1);

/// How soon a tool that was given up is killed.
const CANCEL_LOOK: Duration = Duration::from_millis(50);

/// The most bytes of standard output when nothing else is said.
const OUTPUT_LIMIT: usize = 64 << 20;

/// The most bytes of standard error that are kept: messages for people, never an answer.
const ERROR_LIMIT: usize = 64 << 10;

/// How much is read at once: what a pipe holds.
const CHUNK: usize = 64 << 10;

/// Why a tool gave no answer. Whatever was started has been killed.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The program's path does not start at the root, so that what runs would depend on `PATH` or
    /// the directory.
    #[error("{} is not absolute", .0.display())]
    Relative(PathBuf),
    /// Nothing is at the program's path.
    #[error("there is no program {}", .0.display())]
    NotFound(PathBuf),
    /// The directory cannot be entered.
    #[error("cannot enter {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The system refused to start the program or to talk to it.
    #[error("cannot run {}: {source}", program.display())]
    System {
        /// The program.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The program had not ended when its time was over.
    #[error("{} did not end within {limit:?}", program.display())]
    TimedOut {
        /// The program.
        program: PathBuf,
        /// Its time.
        limit: Duration,
    },
    /// Whoever ran it gave it up.
    #[error("{} was given up", .0.display())]
    Cancelled(PathBuf),
    /// The program wrote more than was allowed.
    #[error("{} wrote more than {limit} bytes", program.display())]
    TooLong {
        /// The program.
        program: PathBuf,
        /// The most bytes of standard output.
        limit: usize,
    },
}

/// What a tool answered; a status other than 0 is an answer too.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// All of its standard output.
    pub stdout: Vec<u8>,
    /// The first 64 KiB of its standard error.
    pub stderr: Vec<u8>,
}

/// A program to run to its end. Nothing is inherited: it has the environment that was given (none
/// unless [`env`](Self::env) is called), `/` as its directory unless another is said, an empty
/// standard input, and a process group of its own.
#[derive(Clone)]
pub struct Tool {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: BTreeMap<OsString, OsString>,
    directory: PathBuf,
    input: Option<Vec<u8>>,
    time_limit: Duration,
    output_limit: usize,
    cancel: Option<Arc<AtomicBool>>,
}

/// Says neither environment nor input, which may hold secrets.
impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Tool {
    /// The program at an absolute path; see [`find`].
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            directory: PathBuf::from("/"),
            input: None,
            time_limit: TIME_LIMIT,
            output_limit: OUTPUT_LIMIT,
            cancel: None,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// The whole environment.
    #[must_use]
    pub fn env(mut self, environment: BTreeMap<OsString, OsString>) -> Self {
        self.environment = environment;
        self
    }

    /// The working directory.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// The bytes of its standard input, written while its output is read. A tool that ends without
    /// reading them all is no error.
    #[must_use]
    pub fn input(mut self, input: Vec<u8>) -> Self {
        self.input = Some(input);
        self
    }

    /// How long it may run; a minute unless said.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// The most bytes of its standard output; 64 MiB unless said.
    #[must_use]
    pub fn output_limit(mut self, limit: usize) -> Self {
        self.output_limit = limit;
        self
    }

    /// It is killed soon after this becomes true.
    #[must_use]
    pub fn cancel(mut self, cancel: Arc<AtomicBool>) -> Self {
        self.cancel = Some(cancel);
        self
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }

    /// Runs it to its end. Whatever of its process group is left then, or when an error is
    /// returned, is killed. Passes the step `process.tool`.
    ///
    /// # Errors
    /// A program that cannot be started, runs too long, is given up or says too much. One that ends with an
    /// exit code other than 0, or by a signal, is an [`Output`].
    pub fn run(self) -> Result<Output, ToolError> {
        if !self.program.is_absolute() {
            return Err(ToolError::Relative(self.program));
        }
        step::pass("process.tool", Moment::Before);
        let failed = |source| ToolError::System { program: self.program.clone(), source };
        let stdin = if self.input.is_some() { Stdio::piped() } else { Stdio::null() };
        let mut child = std::process::Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .envs(&self.environment)
            .current_dir(&self.directory)
            .process_group(0)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| self.not_started(source))?;
        let group = Pid::from_child(&child);
        let outcome = Talk::new(&mut child, self.input.as_deref().unwrap_or_default())
            .map_err(failed)
            .and_then(|mut talk| {
                talk.go_on(&self)?;
                Ok(talk)
            });
        // The leader is not reaped yet, so the group's number cannot be anybody else's. That there
        // is nobody left to kill is what is wanted.
        let _ = kill_process_group(group, Signal::KILL);
        let talk = outcome.inspect_err(|_| reap(&mut child, group))?;
        let status = child.wait().map_err(failed)?;
        step::pass("process.tool", Moment::After);
        let (stdout, stderr) = talk.drain(&self)?;
        Ok(Output { status, stdout, stderr })
    }

    /// The system has one reason for a missing program and a missing directory.
    fn not_started(&self, source: io::Error) -> ToolError {
        if let Err(source) = std::fs::read_dir(&self.directory) {
            return ToolError::Directory { path: self.directory.clone(), source };
        }
        if source.kind() == ErrorKind::NotFound && !self.program.exists() {
            return ToolError::NotFound(self.program.clone());
        }
        ToolError::System { program: self.program.clone(), source }
    }
}

/// The first executable file called `name` in the folders of `path`, the value of a `PATH`;
/// relative folders are passed over, because they would mean another program in every directory.
pub fn find(name: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).filter(|folder| folder.is_absolute()).find_map(|folder| {
        let program = folder.join(name);
        let runs = program.is_file() && rustix::fs::access(&program, Access::EXEC_OK).is_ok();
        runs.then_some(program)
    })
}

/// Waits for a killed process, but not for ever: one that hangs in the kernel stays behind.
fn reap(child: &mut Child, pid: Pid) {
    if let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) {
        let mut watched = [PollFd::new(&handle, PollFlags::IN)];
        let _ = poll(&mut watched, Timespec::try_from(GIVE_UP).ok().as_ref());
    }
    let _ = child.try_wait();
}

/// The pipes to a running tool, none of which blocks.
struct Talk<'a> {
    ended: OwnedFd,
    input: Option<File>,
    unwritten: &'a [u8],
    output: Pipe,
    errors: Pipe,
}

impl<'a> Talk<'a> {
    fn new(child: &mut Child, unwritten: &'a [u8]) -> io::Result<Self> {
        let ended = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
        let input = child.stdin.take().map(|pipe| nonblocking(pipe.into())).transpose()?;
        let output = child.stdout.take().ok_or(ErrorKind::BrokenPipe)?;
        let errors = child.stderr.take().ok_or(ErrorKind::BrokenPipe)?;
        Ok(Self {
            ended,
            input,
            unwritten,
            output: Pipe::new(output.into())?,
            errors: Pipe::new(errors.into())?,
        })
    }

    /// Writes and reads until the process has ended.
    fn go_on(&mut self, tool: &Tool) -> Result<(), ToolError> {
        let failed = |source| ToolError::System { program: tool.program.clone(), source };
        let deadline = Instant::now() + tool.time_limit;
        loop {
            if tool.is_cancelled() {
                return Err(ToolError::Cancelled(tool.program.clone()));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let look = tool.cancel.as_ref().map_or(left, |_| left.min(CANCEL_LOOK));
            let mut watched = vec![PollFd::new(&self.ended, PollFlags::IN)];
            watched.extend(self.input.iter().map(|file| PollFd::new(file, PollFlags::OUT)));
            for pipe in [&self.output, &self.errors] {
                watched.extend(pipe.file.iter().map(|file| PollFd::new(file, PollFlags::IN)));
            }
            let wait = Timespec::try_from(look).map_err(|e| failed(io::Error::other(e)))?;
            match poll(&mut watched, Some(&wait)) {
                Ok(0) if look < left => continue,
                Ok(0) => {
                    let (program, limit) = (tool.program.clone(), tool.time_limit);
                    return Err(ToolError::TimedOut { program, limit });
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(failed(error.into())),
            }
            let has_ended = watched.first().is_some_and(|fd| !fd.revents().is_empty());
            drop(watched);
            self.write().map_err(failed)?;
            self.read(tool)?;
            if has_ended {
                return Ok(());
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.input else { return Ok(()) };
        while !self.unwritten.is_empty() {
            match pipe.write(self.unwritten) {
                Ok(written) => self.unwritten = self.unwritten.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                Err(error) => return Err(error),
            }
        }
        self.input = None;
        Ok(())
    }

    fn read(&mut self, tool: &Tool) -> Result<(), ToolError> {
        let failed = |source| ToolError::System { program: tool.program.clone(), source };
        self.errors.read(ERROR_LIMIT).map_err(failed)?;
        if self.output.read(tool.output_limit).map_err(failed)? {
            let (program, limit) = (tool.program.clone(), tool.output_limit);
            return Err(ToolError::TooLong { program, limit });
        }
        Ok(())
    }

    /// What was still in the pipes when the process ended.
    fn drain(mut self, tool: &Tool) -> Result<(Vec<u8>, Vec<u8>), ToolError> {
        self.read(tool)?;
        Ok((self.output.bytes, self.errors.bytes))
    }
}

/// The reading end of a pipe, until its end, and what came through it.
struct Pipe {
    file: Option<File>,
    bytes: Vec<u8>,
}

impl Pipe {
    fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { file: Some(nonblocking(fd)?), bytes: Vec::new() })
    }

    /// Reads what is there, keeps at most `limit` bytes in all and says whether there was more.
    fn read(&mut self, limit: usize) -> io::Result<bool> {
        let mut chunk = vec![0; CHUNK];
        let mut is_over = false;
        while let Some(file) = &mut self.file {
            match file.read(&mut chunk) {
                Ok(0) => self.file = None,
                Ok(length) => {
                    let room = limit.saturating_sub(self.bytes.len());
                    is_over |= length > room;
                    self.bytes.extend_from_slice(chunk.get(..length.min(room)).unwrap_or_default());
                    // A program that never stops writing must not hold us here past its time.
                    if is_over {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(is_over)
    }
}

/// Only our end: the program's own end is another open file, which stays as programs expect it.
fn nonblocking(fd: OwnedFd) -> io::Result<File> {
    let flags = fcntl_getfl(fd.as_fd())?;
    fcntl_setfl(fd.as_fd(), flags | OFlags::NONBLOCK)?;
    Ok(File::from(fd))
}
