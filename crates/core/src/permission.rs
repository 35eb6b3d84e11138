//! How much is asked, and the one live queue of requests of a root session.

use serde::{Deserialize, Serialize};

use crate::id::{PermissionId, TurnId};
use crate::path::AgentPath;

/// How much is asked. No aliases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Edits and commands ask.
    Ask,
    /// Edits inside writable roots are allowed, commands ask.
    Edits,
    /// Nothing asks.
    FullAuto,
}

/// What a tool is about to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// Write one file inside a writable root, named so that no other file of the session has the
    /// name.
    Edit(String),
    /// Run one command line.
    Command(String),
}

/// What an answer for the session covers: this deed exactly, from any agent of the session.
pub type Grant = Deed;

/// How a request was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Allowed this time.
    Once,
    /// Allowed, and the same again without asking.
    Session,
    /// Denied by the person.
    Denied,
    /// Its turn ended first.
    Withdrawn,
    /// Nobody could answer.
    Headless,
}

/// A request in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its id.
    pub id: PermissionId,
    /// Who asks.
    pub path: AgentPath,
    /// In which turn.
    pub turn: TurnId,
    /// What would be allowed.
    pub grant: Grant,
    /// One line for the person.
    pub subject: String,
}

/// What the rules say of a deed before anybody is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Go ahead.
    Allow,
    /// Ask the person.
    Ask,
    /// Never, in this mode: the plan ceiling forbids it.
    Forbid,
}

/// Judges a deed (A13, A15): the ceiling first, then grants, then the mode.
pub fn judge(mode: Mode, plan_ceiling: bool, granted: bool, deed: &Deed) -> Verdict {
    match (plan_ceiling, granted, mode, deed) {
        (true, ..) => Verdict::Forbid,
        (_, true, ..) | (_, _, Mode::FullAuto, _) | (_, _, Mode::Edits, Deed::Edit(_)) => {
            Verdict::Allow
        }
        _ => Verdict::Ask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_beats_grants_and_modes() {
        let edit = Deed::Edit("src/lib.rs".to_owned());
        let command = Deed::Command("make".to_owned());
        assert_eq!(judge(Mode::FullAuto, true, true, &command), Verdict::Forbid);
        assert_eq!(judge(Mode::Ask, false, false, &edit), Verdict::Ask);
        assert_eq!(judge(Mode::Ask, false, true, &edit), Verdict::Allow);
        assert_eq!(judge(Mode::Edits, false, false, &edit), Verdict::Allow);
        assert_eq!(judge(Mode::Edits, false, false, &command), Verdict::Ask);
        assert_eq!(judge(Mode::FullAuto, false, false, &command), Verdict::Allow);
    }
}
