//! Conversations as the log has them.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use stead_agent::Entry;
use stead_core::compaction::seen;
use stead_core::event::{BranchEvent, Envelope, Event, Stream};
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

/// The entries as the model is shown them, oldest first, with their bodies read.
pub(crate) fn entries(reader: &Reader, wanted: &Wanted) -> Result<Vec<Entry>, Refusal> {
    let stream = Stream::Conversation(wanted.agent.clone());
    let log = reader
        .read_stream(&wanted.session, &stream, wanted.after.saturating_add(1), usize::MAX)
        .map_err(|e| e.refusal())?;
    let log: Vec<Envelope> = log
        .into_iter()
        .map(|record| record.envelope)
        .filter(|e| wanted.live.iter().any(|range| range.contains(&e.position)))
        .collect();
    let (summary, shown) = seen(&log);
    // A summary stands for what the agent was given too.
    let mut entries = match (summary, wanted.seed) {
        (Some(summary), _) => vec![summed_up(&log, body_text(reader, summary)?)],
        (None, Some(seed)) => seed::given(reader, seed)?,
        (None, None) => Vec::new(),
    };
    for envelope in shown {
        let Event::Branch(event) = &envelope.event else { continue };
        entries.push(match event.clone() {
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

/// What a model is shown in the place of what the newest summary of `log` stands for.
fn summed_up(log: &[Envelope], text: String) -> Entry {
    let events = || {
        log.iter().filter_map(|envelope| match &envelope.event {
            Event::Branch(event) => Some((envelope.seq, event)),
            Event::World(_) => None,
        })
    };
    let cut = events().filter_map(|(_, event)| match event {
        BranchEvent::Compacted { through, .. } => Some(*through),
        _ => None,
    });
    let through = cut.fold(0, u64::max);
    let (mut turns, mut calls) = (BTreeSet::new(), Vec::new());
    for (_, event) in events().filter(|(seq, _)| *seq <= through) {
        match event {
            BranchEvent::Heard { turn, .. } => drop(turns.insert(*turn)),
            BranchEvent::Said { calls: made, .. } => calls.extend(made.iter().cloned()),
            _ => {}
        }
    }
    let turns = u32::try_from(turns.len()).unwrap_or(u32::MAX);
    Entry::Summary { text, turns, calls, standing: String::new() }
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
