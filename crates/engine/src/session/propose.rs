//! `propose_task`: the folders of a layout are looked at beside the actor, then it is one command.

use std::path::Path;
use std::time::Instant;

use serde_json::json;
use stead_agent::port::{Answering, Done, Proposal, Route, Source};
use stead_core::id::{CallId, SessionId, TaskId, TurnId};
use stead_core::layout::Root;
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Command, Outcomes};

use super::actor::{Actor, Shared};
use super::admission::Reserved;
use super::conversation::text_body;
use super::message::{Message, Work};
use super::tools::{new_agent, role_named};
use crate::roots;

impl Actor {
    pub(super) fn propose(
        &mut self,
        caller: AgentPath,
        turn: TurnId,
        call: CallId,
        mut proposal: Proposal,
        answer: Answering<Done>,
        work: &mut Vec<Work>,
    ) {
        if let Err(refusal) = self.check_open() {
            return drop(answer.send(Err(refusal)));
        }
        let Some(routes) = proposal.layout.take() else {
            match propose_work(caller, turn, call, proposal, None, answer) {
                Ok(item) => work.push(item),
                Err((answer, refusal)) => drop(answer.send(Err(refusal))),
            }
            return;
        };
        let (shared, sender) = (self.shared.clone(), self.handle.sender.clone());
        tokio::spawn(async move {
            let looked = tokio::task::spawn_blocking(move || look(&shared, routes))
                .await
                .unwrap_or_else(|e| Err(Refusal::new(RefusalKind::Failed, e.to_string())));
            match looked {
                Ok(roots) => {
                    match propose_work(caller, turn, call, proposal, Some(roots), answer) {
                        Ok(item) => drop(sender.send(Message::Do(Box::new(item), None)).await),
                        Err((answer, refusal)) => drop(answer.send(Err(refusal))),
                    }
                }
                Err(refusal) => drop(answer.send(Err(refusal))),
            }
        });
    }
}

/// The roots that the routes of a layout lead to. Whether the person selected them is for the
/// rules to say.
fn look(shared: &Shared, routes: Vec<Route>) -> Result<Vec<Root>, Refusal> {
    let mut folders = Vec::with_capacity(routes.len());
    for route in &routes {
        folders.push(match &route.source {
            Source::Folder(folder) => roots::look_exactly(Path::new(folder))?,
            Source::Uri(uri) => roots::look_exactly(shared.registry.resolve(uri)?.as_path())?,
        });
    }
    roots::register(&shared.registry, folders, routes.into_iter().map(|r| (r.slot, r.access)))
}

fn propose_work(
    caller: AgentPath,
    turn: TurnId,
    call: CallId,
    proposal: Proposal,
    roots: Option<Vec<Root>>,
    answer: Answering<Done>,
) -> Result<Work, (Answering<Done>, Refusal)> {
    let Proposal { title, message, role, blocked_by, layout: _ } = proposal;
    let ready = || {
        let (body, message) = text_body(&message)?;
        Ok((body, message, role_named(role.as_deref())?, new_agent()?))
    };
    let (body, message, role, agent): (_, _, _, SessionId) = match ready() {
        Ok(ready) => ready,
        Err(refusal) => return Err((answer, refusal)),
    };
    let asked = Instant::now();
    let command = Command::Propose {
        caller,
        agent: agent.clone(),
        call,
        title,
        role,
        message,
        roots,
        blocked_by,
        driver: None,
        frozen: Box::default(),
    };
    let then =
        Box::new(move |actor: &mut Actor, outcome: Result<Outcomes, Refusal>| match outcome {
            Ok(Outcomes::Reserved { path, again: false, .. }) => {
                actor.reserved.insert(path, Reserved::by(turn, asked, answer));
            }
            Ok(Outcomes::Reserved { path, task, .. }) => {
                let _ = answer.send(Ok(told_task(&path, task)));
            }
            Ok(_) => {}
            Err(refusal) => drop(answer.send(Err(refusal))),
        });
    let mut work = Work::new(command, then).with(body);
    work.claims.push(agent);
    Ok(work)
}

/// The address and the number of a task, as its proposer hears them.
pub(super) fn told_task(path: &AgentPath, task: Option<TaskId>) -> Done {
    match task {
        Some(task) => Done {
            text: format!("task {task}: {path}"),
            structured: json!({ "path": path, "task": task }),
        },
        None => super::tools::told_path(path),
    }
}
