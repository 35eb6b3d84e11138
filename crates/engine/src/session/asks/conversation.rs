//! The questions for an agent's conversation.

use stead_agent::{Answering, Entry};
use stead_core::id::{Position, TurnId};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::roster::Agent;
use stead_core::session::{Command, Outcomes, live, over_budget, stale_tasks};
use stead_core::usage::Usage;
use stead_store::Body;

use crate::session::actor::Actor;
use crate::session::commit::now;
use crate::session::conversation::{Wanted, entries};
use crate::session::message::Work;
use crate::text;

impl Actor {
    /// The conversation as the model is shown it, on the branch that the session is on.
    pub(super) fn tell_conversation(&self, path: &AgentPath, answer: Answering<Vec<Entry>>) {
        let Some(agent) = self.state.branch.roster.at(path) else {
            let line = format!("there is no agent {path}");
            let _ = answer.send(Err(Refusal::new(RefusalKind::UnknownAgent, line)));
            return;
        };
        let standing = (agent.cuts.through() > 0).then(|| self.standing(path));
        self.tell_entries(self.whole_conversation(agent), standing, answer);
    }

    /// All of an agent's conversation, on the branch that the session is on.
    pub(in crate::session) fn whole_conversation(&self, agent: &Agent) -> Wanted {
        Wanted {
            session: self.session.clone(),
            agent: agent.id.clone(),
            after: 0,
            live: live(self.state.tip, &self.state.world.rewinds),
            seed: agent.frozen.seed,
        }
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

    /// A boundary: a turn over its budget goes no further; unread mail is delivered, and `/root` is
    /// reminded of open tasks when it is time. What is new is told once it stands in the
    /// conversation.
    pub(super) fn boundary(
        &self,
        path: AgentPath,
        turn: TurnId,
        answer: Answering<Vec<Entry>>,
        work: &mut Vec<Work>,
    ) {
        if let Some(reason) = over_budget(&self.state, &path, now()) {
            let refusal = Refusal::new(RefusalKind::OverBudget, reason);
            return drop(answer.send(Err(refusal)));
        }
        let agent = self.state.branch.roster.at(&path);
        let mut asks = Vec::new();
        asks.extend(self.reminder(&path, turn));
        if agent.is_some_and(|agent| !agent.unread.is_empty()) {
            asks.push((Command::Deliver { path, turn }, None));
        }
        let (Some(agent), Some((last, body))) = (agent, asks.pop()) else {
            return drop(answer.send(Ok(Vec::new())));
        };
        // Between two boundaries of a turn nobody else adds to its conversation.
        let stream = stead_core::event::Stream::Conversation(agent.id.clone());
        let wanted = Wanted {
            session: self.session.clone(),
            agent: agent.id.clone(),
            after: self.state.next_seq(&stream).saturating_sub(1),
            live: vec![1..=Position::MAX],
            seed: None,
        };
        let reminds = matches!(last, Command::Remind { .. });
        let then =
            Box::new(move |actor: &mut Self, outcome: Result<Outcomes, Refusal>| match outcome {
                Ok(_) => actor.tell_entries(wanted, None, answer),
                // A task was written at that moment: it is no longer time to remind.
                Err(refusal) if reminds && refusal.kind == RefusalKind::WrongState => {
                    drop(answer.send(Ok(Vec::new())));
                }
                Err(refusal) => drop(answer.send(Err(refusal))),
            });
        let first = |(command, body): (Command, Option<Body>)| {
            let mut item = Work::new(command, Box::new(|_, _| {}));
            item.bodies.extend(body);
            item
        };
        work.extend(asks.into_iter().map(first));
        let mut last = Work::new(last, then);
        last.bodies.extend(body);
        work.push(last);
    }

    /// What reminds `/root` of the tasks that are open, each with its owner, when none was written
    /// for a while (seed 0).
    fn reminder(&self, path: &AgentPath, turn: TurnId) -> Option<(Command, Option<Body>)> {
        let tasks = stale_tasks(&self.state);
        if !path.is_root() || tasks.is_empty() {
            return None;
        }
        let body = Body::new(text::reminder(&tasks));
        Some((Command::Remind { turn, text: body.reference() }, Some(body)))
    }
}
