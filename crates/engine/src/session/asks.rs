//! What turns ask of their session.

use std::time::Instant;

use stead_agent::port::{Ask, Asked, Told};
use stead_core::id::{BodyRef, TurnId};
use stead_core::path::AgentPath;
use stead_core::permission::{Answer, Deed};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Command, Outcomes, live};
use stead_store::Body;
use tokio::sync::oneshot;

use super::actor::Actor;
use super::conversation::{Wanted, entries};
use super::message::Work;
use crate::api::Attendance;
use crate::timing;

/// Where the answer to a turn goes.
pub(super) type Reply = oneshot::Sender<Result<Told, Refusal>>;

impl Actor {
    /// Takes what a turn asks: answers it, or turns it into work whose outcome answers it.
    pub(super) fn take_ask(&mut self, asked: Asked, work: &mut Vec<Work>) {
        let Asked { turn, ask, answer } = asked;
        let Some(path) = self.live.get(&turn).map(|l| l.path.clone()) else {
            let line = format!("turn {turn} has ended");
            let _ = answer.send(Err(Refusal::new(RefusalKind::WrongState, line)));
            return;
        };
        match ask {
            Ask::Conversation => self.tell_conversation(&path, answer),
            Ask::Boundary => self.boundary(path, turn, answer, work),
            Ask::Say { reply, calls } => {
                let body = Body::new(reply);
                let command =
                    Command::Say { path, turn, body: body.reference(), calls, usage: None };
                work.push(recorded(turn, command, answer).with(body));
            }
            Ask::Answer { call, result } => {
                if let Some(live) = self.live.get(&turn) {
                    timing::took("call", live.told);
                }
                let body = Body::new(result);
                let command = Command::Answer { path, turn, call, body: body.reference() };
                work.push(recorded(turn, command, answer).with(body));
            }
            Ask::Permission { deed, subject } => {
                self.ask_permission(path, turn, deed, subject, answer, work);
            }
            Ask::Tool { call, tool } => self.tool(path, turn, call, tool, answer, work),
        }
    }

    /// The whole conversation, on the branch that the session is on.
    fn tell_conversation(&self, path: &AgentPath, answer: Reply) {
        let Some(agent) = self.state.branch.roster.at(path) else {
            let line = format!("there is no agent {path}");
            let _ = answer.send(Err(Refusal::new(RefusalKind::UnknownAgent, line)));
            return;
        };
        let wanted = Wanted {
            session: self.session.clone(),
            agent: agent.id.clone(),
            after: 0,
            live: live(self.state.tip, &self.state.world.rewinds),
        };
        self.tell_entries(wanted, answer);
    }

    /// Reads entries beside the actor and tells them.
    pub(super) fn tell_entries(&self, wanted: Wanted, answer: Reply) {
        let shared = self.shared.clone();
        tokio::task::spawn_blocking(move || {
            let _ = answer.send(entries(shared.store.reader(), &wanted).map(Told::Entries));
        });
    }

    /// Delivers the unread mail; what is new is told once it stands in the conversation.
    fn boundary(&self, path: AgentPath, turn: TurnId, answer: Reply, work: &mut Vec<Work>) {
        let agent = self.state.branch.roster.at(&path);
        if agent.is_none_or(|a| a.unread.is_empty()) {
            let _ = answer.send(Ok(Told::Entries(Vec::new())));
            return;
        }
        let then = Box::new(move |actor: &mut Self, outcome: Result<Outcomes, Refusal>| {
            let Some(agent) = actor.state.branch.roster.at(&path) else { return };
            match outcome {
                Ok(Outcomes::Delivered(count)) => {
                    let stream = stead_core::event::Stream::Conversation(agent.id.clone());
                    let next = actor.state.next_seq(&stream);
                    let count = u64::try_from(count).unwrap_or(u64::MAX);
                    actor.tell_entries(
                        Wanted {
                            session: actor.session.clone(),
                            agent: agent.id.clone(),
                            after: next.saturating_sub(1).saturating_sub(count),
                            live: vec![1..=actor.state.tip],
                        },
                        answer,
                    );
                }
                Ok(_) => drop(answer.send(Ok(Told::Entries(Vec::new())))),
                Err(refusal) => drop(answer.send(Err(refusal))),
            }
        });
        let path = match self.live.get(&turn) {
            Some(live) => live.path.clone(),
            None => return,
        };
        work.push(Work::new(Command::Deliver { path, turn }, then));
    }

    fn ask_permission(
        &self,
        path: AgentPath,
        turn: TurnId,
        deed: Deed,
        subject: String,
        answer: Reply,
        work: &mut Vec<Work>,
    ) {
        let attended = self.attendance == Attendance::Detached || self.attached > 0;
        let then =
            Box::new(move |actor: &mut Self, outcome: Result<Outcomes, Refusal>| match outcome {
                Ok(Outcomes::Allowed) => drop(answer.send(Ok(Told::Settled(Answer::Once)))),
                Ok(Outcomes::Asked(id)) => {
                    let (settled, told) = oneshot::channel();
                    actor.permissions.insert(id, settled);
                    tokio::spawn(async move {
                        let told = told.await.unwrap_or(Answer::Withdrawn);
                        let _ = answer.send(Ok(Told::Settled(told)));
                    });
                }
                Ok(_) => drop(answer.send(Ok(Told::Settled(Answer::Denied)))),
                Err(refusal) => drop(answer.send(Err(refusal))),
            });
        // The tools have refused what lies outside the turn's roots.
        let zones = vec![stead_core::permission::Zone::Root];
        work.push(Work::new(Command::Ask { path, turn, deed, zones, subject, attended }, then));
    }

    /// The last client that could answer has gone: open requests fail at once, unless they were
    /// told to wait for `stead permit`.
    pub(super) fn leave_unattended(&self, work: &mut Vec<Work>) {
        if self.attached > 0 || self.attendance == Attendance::Detached {
            return;
        }
        for id in self.state.branch.permissions.keys() {
            let command = Command::Permit { id: *id, answer: Answer::Headless };
            work.push(Work::new(command, Box::new(|_, _| {})));
        }
    }
}

/// A command of a turn that answers only that it is durable.
fn recorded(turn: TurnId, command: Command, answer: Reply) -> Work {
    Work::new(
        command,
        Box::new(move |actor: &mut Actor, outcome| {
            if let Some(live) = actor.live.get_mut(&turn) {
                live.told = Instant::now();
            }
            let _ = answer.send(outcome.map(|_| Told::Recorded));
        }),
    )
}

/// A text that an agent or a person gave, as a body.
pub(crate) fn text_body(text: &str) -> Result<(Body, BodyRef), Refusal> {
    if text.len() > stead_core::mail::LONGEST_BODY {
        return Err(Refusal::new(
            RefusalKind::InvalidArgument,
            format!("a text has at most {} bytes", stead_core::mail::LONGEST_BODY),
        )
        .hint("write it to a file and send its path"));
    }
    let body = Body::new(text);
    let reference = body.reference();
    Ok((body, reference))
}
