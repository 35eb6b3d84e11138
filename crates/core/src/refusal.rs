//! Refusals: what stead answers instead of doing something, as values.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What sort of refusal this is; faces map it to exit statuses and protocol codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// An argument does not parse or is out of bounds.
    InvalidArgument,
    /// No agent has that address, or it is not published yet.
    UnknownAgent,
    /// No session, task, shell, permission request or position of that name.
    NotFound,
    /// Somebody or something of that name is there already.
    AlreadyExists,
    /// The caller may not do this to that object.
    NotAllowed,
    /// Only a person may do this.
    PersonOnly,
    /// As many agents are active as the session allows.
    NoRoom,
    /// A budget is used up.
    OverBudget,
    /// Background shells of the agent live, and must end first.
    ShellsLive,
    /// The object is not in a state that allows it: a turn runs, has ended, is another one.
    WrongState,
    /// A permission request was denied or nobody could answer it.
    Denied,
    /// Mail that must be heard first has arrived for the agent.
    MailWaiting,
    /// What was asked for contradicts what is stored.
    Conflict,
    /// Something could not be stored or read; nothing was changed.
    Storage,
    /// Something was begun, and how it ended is half-way, or cannot be recorded or told yet.
    Unknown,
    /// What a decision rests on is damaged or from a newer program.
    Unreadable,
    /// The engine is being stopped, or another one holds the home.
    Unavailable,
    /// Something failed outside stead: a program, a file, a model.
    Failed,
}

/// A refusal: a kind, one line that names the thing, one hint that names the command that helps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What sort it is.
    pub kind: RefusalKind,
    /// One line that names the thing.
    pub line: String,
    /// What to do about it, naming the command or field that helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Refusal {
    /// A refusal without a hint.
    pub fn new(kind: RefusalKind, line: impl Into<String>) -> Self {
        Self { kind, line: line.into(), hint: None }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}
