//! The tools of the session, as values.

use std::collections::BTreeSet;

use stead_core::budget::Caps;
use stead_core::context::Context;
use stead_core::id::{SlotName, TaskId};
use stead_core::layout::Access;
use stead_core::task::TaskChange;

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
    /// Read the whole result of an agent's last turn.
    Result {
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
    /// What it is configured with.
    pub configuration: Configuration,
    /// A directory other than the caller's: absolute, or relative to the caller's.
    pub working_directory: Option<String>,
}

/// What a new agent is to be configured with, as it was asked for. It is frozen at the spawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The role, if not the caller's.
    pub role: Option<String>,
    /// What it is given of the caller's conversation.
    pub context: Context,
    /// The model, if not the role's or the caller's.
    pub model: Option<String>,
    /// How hard it thinks, if not as the role or the caller.
    pub effort: Option<String>,
    /// What it and everything below it may use.
    pub budget: Caps,
}

/// A task to delegate, as it was proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// One line; the agent's address comes from it.
    pub title: String,
    /// The whole assignment.
    pub message: String,
    /// What its agent is configured with.
    pub configuration: Configuration,
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

/// What a tool of the session came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// Plain text for the model.
    pub text: String,
    /// The same as data.
    pub structured: serde_json::Value,
}
