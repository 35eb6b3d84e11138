//! The roster: the agents of a root session's branch, by path and by id.

use std::collections::{BTreeMap, VecDeque};

use crate::compaction::Cuts;
use crate::event::{DriverSpec, Frozen, Outcome};
use crate::id::{BodyRef, CallId, Position, RoleName, SessionId, TaskId, TurnId};
use crate::layout::AbsoluteDir;
use crate::line;
use crate::lineage::Forked;
use crate::mail::Mail;
use crate::path::AgentPath;
use crate::refusal::{Refusal, RefusalKind};
use crate::shell::{Shell, ShellId};

/// The most agents besides `/root` that a session may let be active at once.
pub const MOST_CAPACITY: u16 = 1024;

/// The most addresses that an error about an unknown one lists.
const NEAREST: usize = 3;
/// The most characters of an address that are compared for nearness.
const LONGEST_COMPARED: usize = 256;

/// One agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its id, which is its session's id.
    pub id: SessionId,
    /// Its address.
    pub path: AgentPath,
    /// Its role, frozen.
    pub role: Option<RoleName>,
    /// How its turns are run, frozen.
    pub driver: DriverSpec,
    /// Its directory, frozen.
    pub directory: AbsoluteDir,
    /// Its whole first assignment; none: it was published idle.
    pub message: Option<BodyRef>,
    /// The call that spawned it.
    pub call: Option<CallId>,
    /// The task whose layout it works in; none: in the session's roots.
    pub task: Option<TaskId>,
    /// Whether it works.
    pub standing: Standing,
    /// Mail that its conversation does not have yet, oldest first.
    pub unread: VecDeque<Mail>,
    /// Its last turn that ended.
    pub last: Option<Settled>,
    /// How many turns it began.
    pub turns: u32,
    /// The calls of the running turn that have no result, in order.
    pub open_calls: Vec<CallId>,
    /// What else was frozen at its spawn.
    pub frozen: Box<Frozen>,
    /// What hooks added for the next task it accepts, oldest first (A18).
    pub notes: Vec<BodyRef>,
    /// Its background shells that live.
    pub shells: BTreeMap<ShellId, Shell>,
    /// The number of its newest shell; 0: it never had one.
    pub last_shell: ShellId,
    /// Where its conversation may be cut, and where it is.
    pub cuts: Cuts,
    /// The last turn whose stop hooks were started.
    pub stopped: Option<TurnId>,
    /// What its driver keeps for its next turn.
    pub driver_note: Option<BodyRef>,
}

/// Whether an agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Reserved, not published: nobody sees it, its path and slot are taken.
    Preparing,
    /// No turn runs.
    Idle,
    /// This turn runs.
    Active(TurnId),
}

/// How an agent's last turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Which turn.
    pub turn: TurnId,
    /// How.
    pub outcome: Outcome,
    /// Its result.
    pub result: Option<BodyRef>,
    /// Why it did not complete.
    pub reason: Option<String>,
}

impl Agent {
    /// The turn that ended and whose stop hooks are still to be started: one stop for each turn,
    /// also when the engine was killed in between (agents_82).
    pub fn stop_due(&self) -> Option<TurnId> {
        let last = self.last.as_ref().map(|last| last.turn);
        last.filter(|turn| self.turn().is_none() && self.stopped != Some(*turn))
    }

    /// Whether others can see and address it.
    pub fn is_published(&self) -> bool {
        self.standing != Standing::Preparing
    }

    /// Whether it counts against the capacity: preparing, or not idle. `/root` never counts.
    pub fn counts(&self) -> bool {
        !self.path.is_root() && self.standing != Standing::Idle
    }

    /// The running turn.
    pub fn turn(&self) -> Option<TurnId> {
        match self.standing {
            Standing::Active(turn) => Some(turn),
            Standing::Preparing | Standing::Idle => None,
        }
    }

    /// How its last turn ended; refused while one runs, since its result is not ready (A10).
    pub fn settled(&self) -> Result<&Settled, Refusal> {
        match (self.turn(), &self.last) {
            (Some(turn), _) => Err(Refusal::new(
                RefusalKind::WrongState,
                format!("the result of {} is not ready: turn {turn} runs", self.path),
            )),
            (None, Some(last)) => Ok(last),
            (None, None) => Err(Refusal::new(
                RefusalKind::NotFound,
                format!("{} has finished no turn yet", self.path),
            )),
        }
    }

    /// Refuses unless `turn` is the one that runs.
    pub fn check_turn(&self, turn: TurnId) -> Result<(), Refusal> {
        if self.turn() == Some(turn) {
            Ok(())
        } else {
            Err(Refusal::new(
                RefusalKind::WrongState,
                format!("turn {turn} of {} has ended", self.path),
            ))
        }
    }
}

/// A stored record that contradicts those before it and was passed over: the others live
/// (agents_45).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// Where it stands.
    pub position: Position,
    /// Whose it is.
    pub path: AgentPath,
    /// What is wrong with it, in one line.
    pub why: String,
}

/// Every agent of a branch, preparing ones included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roster {
    pub(crate) agents: BTreeMap<AgentPath, Agent>,
    pub(crate) paths: BTreeMap<SessionId, AgentPath>,
    /// What became of paths that once were taken.
    pub(crate) gone: BTreeMap<AgentPath, String>,
    /// The same of ids.
    pub(crate) gone_ids: BTreeMap<SessionId, (AgentPath, String)>,
    /// Records that were passed over, oldest first.
    pub(crate) passed_over: Vec<PassedOver>,
}

impl Roster {
    /// All agents in the order of their paths, preparing ones included.
    pub fn all(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values()
    }

    /// The published agents in the order of their paths.
    pub fn published(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values().filter(|a| a.is_published())
    }

    /// The agent at this path, preparing or published.
    pub fn at(&self, path: &AgentPath) -> Option<&Agent> {
        self.agents.get(path)
    }

    /// The agent with this id, preparing or published.
    pub fn with_id(&self, id: &SessionId) -> Option<&Agent> {
        self.paths.get(id).and_then(|path| self.agents.get(path))
    }

    /// The published agent with this id; a refusal says what became of it (A5).
    pub fn find_id(&self, id: &SessionId) -> Result<&Agent, Refusal> {
        if let Some(agent) = self.with_id(id).filter(|agent| agent.is_published()) {
            return Ok(agent);
        }
        let line = match self.gone_ids.get(id) {
            Some((path, fate)) => format!("the agent {id}, which was {path}, is gone: {fate}"),
            None => format!("there is no agent with the id {id}"),
        };
        Err(Refusal::new(RefusalKind::UnknownAgent, line).hint("`stead tree` names the agents"))
    }

    /// The agents of the session that this one was forked from stayed there.
    pub(crate) fn leave(&mut self, forked: Option<&Forked>) {
        let Some(forked) = forked else { return };
        for path in forked.left.agents.iter().filter(|path| !self.agents.contains_key(*path)) {
            let fate = || format!("it stayed in the session {}", forked.session);
            self.gone.entry(path.clone()).or_insert_with(fate);
        }
    }

    /// The records of agents that were passed over since they contradict those before them, oldest
    /// first.
    pub fn passed_over(&self) -> &[PassedOver] {
        &self.passed_over
    }

    /// How many agents count against the capacity.
    pub fn active(&self) -> usize {
        self.agents.values().filter(|a| a.counts()).count()
    }

    /// The published agent at `path`; a refusal says what became of it, or which paths are near.
    pub fn find(&self, path: &AgentPath) -> Result<&Agent, Refusal> {
        match self.agents.get(path) {
            Some(agent) if agent.is_published() => Ok(agent),
            _ => Err(self.unknown(path)),
        }
    }

    /// The published agent that `target` names as `caller` wrote it (A7).
    pub fn resolve(&self, caller: &AgentPath, target: &str) -> Result<&Agent, Refusal> {
        let path = AgentPath::resolve(caller, target).map_err(|e| {
            Refusal::new(RefusalKind::UnknownAgent, format!("not an address: {e}"))
                .hint(format!("{}; names and ids are not addresses", self.nearest(target)))
        })?;
        self.find(&path)
    }

    /// The published agents at `prefix`, a canonical path, and below it, in the order of their
    /// paths; none is no error.
    pub fn within(&self, prefix: &str) -> Result<Vec<&Agent>, Refusal> {
        let prefix = AgentPath::parse(prefix)
            .map_err(|e| Refusal::new(RefusalKind::InvalidArgument, format!("not a path: {e}")))?;
        Ok(self.published().filter(|a| a.path.is_within(&prefix)).collect())
    }

    fn unknown(&self, path: &AgentPath) -> Refusal {
        let line = match self.gone.get(path) {
            Some(fate) => format!("there is no agent {path}: {fate}"),
            None => format!("there is no agent {path}"),
        };
        Refusal::new(RefusalKind::UnknownAgent, line).hint(self.nearest(path.as_str()))
    }

    fn nearest(&self, text: &str) -> String {
        // The comparison takes time by both lengths, and the text may be anybody's.
        let text = line::cut(text, LONGEST_COMPARED);
        let mut near: Vec<(usize, &AgentPath)> = self
            .published()
            .map(|a| {
                let path = line::cut(a.path.as_str(), LONGEST_COMPARED);
                let whole = strsim::levenshtein(&text, &path);
                (whole.min(strsim::levenshtein(&text, a.path.name())), &a.path)
            })
            .collect();
        near.sort();
        let names: Vec<&str> = near.iter().take(NEAREST).map(|(_, path)| path.as_str()).collect();
        match names.as_slice() {
            [] => "no agent is in this session".to_owned(),
            [only] => format!("the nearest address is {only}"),
            names => format!("the nearest addresses are {}", names.join(", ")),
        }
    }
}
