//! Compaction: when a conversation has grown too long, a summary stands for its beginning.
//!
//! What is cut off ends where a turn ended, before the running one, so no result is parted from its
//! call and a playbook finds its place. Nothing leaves the log, and mail that comes meanwhile is
//! heard behind the cut, since it is in no conversation yet (agents_36, field_ses_08).

use stead_core::event::MailKind;
use stead_core::id::TurnId;
use stead_core::mail::INLINE_RESULT;
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::usage::Usage;
use stead_model::{Message, Model, Purpose, Request};

use crate::conversation::{Conversation, bytes_of};
use crate::port::Entry;
use crate::prompt;

/// A conversation of more bytes is compacted: about a hundred thousand tokens.
pub const COMPACT_BYTES: usize = 400 * 1024;
/// So is one whose last reply used more tokens, where the model says so.
pub const COMPACT_TOKENS: u64 = 150_000;

/// What must be cut off at least for it to be worth a summary: one part in so many.
const WORTH: usize = 4;

const INSTRUCTIONS: &str = "You write down what an agent of a team must know to go on with its work. \
    Its conversation grew too long: your summary takes the place of all that you see here, and \
    nothing else of it is shown to the agent again. Keep what it was asked, by whom and in which \
    words where they matter; what was decided and why; what was done, with the paths of files and \
    the addresses of agents; what failed; what is still to be done. Its tasks and agents are listed \
    beside your summary. Answer with the summary only.";

/// What a model made of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The summary; never empty.
    pub text: String,
    /// What the model used for it; none: nobody knows.
    pub usage: Option<Usage>,
}

/// Has `model` summarise what `agent` heard and said.
///
/// # Errors
/// Why the model gave no summary.
pub async fn summarise<M: Model + ?Sized>(
    model: &M,
    agent: &AgentPath,
    entries: &[Entry],
) -> Result<Summary, Refusal> {
    let failed = |why: String| {
        Refusal::new(RefusalKind::Failed, format!("there is no summary for {agent}: {why}"))
    };
    let Conversation { mut messages, earlier_turns, .. } = Conversation::of(entries);
    messages.push(Message::User {
        from: "stead".to_owned(),
        sort: MailKind::Note,
        text: "Write the summary now.".to_owned(),
        opens_turn: false,
    });
    let request = Request {
        agent: agent.clone(),
        purpose: Purpose::Summary,
        earlier_turns,
        instructions: INSTRUCTIONS.to_owned(),
        messages,
        tools: Vec::new(),
    };
    let reply = model.reply(&request).await.map_err(|error| failed(error.to_string()))?;
    if reply.text.trim().is_empty() {
        return Err(failed("the model said nothing".to_owned()));
    }
    // One that is no shorter than a conversation would not help.
    let pointer = format!("stead log {agent}");
    let text = prompt::inline(&reply.text, INLINE_RESULT, &pointer).into_owned();
    Ok(Summary { text, usage: reply.usage })
}

/// Whether a conversation has more than `limit` bytes, or used too many tokens.
pub(crate) fn is_long(conversation: &Conversation, limit: usize) -> bool {
    conversation.bytes > limit || conversation.tokens > COMPACT_TOKENS
}

/// What stands before the running turn, if it is worth to be summarised.
pub(crate) fn earlier(entries: &[Entry], turn: TurnId) -> Option<&[Entry]> {
    let begins = entries.iter().position(|entry| entry.turn() == Some(turn))?;
    let (earlier, running) = entries.split_at(begins);
    let fresh = earlier.iter().any(|entry| !matches!(entry, Entry::Summary { .. }));
    let size = bytes_of(earlier);
    (fresh && size.saturating_mul(WORTH) >= size.saturating_add(bytes_of(running)))
        .then_some(earlier)
}
