//! Addresses: `/root` and everything below it (seed 0).
//!
//! Three things, and nothing between them: the grammar of a canonical path, the derivation of a
//! segment from a free-form name at creation, and the strict resolution of a target afterwards.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::line;

/// The longest canonical path, in bytes.
pub const LONGEST_PATH: usize = 4096;
/// The longest base that a derived segment may have, in characters; a numeric suffix comes on top.
pub const LONGEST_BASE: usize = 40;

const ROOT: &str = "/root";
const ROOT_NAME: &str = "root";

/// Why a text is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text is empty.
    #[error("an address may not be empty")]
    Empty,
    /// An absolute text that does not begin with `/root`.
    #[error("{0:?} does not begin with /root")]
    NotRooted(String),
    /// Two separators in a row, or one at the end.
    #[error("{0:?} has an empty segment")]
    EmptySegment(String),
    /// A character outside `[a-z0-9_-]`.
    #[error(
        "{text:?} has the character {character:?}; only a to z, 0 to 9, '_' and '-' may stand in an address"
    )]
    Alphabet {
        /// The text, cut.
        text: String,
        /// The first character that may not stand there.
        character: char,
    },
    /// A segment called `root` below the first.
    #[error("{0:?} has a segment called root below the first")]
    Reserved(String),
    /// More than [`LONGEST_PATH`] bytes.
    #[error("an address has at most 4096 bytes")]
    TooLong,
}

/// A canonical path, such as `/root/review-code`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentPath(String);

impl AgentPath {
    /// `/root`, the agent that the person owns.
    pub fn root() -> Self {
        Self(ROOT.to_owned())
    }

    /// Parses a canonical path: `/root`, then segments of `[a-z0-9_-]`, none empty, none `root`.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        if text.len() > LONGEST_PATH {
            return Err(PathError::TooLong);
        }
        let below = match text.strip_prefix(ROOT) {
            Some("") => return Ok(Self::root()),
            Some(rest) => match rest.strip_prefix('/') {
                Some(below) => below,
                None => return Err(PathError::NotRooted(shown(text))),
            },
            None => return Err(PathError::NotRooted(shown(text))),
        };
        check_segments(below, text)?;
        Ok(Self(text.to_owned()))
    }

    /// Resolves a target as `caller` gave it: a canonical path, or segments below the caller.
    ///
    /// Strict (seed 0): nothing is normalised, shortened or guessed.
    pub fn resolve(caller: &Self, target: &str) -> Result<Self, PathError> {
        if target.starts_with('/') {
            return Self::parse(target);
        }
        if target.is_empty() {
            return Err(PathError::Empty);
        }
        check_segments(target, target)?;
        Self::parse(&format!("{caller}/{target}"))
    }

    /// The child of `self` with the segment that [`derive_segment`] gives, suffixed from `-2`
    /// upwards while `taken` holds it.
    pub fn derive_child(
        &self,
        task_name: &str,
        taken: impl Fn(&Self) -> bool,
    ) -> Result<Self, PathError> {
        let base = derive_segment(task_name);
        let mut number = 1_u64;
        loop {
            let path = match number {
                1 => Self::parse(&format!("{self}/{base}"))?,
                n => Self::parse(&format!("{self}/{base}-{n}"))?,
            };
            if !taken(&path) {
                return Ok(path);
            }
            number += 1;
        }
    }

    /// The path without its last segment; none for `/root`.
    pub fn parent(&self) -> Option<Self> {
        match self.0.rsplit_once('/') {
            Some(("", _)) | None => None,
            Some((parent, _)) => Some(Self(parent.to_owned())),
        }
    }

    /// Whether this is `/root`.
    pub fn is_root(&self) -> bool {
        self.0 == ROOT
    }

    /// Whether `self` is `other` or stands below it, by whole segments.
    pub fn is_within(&self, other: &Self) -> bool {
        match self.0.strip_prefix(&other.0) {
            Some(rest) => rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    /// How many segments stand below `/root`.
    pub fn depth(&self) -> usize {
        self.0.matches('/').count().saturating_sub(1)
    }

    /// The last segment.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(self.0.as_str(), |(_, name)| name)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check_segments(below: &str, whole: &str) -> Result<(), PathError> {
    for segment in below.split('/') {
        if segment.is_empty() {
            return Err(PathError::EmptySegment(shown(whole)));
        }
        if let Some(character) = segment.chars().find(|c| !is_segment_character(*c)) {
            return Err(PathError::Alphabet { text: shown(whole), character });
        }
        if segment == ROOT_NAME {
            return Err(PathError::Reserved(shown(whole)));
        }
    }
    Ok(())
}

/// What an error repeats of a text that may be anything.
fn shown(text: &str) -> String {
    line::cut(text, 80)
}

fn is_segment_character(c: char) -> bool {
    matches!(c, 'a'..='z' | '0'..='9' | '_' | '-')
}

/// The segment of a free-form name (seed 0; the order matters for the edge cases).
///
/// ASCII lower case; every other character becomes one hyphen; hyphens are trimmed at both ends;
/// at most [`LONGEST_BASE`] characters, cut at the last hyphen inside them unless the next
/// character is a hyphen itself; an empty result becomes `agent`, and `root` becomes `agent-root`.
pub fn derive_segment(task_name: &str) -> String {
    let replaced: String = task_name
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if is_segment_character(c) { c } else { '-' })
        .collect();
    let trimmed = replaced.trim_matches('-');
    // Every character is ASCII by now, so bytes and characters count alike.
    let cut = match (trimmed.get(..LONGEST_BASE), trimmed.get(LONGEST_BASE..)) {
        (Some(head), Some(tail)) if !tail.is_empty() && !tail.starts_with('-') => {
            head.rsplit_once('-').map_or(head, |(kept, _)| kept)
        }
        (Some(head), _) => head,
        (None, _) => trimmed,
    };
    match cut.trim_matches('-') {
        "" => "agent".to_owned(),
        ROOT_NAME => "agent-root".to_owned(),
        segment => segment.to_owned(),
    }
}

impl fmt::Display for AgentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for AgentPath {
    type Err = PathError;
    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for AgentPath {
    type Error = PathError;
    fn try_from(text: String) -> Result<Self, PathError> {
        Self::parse(&text)
    }
}

impl From<AgentPath> for String {
    fn from(path: AgentPath) -> String {
        path.0
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn root_children(names: &[&str]) -> Vec<String> {
        let taken = RefCell::new(BTreeSet::new());
        names
            .iter()
            .map(|name| {
                let path =
                    AgentPath::root().derive_child(name, |p| taken.borrow().contains(p)).unwrap();
                taken.borrow_mut().insert(path.clone());
                path.to_string()
            })
            .collect()
    }

    #[test]
    fn agents_1_agents_2_a_repeated_name_is_suffixed() {
        assert_eq!(
            root_children(&["Review code-block copy"; 3]),
            [
                "/root/review-code-block-copy",
                "/root/review-code-block-copy-2",
                "/root/review-code-block-copy-3"
            ]
        );
    }

    #[test]
    fn agents_5_root_is_reserved() {
        assert_eq!(
            root_children(&["Root", "root", "  ROOT!! "]),
            ["/root/agent-root", "/root/agent-root-2", "/root/agent-root-3"]
        );
    }

    #[test]
    fn agents_6_nothing_left_becomes_agent() {
        for name in ["", "   ", "!!!", "日本語", ".", "..", "/"] {
            assert_eq!(derive_segment(name), "agent", "{name:?}");
        }
    }

    #[test]
    fn agents_7_agents_8_separators_never_reach_the_path() {
        assert_eq!(derive_segment("../../etc"), "etc");
        assert_eq!(derive_segment("a/b"), "a-b");
        assert_eq!(derive_segment("Fix: it"), "fix--it");
    }

    #[test]
    fn agents_9_underscores_are_kept() {
        assert_eq!(derive_segment("__init__"), "__init__");
    }

    #[test]
    fn agents_10_the_cut_prefers_a_hyphen() {
        assert_eq!(derive_segment(&"a".repeat(41)), "a".repeat(40));
        assert_eq!(derive_segment(&format!("{}-bbbb", "a".repeat(39))), "a".repeat(39));
        let kept = format!("{}-{}", "a".repeat(20), "b".repeat(19));
        assert_eq!(derive_segment(&format!("{kept}-tail")), kept);
        assert_eq!(derive_segment(&format!("a-{}", "b".repeat(60))), "a");
    }

    #[test]
    fn agents_11_the_cut_may_uncover_root() {
        assert_eq!(derive_segment(&format!("root-{}", "x".repeat(60))), "agent-root");
    }

    #[test]
    fn agents_12_a_suffix_does_not_count() {
        let name = "n".repeat(60);
        let paths = root_children(&[&name, &name]);
        assert_eq!(paths[1], format!("/root/{}-2", "n".repeat(40)));
        assert!(AgentPath::parse(&paths[1]).is_ok());
    }

    #[test]
    fn agents_13_the_smallest_free_number() {
        assert_eq!(
            root_children(&["x-2", "x", "x", "x-2"]),
            ["/root/x-2", "/root/x", "/root/x-3", "/root/x-2-2"]
        );
    }

    #[test]
    fn agents_14_only_ascii_is_lowered() {
        assert_eq!(derive_segment("\u{212a}"), "agent");
        assert_eq!(derive_segment("a\u{130}b"), "a-b");
    }

    #[test]
    fn agents_15_the_parent_makes_the_difference() {
        let a = AgentPath::parse("/root/a").unwrap();
        let b = AgentPath::parse("/root/b").unwrap();
        assert_eq!(a.derive_child("t", |_| false).unwrap().as_str(), "/root/a/t");
        assert_eq!(b.derive_child("t", |_| false).unwrap().as_str(), "/root/b/t");
    }

    #[test]
    fn agents_21_agents_22_targets_are_strict() {
        let a = AgentPath::parse("/root/a").unwrap();
        assert_eq!(AgentPath::resolve(&a, "child").unwrap().as_str(), "/root/a/child");
        assert_eq!(AgentPath::resolve(&a, "c/d").unwrap().as_str(), "/root/a/c/d");
        assert_eq!(AgentPath::resolve(&a, "/root/b").unwrap().as_str(), "/root/b");
        for target in [
            "",
            "a//b",
            "a/",
            "./a",
            "../a",
            "/root/",
            "/",
            "/Root/a",
            "/root/A",
            "root/a",
            "/rootx",
            "Review code",
        ] {
            assert!(AgentPath::resolve(&AgentPath::root(), target).is_err(), "{target:?}");
        }
    }

    #[test]
    fn agents_26_prefixes_end_at_segments() {
        let a = AgentPath::parse("/root/a").unwrap();
        assert!(AgentPath::parse("/root/a/x").unwrap().is_within(&a));
        assert!(!AgentPath::parse("/root/ab").unwrap().is_within(&a));
        assert!(a.is_within(&a) && a.is_within(&AgentPath::root()));
    }

    proptest! {
        #[test]
        fn any_name_gives_a_path_that_parses(name in any::<String>()) {
            let segment = derive_segment(&name);
            prop_assert!(segment.chars().count() <= LONGEST_BASE);
            prop_assert!(!segment.starts_with('-') && !segment.ends_with('-'));
            let path = AgentPath::root().derive_child(&name, |_| false).unwrap();
            prop_assert_eq!(AgentPath::parse(path.as_str()).unwrap(), path.clone());
            prop_assert_eq!(path.parent(), Some(AgentPath::root()));
        }

        #[test]
        fn parsing_never_panics_and_keeps_the_text(text in any::<String>()) {
            if let Ok(path) = AgentPath::parse(&text) {
                prop_assert_eq!(path.as_str(), text.as_str());
            }
        }
    }
}
