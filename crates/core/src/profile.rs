//! Profiles: what a role makes of an agent, frozen at its spawn (A6, A4).

use serde::{Deserialize, Serialize};

use crate::id::RoleName;
use crate::rule::RuleTable;

/// Tools that every role has: mail and the list of addresses (A6, *Who has which tool*).
const ALWAYS: [&str; 2] = ["send_message", "list_agents"];
/// Tools that come as one with delegation.
const DELEGATION: [&str; 4] = ["agent", "propose_task", "wait_agent", "interrupt_agent"];
/// Roles of stead's own that do not delegate.
const LEAVES: [&str; 2] = ["reviewer", "verifier"];
/// Roles of stead's own that do.
const DELEGATORS: [&str; 3] = ["default", "worker", "explorer"];

/// What an agent's turns are configured with besides its driver. It is stored as a body when the
/// agent is reserved and never changes after; permissions are not part of it but for what the role
/// narrows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// The role's instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The tools it may use; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Whether it may have agents of its own.
    #[serde(default = "yes")]
    pub delegates: bool,
    /// The model that is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How hard it thinks, in the model's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

/// What a role brings: `[roles.NAME]` of the settings, or one of stead's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Role {
    /// Instructions that its agents get.
    pub instructions: Option<String>,
    /// The tools it may use; none: all.
    pub tools: Option<Vec<String>>,
    /// Whether its agents may have agents of their own.
    pub delegates: bool,
    /// The model that is asked; none: the parent's.
    pub model: Option<String>,
    /// How hard it thinks; none: as the parent.
    pub effort: Option<String>,
    /// Rules that narrow what its agents may do, see [`crate::rule`].
    pub permissions: RuleTable,
}

fn yes() -> bool {
    true
}

impl Default for Role {
    fn default() -> Self {
        Self {
            instructions: None,
            tools: None,
            delegates: true,
            model: None,
            effort: None,
            permissions: RuleTable::default(),
        }
    }
}

impl Default for Profile {
    /// The profile of an agent that no role was ever named for.
    fn default() -> Self {
        Self { instructions: None, tools: None, delegates: true, model: None, effort: None }
    }
}

impl Role {
    /// The role of stead's own with this name.
    pub fn built_in(name: &RoleName) -> Option<Self> {
        let name = name.as_str();
        let leaf = LEAVES.contains(&name);
        (leaf || DELEGATORS.contains(&name)).then(|| Self { delegates: !leaf, ..Self::default() })
    }
}

impl Profile {
    /// The profile of a new agent: its parent's where no role is named, else the role's own, which
    /// is not intersected with the parent's tools. Model and effort: what was given with the spawn,
    /// else the role's, else the parent's (A6).
    #[must_use]
    pub fn spawned(
        parent: &Self,
        role: Option<&Role>,
        model: Option<String>,
        effort: Option<String>,
    ) -> Self {
        let base = match role {
            None => parent.clone(),
            Some(role) => Self {
                instructions: role.instructions.clone(),
                tools: role.tools.clone(),
                delegates: role.delegates,
                model: role.model.clone().or_else(|| parent.model.clone()),
                effort: role.effort.clone().or_else(|| parent.effort.clone()),
            },
        };
        Self { model: model.or(base.model), effort: effort.or(base.effort), ..base }
    }

    /// Whether an agent with this profile has the tool.
    pub fn has_tool(&self, tool: &str) -> bool {
        if ALWAYS.contains(&tool) {
            return true;
        }
        if DELEGATION.contains(&tool) {
            return self.delegates;
        }
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|name| name == tool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str) -> Option<Role> {
        Role::built_in(&RoleName::parse(name).unwrap())
    }

    #[test]
    fn leaf_roles_mail_and_list_and_spawn_nobody() {
        let reviewer = Profile::spawned(&Profile::default(), role("reviewer").as_ref(), None, None);
        assert!(reviewer.has_tool("send_message") && reviewer.has_tool("list_agents"));
        assert!(!reviewer.has_tool("agent") && !reviewer.has_tool("wait_agent"));
        assert!(reviewer.has_tool("bash"));
        let child = Profile::spawned(&reviewer, role("worker").as_ref(), None, None);
        assert!(child.has_tool("agent"), "a named role is not intersected with the caller's");
        assert_eq!(role("no-such-role"), None);
    }

    #[test]
    fn model_and_effort_are_the_spawns_then_the_roles_then_the_parents() {
        let some = |text: &str| Some(text.to_owned());
        let parent = Profile { model: some("m"), effort: some("high"), ..Profile::default() };
        let role = Role { model: some("r"), tools: Some(vec![]), ..Role::default() };
        let named = Profile::spawned(&parent, Some(&role), None, some("low"));
        assert_eq!((named.model.as_deref(), named.effort.as_deref()), (Some("r"), Some("low")));
        assert!(!named.has_tool("bash"));
        let given = Profile::spawned(&parent, Some(&role), some("x"), None);
        assert_eq!((given.model.as_deref(), given.effort.as_deref()), (Some("x"), Some("high")));
        assert_eq!(Profile::spawned(&parent, None, None, None), parent);
    }

    #[test]
    fn a_stored_profile_reads_back() {
        let profile = Profile { effort: Some("low".to_owned()), ..Profile::default() };
        let stored = serde_json::to_string(&profile).unwrap();
        assert_eq!(stored, r#"{"delegates":true,"effort":"low"}"#);
        assert_eq!(serde_json::from_str::<Profile>(&stored).unwrap(), profile);
        assert_eq!(serde_json::from_str::<Profile>("{}").unwrap(), Profile::default());
    }
}
