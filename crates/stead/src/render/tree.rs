//! A session's agents as text.

use stead_core::layout::Access;
use stead_engine::api::{Activity, AgentView, TreeResponse};

use super::{activity, counted, mode, outcome, placement};
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
        let (word, shade) = outcome(how);
        let reason = agent.reason.as_deref().map(|r| format!(": {}", clean::brief(r, 200)));
        facts.push(styled(shade, format_args!("{word}{}", reason.unwrap_or_default())));
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
