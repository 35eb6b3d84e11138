//! Budgets: how much an agent, and everything below it, may use (`decisions.md`, *Budgets*).
//!
//! What was used is counted from the log, see [`crate::session::Ledger`].

use serde::{Deserialize, Serialize};

use crate::refusal::{Refusal, RefusalKind};
use crate::usage::{Reports, Usage};

/// Upper bounds; none: no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Caps {
    /// Turns that may begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Tokens read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost in millionths of the provider's currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Seconds in which turns ran, waits for the person left out; those of turns that ran at the
    /// same time are added up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<u64>,
}

/// The caps of one agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// For the agent alone.
    #[serde(skip_serializing_if = "Caps::is_none")]
    pub own: Caps,
    /// For the agent and everything below it.
    #[serde(skip_serializing_if = "Caps::is_none")]
    pub tree: Caps,
}

/// What was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Turns that began.
    pub turns: u64,
    /// Tokens read and written, as far as they are known.
    pub tokens: u64,
    /// Cost in millionths of the provider's currency, as far as it is known.
    pub cost_micros: u64,
    /// Milliseconds in which turns ran and did not wait for the person.
    pub wall_ms: u64,
    /// Answers whose tokens nobody reported.
    pub unknown_tokens: u64,
    /// Answers whose cost nobody reported.
    pub unknown_cost: u64,
}

/// A cap that is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    what: &'static str,
    used: Option<u64>,
    cap: u64,
}

impl std::fmt::Display for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.used {
            Some(used) => write!(f, "{used} of {} {} are used", self.cap, self.what),
            None => write!(f, "what was used of {} {} is not known", self.cap, self.what),
        }
    }
}

impl Caps {
    /// Whether nothing is capped.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The cap that stands against a turn that runs, if one does. An answer whose use nobody knows
    /// never counts as 0: with it the cap is reached.
    pub fn reached(&self, spent: &Spent) -> Option<Reached> {
        let known = |what, cap: Option<u64>, used: u64, unknown: u64| {
            let cap = cap?;
            let reached = unknown > 0 || used >= cap;
            reached.then_some(Reached { what, used: (unknown == 0).then_some(used), cap })
        };
        known("tokens", self.tokens, spent.tokens, spent.unknown_tokens)
            .or_else(|| {
                let what = "millionths of the cost allowed";
                known(what, self.cost_micros, spent.cost_micros, spent.unknown_cost)
            })
            .or_else(|| known("seconds of work", self.wall_seconds, spent.wall_ms / 1000, 0))
    }

    /// The cap that stands against one more turn, if one does.
    pub fn refuses_a_turn(&self, spent: &Spent) -> Option<Reached> {
        let turns = self.turns.filter(|cap| spent.turns >= *cap);
        turns
            .map(|cap| Reached { what: "turns", used: Some(spent.turns), cap })
            .or_else(|| self.reached(spent))
    }

    /// Refuses caps that could never be counted with what a driver reports: what is unknown never
    /// counts as 0.
    pub fn check(&self, driver: &str, reports: Reports) -> Result<(), Refusal> {
        let uncounted = match reports {
            Reports::Nothing if self.tokens.is_some() => "tokens",
            Reports::Nothing | Reports::Tokens if self.cost_micros.is_some() => "cost",
            _ => return Ok(()),
        };
        Err(Refusal::new(
            RefusalKind::InvalidArgument,
            format!("{uncounted} cannot be capped: {driver} does not report it"),
        )
        .hint("cap turns or wall time, or choose a model that reports what it uses"))
    }
}

impl Budget {
    /// Whether nothing is capped.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Spent {
    pub(crate) fn answer(&mut self, usage: Option<&Usage>) {
        let cost = usage.and_then(|usage| usage.cost_micros);
        let tokens = usage.map(Usage::tokens);
        self.tokens = self.tokens.saturating_add(tokens.unwrap_or(0));
        self.cost_micros = self.cost_micros.saturating_add(cost.unwrap_or(0));
        self.unknown_tokens = self.unknown_tokens.saturating_add(u64::from(tokens.is_none()));
        self.unknown_cost = self.unknown_cost.saturating_add(u64::from(cost.is_none()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_reached_when_all_of_it_is_used_or_nobody_knows() {
        let caps = Caps { tokens: Some(10), ..Caps::default() };
        let spent = |tokens, unknown| Spent { tokens, unknown_tokens: unknown, ..Spent::default() };
        assert_eq!(caps.reached(&spent(9, 0)), None);
        assert_eq!(caps.reached(&spent(10, 0)).unwrap().to_string(), "10 of 10 tokens are used");
        let unknown = caps.reached(&spent(0, 1)).unwrap().to_string();
        assert_eq!(unknown, "what was used of 10 tokens is not known");
        // Cost that nobody reports is no matter where only tokens are capped.
        assert_eq!(caps.reached(&Spent { unknown_cost: 3, ..spent(9, 0) }), None);
    }

    #[test]
    fn the_last_turn_that_a_cap_allows_runs_to_its_end() {
        let caps = Caps { turns: Some(2), ..Caps::default() };
        let spent = |turns| Spent { turns, ..Spent::default() };
        assert_eq!(caps.refuses_a_turn(&spent(1)), None);
        assert!(caps.refuses_a_turn(&spent(2)).is_some());
        assert_eq!(caps.reached(&spent(2)), None);
    }

    #[test]
    fn what_a_driver_does_not_report_cannot_be_capped() {
        let tokens = Caps { tokens: Some(1), ..Caps::default() };
        let cost = Caps { cost_micros: Some(1), ..Caps::default() };
        assert!(tokens.check("b", Reports::Nothing).is_err());
        assert!(tokens.check("b", Reports::Tokens).is_ok());
        assert!(cost.check("b", Reports::Tokens).is_err());
        assert!(cost.check("b", Reports::TokensAndCost).is_ok());
        assert!(Caps { turns: Some(1), ..Caps::default() }.check("b", Reports::Nothing).is_ok());
    }
}
