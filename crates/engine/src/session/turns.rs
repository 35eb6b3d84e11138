//! Turns: dispatched after their event is durable, settled once.

use std::time::Instant;

use stead_agent::{Execution, Port, Turn, TurnEnd};
use stead_core::env::XDG_STATE_HOME;
use stead_core::event::Outcome;
use stead_core::id::{Timestamp, TurnId};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Command, Outcomes, interrupt};
use stead_place::{Identity, Place};
use stead_store::Body;
use tokio_util::sync::CancellationToken;

use super::actor::{Actor, Live};
use super::message::{Message, Work};
use crate::api::{Activity, InterruptResponse};
use crate::copies::unusable;

impl Actor {
    /// Starts to run a turn whose beginning is durable.
    pub(super) fn dispatch(&mut self, path: &AgentPath, turn: TurnId, since: Timestamp) {
        let cancel = CancellationToken::new();
        let live = Live {
            path: path.clone(),
            cancel: cancel.clone(),
            interrupted: None,
            told: Instant::now(),
            since,
        };
        self.live.insert(turn, live);
        self.drive(path, turn, cancel);
    }

    fn drive(&self, path: &AgentPath, turn: TurnId, cancel: CancellationToken) {
        let sender = self.handle.sender.clone();
        let Some(agent) = self.state.branch.roster.at(path) else { return };
        let facts = TurnFacts {
            shared: self.shared.clone(),
            session: self.session.clone(),
            agent: agent.id.clone(),
            path: path.clone(),
            turn,
            driver: agent.driver.clone(),
            directory: agent.directory.clone(),
            roots: self.routes(agent),
            originals: self.originals(agent),
            copies: self.copies_of(agent),
            environment: self.environment.clone(),
            port: Port::new(turn, self.ask.clone()),
            cancel,
        };
        tokio::spawn(async move {
            let end = match tokio::spawn(facts.run()).await {
                Ok(end) => end,
                Err(error) => TurnEnd {
                    outcome: Outcome::Errored,
                    result: String::new(),
                    reason: Some(format!("stead itself failed: {error}")),
                },
            };
            let _ = sender.send(Message::Ended { turn, end }).await;
        });
    }

    /// A driver left a turn: settle it. The first end wins; whatever comes later is refused.
    pub(super) fn ended(&mut self, turn: TurnId, end: TurnEnd, work: &mut Vec<Work>) {
        let Some(live) = self.live.get(&turn) else { return };
        let path = live.path.clone();
        let reason = match end.outcome {
            Outcome::Interrupted => live.interrupted.clone().or_else(|| end.reason.clone()),
            Outcome::Completed | Outcome::Errored => end.reason.clone(),
        };
        self.waiting.retain(|_, waiter| waiter.turn != turn);
        for reserved in self.reserved.values().filter(|r| r.turn == Some(turn)) {
            reserved.give_up();
        }
        let result = Body::new(end.result.as_bytes());
        let report = Body::new(report(&end, reason.as_deref()));
        let command = Command::Settle {
            path: path.clone(),
            turn,
            outcome: end.outcome,
            result: (!end.result.is_empty()).then(|| result.reference()),
            reason,
            report: report.reference(),
        };
        let then = Box::new(move |actor: &mut Self, outcome: Result<Outcomes, Refusal>| {
            match outcome {
                Ok(_) => drop(actor.live.remove(&turn)),
                // It has to hear something first: the same turn goes on.
                Err(refusal) if refusal.kind == RefusalKind::MailWaiting => {
                    let cancel = CancellationToken::new();
                    if let Some(live) = actor.live.get_mut(&turn) {
                        if live.interrupted.is_some() {
                            cancel.cancel();
                        }
                        live.cancel = cancel.clone();
                    }
                    actor.drive(&path, turn, cancel);
                }
                Err(refusal) if refusal.kind == RefusalKind::WrongState => {
                    actor.live.remove(&turn);
                }
                Err(refusal) => {
                    tracing::error!(%path, %turn, why = %refusal.line, "a turn's end is not stored yet");
                    actor.keep_unstored(turn, end);
                }
            }
        });
        work.push(Work::new(command, then).with(result).with(report));
    }

    /// Ends an agent's running turn: its processes first, then its settlement. Answers what the
    /// agent was doing; idle is a success.
    pub(super) fn interrupt(
        &mut self,
        caller: Option<&AgentPath>,
        target: &str,
    ) -> Result<InterruptResponse, Refusal> {
        if caller.is_none()
            && let Some(stopped) = self.stop_reserved(target)
        {
            return Ok(stopped);
        }
        let (path, turn) = interrupt(&self.state, caller, target)?;
        let was = self.activity(&path);
        if let Some(live) = turn.and_then(|turn| self.live.get_mut(&turn)) {
            let by = caller.map_or_else(|| "the person".to_owned(), ToString::to_string);
            live.interrupted.get_or_insert_with(|| format!("interrupted by {by}"));
            live.cancel.cancel();
        }
        Ok(InterruptResponse { path, was })
    }

    /// What an agent is doing.
    pub(super) fn activity(&self, path: &AgentPath) -> Activity {
        let Some(agent) = self.state.branch.roster.at(path) else { return Activity::Idle };
        match agent.turn() {
            None if !agent.is_published() => Activity::Preparing,
            None => Activity::Idle,
            Some(turn) if self.state.branch.permissions.values().any(|r| r.turn == turn) => {
                Activity::PermissionBlocked
            }
            Some(_) if self.waiting.contains_key(path) => Activity::Waiting,
            Some(_) => Activity::Running,
        }
    }
}

/// What the spawn parent is mailed.
fn report(end: &TurnEnd, reason: Option<&str>) -> String {
    let head = match end.outcome {
        Outcome::Completed if end.result.is_empty() => return "[completed without a text]".into(),
        Outcome::Completed => return end.result.clone(),
        Outcome::Errored => "errored",
        Outcome::Interrupted => "interrupted",
    };
    let reason = reason.unwrap_or("no reason is known");
    if end.result.is_empty() {
        format!("[{head}: {reason}]")
    } else {
        format!("[{head}: {reason}]\n\n{}", end.result)
    }
}

/// What a turn is run with.
struct TurnFacts {
    shared: std::sync::Arc<super::actor::Shared>,
    session: stead_core::id::SessionId,
    agent: stead_core::id::SessionId,
    path: AgentPath,
    turn: TurnId,
    driver: stead_core::event::DriverSpec,
    directory: stead_core::layout::AbsoluteDir,
    roots: Vec<stead_core::layout::Root>,
    originals: Vec<stead_core::layout::AbsoluteDir>,
    /// The task whose copies the roots are.
    copies: Option<stead_core::id::TaskId>,
    environment: std::collections::BTreeMap<std::ffi::OsString, std::ffi::OsString>,
    port: Port,
    cancel: CancellationToken,
}

impl TurnFacts {
    async fn run(self) -> TurnEnd {
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
    async fn equip(
        self,
    ) -> Result<(std::sync::Arc<dyn stead_agent::Driver>, Turn, crate::door::Door), Refusal> {
        let failed = |e: String| Refusal::new(RefusalKind::Failed, e);
        let shared = self.shared.clone();
        let (directory, agent) = (self.directory.clone(), self.agent.clone());
        let (session, copies) = (self.session.clone(), self.copies);
        let spec = self.driver.clone();
        let (place, driver) = tokio::task::spawn_blocking(move || {
            let place = Place::adopt(&shared.home.host(), &directory, &agent)
                .map_err(|e| failed(e.to_string()))?;
            if let Some(task) = copies {
                stead_copies::Layout::load(&shared.copies, &session, task)
                    .map_err(|error| unusable(&error))?;
            }
            let driver = shared.drivers.driver(shared.store.reader(), &spec)?;
            Ok::<_, Refusal>((place, driver))
        })
        .await
        .map_err(|e| failed(e.to_string()))??;
        let socket = place.socket(self.shared.home.runtime());
        let door =
            self.shared.doors.open(&socket, self.session.clone(), self.path.clone()).map_err(
                |e| failed(format!("the socket {} cannot be made: {e}", socket.display())),
            )?;
        let identity = Identity { agent: &self.agent, path: &self.path, socket: &socket };
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
            path: self.path,
            id: self.turn,
            directory: self.directory,
            roots: self.roots,
            originals: self.originals,
            environment,
            spawners: self.shared.spawners.clone(),
            runs: self.shared.runs.clone(),
            exec: std::sync::Arc::new(exec),
            port: self.port,
            cancel: self.cancel,
        };
        Ok((driver, turn, door))
    }
}
