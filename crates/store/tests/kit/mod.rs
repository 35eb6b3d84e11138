//! What the tests of the store share.
#![allow(dead_code, reason = "each test file uses its own part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "only tests use it")]

use stead_core::event::{BranchEvent, Envelope, Event, Stream};
use stead_core::id::{SessionId, Timestamp};
use stead_core::task::Owner;
use stead_store::Append;

/// A home of the test's own.
pub(crate) fn home() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn session(id: &str) -> SessionId {
    SessionId::parse(id).unwrap()
}

/// An event that can be told from others.
pub(crate) fn note(number: u64) -> Event {
    Event::Branch(BranchEvent::NoteSet { owner: Owner::Main, note: Some(format!("n{number}")) })
}

pub(crate) fn stream(name: &str) -> Stream {
    if name.is_empty() { Stream::Control } else { Stream::Conversation(session(name)) }
}

/// An append of notes numbered by their position; `places` are stream (empty: control) and number.
pub(crate) fn append(id: &SessionId, expect: u64, places: &[(&str, u64)]) -> Append {
    let events = (expect + 1..)
        .zip(places)
        .map(|(position, (name, seq))| Envelope {
            stream: stream(name),
            seq: *seq,
            position,
            at: Timestamp(1_700_000_000_000 + i64::try_from(position).unwrap()),
            request: None,
            event: note(position),
        })
        .collect();
    Append { session: id.clone(), expect, events, bodies: Vec::new(), claims: Vec::new() }
}
