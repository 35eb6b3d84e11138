//! What a model's answers used, as its driver reports it.

use serde::{Deserialize, Serialize};

/// What one answer of a model used. What a driver does not know is not written down as 0: an answer
/// without a usage is *unknown* (see [`crate::budget`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// What it cost, in millionths of the provider's currency; none where only tokens are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
}

impl Usage {
    /// Tokens read and written.
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// What a driver says of what its answers use; frozen with the driver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reports {
    /// Nothing: neither tokens nor cost can be capped.
    #[default]
    Nothing,
    /// Tokens, and no cost.
    Tokens,
    /// Tokens and what they cost.
    TokensAndCost,
}

impl Reports {
    /// Whether nothing is reported.
    pub fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }
}
