//! State, and how an event changes it.

use std::collections::{BTreeMap, BTreeSet};

use crate::delegated::{self, Delegated};
use crate::event::{BranchEvent, Envelope, Event, SessionStarted, Stream, WorldEvent};
use crate::id::{MailId, PermissionId, Position, TaskId, TurnId};
use crate::mail::Mail;
use crate::path::AgentPath;
use crate::permission::{Deed, Grant, Mode, Request, Verdict, judge};
use crate::roster::{Agent, Roster, Settled, Standing};
use crate::task::TaskList;

/// The state of a root session: the fold of its log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// What holds on every branch.
    pub world: World,
    /// What holds on the branch that the session is on.
    pub branch: Branch,
    /// The position of the last event; 0 before the first.
    pub tip: Position,
    seqs: BTreeMap<Stream, u64>,
    /// Where `/root`'s turns began (true) and ended, over all branches.
    root_turns: BTreeMap<Position, bool>,
}

/// What holds on every branch. Its fold never sees a [`Branch`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct World {
    /// How the session started; none before its first event.
    pub started: Option<SessionStarted>,
    /// How much is asked now; none before the first event.
    pub mode: Option<Mode>,
    /// Whether the plan ceiling is on.
    pub plan_ceiling: bool,
    /// The highest task number ever used.
    pub last_task: TaskId,
    /// The tasks that have an agent of their own.
    pub delegated: BTreeMap<TaskId, Delegated>,
    /// What the person allowed for the session.
    pub grants: Vec<Grant>,
    /// Every rewind: its own position and where the branch went on from, oldest first.
    pub rewinds: Vec<(Position, Position)>,
}

/// What holds on one branch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Branch {
    /// The agents.
    pub roster: Roster,
    /// The tasks and notes.
    pub tasks: TaskList,
    /// The open permission requests, oldest first.
    pub permissions: BTreeMap<PermissionId, Request>,
}

/// What is left to do after an event was folded in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Evolved {
    /// Nothing: the state is the fold of the log.
    Whole,
    /// The branch changed: the state must be replayed from the log.
    Replay,
}

impl State {
    /// Folds in the event that comes next.
    pub fn evolve(&mut self, envelope: &Envelope) -> Evolved {
        self.pass(envelope);
        match &envelope.event {
            Event::World(event) => {
                self.world.evolve(envelope.position, event);
                match event {
                    WorldEvent::Rewound { .. } => Evolved::Replay,
                    _ => Evolved::Whole,
                }
            }
            Event::Branch(event) => {
                self.branch.evolve(envelope.position, &envelope.stream, event);
                Evolved::Whole
            }
        }
    }

    /// Counts the event without folding it into world or branch.
    pub(super) fn pass(&mut self, envelope: &Envelope) {
        self.tip = envelope.position;
        match self.seqs.get_mut(&envelope.stream) {
            Some(seq) => *seq = envelope.seq,
            None => drop(self.seqs.insert(envelope.stream.clone(), envelope.seq)),
        }
        let begins = match &envelope.event {
            Event::Branch(BranchEvent::TurnStarted { path }) if path.is_root() => true,
            Event::Branch(BranchEvent::TurnSettled { path, .. }) if path.is_root() => false,
            _ => return,
        };
        self.root_turns.insert(envelope.position, begins);
    }

    /// Whether a turn of `/root` was open at this position. A rewind needs all idle and leaves all
    /// idle, so the order of the log answers for every branch.
    pub(super) fn root_worked(&self, at: Position) -> bool {
        self.root_turns.range(..=at).next_back().is_some_and(|(_, begins)| *begins)
    }

    /// The position at which the batch that began `/root`'s first turn ended: it is never left
    /// behind. None before.
    pub(super) fn first_batch(&self) -> Option<Position> {
        // What the turn heard first stands right behind its beginning.
        self.root_turns.keys().next().map(|began| began + 1)
    }

    /// The number that the next event of `stream` gets.
    pub fn next_seq(&self, stream: &Stream) -> u64 {
        self.seqs.get(stream).map_or(1, |seq| seq + 1)
    }

    /// What the rules say of a deed now.
    pub fn judge(&self, deed: &Deed) -> Verdict {
        judge(
            self.world.mode.unwrap_or(Mode::Ask),
            self.world.plan_ceiling,
            self.world.grants.contains(deed),
            deed,
        )
    }
}

impl World {
    pub(super) fn evolve(&mut self, position: Position, event: &WorldEvent) {
        delegated::evolve(&mut self.delegated, position, event);
        match event {
            WorldEvent::SessionStarted(started) => {
                self.mode = Some(started.mode);
                self.plan_ceiling = started.plan_ceiling;
                self.started = Some(started.clone());
            }
            WorldEvent::TasksNumbered { last } => self.last_task = self.last_task.max(*last),
            WorldEvent::ModeSet { mode, plan_ceiling } => {
                self.mode = Some(*mode);
                self.plan_ceiling = *plan_ceiling;
            }
            WorldEvent::Granted { grant } => {
                if !self.grants.contains(grant) {
                    self.grants.push(grant.clone());
                }
            }
            WorldEvent::Rewound { to } => self.rewinds.push((position, *to)),
            WorldEvent::TaskReserved { .. }
            | WorldEvent::TaskAdmitted { .. }
            | WorldEvent::TaskRefused { .. }
            | WorldEvent::TaskSettled { .. }
            | WorldEvent::CopyReviewed { .. }
            | WorldEvent::ApplyBegun { .. }
            | WorldEvent::ApplyEnded { .. }
            | WorldEvent::CopyDiscarded { .. } => {}
        }
    }
}

impl Branch {
    pub(super) fn evolve(&mut self, position: Position, stream: &Stream, event: &BranchEvent) {
        match event {
            BranchEvent::AgentReserved {
                agent,
                path,
                role,
                driver,
                directory,
                message,
                call,
                task,
            } => {
                self.roster.gone.remove(path);
                self.roster.paths.insert(agent.clone(), path.clone());
                self.roster.agents.insert(
                    path.clone(),
                    Agent {
                        id: agent.clone(),
                        path: path.clone(),
                        role: role.clone(),
                        driver: driver.clone(),
                        directory: directory.clone(),
                        message: *message,
                        call: call.clone(),
                        task: *task,
                        standing: Standing::Preparing,
                        unread: std::collections::VecDeque::new(),
                        last: None,
                        turns: 0,
                        open_calls: Vec::new(),
                    },
                );
            }
            BranchEvent::AgentPublished { path, directory } => self.with(path, |agent| {
                agent.standing = Standing::Idle;
                if let Some(directory) = directory {
                    agent.directory = directory.clone();
                }
            }),
            BranchEvent::AgentRefused { path, reason } => {
                if let Some(agent) = self.roster.agents.remove(path) {
                    self.roster.paths.remove(&agent.id);
                }
                self.roster.gone.insert(path.clone(), format!("its spawn was refused: {reason}"));
            }
            BranchEvent::TurnStarted { path } => self.with(path, |agent| {
                agent.standing = Standing::Active(TurnId(position));
                agent.turns = agent.turns.saturating_add(1);
                agent.open_calls.clear();
            }),
            BranchEvent::TurnSettled { path, turn, outcome, result, reason } => {
                self.with(path, |agent| {
                    agent.standing = Standing::Idle;
                    agent.open_calls.clear();
                    agent.last = Some(Settled {
                        turn: *turn,
                        outcome: *outcome,
                        result: *result,
                        reason: reason.clone(),
                    });
                });
            }
            BranchEvent::MailStored { kind, from, to, body, wake } => self.with(to, |agent| {
                agent.unread.push_back(Mail {
                    id: MailId(position),
                    kind: *kind,
                    from: from.clone(),
                    body: *body,
                    wake: *wake,
                });
            }),
            BranchEvent::MailDelivered { to, mail } => {
                let mail: BTreeSet<&MailId> = mail.iter().collect();
                self.with(to, |agent| agent.unread.retain(|m| !mail.contains(&m.id)));
            }
            BranchEvent::TasksWritten { tasks, .. } => {
                self.tasks.tasks.extend(tasks.iter().map(|t| (t.id, t.clone())));
                // A note lives only while its owner has an open task (A16).
                let list = &self.tasks;
                let stale: Vec<_> =
                    list.notes.keys().filter(|o| !list.has_open(o)).cloned().collect();
                for owner in stale {
                    self.tasks.notes.remove(&owner);
                }
            }
            BranchEvent::NoteSet { owner, note } => match note {
                Some(note) => {
                    self.tasks.notes.insert(owner.clone(), note.clone());
                }
                None => {
                    self.tasks.notes.remove(owner);
                }
            },
            BranchEvent::PermissionAsked { path, turn, grant, subject } => {
                let id = PermissionId(position);
                self.permissions.insert(
                    id,
                    Request {
                        id,
                        path: path.clone(),
                        turn: *turn,
                        grant: grant.clone(),
                        subject: subject.clone(),
                    },
                );
            }
            BranchEvent::PermissionSettled { id, .. } => {
                self.permissions.remove(id);
            }
            BranchEvent::Heard { .. } => {}
            BranchEvent::Said { calls, .. } => {
                self.with_stream(stream, |agent| agent.open_calls.clone_from(calls));
            }
            BranchEvent::Answered { call, .. } | BranchEvent::Unanswered { call, .. } => {
                self.with_stream(stream, |agent| agent.open_calls.retain(|open| open != call));
            }
        }
    }

    /// What a rewind leaves of the branch it goes back to: `/root`, idle, without mail or plain
    /// tasks. Paths of other agents are free again (seed 0).
    pub(super) fn clear_retained(&mut self) {
        let root = AgentPath::root();
        self.roster.agents.retain(|path, _| *path == root);
        self.roster.paths.retain(|_, path| *path == root);
        self.roster.gone.clear();
        self.with(&root, |agent| {
            agent.unread.clear();
            agent.standing = Standing::Idle;
            agent.open_calls.clear();
        });
        self.tasks = TaskList::default();
        self.permissions.clear();
    }

    fn with(&mut self, path: &AgentPath, change: impl FnOnce(&mut Agent)) {
        if let Some(agent) = self.roster.agents.get_mut(path) {
            change(agent);
        }
    }

    fn with_stream(&mut self, stream: &Stream, change: impl FnOnce(&mut Agent)) {
        if let Stream::Conversation(id) = stream
            && let Some(path) = self.roster.paths.get(id)
            && let Some(agent) = self.roster.agents.get_mut(path)
        {
            change(agent);
        }
    }
}
