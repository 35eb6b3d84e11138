//! What runs an agent's turns.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use stead_core::bound::Bound;
use stead_core::event::Outcome;
use stead_core::id::{RoleName, SessionId, TurnId};
use stead_core::layout::{AbsoluteDir, Root};
use stead_core::path::AgentPath;
use stead_core::profile::Profile;
use stead_core::refusal::Refusal;
use stead_files::Lock;
use stead_place::Host;
use stead_process::Spawners;
use tokio_util::sync::CancellationToken;

use crate::compact::Summary;
use crate::instructions::InstructionFile;
use crate::port::{Entry, Port};

/// What it takes to run commands in an agent's place, and to release it.
#[derive(Debug, Clone)]
pub struct Execution {
    /// The places of this host.
    pub host: Host,
    /// How many runs there may be in them at once.
    pub bound: Bound,
    /// The program and arguments that become the keeper of one run
    /// ([`stead_process::serve_keeper`]).
    pub keeper: (PathBuf, Vec<OsString>),
    /// The environment of the session's client, of which a run gets the allow-listed part.
    pub client: BTreeMap<OsString, OsString>,
    /// The socket on which the agent's processes are that agent.
    pub socket: PathBuf,
}

/// What an agent is told of itself at the beginning of a turn, whatever drives it. The tools of
/// stead's own loop hold it to the same, so that what it is told and what it may do never differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Situation {
    /// Its address.
    pub path: AgentPath,
    /// Its directory, checked just before the turn.
    pub directory: AbsoluteDir,
    /// The folders that it uses: tools read and write inside them only. Of an agent with a layout
    /// these are its private copies.
    pub roots: Vec<Root>,
    /// What the folders are copies of, in their order; empty: they are the originals.
    pub originals: Vec<AbsoluteDir>,
    /// The instruction files of the checkout that its directory is in, as the turn began.
    pub instructions: Vec<InstructionFile>,
    /// Its role, if it has one.
    pub role: Option<RoleName>,
    /// The agents that it started itself, with their roles, in the order of their paths (A17).
    pub children: Vec<(AgentPath, Option<RoleName>)>,
    /// Whether its conversation begins with what it was given of its parent's.
    pub seeded: bool,
}

/// Everything that one turn needs; nothing of it is read from the process's own surroundings.
#[derive(Clone)]
pub struct Turn {
    /// The root session.
    pub session: SessionId,
    /// The agent's id.
    pub agent: SessionId,
    /// Which turn.
    pub id: TurnId,
    /// What the agent is told, and held to.
    pub situation: Situation,
    /// What it was frozen with at its spawn.
    pub profile: Profile,
    /// The complete environment of every process of the turn.
    pub environment: BTreeMap<OsString, OsString>,
    /// Where the logs of the turn's commands go.
    pub logs: PathBuf,
    /// Starts processes.
    pub spawners: Arc<Spawners>,
    /// The lock that every supervisor of a command holds: whoever takes it after an engine has
    /// died knows that no command of that engine runs any more.
    pub runs: Arc<Lock>,
    /// What `exec` and `release` need.
    pub exec: Arc<Execution>,
    /// The way to the session.
    pub port: Port,
    /// Cancelled when the turn must end now; whoever runs it ends every process of it first.
    pub cancel: CancellationToken,
}

/// How a driver left a turn. The engine settles it, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnEnd {
    /// How it ended.
    pub outcome: Outcome,
    /// The result, or the useful part of it.
    pub result: String,
    /// Why it did not complete.
    pub reason: Option<String>,
}

/// What runs turns: stead's own loop over a model; later, an agent process.
#[async_trait]
pub trait Driver: Send + Sync {
    /// Runs one turn to its end. Returns only when nothing of it runs any more.
    async fn run(&self, turn: Turn) -> TurnEnd;

    /// Summarises what `agent` heard and said, for itself or for an agent that it starts.
    ///
    /// # Errors
    /// Why there is no summary.
    async fn summarise(&self, agent: &AgentPath, entries: &[Entry]) -> Result<Summary, Refusal>;
}
