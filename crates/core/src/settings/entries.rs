//! `[[session]]`: sessions that the settings name, and which id each has (B2).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::SettingsError;
use crate::id::{Label, SessionId};

/// `[[session]]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionEntry {
    /// What people call it. It begins the id of a session that is started by it, and nothing is
    /// found by it (agents_85).
    pub label: Label,
    /// Its exact id: the session is resumed, or created where there is none (agents_73).
    #[serde(default)]
    session_id: Option<SessionId>,
    /// The id of a session that must be there (agents_76); empty: as if not given.
    #[serde(default)]
    resume_session_id: Option<String>,
    /// Whether `stead serve` starts it.
    #[serde(default)]
    pub start: bool,
    /// What runs its turns, as `--agent` names it.
    #[serde(default)]
    pub agent: Option<String>,
    /// Its working roots, the first the primary; as `--root` has them.
    #[serde(default)]
    pub roots: Vec<PathBuf>,
}

/// Which id a configured session has (B2.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// A new one at each start: [`SessionEntry::mint`].
    Fresh,
    /// This one: resumed, or created only if it is truly absent.
    Exact(SessionId),
    /// This one, which must be there.
    Resume(SessionId),
}

impl SessionEntry {
    /// Which id it has.
    pub fn identity(&self) -> Identity {
        let resumed = self.resume_session_id.as_deref().filter(|text| !text.is_empty());
        match (&self.session_id, resumed.and_then(|text| SessionId::parse(text).ok())) {
            (_, Some(id)) => Identity::Resume(id),
            (Some(id), None) => Identity::Exact(id.clone()),
            (None, None) => Identity::Fresh,
        }
    }

    /// The id of a fresh session: `LABEL-session-UNIQUE`. `unique` is never given twice, so two
    /// starts have two logs (agents_72).
    pub fn mint(&self, unique: &str) -> Result<SessionId, crate::id::IdError> {
        SessionId::parse(&format!("{}-session-{unique}", self.label))
    }
}

/// Refuses entries that contradict themselves or each other, before anything starts (agents_75).
pub(super) fn check(entries: &[SessionEntry]) -> Result<(), SettingsError> {
    let mut labels: BTreeMap<SessionId, &Label> = BTreeMap::new();
    let mut seen: Vec<&Label> = Vec::new();
    for entry in entries {
        let label = &entry.label;
        let refuse =
            |line: String| Err(SettingsError::Contradiction(format!("[[session]] {line}")));
        let resumed = entry.resume_session_id.as_deref().filter(|text| !text.is_empty());
        if let Some(Err(error)) = resumed.map(SessionId::parse) {
            return refuse(format!("{label}: {error}"));
        }
        if entry.session_id.is_some() && resumed.is_some() {
            return refuse(format!(
                "{label} has a session_id and a resume_session_id; it can have one of them"
            ));
        }
        if seen.contains(&label) {
            return refuse(format!("{label} stands there twice"));
        }
        seen.push(label);
        let id = match entry.identity() {
            Identity::Fresh => continue,
            Identity::Exact(id) | Identity::Resume(id) => id,
        };
        if let Some(other) = labels.insert(id.clone(), label) {
            return refuse(format!("{other} and {label} have one id, {id}"));
        }
    }
    Ok(())
}
