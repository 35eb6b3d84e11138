//! How much is asked, what may be done, and the one live queue of requests of a root session (A13).

use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::command_line;
use crate::id::{PermissionId, TurnId};
use crate::layout::{AbsoluteDir, Access};
use crate::path::AgentPath;
use crate::rule::{Bucket, Effect, PathGlob, Rule};

/// How much is asked. No aliases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Edits and commands ask.
    Ask,
    /// Edits inside writable roots are allowed, commands ask.
    Edits,
    /// Nothing asks but what an exact grant is needed for.
    FullAuto,
}

/// What a tool is about to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// Write one file, named so that no other file of the session has the name.
    Edit(String),
    /// Run one command line.
    Command(String),
    /// Read one file, named as in an edit.
    Read(String),
    /// Write these files, all or none.
    Edits(Vec<String>),
    /// What an agent process of another maker asks leave for, in its words.
    Foreign {
        /// Its words, on one line.
        title: String,
    },
}

/// As a rule about it would be written: `command:LINE`, `edit:PATH` or `read:PATH`.
impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Edit(path) => write!(f, "edit:{path}"),
            Self::Command(line) => write!(f, "command:{line}"),
            Self::Read(path) => write!(f, "read:{path}"),
            Self::Edits(paths) => write!(f, "edit:{}", paths.join(" ")),
            Self::Foreign { title } => write!(f, "foreign:{title}"),
        }
    }
}

impl Deed {
    /// The files that it touches, and how.
    fn endpoints(&self) -> Vec<(&str, Access)> {
        match self {
            Self::Edit(path) => vec![(path, Access::Write)],
            Self::Edits(paths) => paths.iter().map(|p| (p.as_str(), Access::Write)).collect(),
            Self::Read(path) => vec![(path, Access::Read)],
            Self::Command(_) | Self::Foreign { .. } => Vec::new(),
        }
    }
}

/// What an answer for the session covers: this deed exactly, from any agent of the session. A
/// grant to write covers reading; neither covers what is beside the path or below it (A13.5), and
/// none covers a command by a path or a path by a command (A13.4).
pub type Grant = Deed;

/// Where a file lies, as whoever may look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zone {
    /// In a root that the agent may use this way.
    Root,
    /// In the session's space for plans.
    Plan,
    /// Anywhere else.
    Outside,
}

/// An [`Authority`] that is kept for a while: a tool that goes through many files judges each by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// How much is asked.
    pub mode: Mode,
    /// Whether the plan ceiling is on.
    pub plan_ceiling: bool,
    /// What the person allowed.
    pub grants: Vec<Grant>,
    /// The rules, innermost bucket first.
    pub rules: Vec<(Bucket, Vec<Rule>)>,
}

impl Terms {
    /// The authority, to judge by.
    pub fn authority(&self) -> Authority<'_> {
        Authority {
            mode: self.mode,
            plan_ceiling: self.plan_ceiling,
            grants: &self.grants,
            rules: self.rules.iter().map(|(bucket, rules)| (*bucket, &**rules)).collect(),
        }
    }
}

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Go ahead.
    Allow,
    /// Ask the person.
    Ask,
    /// Never while the plan ceiling is on (A15).
    Forbid,
    /// Never: this rule denies it.
    Deny(Rule),
}

/// What a deed is judged by: of the whole session, but for the rules of the agent's role.
#[derive(Debug, Clone)]
pub struct Authority<'a> {
    /// How much is asked.
    pub mode: Mode,
    /// Whether the plan ceiling is on.
    pub plan_ceiling: bool,
    /// What the person allowed.
    pub grants: &'a [Grant],
    /// The rules, innermost bucket first.
    pub rules: Vec<(Bucket, &'a [Rule])>,
}

/// Paths that are protected wherever they lie (A13.6), in whatever case they are written: to a
/// file system `.GIT` may be the same folder.
static PROTECTED: LazyLock<Vec<(PathGlob, Effect)>> = LazyLock::new(|| {
    let inaccessible = [".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".kube"];
    std::iter::once((".git", Effect::ReadOnly))
        .chain(inaccessible.map(|path| (path, Effect::Inaccessible)))
        .filter_map(|(path, effect)| Some((PathGlob::parse(path).ok()?, effect)))
        .collect()
});

impl Authority<'_> {
    /// The same, to be kept.
    pub fn terms(&self) -> Terms {
        Terms {
            mode: self.mode,
            plan_ceiling: self.plan_ceiling,
            grants: self.grants.to_vec(),
            rules: self.rules.iter().map(|(bucket, rules)| (*bucket, rules.to_vec())).collect(),
        }
    }

    /// Judges a deed (A13.3): what denies, wherever it stands; the plan ceiling; grants and rules,
    /// innermost first; the mode; what a path needs. `zones` are those of the deed's files in their
    /// order; a file without one lies outside.
    ///
    /// A deed of several files is judged whole: what one of them needs, all of it needs.
    pub fn judge(&self, deed: &Deed, zones: &[Zone]) -> Verdict {
        let endpoints = deed.endpoints();
        let caught = |rule: &&Rule| match deed {
            Deed::Command(line) => rule.pattern.catches_command(line),
            _ => endpoints.iter().any(|(path, access)| rule.pattern.catches(path, *access)),
        };
        let mut all = self.rules.iter().flat_map(|(_, rules)| rules.iter());
        if let Some(rule) = all.find(|rule| rule.effect == Effect::Deny && caught(rule)) {
            return Verdict::Deny(rule.clone());
        }
        let zones = || zones.iter().copied().chain(std::iter::repeat(Zone::Outside));
        if self.plan_ceiling && !matches!(deed, Deed::Read(_)) {
            let planned = zones().take(endpoints.len()).all(|zone| zone == Zone::Plan);
            let allowed = planned && !endpoints.is_empty();
            return if allowed { Verdict::Allow } else { Verdict::Forbid };
        }
        let allowed = match deed {
            Deed::Command(line) => self.allows_command(deed, line),
            Deed::Foreign { .. } => self.grants.contains(deed) || self.mode == Mode::FullAuto,
            Deed::Edit(_) | Deed::Edits(_) | Deed::Read(_) => endpoints
                .iter()
                .zip(zones())
                .all(|((path, access), zone)| self.allows_path(path, *access, zone)),
        };
        if allowed { Verdict::Allow } else { Verdict::Ask }
    }

    fn allows_command(&self, deed: &Deed, line: &str) -> bool {
        if self.grants.contains(deed) {
            return true;
        }
        for (bucket, rules) in &self.rules {
            let says = |effect| rules.iter().filter(move |rule| rule.effect == effect);
            if says(Effect::Ask).any(|rule| rule.pattern.catches_command(line)) {
                return false;
            }
            let honoured = *bucket != Bucket::Delegated || command_line::known_safe(line);
            if honoured && says(Effect::Allow).any(|rule| rule.pattern.covers_command(line)) {
                return true;
            }
        }
        self.mode == Mode::FullAuto
    }

    fn allows_path(&self, path: &str, access: Access, zone: Zone) -> bool {
        if zone == Zone::Plan || self.granted(path, access) {
            return true;
        }
        // What needs an exact grant needs it in every mode, whatever the rules allow.
        if zone == Zone::Outside || self.protected(path, access) {
            return false;
        }
        for (bucket, rules) in &self.rules {
            let says = |effect| rules.iter().filter(move |rule| rule.effect == effect);
            if says(Effect::Ask).any(|rule| rule.pattern.catches(path, access)) {
                return false;
            }
            let honoured = *bucket != Bucket::Delegated;
            if honoured && says(Effect::Allow).any(|rule| rule.pattern.covers(path, access)) {
                return true;
            }
        }
        access == Access::Read || self.mode != Mode::Ask
    }

    /// Whether exactly this file was granted.
    fn granted(&self, path: &str, access: Access) -> bool {
        self.grants.iter().any(|grant| match grant {
            Deed::Edit(granted) => granted == path,
            Deed::Edits(granted) => granted.iter().any(|one| one == path),
            Deed::Read(granted) => access == Access::Read && granted == path,
            Deed::Command(_) | Deed::Foreign { .. } => false,
        })
    }

    fn protected(&self, path: &str, access: Access) -> bool {
        let guards = |effect: Effect| match effect {
            Effect::Inaccessible => true,
            Effect::ReadOnly => access == Access::Write,
            Effect::Deny | Effect::Ask | Effect::Allow => false,
        };
        let lower = path.to_ascii_lowercase();
        PROTECTED.iter().any(|(glob, effect)| guards(*effect) && glob.matches(&lower))
            || self
                .rules
                .iter()
                .flat_map(|(_, rules)| rules.iter())
                .any(|rule| guards(rule.effect) && rule.pattern.catches(path, access))
    }
}

/// Whether a confined command may run in this directory: it must lie inside a writable root. A
/// grant for one path does not make its folder one (A12.11, agents_56).
pub fn may_confine(directory: &AbsoluteDir, writable: &[AbsoluteDir]) -> bool {
    writable.iter().any(|root| directory.is_within(root))
}

#[cfg(test)]
mod tests;
