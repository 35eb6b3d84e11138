//! Conversations as the log has them.

use std::ops::RangeInclusive;

use stead_agent::Entry;
use stead_core::event::{BranchEvent, Event, Stream};
use stead_core::id::{BodyRef, Position, SessionId};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_store::{Body, Reader};

use super::seed;

/// Which entries of a conversation are wanted.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// The root session.
    pub(crate) session: SessionId,
    /// The agent.
    pub(crate) agent: SessionId,
    /// Those after this number of its stream.
    pub(crate) after: u64,
    /// Those at positions in these ranges.
    pub(crate) live: Vec<RangeInclusive<Position>>,
    /// What comes before all of them: what the agent was given of its parent's conversation.
    pub(crate) seed: Option<BodyRef>,
}

/// The entries, oldest first, with their bodies read.
pub(crate) fn entries(reader: &Reader, wanted: &Wanted) -> Result<Vec<Entry>, Refusal> {
    let stream = Stream::Conversation(wanted.agent.clone());
    let log = reader
        .read_stream(&wanted.session, &stream, wanted.after.saturating_add(1), usize::MAX)
        .map_err(|e| e.refusal())?;
    let mut entries = match wanted.seed {
        Some(seed) => seed::given(reader, seed)?,
        None => Vec::with_capacity(log.len()),
    };
    for envelope in log.into_iter().map(|record| record.envelope) {
        if !wanted.live.iter().any(|range| range.contains(&envelope.position)) {
            continue;
        }
        let Event::Branch(event) = envelope.event else { continue };
        entries.push(match event {
            BranchEvent::Heard { turn, from, sort, body, .. } => {
                Entry::Heard { turn, from, sort, text: body_text(reader, body)? }
            }
            BranchEvent::Said { turn, body, .. } => {
                Entry::Said { turn, reply: parsed(reader, body)? }
            }
            BranchEvent::Answered { turn, body, .. } => {
                Entry::Answered { turn, result: parsed(reader, body)? }
            }
            BranchEvent::Unanswered { turn, call, fate } => Entry::Unanswered { turn, call, fate },
            _ => continue,
        });
    }
    Ok(entries)
}

/// The text of a body.
pub(crate) fn body_text(reader: &Reader, body: BodyRef) -> Result<String, Refusal> {
    Ok(String::from_utf8_lossy(&body_bytes(reader, body)?).into_owned())
}

pub(super) fn body_bytes(reader: &Reader, body: BodyRef) -> Result<Vec<u8>, Refusal> {
    reader.body(&body.digest).map_err(|e| e.refusal())?.ok_or_else(|| {
        Refusal::new(RefusalKind::Unreadable, format!("the text {} is missing", body.digest))
            .hint("`stead doctor` lists what is damaged")
    })
}

fn parsed<T: serde::de::DeserializeOwned>(reader: &Reader, body: BodyRef) -> Result<T, Refusal> {
    serde_json::from_slice(&body_bytes(reader, body)?).map_err(|e| {
        Refusal::new(RefusalKind::Unreadable, format!("the message {}: {e}", body.digest))
            .hint("`stead doctor` lists what is damaged")
    })
}

/// A text that an agent or a person gave, as a body.
pub(crate) fn text_body(text: &str) -> Result<(Body, BodyRef), Refusal> {
    if text.len() > stead_core::mail::LONGEST_BODY {
        return Err(Refusal::new(
            RefusalKind::InvalidArgument,
            format!("a text has at most {} bytes", stead_core::mail::LONGEST_BODY),
        )
        .hint("write it to a file and send its path"));
    }
    let body = Body::new(text);
    let reference = body.reference();
    Ok((body, reference))
}
