//! One agent's conversation, played by a playbook and by whoever plays the tools.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use stead_core::event::MailKind;
use stead_core::path::AgentPath;

use crate::message::{Message, Purpose, Reply, Request, ToolCall, ToolResult};
use crate::{Model, ModelError, Playbook};

pub(super) struct Stage {
    pub(super) playbook: Playbook,
    pub(super) agent: AgentPath,
    pub(super) messages: Vec<Message>,
}

impl Stage {
    /// An agent with this playbook.
    pub(super) fn new(playbook: &str, agent: &str) -> Self {
        Self {
            playbook: Playbook::parse(playbook).unwrap(),
            agent: AgentPath::parse(agent).unwrap(),
            messages: Vec::new(),
        }
    }

    /// `/root` with a playbook of one turn with these steps.
    pub(super) fn of_steps(steps: &str) -> Self {
        let text = format!("[[agent]]\npath = \"/root\"\n[[agent.turn]]\nstep = [\n{steps}\n]");
        Self::new(&text, "/root")
    }

    pub(super) fn open(&mut self, text: &str) -> &mut Self {
        self.hear("person", MailKind::User, text, true)
    }

    pub(super) fn mail(&mut self, from: &str, text: &str) -> &mut Self {
        self.hear(from, MailKind::Mail, text, false)
    }

    pub(super) fn result(&mut self, from: &str, text: &str) -> &mut Self {
        self.hear(from, MailKind::Result, text, false)
    }

    pub(super) fn hear(
        &mut self,
        from: &str,
        sort: MailKind,
        text: &str,
        opens_turn: bool,
    ) -> &mut Self {
        let (from, text) = (from.to_owned(), text.to_owned());
        self.messages.push(Message::User { from, sort, text, opens_turn });
        self
    }

    /// The answer to the conversation so far, which stays as it is.
    pub(super) fn ask(&self) -> Result<Reply, ModelError> {
        self.answer_to(&self.request())
    }

    /// What is asked next.
    pub(super) fn request(&self) -> Request {
        Request {
            purpose: Purpose::Turn,
            earlier_turns: 0,
            agent: self.agent.clone(),
            instructions: String::new(),
            messages: self.messages.clone(),
            tools: Vec::new(),
        }
    }

    /// The answer to a request.
    pub(super) fn answer_to(&self, request: &Request) -> Result<Reply, ModelError> {
        // A playbook has nothing to wait for, so that no runtime is needed.
        match pin!(self.playbook.reply(request)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(reply) => reply,
            Poll::Pending => panic!("a playbook waited"),
        }
    }

    /// The answer, recorded; its calls have no results yet.
    pub(super) fn say(&mut self) -> Reply {
        let reply = self.ask().unwrap();
        self.messages.push(Message::Assistant(reply.clone()));
        reply
    }

    pub(super) fn answer(&mut self, call: &ToolCall, text: &str, failed: bool) -> &mut Self {
        let (id, text) = (call.id.clone(), text.to_owned());
        self.messages.push(Message::Tool(ToolResult { id, text, structured: None, failed }));
        self
    }

    /// Plays until the turn ends; `tools` answers the calls. What was called, and the result.
    pub(super) fn play(&mut self, tools: impl Fn(&ToolCall) -> String) -> (Vec<String>, String) {
        let mut called = Vec::new();
        loop {
            let reply = self.say();
            if reply.calls.is_empty() {
                return (called, reply.text);
            }
            for call in &reply.calls {
                called.push(format!("{} {}", call.tool, call.arguments));
                self.answer(call, &tools(call), false);
            }
        }
    }

    pub(super) fn error(&self) -> String {
        self.ask().unwrap_err().to_string()
    }
}
