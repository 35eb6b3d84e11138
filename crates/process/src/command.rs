//! What to run, and within which bounds.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::launch::Launch;

/// A command and its bounds. Neither environment nor directory nor open files are inherited; umask
/// and resource limits are those with which the spawner was started. Its standard input is
/// `/dev/null` unless [`pipes`](Self::pipes) says otherwise, its signals are as by default, and it
/// leads a session without a terminal.
pub struct Command {
    /// The program: a name looked up in `PATH` of [`environment`](Self::environment), or a path,
    /// where a relative one starts at [`directory`](Self::directory).
    pub program: OsString,
    /// The arguments after the program's name.
    pub arguments: Vec<OsString>,
    /// The whole environment.
    pub environment: BTreeMap<OsString, OsString>,
    /// The working directory, absolute.
    pub directory: PathBuf,
    /// How long the command may run before its tree is ended; a time beyond the clock's range, such
    /// as [`Duration::MAX`], is no limit.
    pub time_limit: Duration,
    /// How long processes may take to end after TERM before they get KILL. Leftovers of a command
    /// that ended by itself get at most half a second.
    pub grace: Duration,
    /// Which of its standard streams whoever starts it writes and reads.
    pub pipes: Pipes,
    /// The file that gets standard output and standard error, but for a piped one; absolute;
    /// truncated if it exists, made with the bits `0600` if not. A symbolic link there is refused.
    pub log: PathBuf,
    /// The most bytes that [`log`](Self::log) may have. What comes beyond is read and counted but not
    /// kept; the beginning and up to the last 256 KiB survive.
    pub log_limit: u64,
    /// A descriptor that the supervisor holds open until the run has ended, such as one of a lock;
    /// the command never gets it. The caller closes its own (by dropping this command) if the
    /// supervisor shall be the only holder.
    pub held: Option<OwnedFd>,
}

/// Which standard streams of a command are pipes to whoever starts it; see
/// [`Run::stdin`](crate::Run::stdin) and [`Run::stdout`](crate::Run::stdout).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pipes {
    /// None: there is nothing to read, and what it writes goes to the log.
    #[default]
    None,
    /// Standard input. What it writes goes to the log.
    Stdin,
    /// Standard input and standard output. Standard error goes to the log.
    StdinAndStdout,
}

impl Pipes {
    pub(crate) fn has_stdin(self) -> bool {
        self != Self::None
    }

    pub(crate) fn has_stdout(self) -> bool {
        self == Self::StdinAndStdout
    }
}

impl Command {
    pub(crate) fn launch(&self) -> Launch<'_> {
        Launch {
            program: &self.program,
            arguments: &self.arguments,
            environment: &self.environment,
            directory: &self.directory,
        }
    }
}

/// Says neither arguments nor environment, which may hold secrets.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("directory", &self.directory)
            .field("time_limit", &self.time_limit)
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}

/// Bytes that are text most of the time: JSON gets a string then, else an array of numbers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Raw {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&OsStr> for Raw {
    fn from(from: &OsStr) -> Self {
        match from.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(from.as_bytes().to_vec()),
        }
    }
}

impl Raw {
    pub(crate) fn into_os_string(self) -> OsString {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => OsString::from_vec(bytes),
        }
    }
}

/// A [`Command`] on its way to the supervisor; its descriptors go beside it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) program: Raw,
    pub(crate) arguments: Vec<Raw>,
    pub(crate) environment: Vec<(Raw, Raw)>,
    pub(crate) directory: Raw,
    pub(crate) time_limit: Duration,
    pub(crate) grace: Duration,
    pub(crate) pipes: Pipes,
    pub(crate) log: Raw,
    pub(crate) log_limit: u64,
}

impl From<&Command> for Order {
    fn from(command: &Command) -> Self {
        Self {
            program: command.program.as_os_str().into(),
            arguments: command.arguments.iter().map(|a| a.as_os_str().into()).collect(),
            environment: command
                .environment
                .iter()
                .map(|(name, value)| (name.as_os_str().into(), value.as_os_str().into()))
                .collect(),
            directory: command.directory.as_os_str().into(),
            time_limit: command.time_limit,
            grace: command.grace,
            pipes: command.pipes,
            log: command.log.as_os_str().into(),
            log_limit: command.log_limit,
        }
    }
}

impl Order {
    /// The command again, with what came beside it.
    pub(crate) fn into_command(self, held: Option<OwnedFd>) -> Command {
        Command {
            program: self.program.into_os_string(),
            arguments: self.arguments.into_iter().map(Raw::into_os_string).collect(),
            environment: self
                .environment
                .into_iter()
                .map(|(name, value)| (name.into_os_string(), value.into_os_string()))
                .collect(),
            directory: self.directory.into_os_string().into(),
            time_limit: self.time_limit,
            grace: self.grace,
            pipes: self.pipes,
            log: self.log.into_os_string().into(),
            log_limit: self.log_limit,
            held,
        }
    }
}
