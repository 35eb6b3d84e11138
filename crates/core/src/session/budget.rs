//! Budgets at work: at a cap the turn ends with the reason, and nothing else is started.

use super::state::State;
use crate::budget::{Budget, Reached};
use crate::event::{DriverSpec, Frozen};
use crate::id::Timestamp;
use crate::path::AgentPath;
use crate::refusal::{Refusal, RefusalKind};
use crate::roster::Agent;

impl Budget {
    /// Refuses caps that this driver gives nothing to count for.
    pub(super) fn check(&self, driver: &DriverSpec) -> Result<(), Refusal> {
        self.own.check(&driver.name, driver.reports)?;
        self.tree.check(&driver.name, driver.reports)
    }
}

/// Why the running turn of this agent has to end: a cap of its own, or of an agent above it, is
/// reached. To be asked before each step of a turn; `now` is the moment. The text is the reason
/// that the turn settles with, as errored.
pub fn over_budget(state: &State, path: &AgentPath, now: Timestamp) -> Option<String> {
    let agent = state.branch.roster.at(path)?;
    if !agent.frozen.budget.own.is_none() {
        let (own, _) = state.ledger().spent(path, Some(now));
        if let Some(reached) = agent.frozen.budget.own.reached(&own) {
            return Some(reason(path, "alone", &reached));
        }
    }
    state.line_of(path).find_map(|above| {
        if above.frozen.budget.tree.is_none() {
            return None;
        }
        let (_, tree) = state.ledger().spent(&above.path, Some(now));
        let reached = above.frozen.budget.tree.reached(&tree)?;
        Some(reason(&above.path, "with all below it", &reached))
    })
}

fn reason(path: &AgentPath, scope: &str, reached: &Reached) -> String {
    format!("the budget of {path} {scope} is used up: {reached}")
}

/// Refuses one more turn of this agent when a cap stands against it.
pub(super) fn check_turn(state: &State, agent: &Agent) -> Result<(), Refusal> {
    let (own, _) = state.ledger().spent(&agent.path, None);
    if let Some(reached) = agent.frozen.budget.own.refuses_a_turn(&own) {
        return Err(refusal(&reason(&agent.path, "alone", &reached)));
    }
    check_tree(state, agent)
}

/// Refuses one more turn of this agent, or of a new one below it, when a cap on a tree that it is
/// in stands against it.
fn check_tree(state: &State, agent: &Agent) -> Result<(), Refusal> {
    for above in state.line_of(&agent.path) {
        let (_, tree) = state.ledger().spent(&above.path, None);
        if let Some(reached) = above.frozen.budget.tree.refuses_a_turn(&tree) {
            return Err(refusal(&reason(&above.path, "with all below it", &reached)));
        }
    }
    Ok(())
}

/// Refuses a new agent below `parent` whose first turn no budget leaves room for, or whose driver
/// does not report what is capped.
pub(super) fn check_new(
    state: &State,
    parent: &Agent,
    frozen: &Frozen,
    driver: &DriverSpec,
) -> Result<(), Refusal> {
    frozen.budget.check(driver)?;
    for above in state.line_of(&parent.path) {
        above.frozen.budget.tree.check(&driver.name, driver.reports)?;
    }
    check_tree(state, parent)
}

fn refusal(line: &str) -> Refusal {
    Refusal::new(RefusalKind::OverBudget, line)
        .hint("nothing was started; say what is done and what is left")
}
