//! The tool `agent`: an agent is reserved below the caller.

use std::path::Path;
use std::time::Instant;

use serde_json::json;
use stead_agent::port::{Answering, Done, Spawn};
use stead_core::id::{CallId, SessionId, TurnId};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Command, Outcomes};

use super::directory::{self, Chosen};
use crate::session::actor::Actor;
use crate::session::admission::Reserved;
use crate::session::conversation::text_body;
use crate::session::frozen::{Outfit, freeze, is_quick};
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
        let takes_after = self.parent(&caller);
        let chosen = asked.working_directory.take();
        let configuration = std::mem::take(&mut asked.configuration);
        let spawn = Called { caller, turn, call, asked };
        if chosen.is_none() && is_quick(&configuration) {
            match freeze(&self.shared, &takes_after, &spawn.call, configuration) {
                Ok(outfit) => spawn.ask(outfit, None, answer, |item| work.push(item)),
                Err(refusal) => drop(answer.send(Err(refusal))),
            }
            return;
        }
        // Looking at directories and conversations may block: it happens beside the actor, before
        // any reservation.
        let caller = self.state.branch.roster.at(&spawn.caller);
        let parent = caller.map(|agent| agent.directory.clone());
        let roots = caller.map(|agent| self.routes(agent)).unwrap_or_default();
        let (shared, sender) = (self.shared.clone(), self.handle.sender.clone());
        tokio::task::spawn_blocking(move || {
            let judge = |chosen: String| {
                directory::judge(|| shared.git(), parent.as_ref(), &roots, Path::new(&chosen))
            };
            let ready = chosen.map(judge).transpose().and_then(|chosen| {
                Ok((chosen, freeze(&shared, &takes_after, &spawn.call, configuration)?))
            });
            match ready {
                Ok((chosen, outfit)) => spawn.ask(outfit, chosen, answer, |item| {
                    let _ = sender.blocking_send(Message::Do(Box::new(item), None));
                }),
                Err(refusal) => drop(answer.send(Err(refusal))),
            }
        });
    }
}

/// One call of `agent`, its directory and its configuration aside.
struct Called {
    caller: AgentPath,
    turn: TurnId,
    call: CallId,
    asked: Spawn,
}

impl Called {
    /// Gives `send` the reservation, or answers why there is none.
    fn ask(
        self,
        outfit: Outfit,
        chosen: Option<Chosen>,
        answer: Answering<Done>,
        send: impl FnOnce(Work),
    ) {
        let Spawn { task_name, message, configuration: _, working_directory: _ } = self.asked;
        let named = text_body(&message).and_then(|text| Ok((text, new_agent()?)));
        let ((body, reference), agent) = match named {
            Ok(named) => named,
            Err(refusal) => return drop(answer.send(Err(refusal))),
        };
        let (turn, since) = (self.turn, Instant::now());
        let Outfit { role, mut frozen, bodies } = outfit;
        let (directory, worktree) =
            chosen.map_or((None, None), |chosen| (Some(chosen.directory), chosen.worktree));
        frozen.worktree = worktree;
        let command = Command::Reserve {
            caller: self.caller,
            agent: agent.clone(),
            call: Some(self.call),
            task_name,
            role,
            message: reference,
            directory,
            driver: None,
            frozen,
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
        work.bodies.extend(bodies);
        work.claims.push(agent);
        send(work);
    }
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
