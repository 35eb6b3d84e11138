//! Paths below a root: bytes, relative, made of normal components only.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use serde::{Deserialize, Serialize};

/// Bytes that are not a path below a root.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is no path below a root: {reason}", Shown(.path))]
pub struct PathError {
    path: Vec<u8>,
    reason: &'static str,
}

/// A path below a root: names joined by `/`, none of them empty, `.` or `..`, so that no way of
/// joining it to a folder leaves that folder. Names are bytes; nothing asks them to be UTF-8.
///
/// Paths are ordered by their components: a folder comes before what is in it, and what is in it
/// before the folder's next sibling (`a`, `a/b`, `a-b`).
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "PathText", into = "PathText")]
pub struct RelPath(Box<[u8]>);

impl RelPath {
    /// The root itself: no component at all. Only listings need it; it cannot be parsed or stored.
    pub fn root() -> Self {
        Self(Box::default())
    }

    /// Checks the form of a path.
    pub fn parse(bytes: impl AsRef<[u8]>) -> Result<Self, PathError> {
        let bytes = bytes.as_ref();
        for name in bytes.split(|b| *b == b'/') {
            check_name(name).map_err(|reason| PathError { path: bytes.to_vec(), reason })?;
        }
        Ok(Self(bytes.into()))
    }

    /// The path of `name` in this folder.
    pub fn join(&self, name: impl AsRef<[u8]>) -> Result<Self, PathError> {
        let name = name.as_ref();
        let refuse = |reason| PathError { path: name.to_vec(), reason };
        check_name(name).map_err(refuse)?;
        if name.contains(&b'/') {
            return Err(refuse("a name holds no separator"));
        }
        Ok(self.child(name))
    }

    /// As [`RelPath::join`], for a name that the system itself gave.
    pub(crate) fn child(&self, name: &[u8]) -> Self {
        if self.is_root() {
            return Self(name.into());
        }
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + name.len());
        bytes.extend_from_slice(&self.0);
        bytes.push(b'/');
        bytes.extend_from_slice(name);
        Self(bytes.into_boxed_slice())
    }

    /// Whether this is the root itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The folder it is in; none for the root itself.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let before = self.0.iter().rposition(|b| *b == b'/').and_then(|at| self.0.get(..at));
        Some(Self(before.unwrap_or_default().into()))
    }

    /// Its last component; empty for the root itself.
    pub fn name(&self) -> &[u8] {
        self.0.rsplit(|b| *b == b'/').next().unwrap_or_default()
    }

    /// Its components from the root downwards.
    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|b| *b == b'/').filter(|name| !name.is_empty())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, for calls of the system.
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    /// Whether this is `other` or below it.
    pub fn is_within(&self, other: &Self) -> bool {
        other.is_root()
            || self.0.strip_prefix(&*other.0).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
    }

    /// Whether a component is `.git` to any Git: without regard to case, with the endings that
    /// Windows drops, the short name it gives, or characters that macOS ignores.
    pub fn names_git(&self) -> bool {
        self.components().any(is_git)
    }
}

/// A path that may be written by stead: below the root and in no Git directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target(RelPath);

impl Target {
    /// Checks that the path is no root and names no `.git`.
    pub fn new(path: RelPath) -> Result<Self, PathError> {
        if path.is_root() {
            return Err(PathError { path: Vec::new(), reason: "it is the root itself" });
        }
        if path.names_git() {
            return Err(PathError { path: path.0.into_vec(), reason: "it leads into `.git`" });
        }
        Ok(Self(path))
    }

    /// The path.
    pub fn path(&self) -> &RelPath {
        &self.0
    }
}

fn check_name(name: &[u8]) -> Result<(), &'static str> {
    match name {
        b"" => Err("a name in it is empty"),
        b"." | b".." => Err("`.` and `..` are no names"),
        _ if name.contains(&0) => Err("it holds a NUL"),
        _ => Ok(()),
    }
}

/// How many bytes two paths begin with in common. Paths of one tree share much, so this looks at
/// many bytes at once.
pub(crate) fn shared(one: &[u8], two: &[u8]) -> usize {
    const STEP: usize = 8;
    let words = one.as_chunks::<STEP>().0.iter().zip(two.as_chunks::<STEP>().0);
    let whole = STEP * words.take_while(|(a, b)| a == b).count();
    let tail = |path| <[u8]>::get(path, whole..).unwrap_or_default();
    whole + tail(one).iter().zip(tail(two)).take_while(|(a, b)| a == b).count()
}

/// What Git's own `verify_path` refuses as another spelling of `.git`.
fn is_git(name: &[u8]) -> bool {
    // HFS+ ignores zero-width characters, whose encodings begin with these bytes.
    let mut bare = Vec::with_capacity(name.len().min(32));
    let mut rest = name;
    while let [first, tail @ ..] = rest {
        match rest {
            [0xe2, 0x80, 0x8c..=0x8f | 0xaa..=0xae, tail @ ..]
            | [0xe2, 0x81, 0xaa..=0xaf, tail @ ..]
            | [0xef, 0xbb, 0xbf, tail @ ..] => rest = tail,
            _ => {
                bare.push(first.to_ascii_lowercase());
                rest = tail;
            }
        }
    }
    // NTFS drops blanks and dots at the end, and takes what follows a colon for a stream.
    let name = bare.split(|b| *b == b':').next().unwrap_or_default();
    let end = name.iter().rposition(|b| !matches!(b, b' ' | b'.')).map_or(0, |at| at + 1);
    matches!(name.get(..end), Some(b".git" | b"git~1"))
}

impl PartialOrd for RelPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RelPath {
    fn cmp(&self, other: &Self) -> Ordering {
        // A separator sorts before every byte of a name, and no name holds a NUL.
        let key = |b: &u8| if *b == b'/' { 0 } else { *b };
        let shared = shared(&self.0, &other.0);
        let rest = |path: &Self| path.0.get(shared).map(key);
        rest(self).cmp(&rest(other))
    }
}

/// Characters that change the direction in which a terminal shows what follows.
fn turns_text(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Bytes of a path as people see them: text where they are text, `\xff` for other bytes and for
/// control characters, and none that turns the direction of what follows.
pub(crate) struct Shown<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                if c.is_control() || turns_text(c) || c == '\\' {
                    fmt::Display::fmt(&c.escape_default(), f)?;
                } else {
                    fmt::Display::fmt(&c, f)?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() { f.write_str(".") } else { Shown(&self.0).fmt(f) }
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// The stored form: text where the bytes are UTF-8, else their hexadecimal digits.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PathText {
    Text(String),
    Hex { hex: String },
}

impl From<RelPath> for PathText {
    fn from(path: RelPath) -> Self {
        match String::from_utf8(path.0.into_vec()) {
            Ok(text) => Self::Text(text),
            Err(error) => {
                let digit = |d: u8| char::from_digit(d.into(), 16);
                let pairs = error.as_bytes().iter().flat_map(|b| [b >> 4, b & 15]);
                Self::Hex { hex: pairs.filter_map(digit).collect() }
            }
        }
    }
}

impl TryFrom<PathText> for RelPath {
    type Error = PathError;
    fn try_from(text: PathText) -> Result<Self, PathError> {
        match text {
            PathText::Text(text) => Self::parse(text),
            PathText::Hex { hex } => {
                let refuse = || PathError { path: hex.clone().into(), reason: "no hex digits" };
                let digit = |d: &u8| match d {
                    b'0'..=b'9' => Some(d - b'0'),
                    b'a'..=b'f' => Some(d - b'a' + 10),
                    _ => None,
                };
                let pair = |pair: &[u8]| match pair {
                    [high, low] => Some(digit(high)? << 4 | digit(low)?),
                    _ => None,
                };
                let bytes: Option<Vec<u8>> = hex.as_bytes().chunks(2).map(pair).collect();
                Self::parse(bytes.ok_or_else(refuse)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    #[test]
    fn a_name_is_shown_whole_and_turns_no_text() {
        let shown = path("a\u{202e}txt.b\u{61c}\n").to_string();
        assert_eq!(shown, "a\\u{202e}txt.b\\u{61c}\\n");
    }

    #[test]
    fn what_could_leave_the_root_is_no_path() {
        for bad in ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a/.", "a\0b"] {
            assert!(RelPath::parse(bad).is_err(), "{bad:?}");
        }
        assert!(path("a").join("b/c").is_err());
        assert!(path("a").join("..").is_err());
        assert_eq!(path("a").join("b").unwrap(), path("a/b"));
        assert_eq!(RelPath::root().join("b").unwrap(), path("b"));
    }

    #[test]
    fn every_spelling_of_git_is_known() {
        for bad in [".git", "a/.GIT/x", ".git.", ".git ", ".git::$DATA", "GIT~1", ".g\u{200c}it"] {
            assert!(Target::new(path(bad)).is_err(), "{bad:?}");
        }
        for fine in [".gitignore", "git", ".git2", "a/.github", "x.git"] {
            assert!(Target::new(path(fine)).is_ok(), "{fine:?}");
        }
        assert!(Target::new(RelPath::root()).is_err());
    }

    #[test]
    fn a_folder_comes_before_its_content_and_that_before_its_sibling() {
        let mut paths = ["a-b", "a/b/c", "b", "a", "a/b", "a/b-c", "A"].map(path);
        paths.sort();
        assert_eq!(paths, ["A", "a", "a/b", "a/b/c", "a/b-c", "a-b", "b"].map(path));
        assert!(path("a/b").is_within(&path("a")) && !path("a-b").is_within(&path("a")));
    }

    fn names() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(1u8.., 1..6)
            .prop_filter("a name", |n| !n.contains(&b'/') && n != b"." && n != b"..")
    }

    proptest! {
        #[test]
        fn paths_are_taken_apart_and_stored_without_loss(
            parts in proptest::collection::vec(names(), 1..5),
            other in proptest::collection::vec(names(), 1..5),
        ) {
            let build = |parts: &[Vec<u8>]| RelPath::parse(parts.join(&b'/')).unwrap();
            let (one, two) = (build(&parts), build(&other));
            prop_assert_eq!(one.components().map(<[u8]>::to_vec).collect::<Vec<_>>(), parts.clone());
            prop_assert_eq!(&one.parent().unwrap().join(one.name()).unwrap(), &one);
            prop_assert_eq!(one.cmp(&two), parts.cmp(&other));
            let text = serde_json::to_string(&one).unwrap();
            prop_assert_eq!(&serde_json::from_str::<RelPath>(&text).unwrap(), &one);
            prop_assert!(!one.to_string().contains('\n'));
        }
    }
}
