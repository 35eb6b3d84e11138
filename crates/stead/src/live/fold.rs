//! What is known of a session from its tree and the events since.

use std::collections::BTreeMap;

use stead_core::event::{BranchEvent, Event, Outcome, WorldEvent};
use stead_core::id::{PermissionId, Position, SessionId, TaskId, Timestamp};
use stead_core::path::AgentPath;
use stead_core::permission::{Mode, Request};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::task::{Owner, Status, Task};
use stead_engine::api::{Activity, EventNotification, TasksResponse, TreeResponse};

use crate::{clean, render};

/// The most characters that are kept of what an agent said last.
const LONGEST: usize = 400;

/// One agent.
#[derive(Debug, Clone)]
pub(super) struct Agent {
    pub(super) activity: Activity,
    /// When its running turn began, as far as that was heard.
    pub(super) since: Option<Timestamp>,
    pub(super) outcome: Option<Outcome>,
    pub(super) reason: Option<String>,
    pub(super) unread: usize,
    /// What it said or called last; clean, on one line.
    pub(super) last: String,
}

impl Agent {
    fn new(activity: Activity) -> Self {
        Self { activity, since: None, outcome: None, reason: None, unread: 0, last: String::new() }
    }
}

/// A session as far as it is known here.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) session: SessionId,
    pub(super) label: Option<String>,
    pub(super) mode: Mode,
    pub(super) agents: BTreeMap<AgentPath, Agent>,
    pub(super) tasks: BTreeMap<TaskId, Task>,
    pub(super) permissions: BTreeMap<PermissionId, Request>,
    /// Why the session could not be started at all.
    pub(super) refused: Option<String>,
    tip: Position,
}

impl Fold {
    /// What the engine says of the session now.
    pub(super) fn new(tree: &TreeResponse, tasks: &TasksResponse) -> Self {
        let mut fold = Self {
            session: tree.session.clone(),
            label: tree.label.as_ref().map(ToString::to_string),
            mode: tree.mode,
            agents: BTreeMap::new(),
            tasks: BTreeMap::new(),
            permissions: BTreeMap::new(),
            refused: None,
            tip: 0,
        };
        fold.reset(tree, tasks);
        fold
    }

    /// Takes the engine's word again; what was heard of agents that are still there is kept.
    pub(super) fn reset(&mut self, tree: &TreeResponse, tasks: &TasksResponse) {
        let mut known = std::mem::take(&mut self.agents);
        for view in &tree.agents {
            let mut agent = known.remove(&view.path).unwrap_or_else(|| Agent::new(view.activity));
            agent.activity = view.activity;
            agent.outcome = view.outcome;
            agent.reason.clone_from(&view.reason);
            agent.unread = view.unread;
            self.agents.insert(view.path.clone(), agent);
        }
        self.tasks = tasks.tasks.iter().map(|task| (task.id, task.clone())).collect();
        self.permissions = tree.permissions.iter().map(|r| (r.id, r.clone())).collect();
        self.mode = tree.mode;
        self.tip = tree.tip;
    }

    /// Why the session did not come to be, if it did not.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let reason = self.refused.as_deref()?;
        Some(Refusal::new(RefusalKind::WrongState, clean::line(reason)))
    }

    /// Whether no agent is at work or about to be.
    pub(super) fn is_idle(&self) -> bool {
        self.agents.values().all(|agent| agent.activity == Activity::Idle)
    }

    /// Whether `/root` was admitted, or never will be.
    pub(super) fn is_admitted(&self) -> bool {
        let root = self.agents.get(&AgentPath::root());
        self.refused.is_some() || root.is_some_and(|a| a.activity != Activity::Preparing)
    }

    /// How many agents a turn runs for.
    pub(super) fn at_work(&self) -> usize {
        let working =
            |agent: &&Agent| !matches!(agent.activity, Activity::Idle | Activity::Preparing);
        self.agents.values().filter(working).count()
    }

    /// The agents that a turn runs for, or that are being made ready for one.
    pub(super) fn to_stop(&self) -> Vec<AgentPath> {
        let begun = |agent: &Agent| agent.activity != Activity::Idle;
        self.agents.iter().filter(|(_, a)| begun(a)).map(|(path, _)| path.clone()).collect()
    }

    /// How many tasks of this agent are open.
    pub(super) fn open_tasks(&self, path: &AgentPath) -> usize {
        let owner = Owner::of(Some(path));
        self.tasks.values().filter(|t| t.owner == owner && t.status != Status::Completed).count()
    }

    /// Takes what is not stored.
    pub(super) fn activity(&mut self, path: &AgentPath, activity: Activity) {
        if let Some(agent) = self.agents.get_mut(path) {
            agent.activity = activity;
        }
    }

    /// Takes how far an agent's copies are.
    pub(super) fn copying(&mut self, path: &AgentPath, how_far: &str) {
        if let Some(agent) = self.agents.get_mut(path).filter(|a| a.activity == Activity::Preparing)
        {
            how_far.clone_into(&mut agent.last);
        }
    }

    /// Takes an event. False: it is one after which the engine must be asked again.
    pub(super) fn apply(&mut self, notification: &EventNotification) -> bool {
        let Some(event) = render::decoded(notification) else { return true };
        let new = notification.position > self.tip;
        self.tip = self.tip.max(notification.position);
        match event {
            Event::World(WorldEvent::Rewound { .. }) => return !new,
            Event::World(WorldEvent::ModeSet { mode, .. }) if new => self.mode = mode,
            Event::World(_) => {}
            Event::Branch(event) => {
                self.hear(&event, notification);
                if new {
                    self.change(event, notification);
                }
            }
        }
        true
    }

    /// What the engine's word does not have, whenever it happened.
    fn hear(&mut self, event: &BranchEvent, notification: &EventNotification) {
        match event {
            BranchEvent::TurnStarted { path, .. } => {
                if let Some(agent) = self.agents.get_mut(path) {
                    agent.since = Some(notification.at);
                }
            }
            BranchEvent::AgentRefused { path, reason } if path.is_root() => {
                self.refused = Some(reason.clone());
            }
            BranchEvent::Said { .. } => {
                let agent =
                    notification.conversation.as_ref().and_then(|path| self.agents.get_mut(path));
                let line = spoken(notification);
                if let (Some(agent), Some(line)) = (agent, line) {
                    agent.last = line;
                }
            }
            _ => {}
        }
    }

    fn change(&mut self, event: BranchEvent, notification: &EventNotification) {
        match event {
            BranchEvent::AgentReserved { path, .. } => {
                self.agents.insert(path, Agent::new(Activity::Preparing));
            }
            BranchEvent::AgentPublished { path, .. } => {
                self.set(&path, Activity::Running);
                if let Some(agent) = self.agents.get_mut(&path) {
                    agent.last.clear();
                }
            }
            BranchEvent::AgentRefused { path, .. } => drop(self.agents.remove(&path)),
            BranchEvent::TurnStarted { path, .. } => {
                let agent =
                    self.agents.entry(path).or_insert_with(|| Agent::new(Activity::Running));
                agent.activity = Activity::Running;
                agent.since = Some(notification.at);
            }
            BranchEvent::TurnSettled { path, outcome, reason, .. } => {
                if let Some(agent) = self.agents.get_mut(&path) {
                    agent.activity = Activity::Idle;
                    agent.since = None;
                    agent.outcome = Some(outcome);
                    agent.reason = reason;
                }
            }
            BranchEvent::MailStored { to, .. } => {
                if let Some(agent) = self.agents.get_mut(&to) {
                    agent.unread += 1;
                }
            }
            BranchEvent::MailDelivered { to, mail } => {
                if let Some(agent) = self.agents.get_mut(&to) {
                    agent.unread = agent.unread.saturating_sub(mail.len());
                }
            }
            BranchEvent::TasksWritten { tasks, .. } => {
                self.tasks.extend(tasks.into_iter().map(|task| (task.id, task)));
            }
            BranchEvent::PermissionAsked { path, turn, grant, subject } => {
                let id = PermissionId(notification.position);
                self.set(&path, Activity::PermissionBlocked);
                self.permissions.insert(id, Request { id, path, turn, grant, subject });
            }
            BranchEvent::PermissionSettled { id, .. } => {
                if let Some(request) = self.permissions.remove(&id) {
                    self.set(&request.path, Activity::Running);
                }
            }
            _ => {}
        }
    }

    fn set(&mut self, path: &AgentPath, activity: Activity) {
        if let Some(agent) = self.agents.get_mut(path) {
            agent.activity = activity;
        }
    }
}

/// The last line of what was said; without one, the last call.
fn spoken(notification: &EventNotification) -> Option<String> {
    let text = clean::block(notification.text.as_deref().unwrap_or_default());
    let said = text.lines().map(str::trim).rfind(|l| !l.is_empty()).map(str::to_owned);
    let called = || {
        let call = notification.calls.last()?;
        let about = clean::brief(&render::about(&call.arguments), LONGEST);
        Some(format!("{} {about}", clean::line(&call.tool)).trim_end().to_owned())
    };
    Some(clean::brief(&said.or_else(called)?, LONGEST))
}
