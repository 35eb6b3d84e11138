//! The tool `agent`: an agent is reserved below the caller.

use std::path::Path;
use std::time::Instant;

use serde_json::json;
use stead_agent::port::{Answering, Done, Spawn};
use stead_core::event::Frozen;
use stead_core::id::{CallId, RoleName, SessionId, TurnId};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Command, Outcomes};

use super::directory::{self, Chosen};
use crate::session::actor::Actor;
use crate::session::admission::Reserved;
use crate::session::conversation::text_body;
use crate::session::message::{Message, Work};

impl Actor {
    /// Reserves what a call of `agent` asks for; who publishes it answers.
    pub(super) fn spawn(
        &mut self,
        caller: AgentPath,
        turn: TurnId,
        call: CallId,
        mut asked: Spawn,
        answer: Answering<Done>,
        work: &mut Vec<Work>,
    ) {
        if let Err(refusal) = self.check_open() {
            return drop(answer.send(Err(refusal)));
        }
        let chosen = asked.working_directory.take();
        let spawn = Called { caller, turn, call, asked };
        let Some(chosen) = chosen else {
            match spawn.work(None, answer) {
                Ok(item) => work.push(item),
                Err((answer, refusal)) => drop(answer.send(Err(refusal))),
            }
            return;
        };
        // Looking at directories may block: it happens beside the actor, before any reservation.
        let caller = self.state.branch.roster.at(&spawn.caller);
        let parent = caller.map(|agent| agent.directory.clone());
        let roots = caller.map(|agent| self.routes(agent)).unwrap_or_default();
        let (shared, sender) = (self.shared.clone(), self.handle.sender.clone());
        tokio::spawn(async move {
            let judged = tokio::task::spawn_blocking(move || {
                directory::judge(|| shared.git(), parent.as_ref(), &roots, Path::new(&chosen))
            })
            .await
            .unwrap_or_else(|e| Err(Refusal::new(RefusalKind::Failed, e.to_string())));
            match judged {
                Ok(chosen) => match spawn.work(Some(chosen), answer) {
                    Ok(item) => drop(sender.send(Message::Do(Box::new(item), None)).await),
                    Err((answer, refusal)) => drop(answer.send(Err(refusal))),
                },
                Err(refusal) => drop(answer.send(Err(refusal))),
            }
        });
    }
}

/// One call of `agent`, its directory aside.
struct Called {
    caller: AgentPath,
    turn: TurnId,
    call: CallId,
    asked: Spawn,
}

impl Called {
    fn work(
        self,
        chosen: Option<Chosen>,
        answer: Answering<Done>,
    ) -> Result<Work, (Answering<Done>, Refusal)> {
        let Spawn { task_name, message, role, working_directory: _ } = self.asked;
        let (body, reference) = match text_body(&message) {
            Ok(body) => body,
            Err(refusal) => return Err((answer, refusal)),
        };
        let named = role_named(role.as_deref()).and_then(|role| Ok((role, new_agent()?)));
        let (role, agent) = match named {
            Ok(named) => named,
            Err(refusal) => return Err((answer, refusal)),
        };
        let (turn, since) = (self.turn, Instant::now());
        let (directory, worktree) =
            chosen.map_or((None, None), |chosen| (Some(chosen.directory), chosen.worktree));
        let command = Command::Reserve {
            caller: self.caller,
            agent: agent.clone(),
            call: Some(self.call),
            task_name,
            role,
            message: reference,
            directory,
            driver: None,
            frozen: Box::new(Frozen { worktree, ..Frozen::default() }),
        };
        let then =
            Box::new(move |actor: &mut Actor, outcome: Result<Outcomes, Refusal>| match outcome {
                Ok(Outcomes::Reserved { path, again: false, .. }) => {
                    actor.reserved.insert(path, Reserved::by(turn, since, answer));
                }
                Ok(Outcomes::Reserved { path, .. }) => {
                    let _ = answer.send(Ok(told_path(&path)));
                }
                Ok(_) => {}
                Err(refusal) => drop(answer.send(Err(refusal))),
            });
        let mut work = Work::new(command, then).with(body);
        work.claims.push(agent);
        Ok(work)
    }
}

/// The role that a call names; none: the caller's.
pub(in crate::session) fn role_named(role: Option<&str>) -> Result<Option<RoleName>, Refusal> {
    let Some(role) = role.filter(|role| *role != "default") else { return Ok(None) };
    // Roles come with their configuration in a later issue; none is known yet.
    let line = match RoleName::parse(role) {
        Ok(role) => format!("there is no role {role}"),
        Err(error) => error.to_string(),
    };
    Err(Refusal::new(RefusalKind::InvalidArgument, line)
        .hint("leave `role` out to inherit the caller's"))
}

/// The id of a new agent.
pub(in crate::session) fn new_agent() -> Result<SessionId, Refusal> {
    SessionId::parse(&uuid::Uuid::now_v7().to_string())
        .map_err(|error| Refusal::new(RefusalKind::Failed, error.to_string()))
}

/// The address of a new agent, as its spawner hears it.
pub(in crate::session) fn told_path(path: &AgentPath) -> Done {
    Done { text: path.to_string(), structured: json!({ "path": path }) }
}
