//! Working roots, slots and where a session's agents work.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::hex;
use crate::id::{RootId, SlotName};
use crate::path::derive_segment;

/// An absolute directory path without `.` and `..`; any bytes but NUL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "PathText", into = "PathText")]
pub struct AbsoluteDir(PathBuf);

/// A path that is not absolute or not normal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an absolute path without '.' and '..'")]
pub struct NotAbsolute(PathBuf);

impl AbsoluteDir {
    /// Checks the path's form and drops separators that say nothing, so that one directory has
    /// one spelling; whether it exists is for those who may look.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, NotAbsolute> {
        let path = path.into();
        let bytes = path.as_os_str().as_bytes();
        let dots = bytes.split(|b| *b == b'/').any(|name| matches!(name, b"." | b".."));
        if path.is_absolute() && !dots && !bytes.contains(&0) {
            Ok(Self(path.components().collect()))
        } else {
            Err(NotAbsolute(path))
        }
    }

    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Whether this is `other` or below it, by whole components.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }
}

/// The stored form: text where the bytes are UTF-8, else their hexadecimal digits.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum PathText {
    Text(String),
    Hex { hex: String },
}

impl From<AbsoluteDir> for PathText {
    fn from(dir: AbsoluteDir) -> Self {
        match dir.0.into_os_string().into_string() {
            Ok(text) => Self::Text(text),
            Err(bytes) => Self::Hex { hex: hex::encode(&bytes.into_vec()) },
        }
    }
}

impl TryFrom<PathText> for AbsoluteDir {
    type Error = NotAbsolute;
    fn try_from(text: PathText) -> Result<Self, NotAbsolute> {
        match text {
            PathText::Text(text) => Self::new(text),
            PathText::Hex { hex } => match hex::decode(&hex) {
                Some(bytes) => Self::new(OsString::from_vec(bytes)),
                None => Err(NotAbsolute(PathBuf::from(hex))),
            },
        }
    }
}

/// What tools of a session may do in a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Files may be read.
    Read,
    /// Files may be read and written.
    Write,
}

/// Where a session's agents work; a person's choice, saved with the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// In private copies of the roots.
    PrivateCopies,
    /// In the roots themselves.
    InPlace,
}

/// What a folder is besides its path: the identity that the registry compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootIdentity {
    /// The inode number.
    pub inode: u64,
    /// The birth time in seconds and nanoseconds, where the file system has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub birth: Option<(i64, u32)>,
}

/// One working root as a person gave it to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// Its name in the registry of roots.
    pub id: RootId,
    /// Its slot in this session's layout; unique without regard to case.
    pub slot: SlotName,
    /// Its canonical path.
    pub directory: AbsoluteDir,
    /// What may be done in it.
    pub access: Access,
    /// What it was when the session started.
    pub identity: RootIdentity,
}

/// The slot of a folder that was given none: its name through the derivation of segments, with
/// `-2` and upwards while `taken` holds it, without regard to case.
pub fn derive_slot(directory: &Path, taken: &[SlotName]) -> Option<SlotName> {
    let name = directory.file_name().unwrap_or(OsStr::new("root")).to_string_lossy();
    let derived = derive_segment(&name);
    let base = derived.trim_start_matches(['-', '_']);
    let base = if base.is_empty() { "agent" } else { base };
    // One more candidate than there are taken slots: one is free.
    (1..=taken.len() + 1)
        .map(|n| if n == 1 { base.to_owned() } else { format!("{base}-{n}") })
        .find(|text| !taken.iter().any(|t| t.as_str().eq_ignore_ascii_case(text)))
        .and_then(|text| SlotName::parse(&text).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slots_are_derived_and_suffixed() {
        let app = derive_slot(Path::new("/w/My App"), &[]).unwrap();
        assert_eq!(app.as_str(), "my-app");
        let second = derive_slot(Path::new("/v/my-app"), &[app]).unwrap();
        assert_eq!(second.as_str(), "my-app-2");
        assert_eq!(derive_slot(Path::new("/"), &[]).unwrap().as_str(), "agent-root");
    }

    #[test]
    fn containment_is_by_components() {
        let app = AbsoluteDir::new("/w/app").unwrap();
        assert!(AbsoluteDir::new("/w/app/x").unwrap().is_within(&app));
        assert!(!AbsoluteDir::new("/w/app-old").unwrap().is_within(&app));
    }

    #[test]
    fn a_directory_has_one_spelling() {
        for bad in ["", "w", "/w/../x", "/w/./x", "/.", "/w\0"] {
            assert!(AbsoluteDir::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(AbsoluteDir::new("//w//app/").unwrap().as_path().as_os_str(), "/w/app");
    }

    proptest! {
        #[test]
        fn any_path_survives_its_stored_form(bytes in prop::collection::vec(1_u8.., 0..40)) {
            let mut path = vec![b'/'];
            path.extend(bytes);
            if let Ok(dir) = AbsoluteDir::new(OsStr::from_bytes(&path)) {
                let stored = serde_json::to_string(&dir).unwrap();
                prop_assert_eq!(serde_json::from_str::<AbsoluteDir>(&stored).unwrap(), dir);
            }
        }
    }
}
