//! A session as faces see it.

use stead_core::delegated::{ApplyOutcome, Delegated, PrivateCopy};
use stead_core::id::{RoleName, TaskId};
use stead_core::layout::{AbsoluteDir, Placement, Root};
use stead_core::path::AgentPath;
use stead_core::permission::Mode;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::roster::{Agent, Settled};
use stead_core::task::{Owner, Status};

use super::actor::Actor;
use crate::api::{AgentView, CopyState, DelegatedView, SlotView, TasksResponse, TreeResponse};

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
                    role: agent.role.clone(),
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
            label: self.state.world.label.clone(),
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

    /// The agents that this one started itself, with their roles (A17).
    pub(super) fn children(&self, path: &AgentPath) -> Vec<(AgentPath, Option<RoleName>)> {
        let published = self.state.branch.roster.published();
        let own = published.filter(|agent| agent.path.parent().as_ref() == Some(path));
        own.map(|agent| (agent.path.clone(), agent.role.clone())).collect()
    }

    /// The folders that an agent uses: its layout's copies, or the session's roots.
    pub(super) fn routes(&self, agent: &Agent) -> Vec<Root> {
        match self.layout_of(agent) {
            Some(layout) => layout.routes(),
            None => self.state.world.started.as_ref().map(|s| s.roots.clone()).unwrap_or_default(),
        }
    }

    /// What those folders are copies of, in their order; empty: they are the originals.
    pub(super) fn originals(&self, agent: &Agent) -> Vec<AbsoluteDir> {
        let layout = self.layout_of(agent);
        layout.iter().flat_map(|own| &own.roots).map(|root| root.directory.clone()).collect()
    }

    /// The task whose copies they are.
    pub(super) fn copies_of(&self, agent: &Agent) -> Option<TaskId> {
        self.layout_of(agent).map(|layout| layout.task)
    }

    fn layout_of(&self, agent: &Agent) -> Option<&Delegated> {
        let layout = self.state.world.delegated.get(&agent.task?)?;
        (!layout.roots.is_empty()).then_some(layout)
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
            delegated: self.state.world.delegated.values().map(delegated).collect(),
            notes: list.notes.iter().map(|(o, n)| (String::from(o.clone()), n.clone())).collect(),
        }
    }
}

fn delegated(own: &Delegated) -> DelegatedView {
    let slots = own
        .roots
        .iter()
        .map(|root| {
            let copy = own.copies.get(&root.slot);
            SlotView {
                slot: root.slot.clone(),
                access: root.access,
                original: root.directory.clone(),
                copy: copy.map(|copy| copy.directory.clone()),
                state: copy.map_or(CopyState::Preparing, copy_state),
                snapshot: copy.and_then(|c| c.reviewed.as_ref()).map(|r| r.snapshot),
                outcome: copy.and_then(|c| c.ended.clone()).map(|(_, outcome)| outcome),
            }
        })
        .collect();
    DelegatedView {
        task: own.task,
        owner: own.owner.clone(),
        title: own.title.clone(),
        admitted: own.admitted,
        settled: own.settled,
        slots,
        notes: own.notes.clone(),
    }
}

/// How far a copy is on its way into the original.
pub(crate) fn copy_state(copy: &PrivateCopy) -> CopyState {
    match (&copy.reviewed, &copy.ended) {
        _ if copy.discarded => CopyState::Discarded,
        _ if copy.applying.is_some() => CopyState::Applying,
        (Some(review), Some((snapshot, ApplyOutcome::Applied { .. })))
            if review.snapshot == *snapshot =>
        {
            CopyState::Applied
        }
        (Some(review), _) if review.base == copy.base => CopyState::Reviewed,
        _ => CopyState::NotReviewed,
    }
}
