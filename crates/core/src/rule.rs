//! Rules: what a person, or a role, says of deeds beforehand (A13).

use std::fmt;
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};

use crate::command_line;
use crate::layout::Access;
use crate::line;

/// The longest pattern, in bytes.
const LONGEST_PATTERN: usize = 1024;
/// The most rules of one bucket.
pub const MOST_RULES: usize = 1000;

/// Where a rule comes from, innermost first. Nothing in a repository makes rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bucket {
    /// A role, frozen with the agent, and those of the agents above it. They narrow; they allow
    /// only commands that are known to change nothing (A13.7).
    Delegated,
    /// The person, for one session.
    Session,
    /// `[permissions]` of the person's settings.
    Global,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Never, whatever else allows it (agents_61).
    Deny,
    /// The person is asked.
    Ask,
    /// Nobody is asked.
    Allow,
    /// The path is written with an exact grant only, in every mode (A13.6).
    ReadOnly,
    /// The path is read and written with an exact grant only, in every mode (A13.6).
    Inaccessible,
}

/// What a rule is about: `command:WORDS`, `edit:GLOB` or `read:GLOB`.
///
/// `command:git push` is about commands that begin with these two words, `command:` about all. In a
/// glob `*` and `?` do not pass a `/`, `**` does; one that does not begin with `/` matches below
/// every folder, and one that matches a folder matches all in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Pattern {
    /// Commands that begin with these words.
    Command(Vec<String>),
    /// Writes to these paths.
    Edit(PathGlob),
    /// Reads of these paths.
    Read(PathGlob),
}

/// A glob over absolute paths. Two are equal when their texts are.
#[derive(Debug, Clone)]
pub struct PathGlob {
    text: String,
    matcher: GlobMatcher,
}

/// A text that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no rule: {reason}")]
pub struct BadPattern {
    text: String,
    reason: String,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// What it says.
    pub effect: Effect,
    /// What it is about.
    pub pattern: Pattern,
}

/// Rules as a settings file has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleTable {
    /// Patterns of what is never done.
    pub deny: Vec<Pattern>,
    /// Patterns of what the person is asked for.
    pub ask: Vec<Pattern>,
    /// Patterns of what nobody is asked for.
    pub allow: Vec<Pattern>,
    /// Paths that are written with an exact grant only.
    pub read_only: Vec<PathGlob>,
    /// Paths that are read and written with an exact grant only.
    pub inaccessible: Vec<PathGlob>,
}

impl PathGlob {
    /// Parses a glob.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        let refuse =
            |reason: String| BadPattern { text: line::cut(&line::one_line(text), 80), reason };
        if text.is_empty() || text.len() > LONGEST_PATTERN {
            return Err(refuse(format!("a glob has 1 to {LONGEST_PATTERN} bytes")));
        }
        let anchored = if text.starts_with('/') || text.starts_with("**/") {
            text.to_owned()
        } else {
            format!("**/{text}")
        };
        let glob = GlobBuilder::new(&anchored)
            .literal_separator(true)
            .build()
            .map_err(|e| refuse(e.kind().to_string()))?;
        Ok(Self { text: text.to_owned(), matcher: glob.compile_matcher() })
    }

    /// Whether the path, or a folder above it, matches.
    pub fn matches(&self, path: &str) -> bool {
        let mut end = path.len();
        loop {
            let Some(part) = path.get(..end).filter(|part| !part.is_empty()) else { return false };
            if self.matcher.is_match(part) {
                return true;
            }
            match part.rfind('/') {
                Some(at) => end = at,
                None => return false,
            }
        }
    }
}

impl PartialEq for PathGlob {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for PathGlob {}

impl Serialize for PathGlob {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for PathGlob {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl Pattern {
    /// Parses `command:WORDS`, `edit:GLOB` or `read:GLOB`.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        let refuse = |reason: &str| {
            let text = line::cut(&line::one_line(text), 80);
            Err(BadPattern { text, reason: reason.to_owned() })
        };
        if text.len() > LONGEST_PATTERN {
            return refuse("it is too long");
        }
        match text.split_once(':') {
            Some(("command", rest)) if rest.trim().is_empty() => Ok(Self::Command(Vec::new())),
            Some(("command", rest)) => match command_line::simple(rest) {
                Some(words) => Ok(Self::Command(words)),
                None => {
                    refuse("a command is given by its first words, without what a shell expands")
                }
            },
            Some(("edit", rest)) => PathGlob::parse(rest).map(Self::Edit),
            Some(("read", rest)) => PathGlob::parse(rest).map(Self::Read),
            _ => refuse("it begins with `command:`, `edit:` or `read:`"),
        }
    }

    /// Whether a rule that narrows is about this command line.
    pub(crate) fn catches_command(&self, command: &str) -> bool {
        matches!(self, Self::Command(words) if command_line::contains(command, words))
    }

    /// Whether a rule that allows is about this command line.
    pub(crate) fn covers_command(&self, command: &str) -> bool {
        match self {
            Self::Command(words) => words.is_empty() || command_line::begins_with(command, words),
            Self::Edit(_) | Self::Read(_) => false,
        }
    }

    /// Whether a rule that narrows is about this access: who may not read may not write.
    pub(crate) fn catches(&self, path: &str, access: Access) -> bool {
        match self {
            Self::Edit(glob) => access == Access::Write && glob.matches(path),
            Self::Read(glob) => glob.matches(path),
            Self::Command(_) => false,
        }
    }

    /// Whether a rule that allows is about this access: who may write may read.
    pub(crate) fn covers(&self, path: &str, access: Access) -> bool {
        match self {
            Self::Edit(glob) => glob.matches(path),
            Self::Read(glob) => access == Access::Read && glob.matches(path),
            Self::Command(_) => false,
        }
    }
}

impl TryFrom<String> for Pattern {
    type Error = BadPattern;
    fn try_from(text: String) -> Result<Self, BadPattern> {
        Self::parse(&text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(words) => {
                let quoted = words.iter().map(|word| {
                    let plain = command_line::simple(word).is_some_and(|w| w == [word.as_str()]);
                    match (plain, word.contains('\'')) {
                        (true, _) => word.clone(),
                        (false, false) => format!("'{word}'"),
                        (false, true) => format!("\"{word}\""),
                    }
                });
                write!(f, "command:{}", quoted.collect::<Vec<_>>().join(" "))
            }
            Self::Edit(glob) => write!(f, "edit:{}", glob.text),
            Self::Read(glob) => write!(f, "read:{}", glob.text),
        }
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> String {
        pattern.to_string()
    }
}

impl Rule {
    /// Refuses one whose pattern its effect says nothing of: protected paths are given by the access
    /// that is protected, as in `read-only edit:GLOB` and `inaccessible read:GLOB`.
    pub fn check(&self) -> Result<(), BadPattern> {
        let fits = match self.effect {
            Effect::Deny | Effect::Ask | Effect::Allow => true,
            Effect::ReadOnly => matches!(self.pattern, Pattern::Edit(_)),
            Effect::Inaccessible => matches!(self.pattern, Pattern::Read(_)),
        };
        if fits {
            return Ok(());
        }
        let reason = "`read-only` is said of `edit:GLOB`, `inaccessible` of `read:GLOB`".to_owned();
        Err(BadPattern { text: self.to_string(), reason })
    }
}

/// As [`Display`](fmt::Display) writes it: `deny command:git push`.
impl FromStr for Rule {
    type Err = BadPattern;
    fn from_str(text: &str) -> Result<Self, BadPattern> {
        let (effect, pattern) = text.split_once(' ').unwrap_or((text, ""));
        let effects =
            [Effect::Deny, Effect::Ask, Effect::Allow, Effect::ReadOnly, Effect::Inaccessible];
        let Some(effect) = effects.into_iter().find(|known| known.to_string() == effect) else {
            let text = line::cut(&line::one_line(text), 80);
            let reason = "it begins with deny, ask, allow, read-only or inaccessible".to_owned();
            return Err(BadPattern { text, reason });
        };
        let rule = Self { effect, pattern: Pattern::parse(pattern)? };
        rule.check()?;
        Ok(rule)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
            Self::ReadOnly => "read-only",
            Self::Inaccessible => "inaccessible",
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.effect, self.pattern)
    }
}

impl RuleTable {
    /// The rules of the table.
    pub fn rules(&self) -> Vec<Rule> {
        let of = |effect, patterns: &[Pattern]| {
            patterns.iter().map(move |p| Rule { effect, pattern: p.clone() }).collect::<Vec<_>>()
        };
        let edit =
            |globs: &[PathGlob]| globs.iter().cloned().map(Pattern::Edit).collect::<Vec<_>>();
        let read =
            |globs: &[PathGlob]| globs.iter().cloned().map(Pattern::Read).collect::<Vec<_>>();
        [
            of(Effect::Deny, &self.deny),
            of(Effect::Ask, &self.ask),
            of(Effect::Allow, &self.allow),
            of(Effect::ReadOnly, &edit(&self.read_only)),
            of(Effect::Inaccessible, &read(&self.inaccessible)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_glob_that_matches_a_folder_matches_all_in_it() {
        let glob = |text: &str| PathGlob::parse(text).unwrap();
        assert!(glob(".git").matches("/w/app/.git/hooks/pre-commit"));
        assert!(glob(".git").matches("/w/app/.git"));
        assert!(!glob(".git").matches("/w/app/.gitignore"));
        assert!(glob("/w/*.rs").matches("/w/a.rs"));
        assert!(!glob("/w/*.rs").matches("/w/b/a.rs"));
        assert!(glob("src/**/x").matches("/w/src/a/b/x"));
        assert!(PathGlob::parse("[").is_err() && PathGlob::parse("").is_err());
    }

    #[test]
    fn who_may_not_read_may_not_write_and_who_may_write_may_read() {
        let pattern = |text| Pattern::parse(text).unwrap();
        let (read, edit) = (pattern("read:x"), pattern("edit:x"));
        assert!(read.catches("/x", Access::Write) && !edit.catches("/x", Access::Read));
        assert!(edit.covers("/x", Access::Read) && !read.covers("/x", Access::Write));
    }

    #[test]
    fn what_is_no_rule_says_why() {
        for bad in ["", "git push", "run:ls", "edit:", "command:a; b", "command:$X"] {
            assert!(Pattern::parse(bad).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn a_pattern_survives_its_text(text in "(command|edit|read):[a-c'\" ;*/$-]{0,12}") {
            if let Ok(pattern) = Pattern::parse(&text) {
                let again = Pattern::parse(&pattern.to_string());
                prop_assert_eq!(again.as_ref(), Ok(&pattern));
                let rule = Rule { effect: Effect::Deny, pattern };
                prop_assert_eq!(rule.to_string().parse::<Rule>(), Ok(rule));
            }
        }
    }
}
