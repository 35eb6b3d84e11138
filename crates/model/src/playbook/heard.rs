//! What was said and heard so far in the current turn.

use std::iter;

use serde_json::Value;
use stead_core::event::MailKind;
use stead_core::id::CallId;

use super::script::WaitSort;
use crate::ModelError;
use crate::message::{Message, Reply, ToolCall, ToolResult};

/// One message that the agent heard.
#[derive(Clone, Copy)]
pub(super) struct Mail<'a> {
    message: &'a Message,
    pub(super) from: &'a str,
    sort: MailKind,
    pub(super) text: &'a str,
}

impl<'a> Mail<'a> {
    fn of(message: &'a Message) -> Option<Self> {
        match message {
            Message::User { from, sort, text, .. } => {
                Some(Self { message, from, sort: *sort, text })
            }
            Message::Assistant(_) | Message::Tool(_) => None,
        }
    }

    /// Whether both are the same message, not only equal ones.
    pub(super) fn is(self, other: Mail<'_>) -> bool {
        std::ptr::eq(self.message, other.message)
    }

    /// Whether a wait for this sort may use it.
    pub(super) fn is_for(self, sort: WaitSort) -> bool {
        match sort {
            WaitSort::Results => self.sort == MailKind::Result,
            WaitSort::Mail => matches!(self.sort, MailKind::Mail | MailKind::User),
        }
    }
}

/// A reply, none at the turn's opening, and what was heard after it.
#[derive(Clone, Copy)]
pub(super) struct Round<'a> {
    said: Option<&'a Reply>,
    heard: &'a [Message],
}

impl<'a> Round<'a> {
    pub(super) fn mail(self) -> impl Iterator<Item = Mail<'a>> {
        self.heard.iter().filter_map(Mail::of)
    }

    /// The result of the reply's call with this number, counted from 0.
    pub(super) fn result(self, at: usize) -> Option<&'a ToolResult> {
        let id = &self.said?.calls.get(at)?.id;
        self.heard.iter().find_map(|message| match message {
            Message::Tool(result) if result.id == *id => Some(result),
            _ => None,
        })
    }
}

/// A conversation with its current turn taken apart.
pub(super) struct SoFar<'a> {
    messages: &'a [Message],
    /// How many turns a summary stands for.
    earlier_turns: usize,
    /// Never empty; the first is the opening.
    pub(super) rounds: Vec<Round<'a>>,
}

impl<'a> SoFar<'a> {
    /// None when no message opened a turn.
    pub(super) fn of(messages: &'a [Message], earlier_turns: u32) -> Option<Self> {
        let earlier_turns = usize::try_from(earlier_turns).unwrap_or(usize::MAX);
        let opening = messages.iter().rposition(opens_turn)?;
        let turn = messages.get(opening..)?;
        let said = turn.iter().filter_map(|message| match message {
            Message::Assistant(reply) => Some(Some(reply)),
            _ => None,
        });
        let heard = turn.split(|message| matches!(message, Message::Assistant(_)));
        let rounds =
            iter::once(None).chain(said).zip(heard).map(|(said, heard)| Round { said, heard });
        Some(Self { messages, earlier_turns, rounds: rounds.collect() })
    }

    /// What stands for earlier turns; empty: nothing does.
    pub(super) fn summary(&self) -> &'a str {
        match self.messages.first() {
            Some(Message::User { sort: MailKind::Note, opens_turn: false, text, .. }) => text,
            _ => "",
        }
    }

    /// The messages of the opening that the turn may answer.
    ///
    /// Unread mail is heard together with the message that began the turn. A RESULT never begins
    /// one, so it is answered only when there is nothing else.
    pub(super) fn candidates(&self) -> Vec<Mail<'a>> {
        let Some(opening) = self.rounds.first() else { return Vec::new() };
        let asking: Vec<_> = opening.mail().filter(|mail| mail.sort != MailKind::Result).collect();
        if asking.is_empty() { opening.mail().collect() } else { asking }
    }

    /// The calls with ids of their own: turn, reply in the turn, call in the reply.
    pub(super) fn number<'t>(
        &self,
        calls: impl Iterator<Item = (&'t str, Value)>,
    ) -> Result<Vec<ToolCall>, ModelError> {
        let used = || self.messages.iter().flat_map(ids);
        let turn = self.messages.iter().filter(|message| opens_turn(message)).count();
        let turn = turn.saturating_add(self.earlier_turns);
        // Only a conversation whose beginning was cut off can have such an id already; every id
        // in it takes one number at most, so that one of these is free.
        let is_free = |reply: &usize| {
            let prefix = format!("t{turn}-s{reply}-");
            !used().any(|id| id.starts_with(&prefix))
        };
        let last = self.rounds.len() + used().count();
        let reply = (self.rounds.len()..=last).find(is_free).unwrap_or_default();
        calls
            .zip(1_usize..)
            .map(|((tool, arguments), number)| {
                let id = CallId::parse(&format!("t{turn}-s{reply}-{number}"))
                    .map_err(|error| ModelError::NoReply(error.to_string()))?;
                Ok(ToolCall { id, tool: tool.to_owned(), arguments })
            })
            .collect()
    }
}

fn opens_turn(message: &Message) -> bool {
    matches!(message, Message::User { opens_turn: true, .. })
}

fn ids(message: &Message) -> impl Iterator<Item = &str> {
    let (calls, result) = match message {
        Message::User { .. } => (None, None),
        Message::Assistant(reply) => (Some(&reply.calls), None),
        Message::Tool(result) => (None, Some(&result.id)),
    };
    let called = calls.into_iter().flatten().map(|call| &call.id);
    called.chain(result).map(CallId::as_str)
}
