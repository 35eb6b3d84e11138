//! `config.toml`: what a person sets once for all sessions.

mod agents;
mod entries;
mod hooks;
mod sessions;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::bound::Bound;
use crate::id::RoleName;
use crate::profile::Role;
use crate::rule::RuleTable;

pub use agents::{AgentKind, AgentProgram, AgentSettings, ModelSettings, VariableName};
pub use entries::{Identity, SessionEntry};
pub use hooks::{HookSettings, Hooks};
pub use sessions::Sessions;

/// The settings. Every key has a default; an unknown key is an error that names the nearest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// `[sessions]`
    pub sessions: Sessions,
    /// `[[session]]`
    pub session: Vec<SessionEntry>,
    /// `[agents.NAME]`: programs that run agents' turns.
    pub agents: BTreeMap<String, AgentSettings>,
    /// `[models.NAME]`: models that stead's own loop asks.
    pub models: BTreeMap<String, ModelSettings>,
    /// `[roles.NAME]`
    pub roles: BTreeMap<RoleName, Role>,
    /// `[permissions]`: rules of the global bucket.
    pub permissions: RuleTable,
    /// `[hooks]`
    pub hooks: Hooks,
    /// `[runs]`
    pub runs: Runs,
}

/// `[runs]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Runs {
    /// How many runs there may be at once on this host; none: a quarter of the cores, at least 2.
    pub bound: Option<u32>,
    /// How many of them are kept for submissions.
    pub reserved: u32,
}

impl Runs {
    /// The bound on a machine with this many cores.
    pub fn on(&self, cores: usize) -> Bound {
        let usual = Bound::of_cores(cores);
        Bound { runs: self.bound.unwrap_or(usual.runs), reserved: self.reserved }
    }
}

/// Settings that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The text is not TOML, or a key or value does not fit. The message names line and key.
    #[error("{0}")]
    Unreadable(String),
    /// A value is out of its bounds.
    #[error("{key} = {value} is out of bounds: {bounds}")]
    OutOfBounds {
        /// The key.
        key: &'static str,
        /// The value.
        value: u64,
        /// What is allowed.
        bounds: &'static str,
    },
    /// Tables contradict each other or themselves. The message names them.
    #[error("{0}")]
    Contradiction(String),
}

impl Settings {
    /// Reads the text of a settings file. Everything is judged here, before anything starts.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let settings: Self = toml::from_str(text).map_err(|e| {
            let mut message = e.to_string().trim_end().to_owned();
            if let Some(near) = nearest_key(e.message()) {
                message.push_str("\nthe nearest key is ");
                message.push_str(&near);
            }
            SettingsError::Unreadable(message)
        })?;
        settings.sessions.check()?;
        settings.hooks.check()?;
        entries::check(&settings.session)?;
        for (name, agent) in &settings.agents {
            agent.check(name)?;
        }
        Ok(settings)
    }
}

/// serde says "unknown field `x`, expected one of `a`, `b`": the expected one nearest to `x`.
fn nearest_key(message: &str) -> Option<String> {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next().filter(|_| message.starts_with("unknown field"))?;
    quoted.min_by_key(|key| strsim::levenshtein(unknown, key)).map(str::to_owned)
}

#[cfg(test)]
mod tests;
