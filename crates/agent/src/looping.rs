//! stead's own loop: a model is asked, what it says is recorded, its calls are run, and so on until
//! it says something without a call.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use stead_core::event::Outcome;
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_model::{Model, Purpose, Reply, Request, ToolResult};

use crate::compact::{self, COMPACT_BYTES, Summary};
use crate::conversation::{Conversation, last_word};
use crate::driver::{Driver, Turn, TurnEnd};
use crate::port::{Ask, Entry};
use crate::prompt;
use crate::tools::{Stopped, Tools, YIELD_AFTER, ask, offered};

/// The most replies of one turn: an agent that goes in circles ends there.
pub const MOST_STEPS: u32 = 1000;

/// The loop over a model.
#[derive(Debug)]
pub struct Loop<M: ?Sized> {
    yield_after: Duration,
    most_steps: u32,
    compact_at: usize,
    model: Arc<M>,
}

impl<M: Model + ?Sized> Loop<M> {
    /// A loop over this model.
    pub fn new(model: Arc<M>) -> Self {
        Self { model, yield_after: YIELD_AFTER, most_steps: MOST_STEPS, compact_at: COMPACT_BYTES }
    }

    /// The same, but `bash` answers after so long that its command goes on.
    #[must_use]
    pub fn yield_after(self, yield_after: Duration) -> Self {
        Self { yield_after, ..self }
    }

    /// The same, but with another bound on the replies of a turn.
    #[must_use]
    pub fn most_steps(self, most_steps: u32) -> Self {
        Self { most_steps, ..self }
    }

    /// The same, but a conversation of more bytes is compacted.
    #[must_use]
    pub fn compact_at(self, compact_at: usize) -> Self {
        Self { compact_at, ..self }
    }

    /// Goes on until the agent's last word, `left` replies at most. `said` is the last text it said
    /// in this turn.
    async fn steps(
        &self,
        turn: &Turn,
        tools: &mut Tools,
        left: &mut u32,
        said: &mut String,
    ) -> Result<String, Stopped> {
        let mut entries = conversation(turn).await?;
        let news = boundary(turn).await?;
        entries.extend(news.into_iter().filter(|entry| matches!(entry, Entry::Heard { .. })));
        if let Some(text) = last_word(&entries, turn.id) {
            return Ok(text.to_owned());
        }
        let mut conversation = Conversation::of(&entries);
        drop(entries);
        let mut may_compact = true;
        let instructions = prompt::instructions(&turn.situation, &turn.profile);
        let specs = offered(&turn.profile);
        let mut first = true;
        while let Some(fewer) = left.checked_sub(1) {
            *left = fewer;
            if !std::mem::take(&mut first) {
                boundary(turn).await?.iter().for_each(|e| conversation.hear(e));
            }
            if may_compact && compact::is_long(&conversation, self.compact_at) {
                // What the running turn makes too long, no summary makes shorter.
                may_compact = false;
                self.compact(turn, &mut conversation).await?;
            }
            let request = Request {
                agent: turn.situation.path.clone(),
                purpose: Purpose::Turn,
                earlier_turns: conversation.earlier_turns,
                instructions: instructions.clone(),
                messages: std::mem::take(&mut conversation.messages),
                tools: specs.clone(),
            };
            let reply = self.reply(turn, &request, &conversation).await;
            conversation.messages = request.messages;
            let reply = reply?;
            match say(turn, &reply).await {
                Ok(()) => {}
                // It must hear that first; what it said without knowing is not recorded.
                Err(Stopped::Refused(refusal)) if refusal.kind == RefusalKind::MailWaiting => {
                    continue;
                }
                Err(stopped) => return Err(stopped),
            }
            if !reply.text.is_empty() {
                said.clone_from(&reply.text);
            }
            if reply.calls.is_empty() {
                return Ok(reply.text);
            }
            conversation.say(reply.clone());
            for call in reply.calls {
                tracing::debug!(agent = %turn.situation.path, call = %call.id, tool = %call.tool, "a call");
                let result = tools.run(call).await.ok_or(Stopped::Cancelled)?;
                answer(turn, &result).await?;
                conversation.answer(result);
            }
        }
        Err(failed(format!(
            "the turn took {} steps without an end; it was ended there",
            self.most_steps
        )))
    }

    /// Has a summary stand for the turns before this one. A conversation that cannot be summarised
    /// goes on as it is.
    async fn compact(&self, turn: &Turn, shown: &mut Conversation) -> Result<(), Stopped> {
        let entries = conversation(turn).await?;
        let Some(earlier) = compact::earlier(&entries, turn.id) else { return Ok(()) };
        let path = &turn.situation.path;
        let summary = compact::summarise(self.model.as_ref(), path, earlier);
        let summary = turn.cancel.run_until_cancelled(summary).await.ok_or(Stopped::Cancelled)?;
        let kept = match summary {
            Ok(Summary { text, usage }) => {
                ask(turn, |answer| Ask::Compact { summary: text, usage, answer }).await
            }
            Err(refusal) => Err(refusal.into()),
        };
        match kept {
            Ok(()) => *shown = Conversation::of(&conversation(turn).await?),
            Err(Stopped::Cancelled) => return Err(Stopped::Cancelled),
            Err(Stopped::Refused(refusal)) => {
                tracing::warn!(agent = %path, why = %refusal.line, "not compacted");
            }
        }
        Ok(())
    }

    async fn reply(
        &self,
        turn: &Turn,
        request: &Request,
        conversation: &Conversation,
    ) -> Result<Reply, Stopped> {
        let reply = turn.cancel.run_until_cancelled(self.model.reply(request)).await;
        let reply = reply.ok_or(Stopped::Cancelled)?.map_err(|error| failed(error.to_string()))?;
        // A result is found by its call's id, so one id twice would mix up two results.
        match conversation.repeated(&reply) {
            Some(id) => Err(failed(format!("the model gave two calls the id {id}"))),
            None => Ok(reply),
        }
    }
}

#[async_trait]
impl<M: Model + ?Sized + 'static> Driver for Loop<M> {
    async fn summarise(&self, agent: &AgentPath, entries: &[Entry]) -> Result<Summary, Refusal> {
        compact::summarise(self.model.as_ref(), agent, entries).await
    }

    /// A turn that has its last word is held until its background shells have ended, each within
    /// its own limit, and goes on with what it hears of them; any other end, a cancel above all,
    /// ends them first (A19).
    async fn run(&self, turn: Turn) -> TurnEnd {
        let mut tools = Tools::new(turn.clone(), self.yield_after);
        let mut said = String::new();
        let mut left = self.most_steps;
        let end = loop {
            let word = match self.steps(&turn, &mut tools, &mut left, &mut said).await {
                Ok(word) => word,
                cut => break cut,
            };
            let held = tools.shells.hold(&turn.cancel).await;
            if turn.cancel.is_cancelled() {
                said = word;
                break Err(Stopped::Cancelled);
            }
            if !held {
                break Ok(word);
            }
        };
        tools.shells.end().await;
        match end {
            Ok(result) => TurnEnd { outcome: Outcome::Completed, result, reason: None },
            Err(Stopped::Cancelled) => TurnEnd {
                outcome: Outcome::Interrupted,
                result: said,
                reason: Some("the turn was interrupted".to_owned()),
            },
            Err(Stopped::Refused(refusal)) => {
                TurnEnd { outcome: Outcome::Errored, result: said, reason: Some(refusal.line) }
            }
        }
    }
}

async fn conversation(turn: &Turn) -> Result<Vec<Entry>, Stopped> {
    ask(turn, |answer| Ask::Conversation { answer }).await
}

/// What is new since the last boundary.
async fn boundary(turn: &Turn) -> Result<Vec<Entry>, Stopped> {
    ask(turn, |answer| Ask::Boundary { answer }).await
}

async fn say(turn: &Turn, reply: &Reply) -> Result<(), Stopped> {
    let calls = reply.calls.iter().map(|call| call.id.clone()).collect();
    let (usage, reply) = (reply.usage, stored(reply)?);
    ask(turn, |answer| Ask::Say { reply, calls, usage, answer }).await
}

async fn answer(turn: &Turn, result: &ToolResult) -> Result<(), Stopped> {
    let (call, result) = (result.id.clone(), stored(result)?);
    ask(turn, |answer| Ask::Answer { call, result, answer }).await
}

/// A message as it is stored.
fn stored(message: &impl Serialize) -> Result<Vec<u8>, Stopped> {
    serde_json::to_vec(message).map_err(|error| failed(format!("it cannot be stored: {error}")))
}

fn failed(reason: String) -> Stopped {
    Refusal::new(RefusalKind::Failed, reason).into()
}
