//! Exit statuses: one table, for the program, its help and the generated reference.

use std::io;
use std::process::ExitCode;

use stead_core::event::Outcome;
use stead_core::refusal::{Refusal, RefusalKind};

/// What the program exits with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit(pub(crate) u8);

impl Exit {
    /// Done.
    pub(crate) const DONE: Self = Self(0);
    /// A task errored.
    pub(crate) const ERRORED: Self = Self(1);
    /// The arguments are not usable.
    pub(crate) const USAGE: Self = Self(2);
    /// Refused.
    pub(crate) const REFUSED: Self = Self(64);
    /// Something of the person's stands in the way.
    pub(crate) const CONFLICT: Self = Self(65);
    /// What became of it is not known, or not whole.
    pub(crate) const UNKNOWN: Self = Self(66);
    /// Ended by SIGINT.
    pub(crate) const INTERRUPTED: Self = Self(130);
    /// Nobody reads what is printed.
    pub(crate) const PIPE: Self = Self(141);
    /// Ended by SIGTERM.
    pub(crate) const TERMINATED: Self = Self(143);

    /// The status of a refusal.
    pub(crate) fn of(kind: RefusalKind) -> Self {
        match kind {
            RefusalKind::InvalidArgument => Self::USAGE,
            RefusalKind::UnknownAgent
            | RefusalKind::NotFound
            | RefusalKind::NotAllowed
            | RefusalKind::PersonOnly
            | RefusalKind::NoRoom
            | RefusalKind::WrongState
            | RefusalKind::Denied
            | RefusalKind::MailWaiting
            | RefusalKind::OverBudget
            | RefusalKind::ShellsLive
            | RefusalKind::Storage
            | RefusalKind::Unreadable => Self::REFUSED,
            RefusalKind::AlreadyExists | RefusalKind::Conflict => Self::CONFLICT,
            RefusalKind::Unknown => Self::UNKNOWN,
            RefusalKind::Unavailable => Self(69),
            RefusalKind::Failed => Self::ERRORED,
        }
    }

    /// The status of the turn that a run was about.
    pub(crate) fn of_outcome(outcome: Option<Outcome>) -> Self {
        match outcome {
            Some(Outcome::Completed) => Self::DONE,
            Some(Outcome::Errored) | None => Self::ERRORED,
            Some(Outcome::Interrupted) => Self::INTERRUPTED,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}

/// The table as people read it.
pub(crate) const TABLE: &[(&str, &str)] = &[
    ("0", "done"),
    ("1", "a task errored, or `doctor` found something wrong"),
    ("2", "the arguments are not usable"),
    ("64", "refused; a line says why, a hint what helps"),
    ("65", "conflict with what is stored, or with your own changes"),
    ("66", "the outcome is not known, or an apply is half-way; look again"),
    ("69", "the engine cannot be reached, or is of another version and at work"),
    ("71", "there is no worktree or folder to run in"),
    ("72", "no room for a run, with `--no-wait`"),
    ("73", "waited too long for room"),
    ("74", "no ports are left"),
    ("75", "the place is being released"),
    ("76", "the release is not complete"),
    ("77", "the facts of this host cannot be used"),
    ("124", "a time limit was reached"),
    ("126/7", "the command of `exec` cannot be executed, or is not there"),
    ("128+N", "ended by signal N: 130 interrupted, 141 nobody read the output, 143 terminated"),
];

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It was refused.
    Refused(Refusal),
    /// It was sent, and what became of it is not known.
    Unknown(Refusal),
    /// Its answer cannot be written.
    Output(io::Error),
}

impl Failure {
    /// What the program exits with.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Refused(refusal) => Exit::of(refusal.kind),
            Self::Unknown(_) => Exit::UNKNOWN,
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::PIPE,
            Self::Output(_) => Exit::ERRORED,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// What a command comes to.
pub(crate) type Done = Result<Exit, Failure>;

/// A refusal because of an argument.
pub(crate) fn usage(line: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::InvalidArgument, line)
}
