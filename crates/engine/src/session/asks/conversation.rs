//! The questions for an agent's conversation.

use stead_agent::{Answering, Entry};
use stead_core::id::TurnId;
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Command, Outcomes, live};
use stead_core::usage::Usage;
use stead_store::Body;

use crate::session::actor::Actor;
use crate::session::conversation::{Wanted, entries};
use crate::session::message::Work;

impl Actor {
    /// The conversation as the model is shown it, on the branch that the session is on.
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
        let standing = (agent.cuts.through() > 0).then(|| self.standing(path));
        self.tell_entries(wanted, standing, answer);
    }

    /// Reads entries beside the actor and tells them; with a summary goes what `standing` says.
    fn tell_entries(
        &self,
        wanted: Wanted,
        standing: Option<String>,
        answer: Answering<Vec<Entry>>,
    ) {
        let shared = self.shared.clone();
        tokio::task::spawn_blocking(move || {
            let mut entries = entries(shared.store.reader(), &wanted);
            if let Ok(entries) = &mut entries
                && let Some(Entry::Summary { standing: now, .. }) = entries.first_mut()
            {
                *now = standing.unwrap_or_default();
            }
            let _ = answer.send(entries);
        });
    }

    /// The tasks, and the agents below this one: what no summary may forget, from where it is true.
    fn standing(&self, path: &AgentPath) -> String {
        let tasks = self.list_tasks().text;
        let agents = self.list(Some(path.as_str())).map_or_else(|refusal| refusal.line, |d| d.text);
        format!("The tasks now:\n{tasks}\nYou and your agents now:\n{agents}\n")
    }

    /// Lets a summary stand for the turns before the running one.
    pub(super) fn compact(
        &self,
        path: AgentPath,
        turn: TurnId,
        summary: String,
        usage: Option<Usage>,
        answer: Answering<()>,
        work: &mut Vec<Work>,
    ) {
        let through =
            self.state.branch.roster.at(&path).and_then(|agent| agent.cuts.allowed().last());
        let Some(through) = through.copied() else {
            let line = format!("{path} has no turn behind it to be summed up");
            return drop(answer.send(Err(Refusal::new(RefusalKind::WrongState, line))));
        };
        let summary = Body::new(summary);
        let body = summary.reference();
        let command = Command::Compact { path, turn, through, summary: body, usage };
        let then = Box::new(move |_: &mut Self, outcome: Result<Outcomes, Refusal>| {
            let _ = answer.send(outcome.map(drop));
        });
        work.push(Work::new(command, then).with(summary));
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
                        None,
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
