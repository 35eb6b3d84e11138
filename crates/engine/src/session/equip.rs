//! What a turn is given before its driver runs it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use stead_agent::{Driver, Execution, Port, Situation, Turn, TurnEnd};
use stead_core::env::XDG_STATE_HOME;
use stead_core::event::{DriverSpec, Outcome};
use stead_core::id::{BodyRef, SessionId, TaskId, TurnId};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::roster::Agent;
use stead_place::{Identity, Place};
use tokio_util::sync::CancellationToken;

use super::actor::{Actor, Shared};
use super::frozen;
use crate::copies::unusable;
use crate::door::Door;

impl Actor {
    /// What an agent is told as its turn begins.
    pub(super) fn situation(&self, path: &AgentPath, agent: &Agent) -> Situation {
        Situation {
            path: path.clone(),
            directory: agent.directory.clone(),
            roots: self.routes(agent),
            originals: self.originals(agent),
            role: agent.role.clone(),
            children: self.children(path),
            seeded: agent.frozen.seed.is_some(),
        }
    }
}

/// What a turn is run with.
pub(super) struct TurnFacts {
    pub(super) shared: Arc<Shared>,
    pub(super) session: SessionId,
    pub(super) agent: SessionId,
    pub(super) turn: TurnId,
    pub(super) driver: DriverSpec,
    /// What the agent was frozen with at its spawn.
    pub(super) profile: Option<BodyRef>,
    pub(super) situation: Situation,
    /// The task whose copies the roots are.
    pub(super) copies: Option<TaskId>,
    pub(super) environment: BTreeMap<OsString, OsString>,
    pub(super) port: Port,
    pub(super) cancel: CancellationToken,
}

impl TurnFacts {
    /// Runs the turn to its end; one that cannot be equipped has errored.
    pub(super) async fn run(self) -> TurnEnd {
        match self.equip().await {
            Ok((driver, turn, _door)) => driver.run(turn).await,
            Err(refusal) => TurnEnd {
                outcome: Outcome::Errored,
                result: String::new(),
                reason: Some(match refusal.hint {
                    Some(hint) => format!("{} ({hint})", refusal.line),
                    None => refusal.line,
                }),
            },
        }
    }

    /// Looks at the directory once more, never falling back to another, and opens the agent's
    /// door.
    async fn equip(self) -> Result<(Arc<dyn Driver>, Turn, Door), Refusal> {
        let failed = |e: String| Refusal::new(RefusalKind::Failed, e);
        let shared = self.shared.clone();
        let (directory, agent) = (self.situation.directory.clone(), self.agent.clone());
        let (session, copies) = (self.session.clone(), self.copies);
        let (spec, profile) = (self.driver.clone(), self.profile);
        let (place, driver, profile) = tokio::task::spawn_blocking(move || {
            let place = Place::adopt(&shared.home.host(), &directory, &agent)
                .map_err(|e| failed(e.to_string()))?;
            if let Some(task) = copies {
                stead_copies::Layout::load(&shared.copies, &session, task)
                    .map_err(|error| unusable(&error))?;
            }
            let driver = shared.drivers.driver(shared.store.reader(), &spec)?;
            let profile = frozen::profile(shared.store.reader(), profile)?;
            Ok::<_, Refusal>((place, driver, profile))
        })
        .await
        .map_err(|e| failed(e.to_string()))??;
        let socket = place.socket(self.shared.home.runtime());
        let door = self
            .shared
            .doors
            .open(&socket, self.session.clone(), self.situation.path.clone())
            .map_err(|e| failed(format!("the socket {} cannot be made: {e}", socket.display())))?;
        let identity = Identity { agent: &self.agent, path: &self.situation.path, socket: &socket };
        let environment = place.environment(&self.environment, identity);
        let mut client = self.environment;
        if let Some(state) = self.shared.home.state_home() {
            // `stead exec` inside a run must count against the same bound.
            client.insert(XDG_STATE_HOME.into(), state.into());
        }
        let exec = Execution {
            host: self.shared.host.clone(),
            bound: self.shared.bound,
            keeper: self.shared.keeper.clone(),
            client,
            socket: socket.clone(),
        };
        let turn = Turn {
            logs: self
                .shared
                .home
                .logs()
                .join("runs")
                .join(self.session.as_str())
                .join(self.turn.to_string()),
            session: self.session,
            agent: self.agent,
            id: self.turn,
            situation: self.situation,
            profile,
            environment,
            spawners: self.shared.spawners.clone(),
            runs: self.shared.runs.clone(),
            exec: Arc::new(exec),
            port: self.port,
            cancel: self.cancel,
        };
        Ok((driver, turn, door))
    }
}
