//! stead's own loop: a model is asked, what it says is recorded, its calls are run, and so on until
//! it says something without a call.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use stead_core::event::Outcome;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_model::{Model, Reply, Request, ToolResult};

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
    model: Arc<M>,
}

impl<M: Model + ?Sized> Loop<M> {
    /// A loop over this model.
    pub fn new(model: Arc<M>) -> Self {
        Self { model, yield_after: YIELD_AFTER, most_steps: MOST_STEPS }
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

    /// Goes on until the agent's last word. `said` is the last text it said in this turn.
    async fn steps(
        &self,
        turn: &Turn,
        tools: &mut Tools,
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
        let instructions = prompt::instructions(&turn.situation, &turn.profile);
        let specs = offered(&turn.profile);
        for step in 0..self.most_steps {
            if step > 0 {
                boundary(turn).await?.iter().for_each(|e| conversation.hear(e));
            }
            let request = Request {
                agent: turn.situation.path.clone(),
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
    /// A completed turn waits for the commands it left running, each within its own limit; any
    /// other end, a cancel above all, ends them first.
    async fn run(&self, turn: Turn) -> TurnEnd {
        let mut tools = Tools::new(turn.clone(), self.yield_after);
        let mut said = String::new();
        let end = self.steps(&turn, &mut tools, &mut said).await;
        let end = match end {
            Ok(result) => {
                tools.shells.finish(&turn.cancel).await;
                if turn.cancel.is_cancelled() {
                    said = result;
                    Err(Stopped::Cancelled)
                } else {
                    Ok(result)
                }
            }
            cut => cut,
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
