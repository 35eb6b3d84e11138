//! What is allowed in a session, and how a person changes it.

use serde::{Deserialize, Serialize};
use stead_core::permission::{Grant, Request};
use stead_core::rule::Rule;

/// What waits for the person, and what is judged by without asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionsResponse {
    /// The open requests, oldest first.
    pub permissions: Vec<Request>,
    /// What the person allowed for the session.
    pub grants: Vec<Grant>,
    /// The rules that the person set for the session.
    pub rules: Vec<Rule>,
    /// Those of the person's settings.
    pub settings: Vec<Rule>,
}

/// Changes the rules of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleParams {
    /// Adds one, if it is not there.
    Add(Rule),
    /// Takes one back.
    Remove(Rule),
}

/// The rules of a session after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesResponse {
    /// All of them.
    pub rules: Vec<Rule>,
}

/// Takes a grant back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokeParams {
    /// Exactly this one.
    pub grant: Grant,
}

/// The grants of a session after one was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantsResponse {
    /// All of them.
    pub grants: Vec<Grant>,
}
