//! What a new agent is given of its parent's conversation (A6): a copy made at the spawn, of what
//! the parent's model sees then, without the call that spawns. Nobody keeps it up to date.

use std::collections::BTreeSet;

use stead_agent::Entry;
use stead_core::context::Context;
use stead_core::id::{BodyRef, CallId, TurnId};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_store::{Body, Reader};

use super::conversation::{Wanted, body_bytes, entries};

/// What `context` takes of a conversation, to be stored; none: nothing. May block.
pub(super) fn take(
    reader: &Reader,
    conversation: &Wanted,
    call: &CallId,
    context: Context,
) -> Result<Option<Body>, Refusal> {
    let taken = match context {
        Context::None => return Ok(None),
        Context::Summary => return summarised(),
        Context::All => without(entries(reader, conversation)?, call),
        Context::Turns(count) => {
            let count = usize::try_from(count.get()).unwrap_or(usize::MAX);
            last_turns(without(entries(reader, conversation)?, call), count)
        }
    };
    let stored = serde_json::to_vec(&taken).map_err(|e| {
        Refusal::new(RefusalKind::Failed, format!("the conversation cannot be copied: {e}"))
    })?;
    Ok(Some(Body::new(stored)))
}

/// What an agent was given of its parent's conversation, as it was stored.
pub(super) fn given(reader: &Reader, seed: BodyRef) -> Result<Vec<Entry>, Refusal> {
    serde_json::from_slice(&body_bytes(reader, seed)?).map_err(|e| {
        Refusal::new(RefusalKind::Unreadable, format!("the copied context {}: {e}", seed.digest))
            .hint("`stead doctor` lists what is damaged")
    })
}

/// A summary of the conversation.
fn summarised() -> Result<Option<Body>, Refusal> {
    Err(Refusal::new(RefusalKind::InvalidArgument, "the context `summary` is not built yet")
        .hint("give `all`, or how many of your last turns, such as `3`"))
}

/// The entries up to the call that spawns. What was said along with it stays, and so do the calls
/// before it, which have their results.
fn without(mut entries: Vec<Entry>, call: &CallId) -> Vec<Entry> {
    let spawns = |entry: &Entry| matches!(entry, Entry::Said { reply, .. } if reply.calls.iter().any(|c| c.id == *call));
    let Some(at) = entries.iter().rposition(spawns) else { return entries };
    if let Some(Entry::Said { reply, .. }) = entries.get_mut(at) {
        let before = reply.calls.iter().position(|c| c.id == *call).unwrap_or(0);
        reply.calls.truncate(before);
        if reply.calls.is_empty() && reply.text.is_empty() {
            entries.remove(at);
        }
    }
    entries
}

/// The entries of the last turns, the running one among them.
fn last_turns(mut entries: Vec<Entry>, count: usize) -> Vec<Entry> {
    let mut turns: BTreeSet<Option<TurnId>> = BTreeSet::new();
    let from = entries.iter().rposition(|entry| {
        let fresh = turns.insert(entry.turn());
        fresh && turns.len() > count
    });
    entries.drain(..from.map_or(0, |at| at + 1));
    entries
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stead_core::event::{MailKind, Sender};
    use stead_model::{Reply, ToolCall, ToolResult};

    use super::*;

    fn id(text: &str) -> CallId {
        CallId::parse(text).unwrap()
    }

    fn heard(turn: u64, text: &str) -> Entry {
        let (from, sort, text) = (Sender::Person, MailKind::User, text.to_owned());
        Entry::Heard { turn: TurnId(turn), from, sort, text }
    }

    fn said(turn: u64, text: &str, calls: &[&str]) -> Entry {
        let call = |name: &&str| ToolCall { id: id(name), tool: "x".into(), arguments: json!({}) };
        let calls = calls.iter().map(call).collect();
        let reply = Reply { text: text.to_owned(), calls, usage: None };
        Entry::Said { turn: TurnId(turn), reply }
    }

    fn answered(turn: u64, call: &str) -> Entry {
        let result =
            ToolResult { id: id(call), text: "ok".into(), structured: None, failed: false };
        Entry::Answered { turn: TurnId(turn), result }
    }

    #[test]
    fn the_call_that_spawns_is_left_out_and_what_came_before_it_stays() {
        let before = || vec![heard(1, "go"), said(1, "first", &["a"]), answered(1, "a")];
        let whole = |last: Entry, more: Vec<Entry>| {
            let mut all = before();
            all.push(last);
            all.extend(more);
            all
        };
        let silent = whole(said(1, "", &["b"]), vec![]);
        assert_eq!(without(silent, &id("b")), before());
        let spoken = whole(said(1, "now", &["b"]), vec![]);
        assert_eq!(without(spoken, &id("b")), whole(said(1, "now", &[]), vec![]));
        let second = whole(said(1, "", &["b", "c", "d"]), vec![answered(1, "b")]);
        assert_eq!(without(second, &id("c")), whole(said(1, "", &["b"]), vec![answered(1, "b")]));
    }

    #[test]
    fn the_last_turns_are_whole_and_the_running_one_counts() {
        let turn = |n: u64| vec![heard(n, "go"), said(n, "done", &[])];
        let all: Vec<Entry> = (1..=4).flat_map(turn).collect();
        assert_eq!(last_turns(all.clone(), 1), turn(4));
        assert_eq!(last_turns(all.clone(), 3), (2..=4).flat_map(turn).collect::<Vec<_>>());
        assert_eq!(last_turns(all.clone(), 4), all);
        assert_eq!(last_turns(all.clone(), 100), all);
    }

    #[test]
    fn what_is_stored_of_a_conversation_reads_back() {
        let entries = vec![heard(1, "go"), said(1, "first", &["a"]), answered(1, "a")];
        let stored = serde_json::to_vec(&entries).unwrap();
        assert_eq!(serde_json::from_slice::<Vec<Entry>>(&stored).unwrap(), entries);
    }
}
