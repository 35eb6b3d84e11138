//! `[sessions]`: capacity and budgets.

use serde::Deserialize;

use super::SettingsError;
use crate::budget::Caps;
use crate::roster::MOST_CAPACITY;

/// `[sessions]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sessions {
    /// How many agents besides `/root` may be active at once: 1 to 1024.
    pub capacity: u16,
    /// What a whole session may use.
    pub budget: Caps,
    /// What each agent but `/root` may use alone.
    pub agent_budget: Caps,
}

impl Default for Sessions {
    fn default() -> Self {
        Self { capacity: 8, budget: Caps::default(), agent_budget: Caps::default() }
    }
}

impl Sessions {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if (1..=MOST_CAPACITY).contains(&self.capacity) {
            return Ok(());
        }
        Err(SettingsError::OutOfBounds {
            key: "sessions.capacity",
            value: u64::from(self.capacity),
            bounds: "1 to 1024",
        })
    }
}
