//! Turns: dispatched after their event is durable, settled once.

use std::time::Instant;

use stead_agent::{Port, TurnEnd};
use stead_core::event::Outcome;
use stead_core::id::{Timestamp, TurnId};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Command, Outcomes, interrupt};
use stead_store::Body;
use tokio_util::sync::CancellationToken;

use super::actor::{Actor, Live};
use super::equip::TurnFacts;
use super::message::{Message, Work};
use crate::api::{Activity, InterruptResponse};

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
            turn,
            driver: agent.driver.clone(),
            profile: agent.frozen.profile,
            copies: self.copies_of(agent),
            worktree: agent.frozen.worktree.clone(),
            situation: self.situation(path, agent),
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
        let path_told = path.clone();
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
        let stopped = self.stop_told(&path_told, turn);
        work.push(Work::new(command, then).with(result).with(report));
        work.extend(stopped);
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
