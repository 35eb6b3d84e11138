//! Events as the store keeps them: versioned, by scope and kind.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Event;

/// The version that this program writes for every kind of event, and the newest it reads.
pub const EVENT_VERSION: u16 = 1;

/// An event as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// `world` or `branch`.
    pub scope: String,
    /// The kind, such as `turn-settled`.
    pub kind: String,
    /// The version of the body.
    pub version: u16,
    /// The body as JSON.
    pub body: String,
}

/// A stored event that this program cannot read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Written by a newer program.
    #[error(
        "an event of kind {kind} has version {version}; this program reads up to {EVENT_VERSION}"
    )]
    Newer {
        /// The event's kind.
        kind: String,
        /// Its version.
        version: u16,
    },
    /// The kind is unknown or the body does not fit it.
    #[error("an event of kind {kind} cannot be read: {reason}")]
    Damaged {
        /// The event's kind.
        kind: String,
        /// What is wrong.
        reason: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Tagged<'a> {
    kind: &'a str,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    body: Option<&'a RawValue>,
}

impl Event {
    /// The stored form.
    pub fn encode(&self) -> Result<StoredEvent, Unreadable> {
        let (scope, text) = match self {
            Self::World(event) => ("world", serde_json::to_string(event)),
            Self::Branch(event) => ("branch", serde_json::to_string(event)),
        };
        let damaged = |e: serde_json::Error| Unreadable::Damaged {
            kind: scope.to_owned(),
            reason: e.to_string(),
        };
        let text = text.map_err(damaged)?;
        let Tagged { kind, body } = serde_json::from_str(&text).map_err(damaged)?;
        Ok(StoredEvent {
            scope: scope.to_owned(),
            kind: kind.to_owned(),
            version: EVENT_VERSION,
            body: body.map_or("null", RawValue::get).to_owned(),
        })
    }

    /// The event of a stored form.
    pub fn decode(stored: &StoredEvent) -> Result<Self, Unreadable> {
        if stored.version > EVENT_VERSION {
            return Err(Unreadable::Newer { kind: stored.kind.clone(), version: stored.version });
        }
        let damaged = |reason: String| Unreadable::Damaged { kind: stored.kind.clone(), reason };
        let body = serde_json::from_str(&stored.body).map_err(|e| damaged(e.to_string()))?;
        let text = serde_json::to_string(&Tagged { kind: &stored.kind, body })
            .map_err(|e| damaged(e.to_string()))?;
        match stored.scope.as_str() {
            "world" => serde_json::from_str(&text).map(Self::World),
            "branch" => serde_json::from_str(&text).map(Self::Branch),
            other => return Err(damaged(format!("{other:?} is not a scope"))),
        }
        .map_err(|e| damaged(e.to_string()))
    }

    /// The kind, such as `turn-settled`.
    pub fn kind(&self) -> String {
        self.encode().map_or_else(|_| "unreadable".to_owned(), |stored| stored.kind)
    }
}
