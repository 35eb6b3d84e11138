//! A session as faces see it.

use stead_core::layout::Placement;
use stead_core::path::AgentPath;
use stead_core::permission::Mode;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::roster::Settled;
use stead_core::task::{Owner, Status};

use super::actor::Actor;
use crate::api::{AgentView, TasksResponse, TreeResponse};

impl Actor {
    /// The session as it is now.
    pub(super) fn tree(&self) -> TreeResponse {
        let started = self.state.world.started.as_ref();
        let tasks = &self.state.branch.tasks;
        let agents = self
            .state
            .branch
            .roster
            .all()
            .map(|agent| {
                let owner = if agent.path.is_root() {
                    Owner::Main
                } else {
                    Owner::Agent(agent.path.clone())
                };
                AgentView {
                    path: agent.path.clone(),
                    agent: agent.id.clone(),
                    activity: self.activity(&agent.path),
                    turn: agent.turn(),
                    since: agent.turn().and_then(|t| self.live.get(&t)).map(|l| l.since),
                    turns: agent.turns,
                    outcome: agent.last.as_ref().map(|l| l.outcome),
                    reason: agent.last.as_ref().and_then(|l| l.reason.clone()),
                    unread: agent.unread.len(),
                    directory: agent.directory.clone(),
                    driver: agent.driver.name.clone(),
                    open_tasks: tasks
                        .tasks
                        .values()
                        .filter(|t| t.owner == owner && t.status != Status::Completed)
                        .count(),
                    note: tasks.notes.get(&owner).cloned(),
                }
            })
            .collect();
        TreeResponse {
            session: self.session.clone(),
            label: started.and_then(|s| s.label.clone()),
            roots: started.map(|s| s.roots.clone()).unwrap_or_default(),
            placement: started.map_or(Placement::InPlace, |s| s.placement),
            mode: self.state.world.mode.unwrap_or(Mode::Ask),
            plan_ceiling: self.state.world.plan_ceiling,
            capacity: started.map_or(0, |s| s.capacity),
            tip: self.state.tip,
            agents,
            permissions: self.state.branch.permissions.values().cloned().collect(),
        }
    }

    /// How an agent's last turn ended. While a turn runs its old result is hidden (A10).
    pub(super) fn last_result(&self, path: &AgentPath) -> Result<Settled, Refusal> {
        let agent = self.state.branch.roster.find(path)?;
        if agent.turn().is_some() {
            return Err(Refusal::new(
                RefusalKind::WrongState,
                format!("{path} is at work; its result is not ready"),
            ));
        }
        agent.last.clone().ok_or_else(|| {
            Refusal::new(RefusalKind::NotFound, format!("{path} has ended no turn yet"))
        })
    }

    /// The task list.
    pub(super) fn tasks(&self) -> TasksResponse {
        let list = &self.state.branch.tasks;
        TasksResponse {
            tasks: list.tasks.values().cloned().collect(),
            notes: list.notes.iter().map(|(o, n)| (String::from(o.clone()), n.clone())).collect(),
        }
    }
}
