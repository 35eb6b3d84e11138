//! Background shells and who owns them (A19, B7).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{SessionId, TurnId};

/// The most shells of one agent that live at once.
pub const MOST_SHELLS: usize = 16;

/// The number of a shell among those of its owner, from 1; never used again. It can be guessed and
/// grants nothing: whoever names it must own it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ShellId(pub u32);

impl fmt::Display for ShellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whose a shell is: fixed when it starts, the same when tools are loaded anew. Only its owner
/// polls, writes to and stops a shell (agents_81).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerToken(SessionId);

impl OwnerToken {
    /// The token of the agent with this id.
    pub fn of(agent: &SessionId) -> Self {
        Self(agent.clone())
    }
}

/// A live shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    /// The turn that started it.
    pub turn: TurnId,
    /// The command, on one line.
    pub command: String,
}

/// How a shell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShellFate {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// By its time limit.
    TimedOut,
    /// By its owner, or with its owner's turn.
    Stopped,
    /// Nobody knows: the engine ended before it did.
    Lost,
}

impl fmt::Display for ShellFate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "ended with status {status}"),
            Self::Signalled(signal) => write!(f, "was ended by signal {signal}"),
            Self::TimedOut => f.write_str("was ended by its time limit"),
            Self::Stopped => f.write_str("was stopped"),
            Self::Lost => f.write_str("was lost: how it ended is not known"),
        }
    }
}
