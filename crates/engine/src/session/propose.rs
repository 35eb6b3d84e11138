//! `propose_task`: the folders of a layout are looked at beside the actor, then it is one command.

use std::path::Path;
use std::time::Instant;

use serde_json::json;
use stead_agent::port::{Answering, Done, Proposal, Route, Source};
use stead_core::id::{CallId, TaskId, TurnId};
use stead_core::layout::Root;
use stead_core::path::AgentPath;
use stead_core::refusal::Refusal;
use stead_core::session::{Command, Outcomes};

use super::actor::{Actor, Shared};
use super::admission::Reserved;
use super::conversation::text_body;
use super::frozen::{Outfit, freeze, is_quick};
use super::message::{Message, Work};
use super::tools::new_agent;
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
        let takes_after = self.parent(&caller);
        let layout = proposal.layout.take();
        let configuration = std::mem::take(&mut proposal.configuration);
        let proposed = Proposed { caller, turn, call, proposal };
        if layout.is_none() && is_quick(&configuration) {
            match freeze(&self.shared, &takes_after, &proposed.call, configuration) {
                Ok(outfit) => proposed.ask(outfit, None, answer, |item| work.push(item)),
                Err(refusal) => drop(answer.send(Err(refusal))),
            }
            return;
        }
        let (shared, sender) = (self.shared.clone(), self.handle.sender.clone());
        tokio::task::spawn_blocking(move || {
            let looked = layout.map(|routes| look(&shared, routes)).transpose();
            let ready = looked.and_then(|roots| {
                Ok((roots, freeze(&shared, &takes_after, &proposed.call, configuration)?))
            });
            match ready {
                Ok((roots, outfit)) => proposed.ask(outfit, roots, answer, |item| {
                    let _ = sender.blocking_send(Message::Do(Box::new(item), None));
                }),
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

/// One call of `propose_task`, its folders and its configuration aside.
struct Proposed {
    caller: AgentPath,
    turn: TurnId,
    call: CallId,
    proposal: Proposal,
}

impl Proposed {
    /// Gives `send` the reservation, or answers why there is none.
    fn ask(
        self,
        outfit: Outfit,
        roots: Option<Vec<Root>>,
        answer: Answering<Done>,
        send: impl FnOnce(Work),
    ) {
        let Proposal { title, message, blocked_by, configuration: _, layout: _ } = self.proposal;
        let named = text_body(&message).and_then(|text| Ok((text, new_agent()?)));
        let ((body, message), agent) = match named {
            Ok(named) => named,
            Err(refusal) => return drop(answer.send(Err(refusal))),
        };
        let (turn, asked) = (self.turn, Instant::now());
        let Outfit { role, frozen, bodies } = outfit;
        let command = Command::Propose {
            caller: self.caller,
            agent: agent.clone(),
            call: self.call,
            title,
            role,
            message,
            roots,
            blocked_by,
            driver: None,
            frozen,
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
        work.bodies.extend(bodies);
        work.claims.push(agent);
        send(work);
    }
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
