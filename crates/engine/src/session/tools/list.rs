//! The tool `list_agents`.

use serde_json::json;
use stead_agent::port::Done;
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};

use crate::api::{Activity, AgentView};
use crate::session::actor::Actor;

/// The most agents that one listing has (`decisions.md`).
const MOST_LISTED: usize = 100;
impl Actor {
    /// Lists the agents below `prefix` that have begun, active ones first when not all fit.
    pub(in crate::session) fn list(&self, prefix: Option<&str>) -> Result<Done, Refusal> {
        let prefix = prefix
            .map(AgentPath::parse)
            .transpose()
            .map_err(|e| Refusal::new(RefusalKind::InvalidArgument, e.to_string()))?;
        let mut agents: Vec<_> = self
            .tree()
            .agents
            .into_iter()
            .filter(|a| a.activity != Activity::Preparing)
            .filter(|a| prefix.as_ref().is_none_or(|p| a.path.is_within(p)))
            .collect();
        let all = agents.len();
        if all > MOST_LISTED {
            // Active first, then those with the most recent turn.
            agents.sort_by_key(|a| (a.activity == Activity::Idle, std::cmp::Reverse(a.turn)));
            agents.truncate(MOST_LISTED);
            agents.sort_by(|a, b| a.path.cmp(&b.path));
        }
        let mut lines: Vec<String> = agents.iter().map(listed_line).collect();
        let more = all - agents.len();
        if more > 0 {
            lines.push(format!("and {more} more; give a path_prefix to see them"));
        }
        let listed: Vec<_> = agents
            .iter()
            .map(|a| json!({ "path": a.path, "role": a.role, "activity": a.activity, "driver": a.driver }))
            .collect();
        Ok(Done { text: lines.join("\n"), structured: json!({ "agents": listed, "more": more }) })
    }
}

fn listed_line(agent: &AgentView) -> String {
    let activity = activity_name(agent.activity);
    match &agent.role {
        Some(role) => format!("{} {activity} ({role})", agent.path),
        None => format!("{} {activity}", agent.path),
    }
}

/// An activity in the words that people and models see.
pub(super) fn activity_name(activity: Activity) -> &'static str {
    match activity {
        Activity::Preparing => "preparing",
        Activity::Running => "running",
        Activity::Waiting => "waiting",
        Activity::PermissionBlocked => "permission-blocked",
        Activity::Idle => "idle",
    }
}
