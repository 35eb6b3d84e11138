//! `config.toml`: what a person sets once for all sessions.

use serde::Deserialize;

use crate::bound::Bound;

/// The settings. Every key has a default; an unknown key is an error that names the nearest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// `[sessions]`
    pub sessions: Sessions,
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

/// `[sessions]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sessions {
    /// How many agents besides `/root` may be active at once: 1 to 64.
    pub capacity: u16,
}

impl Default for Sessions {
    fn default() -> Self {
        Self { capacity: 8 }
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
}

impl Settings {
    /// Reads the text of a settings file.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let settings: Self = toml::from_str(text).map_err(|e| {
            let mut message = e.to_string().trim_end().to_owned();
            if let Some(near) = nearest_key(e.message()) {
                message.push_str("\nthe nearest key is ");
                message.push_str(&near);
            }
            SettingsError::Unreadable(message)
        })?;
        let capacity = settings.sessions.capacity;
        if !(1..=64).contains(&capacity) {
            return Err(SettingsError::OutOfBounds {
                key: "sessions.capacity",
                value: u64::from(capacity),
                bounds: "1 to 64",
            });
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
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_names_the_nearest() {
        let error = Settings::parse("[sessions]\ncapasity = 3\n").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.ends_with("capacity"), "{error}");
        assert!(Settings::parse("[sessions]\ncapacity = 0\n").is_err());
        let runs = Settings::parse("[runs]\nbound = 5\nreserved = 1\n").unwrap().runs;
        assert_eq!(runs.on(64), Bound { runs: 5, reserved: 1 });
        assert_eq!(Runs::default().on(64), Bound { runs: 16, reserved: 0 });
        assert_eq!(Settings::parse("").unwrap().sessions.capacity, 8);
    }
}
