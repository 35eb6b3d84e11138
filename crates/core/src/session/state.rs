//! State, and how an event changes it.

use std::collections::BTreeMap;

use super::branch::Branch;
use super::ledger::Ledger;
use super::world::World;
use crate::event::{BranchEvent, Envelope, Event, Sender, Stream, WorldEvent};
use crate::id::{Position, Timestamp};
use crate::path::AgentPath;
use crate::permission::{Authority, Deed, Mode, Verdict, Zone};
use crate::roster::Agent;
use crate::rule::{Bucket, Rule};

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
    opening: Opening,
    ledger: Ledger,
}

/// How far the batch that publishes `/root` goes: a rewind may lead to its end and never before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Opening {
    /// `/root` is not published.
    #[default]
    Before,
    /// It goes at least to this position.
    Open(Position),
    /// It went to this position.
    Closed(Position),
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
                    WorldEvent::SessionStarted(started) => {
                        self.branch.roster.leave(started.forked.as_ref());
                        Evolved::Whole
                    }
                    WorldEvent::Rewound { .. } => Evolved::Replay,
                    _ => Evolved::Whole,
                }
            }
            Event::Branch(event) => {
                self.branch.evolve(envelope, event);
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
        self.ledger.count(envelope);
        self.opening = self.opening.after(envelope);
        let begins = match &envelope.event {
            Event::Branch(BranchEvent::TurnStarted { path, .. }) if path.is_root() => true,
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

    /// The position at which the batch that published `/root`, and perhaps began its first turn,
    /// ended: it is never left behind. None before.
    pub(super) fn first_batch(&self) -> Option<Position> {
        match self.opening {
            Opening::Before => None,
            Opening::Open(end) | Opening::Closed(end) => Some(end),
        }
    }

    /// The number that the next event of `stream` gets.
    pub fn next_seq(&self, stream: &Stream) -> u64 {
        self.seqs.get(stream).map_or(1, |seq| seq + 1)
    }

    /// What the rules say now of a deed of this agent; `zones` are where its files lie, in their
    /// order.
    pub fn judge(&self, agent: &Agent, deed: &Deed, zones: &[Zone]) -> Verdict {
        self.authority(agent).judge(deed, zones)
    }

    /// What deeds of this agent are judged by.
    pub fn authority(&self, agent: &Agent) -> Authority<'_> {
        let delegated = self.line_of(&agent.path).map(|a| (Bucket::Delegated, &*a.frozen.rules));
        let set = self.world.rules.iter().map(|(bucket, rules)| (*bucket, &**rules));
        let rules: Vec<(Bucket, &[Rule])> = delegated.chain(set).collect();
        Authority {
            mode: self.world.mode.unwrap_or(Mode::Ask),
            plan_ceiling: self.world.plan_ceiling,
            grants: &self.world.grants,
            rules,
        }
    }

    /// The agent at `path` and those above it, itself first.
    pub(super) fn line_of(&self, path: &AgentPath) -> impl Iterator<Item = &Agent> {
        let up = std::iter::successors(Some(path.clone()), AgentPath::parent);
        up.filter_map(|path| self.branch.roster.at(&path))
    }

    /// What was used, over all branches.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// When the running turn of an agent was last seen at work, by the log's clock.
    pub(super) fn last_seen(&self, agent: &Agent) -> Option<Timestamp> {
        self.ledger.last_seen(&agent.id)
    }
}

impl Opening {
    /// A batch is told by what it holds: the publication, the admission of `/root`'s task, and the
    /// beginning of its first turn. Every other batch begins with something else.
    fn after(self, envelope: &Envelope) -> Self {
        let belongs = match &envelope.event {
            Event::Branch(event) => matches!(
                event,
                BranchEvent::TasksWritten { by: Sender::Stead, .. }
                    | BranchEvent::TurnStarted { .. }
                    | BranchEvent::Heard { mail: None, .. }
            ),
            Event::World(event) => matches!(event, WorldEvent::TaskAdmitted { .. }),
        };
        match (self, &envelope.event) {
            (Self::Before, Event::Branch(BranchEvent::AgentPublished { path, .. }))
                if path.is_root() =>
            {
                Self::Open(envelope.position)
            }
            (Self::Open(_), _) if belongs => Self::Open(envelope.position),
            (Self::Open(end), _) => Self::Closed(end),
            (other, _) => other,
        }
    }
}
