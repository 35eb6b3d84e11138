//! The seam between a turn and its session: requests that leave the turn as values.
//!
//! Whatever touches the session goes through here, so that one handler in the engine serves the
//! loop, the protocol faces and the program alike. Every answer is given only after what it says
//! is durable.

use std::collections::BTreeSet;

use stead_core::event::{CallFate, MailKind, Sender};
use stead_core::id::{CallId, SlotName, TaskId, TurnId};
use stead_core::layout::Access;
use stead_core::permission::{Answer, Deed};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::task::TaskChange;
use stead_model::{Reply, ToolResult};
use tokio::sync::{mpsc, oneshot};

/// One entry of an agent's conversation, with its bodies read.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// The agent heard something.
    Heard {
        /// In which turn.
        turn: TurnId,
        /// From whom.
        from: Sender,
        /// What sort of mail.
        sort: MailKind,
        /// The text.
        text: String,
    },
    /// The agent said something.
    Said {
        /// In which turn.
        turn: TurnId,
        /// What.
        reply: Reply,
    },
    /// A call has its result.
    Answered {
        /// In which turn.
        turn: TurnId,
        /// The result.
        result: ToolResult,
    },
    /// A call will never have one.
    Unanswered {
        /// In which turn.
        turn: TurnId,
        /// Which call.
        call: CallId,
        /// What is known of it.
        fate: CallFate,
    },
}

/// A tool whose effect is the session's.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionTool {
    /// Spawn an agent below the caller.
    Spawn(Spawn),
    /// Store mail, or continue an agent.
    Send {
        /// The target as given.
        target: String,
        /// The text.
        message: String,
        /// Whether it asks for a turn.
        wake: bool,
    },
    /// Wait for mail.
    Wait {
        /// For at most so long, in milliseconds, as given.
        timeout_ms: Option<u64>,
    },
    /// End another agent's turn.
    Interrupt {
        /// The target as given.
        target: String,
    },
    /// List agents.
    List {
        /// Only this path and what is below it, as given.
        path_prefix: Option<String>,
    },
    /// Write tasks and notes, all or none.
    WriteTasks {
        /// The tasks.
        tasks: Vec<TaskChange>,
        /// The notes: owner (none: the caller) and text (empty clears).
        notes: Vec<(Option<String>, String)>,
    },
    /// List tasks.
    ListTasks,
    /// Delegate a task to an agent of its own.
    Propose(Proposal),
}

/// An agent to spawn, as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spawn {
    /// The free-form name.
    pub task_name: String,
    /// The whole assignment.
    pub message: String,
    /// The role, if not the caller's.
    pub role: Option<String>,
    /// A directory other than the caller's: absolute, or relative to the caller's.
    pub working_directory: Option<String>,
}

/// A task to delegate, as it was proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// One line; the agent's address comes from it.
    pub title: String,
    /// The whole assignment.
    pub message: String,
    /// The role, if not the caller's.
    pub role: Option<String>,
    /// The tasks that must be completed first.
    pub blocked_by: BTreeSet<TaskId>,
    /// What it may use; none: all of the session's roots. The primary comes first.
    pub layout: Option<Vec<Route>>,
}

/// One root of a proposed layout; nobody has looked at it yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Where it is.
    pub source: Source,
    /// Its slot.
    pub slot: SlotName,
    /// What the task may do in it.
    pub access: Access,
}

/// How a layout names a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// By its path.
    Folder(String),
    /// By the URI of an earlier admission; never read as a path.
    Uri(String),
}

/// What a turn asks of its session.
#[derive(Debug)]
pub enum Ask {
    /// The conversation so far, on this branch.
    Conversation,
    /// A boundary: deliver what waits. Answers the entries that are new.
    Boundary,
    /// Record what the agent said, before its calls are run.
    Say {
        /// The [`Reply`] as the model crate stores it, in JSON.
        reply: Vec<u8>,
        /// The calls in it, in order.
        calls: Vec<CallId>,
    },
    /// Record what a call came to.
    Answer {
        /// Which call.
        call: CallId,
        /// The [`ToolResult`] as the model crate stores it, in JSON.
        result: Vec<u8>,
    },
    /// May this be done? Answers when it is settled.
    Permission {
        /// What.
        deed: Deed,
        /// One line for the person.
        subject: String,
    },
    /// Run a tool of the session.
    Tool {
        /// The call's id.
        call: CallId,
        /// Which tool.
        tool: SessionTool,
    },
}

/// What comes back.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// To [`Ask::Conversation`] and [`Ask::Boundary`].
    Entries(Vec<Entry>),
    /// To [`Ask::Say`] and [`Ask::Answer`]: it is durable.
    Recorded,
    /// To [`Ask::Permission`].
    Settled(Answer),
    /// To [`Ask::Tool`].
    Done {
        /// Plain text for the model.
        text: String,
        /// The same as data.
        structured: serde_json::Value,
    },
}

/// A request on its way to the session.
#[derive(Debug)]
pub struct Asked {
    /// The turn that asks. A turn that has ended is refused.
    pub turn: TurnId,
    /// What.
    pub ask: Ask,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Result<Told, Refusal>>,
}

/// A turn's end of the channel to its session.
#[derive(Debug, Clone)]
pub struct Port {
    turn: TurnId,
    sender: mpsc::Sender<Asked>,
}

impl Port {
    /// The port of `turn` over this channel.
    pub fn new(turn: TurnId, sender: mpsc::Sender<Asked>) -> Self {
        Self { turn, sender }
    }

    /// Asks and waits for the answer.
    pub async fn ask(&self, ask: Ask) -> Result<Told, Refusal> {
        let (answer, told) = oneshot::channel();
        let gone = || Refusal::new(RefusalKind::Unavailable, "the session is being closed");
        self.sender.send(Asked { turn: self.turn, ask, answer }).await.map_err(|_| gone())?;
        told.await.map_err(|_| gone())?
    }
}
