//! The questions for an agent's conversation.

use stead_agent::{Answering, Entry};
use stead_core::id::TurnId;
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Command, Outcomes, live};

use crate::session::actor::Actor;
use crate::session::conversation::{Wanted, entries};
use crate::session::message::Work;

impl Actor {
    /// The whole conversation, on the branch that the session is on.
    pub(super) fn tell_conversation(&self, path: &AgentPath, answer: Answering<Vec<Entry>>) {
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
    fn tell_entries(&self, wanted: Wanted, answer: Answering<Vec<Entry>>) {
        let shared = self.shared.clone();
        tokio::task::spawn_blocking(move || {
            let _ = answer.send(entries(shared.store.reader(), &wanted));
        });
    }

    /// Delivers the unread mail; what is new is told once it stands in the conversation.
    pub(super) fn boundary(
        &self,
        path: AgentPath,
        turn: TurnId,
        answer: Answering<Vec<Entry>>,
        work: &mut Vec<Work>,
    ) {
        let agent = self.state.branch.roster.at(&path);
        if agent.is_none_or(|a| a.unread.is_empty()) {
            let _ = answer.send(Ok(Vec::new()));
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
                Ok(_) => drop(answer.send(Ok(Vec::new()))),
                Err(refusal) => drop(answer.send(Err(refusal))),
            }
        });
        let path = match self.live.get(&turn) {
            Some(live) => live.path.clone(),
            None => return,
        };
        work.push(Work::new(Command::Deliver { path, turn }, then));
    }
}
