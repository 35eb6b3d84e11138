//! What holds on one branch, and how an event changes it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::compaction::Cuts;
use crate::event::{BranchEvent, Envelope, Stream};
use crate::id::{MailId, PermissionId, Position, TurnId};
use crate::mail::Mail;
use crate::path::AgentPath;
use crate::permission::Request;
use crate::roster::{Agent, PassedOver, Roster, Settled, Standing};
use crate::shell::{Shell, ShellId};
use crate::task::TaskList;

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

impl Branch {
    pub(super) fn evolve(&mut self, envelope: &Envelope, event: &BranchEvent) {
        let (position, stream) = (envelope.position, &envelope.stream);
        if *stream != Stream::Control {
            self.with_stream(stream, |agent| agent.cuts.event(envelope.seq));
        }
        match event {
            BranchEvent::AgentReserved { .. } => self.reserve(position, event),
            BranchEvent::AgentPublished { path, directory } => self.with(path, |agent| {
                if agent.standing != Standing::Preparing {
                    return;
                }
                agent.standing = Standing::Idle;
                if let Some(directory) = directory {
                    agent.directory = directory.clone();
                }
            }),
            BranchEvent::AgentRefused { path, reason } => {
                let reserved = self.roster.at(path).is_some_and(|agent| !agent.is_published());
                if let Some(agent) = reserved.then(|| self.roster.agents.remove(path)).flatten() {
                    let fate = format!("its spawn was refused: {reason}");
                    self.roster.paths.remove(&agent.id);
                    self.roster.gone_ids.insert(agent.id, (path.clone(), fate.clone()));
                    self.roster.gone.insert(path.clone(), fate);
                }
            }
            BranchEvent::TurnStarted { path, .. } => {
                if path.is_root() {
                    self.tasks.quiet_turns = self.tasks.quiet_turns.saturating_add(1);
                }
                self.with(path, |agent| {
                    // A turn before the publication is the history of a fork.
                    if agent.standing == Standing::Idle {
                        agent.standing = Standing::Active(TurnId(position));
                    }
                    agent.turns = agent.turns.saturating_add(1);
                    agent.open_calls.clear();
                    agent.notes.clear();
                });
            }
            BranchEvent::TurnSettled { path, turn, outcome, result, reason, .. } => {
                self.with(path, |agent| {
                    if agent.turn().is_some_and(|running| running != *turn) {
                        return;
                    }
                    if agent.is_published() {
                        agent.standing = Standing::Idle;
                    }
                    agent.cuts.turn_ended();
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
                self.tasks.quiet_turns = 0;
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
            BranchEvent::HookNoted { path, context } => {
                self.with(path, |agent| agent.notes.push(*context));
            }
            BranchEvent::StopNoted { path, turn } => {
                self.with(path, |agent| agent.stopped = Some(*turn));
            }
            BranchEvent::ShellStarted { path, turn, shell, command } => self.with(path, |agent| {
                agent.last_shell = agent.last_shell.max(*shell);
                let started = Shell { turn: *turn, command: command.clone() };
                agent.shells.insert(*shell, started);
            }),
            BranchEvent::ShellEnded { path, shell, .. } => {
                self.with(path, |agent| drop(agent.shells.remove(shell)));
            }
            BranchEvent::DriverNoted { path, body } => {
                self.with(path, |agent| agent.driver_note = Some(*body));
            }
            BranchEvent::Reminded { .. } => self.tasks.quiet_turns = 0,
            BranchEvent::Compacted { through, .. } => {
                self.with_stream(stream, |agent| agent.cuts.cut(*through));
            }
            BranchEvent::Heard { .. } | BranchEvent::FileChanged { .. } => {}
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
        self.roster.gone_ids.clear();
        self.with(&root, |agent| {
            agent.unread.clear();
            agent.notes.clear();
            agent.shells.clear();
            agent.standing = Standing::Idle;
            agent.open_calls.clear();
        });
        self.tasks = TaskList::default();
        self.permissions.clear();
    }

    /// A record that contradicts those before it is passed over, alone; whoever would stand below
    /// it has no parent and is passed over as well (agents_45).
    fn reserve(&mut self, position: Position, event: &BranchEvent) {
        let BranchEvent::AgentReserved {
            agent,
            path,
            role,
            driver,
            directory,
            message,
            call,
            task,
            frozen,
        } = event
        else {
            return;
        };
        let roster = &mut self.roster;
        let why = if roster.agents.contains_key(path) {
            Some("another agent has the address".to_owned())
        } else if let Some(other) = roster.paths.get(agent) {
            Some(format!("{other} has the id {agent}"))
        } else {
            let parent = path.parent().filter(|parent| !roster.agents.contains_key(parent));
            parent.map(|parent| format!("there is no {parent}"))
        };
        if let Some(why) = why {
            roster.passed_over.push(PassedOver { position, path: path.clone(), why });
            return;
        }
        roster.gone.remove(path);
        roster.paths.insert(agent.clone(), path.clone());
        let reserved = Agent {
            id: agent.clone(),
            path: path.clone(),
            role: role.clone(),
            driver: driver.clone(),
            directory: directory.clone(),
            message: *message,
            call: call.clone(),
            task: *task,
            standing: Standing::Preparing,
            unread: VecDeque::new(),
            last: None,
            turns: 0,
            open_calls: Vec::new(),
            frozen: frozen.clone(),
            notes: Vec::new(),
            shells: BTreeMap::new(),
            last_shell: ShellId::default(),
            cuts: Cuts::default(),
            stopped: None,
            driver_note: None,
        };
        roster.agents.insert(path.clone(), reserved);
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
