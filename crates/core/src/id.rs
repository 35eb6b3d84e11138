//! Identities: parsed once, never a raw string behind a face.
//!
//! One id names an agent and its session (seed 2); a path is what people and tools use and is in
//! [`crate::path`]. Turns, mail and permission requests are named by the position of the event that
//! began them, so that no two of one root session ever share a name, rewinds or not.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::hex;

/// A text that is not an identity of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {kind}: {reason}")]
pub struct IdError {
    kind: &'static str,
    text: String,
    reason: &'static str,
}

fn check_name(kind: &'static str, text: &str, longest: usize) -> Result<(), IdError> {
    let refuse = |reason| Err(IdError { kind, text: text.chars().take(80).collect(), reason });
    let mut characters = text.chars();
    match characters.next() {
        None => return refuse("it is empty"),
        Some(first) if !first.is_ascii_alphanumeric() => {
            return refuse("it must begin with a letter or a digit");
        }
        Some(_) => {}
    }
    if text.len() > longest {
        return refuse("it is too long");
    }
    if characters.any(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))) {
        return refuse("only letters, digits, '.', '_' and '-' may stand in it");
    }
    Ok(())
}

/// Names that some systems keep for devices, with any ending.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

fn check_portable(kind: &'static str, text: &str) -> Result<(), IdError> {
    let refuse = |reason| Err(IdError { kind, text: text.to_owned(), reason });
    if text.ends_with('.') {
        return refuse("it must not end with a dot");
    }
    let lower = text.to_ascii_lowercase();
    if lower == "layout.json" {
        return refuse("stead's own record has that name");
    }
    let stem = lower.split('.').next().unwrap_or_default();
    let numbered = |device: &str| {
        stem.strip_prefix(device)
            .is_some_and(|n| n.len() == 1 && n != "0" && n.parse::<u8>().is_ok())
    };
    if DEVICES.contains(&stem) || numbered("com") || numbered("lpt") {
        return refuse("some systems keep that name for a device");
    }
    Ok(())
}

macro_rules! name_id {
    ($(#[$meta:meta])* $name:ident, $kind:literal, $longest:literal) => {
        name_id!(@ false, $(#[$meta])* $name, $kind, $longest);
    };
    ($(#[$meta:meta])* $name:ident, $kind:literal, $longest:literal, portable) => {
        name_id!(@ true, $(#[$meta])* $name, $kind, $longest);
    };
    (@ $portable:literal, $(#[$meta:meta])* $name:ident, $kind:literal, $longest:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Parses the text: 1 to the kind's longest number of bytes, letters, digits, `.`, `_`
            /// and `-`, beginning with a letter or a digit; so it is safe as one name in a path.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                check_name($kind, text, $longest)?;
                if $portable {
                    check_portable($kind, text)?;
                }
                Ok(Self(text.to_owned()))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }
    };
}

name_id!(
    /// The one id of an agent and of its session (seed 2). A root session has the id of `/root`.
    SessionId, "session id", 128
);
name_id!(
    /// The id that a client gives a request, so that a repeated one has one effect.
    RequestId, "request id", 128
);
name_id!(
    /// The id that a model gave one call of a tool, unique within its conversation.
    CallId, "call id", 128
);
name_id!(
    /// A registered working root.
    RootId, "root id", 64
);
impl RootId {
    /// How the root is named in tool arguments; never parsed as a path (seed 3).
    pub fn uri(&self) -> String {
        format!("stead-root:{self}")
    }
}
name_id!(
    /// The name of one root inside a layout, and of its copy's folder: a name that every system
    /// takes for a folder, and not the name of the layout file beside it.
    SlotName, "slot", 64, portable
);
name_id!(
    /// A person's label for a session, kept beside its id and never a target.
    Label, "label", 64
);
name_id!(
    /// A role: an overlay of instructions and tools, frozen at spawn.
    RoleName, "role", 64
);

/// The place of an event among all events of its root session, counted from 1.
pub type Position = u64;

macro_rules! position_id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub Position);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

position_id!(
    /// One turn, named by the position of the event that started it.
    TurnId
);
position_id!(
    /// One mail, named by the position of the event that stored it.
    MailId
);
position_id!(
    /// One permission request, named by the position of the event that asked.
    PermissionId
);
position_id!(
    /// One apply, named by the position of the event that began it.
    ApplyId
);

/// The number of a task, session-wide, counted from 1 and never used again.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct TaskId(pub u32);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The BLAKE3 digest of some bytes; how events refer to bodies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest with these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Parses 64 hexadecimal digits in lower case.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        hex::decode(text).and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or_else(|| IdError {
            kind: "digest",
            text: text.chars().take(80).collect(),
            reason: "it must be 64 hexadecimal digits in lower case",
        })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Digest {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(&text)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        hex::encode(&digest.0)
    }
}

/// A body that an event refers to: instructions, mail, a result, a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyRef {
    /// The digest of its bytes.
    pub digest: Digest,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A moment in milliseconds since the Unix epoch. Clocks jump: nothing is ordered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_could_leave_a_folder_are_refused() {
        for text in ["", ".", "..", "../x", "a/b", "-x", "a\0", "é", &"x".repeat(129)] {
            assert!(SessionId::parse(text).is_err(), "{text:?}");
        }
        assert_eq!(SessionId::parse("build-session-0192.x_y").unwrap().as_str().len(), 22);
    }

    #[test]
    fn a_digest_has_one_spelling() {
        let digest = Digest::from_bytes([0xab; 32]);
        assert_eq!(Digest::parse(&digest.to_string()).unwrap(), digest);
        assert!(Digest::parse(&digest.to_string().to_uppercase()).is_err());
        assert!(Digest::parse("+f").is_err());
    }
}
