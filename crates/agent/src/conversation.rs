//! A conversation as a model sees it: what was heard and said, and for every call exactly one
//! result, whatever the log looks like.

use std::collections::BTreeSet;

use stead_core::event::{CallFate, MailKind, Sender};
use stead_core::id::{CallId, TurnId};
use stead_model::{Message, Reply, ToolResult};

use crate::port::Entry;
use crate::prompt;

/// The messages so far, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) messages: Vec<Message>,
    /// How many turns a summary at its beginning stands for.
    pub(crate) earlier_turns: u32,
    /// About how long it is.
    pub(crate) bytes: usize,
    /// What the last reply used; 0: nobody knows.
    pub(crate) tokens: u64,
    calls: BTreeSet<CallId>,
    heard: Option<TurnId>,
}

impl Conversation {
    /// The conversation that the log holds.
    ///
    /// Results stand behind the reply that called, for providers refuse anything else: what was
    /// heard between comes after them. A call that the log says nothing of has an unknown outcome:
    /// what it did must be looked up (agents_83, field_ses_04).
    pub(crate) fn of(entries: &[Entry]) -> Self {
        let mut conversation = Self::default();
        for (place, entry) in entries.iter().enumerate() {
            match entry {
                Entry::Summary { text, turns, calls, standing } => {
                    conversation.earlier_turns = *turns;
                    conversation.calls.extend(calls.iter().cloned());
                    conversation.push(Message::User {
                        from: prompt::sender(&Sender::Stead),
                        sort: MailKind::Note,
                        text: prompt::summary(*turns, text, standing),
                        opens_turn: false,
                    });
                }
                Entry::Heard { .. } => conversation.hear(entry),
                Entry::Said { reply, .. } => {
                    let later = entries.get(place + 1..).unwrap_or_default();
                    conversation.say(reply.clone());
                    for call in &reply.calls {
                        conversation.answer(result_of(&call.id, later));
                    }
                }
                // Their replies have taken those.
                Entry::Answered { .. } | Entry::Unanswered { .. } => {}
            }
        }
        conversation
    }

    /// Adds what was heard; anything else is no news to who said it.
    pub(crate) fn hear(&mut self, entry: &Entry) {
        if let Entry::Heard { turn, from, sort, text } = entry {
            let opens_turn = self.heard != Some(*turn);
            self.heard = Some(*turn);
            self.push(Message::User {
                from: prompt::sender(from),
                sort: *sort,
                text: prompt::heard(from, *sort, text),
                opens_turn,
            });
        }
    }

    /// The first call of a reply whose id was used before, in it or in the conversation.
    pub(crate) fn repeated<'a>(&self, reply: &'a Reply) -> Option<&'a CallId> {
        let mut seen = BTreeSet::new();
        reply.calls.iter().map(|call| &call.id).find(|id| {
            let fresh = seen.insert(*id);
            !fresh || self.calls.contains(*id)
        })
    }

    pub(crate) fn say(&mut self, reply: Reply) {
        self.calls.extend(reply.calls.iter().map(|call| call.id.clone()));
        self.tokens = reply.usage.map_or(self.tokens, |usage| usage.tokens());
        self.push(Message::Assistant(reply));
    }

    pub(crate) fn answer(&mut self, result: ToolResult) {
        self.push(Message::Tool(result));
    }

    fn push(&mut self, message: Message) {
        let bytes = match &message {
            Message::User { text, .. } => text.len(),
            Message::Assistant(reply) => bytes_said(reply),
            Message::Tool(result) => bytes_answered(result),
        };
        self.bytes = self.bytes.saturating_add(bytes);
        self.messages.push(message);
    }
}

fn bytes_said(reply: &Reply) -> usize {
    let calls = reply.calls.iter().map(|call| call.arguments.to_string().len());
    reply.text.len().saturating_add(calls.sum())
}

fn bytes_answered(result: &ToolResult) -> usize {
    let structured = result.structured.as_ref().map_or(0, |data| data.to_string().len());
    result.text.len().saturating_add(structured)
}

/// About how long these entries are.
pub(crate) fn bytes_of(entries: &[Entry]) -> usize {
    let bytes = entries.iter().map(|entry| match entry {
        Entry::Summary { text, standing, .. } => text.len().saturating_add(standing.len()),
        Entry::Heard { text, .. } => text.len(),
        Entry::Said { reply, .. } => bytes_said(reply),
        Entry::Answered { result, .. } => bytes_answered(result),
        Entry::Unanswered { .. } => 0,
    });
    bytes.fold(0, usize::saturating_add)
}

/// The result of a call among what stands after its reply.
fn result_of(call: &CallId, later: &[Entry]) -> ToolResult {
    for entry in later {
        match entry {
            Entry::Answered { result, .. } if result.id == *call => return result.clone(),
            Entry::Unanswered { call: unanswered, fate, .. } if unanswered == call => {
                return prompt::unanswered(call, *fate);
            }
            // The id was used again: what follows belongs to the later call.
            Entry::Said { reply, .. } if reply.calls.iter().any(|c| c.id == *call) => break,
            _ => {}
        }
    }
    prompt::unanswered(call, CallFate::Unknown)
}

/// What the agent said last, if it ended `turn` with it and has heard nothing since: an engine
/// that was stopped after that word and before the turn was settled asks for it again.
pub(crate) fn last_word(entries: &[Entry], turn: TurnId) -> Option<&str> {
    match entries.last() {
        Some(Entry::Said { turn: said, reply }) if *said == turn && reply.calls.is_empty() => {
            Some(&reply.text)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use stead_model::ToolCall;

    use super::*;

    const TURN: TurnId = TurnId(1);

    fn id(text: &str) -> CallId {
        CallId::parse(text).unwrap()
    }

    fn said(ids: &[&str]) -> Entry {
        let call =
            |text: &&str| ToolCall { id: id(text), tool: "list".into(), arguments: json!({}) };
        Entry::Said {
            turn: TURN,
            reply: Reply { calls: ids.iter().map(call).collect(), ..Reply::default() },
        }
    }

    fn answered(text: &str) -> Entry {
        let result =
            ToolResult { id: id(text), text: "done".into(), structured: None, failed: false };
        Entry::Answered { turn: TURN, result }
    }

    fn heard(turn: u64) -> Entry {
        Entry::Heard {
            turn: TurnId(turn),
            from: Sender::Person,
            sort: MailKind::User,
            text: "hello".into(),
        }
    }

    fn results(conversation: &Conversation) -> Vec<(String, String)> {
        let results = conversation.messages.iter().filter_map(|message| match message {
            Message::Tool(result) => Some((result.id.to_string(), result.text.clone())),
            _ => None,
        });
        results.collect()
    }

    #[test]
    fn agents_83_a_call_without_a_result_says_what_is_known() {
        let entries = [
            heard(1),
            said(&["a", "b", "c", "d"]),
            answered("a"),
            Entry::Unanswered { turn: TURN, call: id("b"), fate: CallFate::Unknown },
            Entry::Unanswered { turn: TURN, call: id("c"), fate: CallFate::NotStarted },
        ];
        let conversation = Conversation::of(&entries);
        let found = results(&conversation);
        assert_eq!(found[0], ("a".into(), "done".into()));
        assert!(found[1].1.contains("its outcome is unknown; look before you repeat it"));
        assert!(found[2].1.contains("was not started; safe to call again"));
        assert!(found[3].1.contains("its outcome is unknown"));
    }

    #[test]
    fn results_follow_their_reply_and_turns_open_once() {
        let entries = [heard(1), heard(1), said(&["a"]), heard(2), answered("a"), heard(2)];
        let conversation = Conversation::of(&entries);
        let shape: Vec<_> = conversation
            .messages
            .iter()
            .map(|message| match message {
                Message::User { opens_turn: true, .. } => "opens",
                Message::User { .. } => "heard",
                Message::Assistant(_) => "said",
                Message::Tool(_) => "result",
            })
            .collect();
        assert_eq!(shape, ["opens", "heard", "said", "result", "opens", "heard"]);
    }

    fn any_entry() -> impl Strategy<Value = Entry> {
        let name = prop::sample::select(vec!["a", "b", "c"]);
        prop_oneof![
            (1_u64..4).prop_map(heard),
            prop::collection::vec(name.clone(), 0..3).prop_map(|ids| said(&ids)),
            name.clone().prop_map(answered),
            (name, any::<bool>()).prop_map(|(call, started)| Entry::Unanswered {
                turn: TURN,
                call: id(call),
                fate: if started { CallFate::Unknown } else { CallFate::NotStarted },
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]
        #[test]
        fn field_ses_04_every_call_has_exactly_one_result(
            entries in prop::collection::vec(any_entry(), 0..30),
        ) {
            let messages = Conversation::of(&entries).messages;
            let mut open: Vec<CallId> = Vec::new();
            for message in messages {
                match message {
                    Message::Tool(result) => {
                        prop_assert_eq!(Some(&result.id), open.first());
                        open.remove(0);
                    }
                    Message::Assistant(reply) => {
                        prop_assert!(open.is_empty());
                        open = reply.calls.into_iter().map(|call| call.id).collect();
                    }
                    Message::User { .. } => prop_assert!(open.is_empty()),
                }
            }
            prop_assert!(open.is_empty());
        }
    }
}
