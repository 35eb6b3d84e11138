//! A session's agents as text.

use stead_core::layout::Access;
use stead_engine::api::{Activity, AgentView, TreeResponse};

use super::{activity, counted, ended, mode, outcome, placement};
use crate::clean;
use crate::output::{style, styled};

/// The session's head, its folders, its agents, and what waits for the person.
pub(crate) fn tree(tree: &TreeResponse) -> String {
    let mut text = head(tree);
    let paths = tree.agents.iter().map(|a| a.path.as_str().len()).max().unwrap_or(0);
    for agent in &tree.agents {
        text.push_str(&line(agent, paths));
        text.push('\n');
    }
    for request in &tree.permissions {
        text.push_str(&format!(
            "{} {} asks: {}  (`stead permit allow {}`)\n",
            styled(style::ASK, "?"),
            request.path,
            clean::line(&request.subject),
            request.id,
        ));
    }
    text
}

fn head(tree: &TreeResponse) -> String {
    let label = tree.label.as_ref().map(|l| format!(" {l}")).unwrap_or_default();
    let plan = if tree.plan_ceiling { ", planning only" } else { "" };
    let mut text = format!(
        "{} {}{}  {}, mode {}{plan}\n",
        styled(style::DIM, "session"),
        tree.session,
        styled(style::BOLD, label),
        placement(tree.placement),
        mode(tree.mode),
    );
    for root in &tree.roots {
        let access = if root.access == Access::Read { "  read only" } else { "" };
        text.push_str(&format!(
            "  {} {}{access}\n",
            styled(style::DIM, format_args!("{}:", root.slot)),
            clean::path(root.directory.as_path()),
        ));
    }
    text
}

fn line(agent: &AgentView, widest: usize) -> String {
    let shade = match agent.activity {
        Activity::Idle => style::DIM,
        Activity::PermissionBlocked => style::ASK,
        _ => style::BUSY,
    };
    let path = styled(style::BOLD, format_args!("{:<widest$}", agent.path.as_str()));
    let state = styled(shade, format_args!("{:<9}", activity(agent.activity)));
    let mut facts = Vec::new();
    if let (Activity::Idle, Some(how)) = (agent.activity, agent.outcome) {
        let (_, shade) = outcome(how);
        facts.push(styled(shade, ended(how, agent.reason.as_deref(), 200)));
    }
    facts.extend(agent.role.as_ref().map(ToString::to_string));
    if let Some(since) = agent.since {
        facts.push(format!("since {}", super::clock(since)));
    }
    if agent.unread > 0 {
        facts.push(format!("{} unread", agent.unread));
    }
    if agent.open_tasks > 0 {
        facts.push(counted(agent.open_tasks, "open task", "open tasks"));
    }
    if let Some(note) = &agent.note {
        facts.push(clean::brief(note, 200));
    }
    facts.push(styled(style::DIM, clean::brief(&agent.driver, 80)));
    format!("{path}  {state}  {}", facts.join(", "))
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use serde_json::json;

    #[test]
    fn a_tree_shows_what_matters_and_nothing_that_moves_the_terminal() {
        let agent = |path: &str, activity: &str, outcome: Option<&str>| {
            json!({
                "path": path, "agent": "a", "activity": activity, "turn": null, "turns": 1,
                "outcome": outcome, "reason": outcome.map(|_| "the model\u{1b}[2J is gone"),
                "unread": 1, "directory": "/w", "driver": "repair.toml", "open_tasks": 2,
                "note": "half\nway"
            })
        };
        let tree = serde_json::from_value(json!({
            "session": "0192a3b4", "label": "nightly",
            "roots": [
                { "id": "r1", "slot": "app", "directory": "/w/app", "access": "write",
                  "identity": { "inode": 1 } },
                { "id": "r2", "slot": "lib", "directory": "/w/lib", "access": "read",
                  "identity": { "inode": 2 } },
            ],
            "placement": "in-place", "mode": "ask", "plan_ceiling": true, "capacity": 8, "tip": 10,
            "agents": [
                agent("/root", "waiting", Some("completed")),
                agent("/root/fix", "idle", Some("errored")),
            ],
            "permissions": [
                { "id": 7, "path": "/root/fix", "turn": 4, "grant": { "command": "make" },
                  "subject": "run make" },
            ],
        }))
        .unwrap();
        insta::assert_snapshot!(strip_str(&super::tree(&tree)).to_string());
    }
}
