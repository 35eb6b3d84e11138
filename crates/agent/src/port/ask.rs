//! The questions of a turn, each with the way back of its own answer.

use stead_core::id::CallId;
use stead_core::permission::{Answer, Deed, Terms, Zone};
use stead_core::refusal::Refusal;
use stead_core::shell::{ShellFate, ShellId};
use stead_core::usage::Usage;
use tokio::sync::oneshot;

use super::entry::Entry;
use super::tool::{Done, SessionTool};

/// Takes the answer to a question. Dropped without one, it says that the session is being closed.
pub type Answering<T> = oneshot::Sender<Result<T, Refusal>>;

/// What a turn asks of its session.
#[derive(Debug)]
pub enum Ask {
    /// The conversation so far, on this branch.
    Conversation {
        /// Takes its entries.
        answer: Answering<Vec<Entry>>,
    },
    /// A boundary: deliver what waits.
    Boundary {
        /// Takes the entries that are new.
        answer: Answering<Vec<Entry>>,
    },
    /// Let a summary stand for the turns before the running one.
    Compact {
        /// The summary.
        summary: String,
        /// What the model used for it, where that is known.
        usage: Option<Usage>,
        /// Hears that it is durable.
        answer: Answering<()>,
    },
    /// Record what the agent said, before its calls are run.
    Say {
        /// The [`Reply`](stead_model::Reply) as the model crate stores it, in JSON.
        reply: Vec<u8>,
        /// The calls in it, in order.
        calls: Vec<CallId>,
        /// What it used, where that is known.
        usage: Option<Usage>,
        /// Hears that it is durable.
        answer: Answering<()>,
    },
    /// Record what a call came to.
    Answer {
        /// Which call.
        call: CallId,
        /// The [`ToolResult`](stead_model::ToolResult) as the model crate stores it, in JSON.
        result: Vec<u8>,
        /// Hears that it is durable.
        answer: Answering<()>,
    },
    /// May this be done?
    Permission {
        /// What.
        deed: Deed,
        /// Where the deed's files lie, in their order.
        zones: Vec<Zone>,
        /// One line for the person.
        subject: String,
        /// Hears how it was settled.
        answer: Answering<Answer>,
    },
    /// Record that a command goes on in the background.
    StartShell {
        /// Its command line.
        command: String,
        /// Takes its number.
        answer: Answering<ShellId>,
    },
    /// Record that a background shell has ended, and mail its owner unless it was stopped.
    ShellEnded {
        /// Which.
        shell: ShellId,
        /// How.
        fate: ShellFate,
        /// The mail.
        report: String,
        /// Hears that it is durable.
        answer: Answering<()>,
    },
    /// What deeds of the agent are judged by now.
    Terms {
        /// Takes it.
        answer: Answering<Terms>,
    },
    /// Run a tool of the session.
    Tool {
        /// The call's id.
        call: CallId,
        /// Which tool.
        tool: SessionTool,
        /// Takes what it came to.
        answer: Answering<Done>,
    },
}

impl Ask {
    /// Answers with a refusal, whatever was asked. Whoever asked and went away misses nothing.
    pub fn refuse(self, refusal: Refusal) {
        match self {
            Self::Conversation { answer } | Self::Boundary { answer } => {
                drop(answer.send(Err(refusal)));
            }
            Self::Say { answer, .. }
            | Self::Answer { answer, .. }
            | Self::Compact { answer, .. }
            | Self::ShellEnded { answer, .. } => drop(answer.send(Err(refusal))),
            Self::StartShell { answer, .. } => drop(answer.send(Err(refusal))),
            Self::Permission { answer, .. } => drop(answer.send(Err(refusal))),
            Self::Terms { answer } => drop(answer.send(Err(refusal))),
            Self::Tool { answer, .. } => drop(answer.send(Err(refusal))),
        }
    }
}
