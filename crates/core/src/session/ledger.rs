//! The ledger: what every agent, and everything below it, has used.
//!
//! It counts all branches: what was used stays used, whatever is rewound. What stands before the
//! publication of `/root` came with a fork and was used by another session.

use std::collections::BTreeMap;

use crate::budget::Spent;
use crate::event::{BranchEvent, Envelope, Event, Stream};
use crate::id::{PermissionId, SessionId, Timestamp};
use crate::path::AgentPath;

/// What the agents of a session have used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    accounts: BTreeMap<SessionId, Account>,
    /// Whose path it is now.
    paths: BTreeMap<AgentPath, SessionId>,
    /// Who waits for the person.
    asked: BTreeMap<PermissionId, SessionId>,
    open: bool,
}

/// What one agent has used, and everything below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Account {
    parent: Option<SessionId>,
    own: Spent,
    tree: Spent,
    /// Since when its turn works; none while it waits for the person, or no turn runs.
    working: Option<Timestamp>,
    /// When its turn was last seen at work.
    seen: Option<Timestamp>,
    /// How many requests to the person are open.
    waits: u32,
}

/// The milliseconds between two moments; clocks jump, and then it is none.
fn between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.0.saturating_sub(from.0)).unwrap_or(0)
}

impl Ledger {
    /// What the agent at `path` has used alone, and with everything below it. Its turn that runs is
    /// counted up to `now`.
    pub fn spent(&self, path: &AgentPath, now: Option<Timestamp>) -> (Spent, Spent) {
        let Some(id) = self.paths.get(path) else { return Default::default() };
        let Some(account) = self.accounts.get(id) else { return Default::default() };
        let (mut own, mut tree) = (account.own, account.tree);
        if let Some(now) = now {
            let runs = |account: &Account| account.working.map_or(0, |from| between(from, now));
            own.wall_ms = own.wall_ms.saturating_add(runs(account));
            let below: u64 = self
                .accounts
                .iter()
                .filter(|(_, account)| account.working.is_some())
                .filter(|(below, _)| self.is_within(below, id))
                .fold(0, |sum, (_, account)| sum.saturating_add(runs(account)));
            tree.wall_ms = tree.wall_ms.saturating_add(below);
        }
        (own, tree)
    }

    /// When the agent's running turn was last seen at work.
    pub(super) fn last_seen(&self, id: &SessionId) -> Option<Timestamp> {
        self.accounts.get(id).and_then(|account| account.seen)
    }

    fn is_within(&self, id: &SessionId, above: &SessionId) -> bool {
        let mut at = Some(id);
        while let Some(id) = at {
            if id == above {
                return true;
            }
            at = self.accounts.get(id).and_then(|account| account.parent.as_ref());
        }
        false
    }

    /// Counts an event, whatever branch it is on.
    pub(super) fn count(&mut self, envelope: &Envelope) {
        let Event::Branch(event) = &envelope.event else { return };
        match event {
            BranchEvent::AgentReserved { agent, path, .. } => {
                let parent = path.parent().and_then(|parent| self.paths.get(&parent)).cloned();
                self.paths.insert(path.clone(), agent.clone());
                let account = Account { parent, ..Account::default() };
                // Of two with one id the first is the agent.
                self.accounts.entry(agent.clone()).or_insert(account);
            }
            BranchEvent::AgentPublished { path, .. } if path.is_root() => self.open = true,
            _ if !self.open => {}
            BranchEvent::TurnStarted { path, .. } => {
                self.add(path, |spent| spent.turns = spent.turns.saturating_add(1));
                self.with(path, |account| {
                    (account.working, account.seen) = (Some(envelope.at), Some(envelope.at));
                    account.waits = 0;
                });
            }
            BranchEvent::TurnSettled { path, worked_until, .. } => {
                self.rest(path, worked_until.unwrap_or(envelope.at));
                self.with(path, |account| account.seen = None);
            }
            BranchEvent::PermissionAsked { path, .. } => {
                self.rest(path, envelope.at);
                self.with(path, |account| account.waits = account.waits.saturating_add(1));
                if let Some(id) = self.paths.get(path) {
                    self.asked.insert(PermissionId(envelope.position), id.clone());
                }
            }
            BranchEvent::PermissionSettled { id, .. } => {
                let account = self.asked.remove(id).and_then(|id| self.accounts.get_mut(&id));
                if let Some(account) = account {
                    account.waits = account.waits.saturating_sub(1);
                    if account.waits == 0 && account.seen.is_some() {
                        (account.working, account.seen) = (Some(envelope.at), Some(envelope.at));
                    }
                }
            }
            BranchEvent::Said { usage, .. } | BranchEvent::Compacted { usage, .. } => {
                if let Stream::Conversation(id) = &envelope.stream {
                    self.add_to(id.clone(), |spent| spent.answer(usage.as_ref()));
                }
                self.see(envelope);
            }
            _ => self.see(envelope),
        }
    }

    /// An event of a conversation shows its agent at work.
    fn see(&mut self, envelope: &Envelope) {
        if let Stream::Conversation(id) = &envelope.stream
            && let Some(account) = self.accounts.get_mut(id)
            && account.seen.is_some()
        {
            account.seen = Some(envelope.at);
        }
    }

    /// From `at` on the agent's turn does not work.
    fn rest(&mut self, path: &AgentPath, at: Timestamp) {
        let mut worked = 0;
        self.with(path, |account| {
            worked = account.working.take().map_or(0, |from| between(from, at));
        });
        self.add(path, |spent| spent.wall_ms = spent.wall_ms.saturating_add(worked));
    }

    fn with(&mut self, path: &AgentPath, change: impl FnOnce(&mut Account)) {
        let account = self.paths.get(path).and_then(|id| self.accounts.get_mut(id));
        if let Some(account) = account {
            change(account);
        }
    }

    fn add(&mut self, path: &AgentPath, change: impl Fn(&mut Spent)) {
        if let Some(id) = self.paths.get(path).cloned() {
            self.add_to(id, change);
        }
    }

    /// To the agent, and to the tree of it and of everyone above it.
    fn add_to(&mut self, id: SessionId, change: impl Fn(&mut Spent)) {
        if let Some(account) = self.accounts.get_mut(&id) {
            change(&mut account.own);
        }
        let mut at = Some(id);
        while let Some(account) = at.as_ref().and_then(|id| self.accounts.get_mut(id)) {
            change(&mut account.tree);
            at.clone_from(&account.parent);
        }
    }
}
