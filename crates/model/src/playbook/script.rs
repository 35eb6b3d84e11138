//! The script that a playbook's text comes down to.

use globset::GlobMatcher;
use serde_json::Value;
use stead_core::usage::{Reports, Usage};

/// A parsed playbook. It keeps no state: what it answers depends on the request alone.
#[derive(Debug, Clone)]
pub struct Playbook {
    pub(super) agents: Vec<Agent>,
}

impl Playbook {
    /// What can be counted of every reply that it gives.
    pub fn reports(&self) -> Reports {
        let turns = self.agents.iter().flat_map(|agent| &agent.turns);
        let steps = turns.flat_map(|turn| &turn.steps).filter(|step| step.speaks());
        let of = |step: &Step| match step.usage {
            None => Reports::Nothing,
            Some(Usage { cost_micros: None, .. }) => Reports::Tokens,
            Some(Usage { cost_micros: Some(_), .. }) => Reports::TokensAndCost,
        };
        steps.map(of).min().unwrap_or_default()
    }
}

/// What the agents with certain paths do.
#[derive(Debug, Clone)]
pub(super) struct Agent {
    /// The pattern as written.
    pub(super) pattern: String,
    pub(super) path: GlobMatcher,
    /// What it says when it is asked for a summary; none: something plain.
    pub(super) summary: Option<String>,
    pub(super) turns: Vec<Turn>,
}

/// What is done in a turn.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    /// What the message that it answers must contain; none takes every message.
    pub(super) when: Option<String>,
    pub(super) steps: Vec<Step>,
}

/// One step of a turn.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// Where it stands in the file, for errors.
    pub(super) line: usize,
    pub(super) label: Option<String>,
    /// The step is passed over when this does not hold.
    pub(super) condition: Option<Condition>,
    pub(super) action: Action,
    /// What each reply of it says that it used.
    pub(super) usage: Option<Usage>,
}

impl Step {
    /// Whether it gives a reply.
    fn speaks(&self) -> bool {
        match self.action {
            Action::Say(_) | Action::Call { .. } | Action::Wait(_) => true,
            Action::Fail(_) | Action::Goto { .. } => false,
        }
    }
}

/// What a step does.
#[derive(Debug, Clone)]
pub(super) enum Action {
    /// Ends the turn with a result.
    Say(String),
    /// Ends the turn as a provider's failure would.
    Fail(String),
    /// Calls tools, perhaps with a text beside.
    Call { say: String, calls: Vec<Call> },
    /// Calls `wait_agent` until enough has been heard.
    Wait(Wait),
    /// Goes on elsewhere, at most so often in a turn.
    Goto { label: String, at_most: Option<u32> },
}

/// One call of a tool.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) tool: String,
    /// The arguments, an object; its texts may have placeholders unless it is verbatim.
    pub(super) with: Value,
    pub(super) verbatim: bool,
    /// The name of its result.
    pub(super) name: Option<String>,
}

/// What is waited for.
#[derive(Debug, Clone)]
pub(super) struct Wait {
    pub(super) sort: WaitSort,
    pub(super) wanted: Wanted,
    /// The name of what was heard.
    pub(super) name: Option<String>,
    /// How often `wait_agent` is called at most.
    pub(super) at_most: u32,
}

/// What sort of mail is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitSort {
    /// RESULTs.
    Results,
    /// Messages of agents and of the person.
    Mail,
}

/// How much is waited for.
#[derive(Debug, Clone)]
pub(super) enum Wanted {
    /// One from each of these agents; may have placeholders.
    Each(Vec<String>),
    /// So many from anyone.
    Count(usize),
}

/// What must hold of a named result.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    pub(super) result: String,
    pub(super) test: Test,
}

/// The test of a [`Condition`].
#[derive(Debug, Clone)]
pub(super) enum Test {
    Contains(String),
    Lacks(String),
    Failed(bool),
}
