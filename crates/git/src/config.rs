//! The settings that hold in a repository.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use crate::error::GitError;
use crate::git::{Git, unreadable};

/// Which kind of file a setting is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The machine's.
    System,
    /// The person's.
    Global,
    /// The repository's, shared by all its worktrees.
    Local,
    /// One worktree's own (`config.worktree`).
    Worktree,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Where it is from.
    pub scope: Scope,
    /// Its name: section and last part in lower case, what is between them as it was written.
    pub key: OsString,
    /// Its value; none when only the name stands there, which means true.
    pub value: Option<OsString>,
}

/// All settings, those that count more behind those that count less. Those that stead itself sets
/// for its calls are not among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    settings: Vec<Setting>,
}

impl Config {
    /// One process.
    pub(crate) fn read(git: &Git, directory: &Path) -> Result<Self, GitError> {
        let arguments = ["config", "--list", "--show-scope", "-z"];
        let answer = git.ask(directory, "config", &arguments)?;
        Self::parse(&answer).ok_or_else(|| unreadable("config", directory))
    }

    /// Pairs of a scope and of a name with its value, each with a zero byte behind it.
    fn parse(answer: &[u8]) -> Option<Self> {
        let mut settings = Vec::new();
        let mut parts = answer.split(|byte| *byte == 0);
        while let Some(scope) = parts.next().filter(|scope| !scope.is_empty()) {
            let (key, value) = setting(parts.next()?);
            let scope = match scope {
                b"system" => Scope::System,
                b"global" => Scope::Global,
                b"local" => Scope::Local,
                b"worktree" => Scope::Worktree,
                _ => continue,
            };
            settings.push(Setting { scope, key, value });
        }
        Some(Self { settings })
    }

    /// All of them.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The value that holds of `key`, whose first and last part are in lower case. A setting
    /// without a value counts as absent.
    pub fn get(&self, key: &str) -> Option<&OsStr> {
        self.last(key)?.value.as_deref()
    }

    /// Whether `key` is set to something that Git takes for true.
    pub fn is_true(&self, key: &str) -> bool {
        self.last(key).is_some_and(|setting| is_true(setting.value.as_deref()))
    }

    fn last(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().rev().find(|setting| setting.key == key)
    }
}

/// A name and a value, separated by the first line feed.
pub(crate) fn setting(text: &[u8]) -> (OsString, Option<OsString>) {
    let owned = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let mut halves = text.splitn(2, |byte| *byte == b'\n');
    (owned(halves.next().unwrap_or_default()), halves.next().map(owned))
}

/// As Git reads it: the words, or a number other than 0. What Git would refuse is not true.
pub(crate) fn is_true(value: Option<&OsStr>) -> bool {
    let Some(value) = value else { return true };
    let text = value.as_bytes().to_ascii_lowercase();
    if matches!(text.as_slice(), b"true" | b"yes" | b"on") {
        return true;
    }
    let digits = text.strip_suffix(b"k").or(text.strip_suffix(b"m")).or(text.strip_suffix(b"g"));
    let digits = std::str::from_utf8(digits.unwrap_or(&text)).ok();
    digits.and_then(|digits| digits.parse::<i64>().ok()).is_some_and(|number| number != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_settings_count_and_names_and_values_are_bytes() {
        let answer = b"system\0core.bare\nfalse\0local\0core.bare\0local\0a.B\xff.c\nx\ny\0\
            command\0core.fsmonitor\nfalse\0worktree\0core.worktree\n/w\0";
        let config = Config::parse(answer).unwrap();
        assert!(config.is_true("core.bare"));
        assert_eq!(config.get("core.bare"), None);
        assert_eq!(config.get("core.worktree"), Some(OsStr::new("/w")));
        assert_eq!(config.get("core.fsmonitor"), None);
        let odd = &config.settings()[2];
        assert_eq!(odd.key.as_bytes(), b"a.B\xff.c");
        assert_eq!(odd.value.as_deref(), Some(OsStr::new("x\ny")));
        assert_eq!(Config::parse(b"local"), None);
    }

    #[test]
    fn true_is_what_git_takes_for_it() {
        for yes in ["true", "YES", "on", "1", "-1", "2k"] {
            assert!(is_true(Some(OsStr::new(yes))), "{yes}");
        }
        for no in ["", "false", "off", "no", "0", "0k", "maybe"] {
            assert!(!is_true(Some(OsStr::new(no))), "{no}");
        }
        assert!(is_true(None));
    }
}
