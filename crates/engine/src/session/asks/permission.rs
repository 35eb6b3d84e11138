//! The question for leave, and what it is judged by.

use stead_agent::Answering;
use stead_core::id::TurnId;
use stead_core::path::AgentPath;
use stead_core::permission::{Answer, Deed, Terms, Zone};
use stead_core::refusal::Refusal;
use stead_core::rule::Bucket;
use stead_core::session::{Command, Outcomes};
use tokio::sync::oneshot;

use crate::api::Attendance;
use crate::session::actor::Actor;
use crate::session::message::{Message, Work};

/// What a turn asks leave for.
pub(super) struct Request {
    pub(super) path: AgentPath,
    pub(super) turn: TurnId,
    pub(super) deed: Deed,
    pub(super) zones: Vec<Zone>,
    pub(super) subject: String,
}

impl Actor {
    /// Asks for leave; answers at once where nobody need be asked, else when it is settled.
    pub(super) fn ask_permission(
        &self,
        request: Request,
        answer: Answering<Answer>,
        work: &mut Vec<Work>,
    ) {
        let Request { path, turn, deed, zones, subject } = request;
        let attended = self.attendance == Attendance::Detached || self.attached > 0;
        let then =
            Box::new(move |actor: &mut Self, outcome: Result<Outcomes, Refusal>| match outcome {
                Ok(Outcomes::Allowed) => drop(answer.send(Ok(Answer::Once))),
                Ok(Outcomes::Asked(id)) => {
                    let (settle, settled) = oneshot::channel();
                    actor.permissions.insert(id, settle);
                    tokio::spawn(async move {
                        let settled = settled.await.unwrap_or(Answer::Withdrawn);
                        let _ = answer.send(Ok(settled));
                    });
                }
                Ok(_) => drop(answer.send(Ok(Answer::Denied))),
                Err(refusal) => drop(answer.send(Err(refusal))),
            });
        let asking = Work::new(Command::Ask { path, turn, deed, zones, subject, attended }, then);
        if self.has_the_rules() {
            return work.push(asking);
        }
        work.push(self.take_the_rules(move |actor, known| match known {
            Ok(()) => actor.again(asking),
            Err(refusal) => (asking.then)(actor, Err(refusal)),
        }));
    }

    /// Tells what deeds of an agent are judged by now.
    pub(super) fn tell_terms(
        &self,
        path: AgentPath,
        answer: Answering<Terms>,
        work: &mut Vec<Work>,
    ) {
        let tell = move |actor: &Self| {
            let terms = actor.state.branch.roster.find(&path);
            let terms = terms.map(|agent| actor.state.authority(agent).terms());
            let _ = answer.send(terms);
        };
        if self.has_the_rules() {
            return tell(self);
        }
        work.push(self.take_the_rules(move |actor, known| match known {
            Ok(()) => tell(actor),
            Err(refusal) => {
                tracing::error!(why = %refusal.line, "the rules of the settings are not in force");
            }
        }));
    }

    /// Whether the session judges by the rules of the settings as this engine has them.
    fn has_the_rules(&self) -> bool {
        let known = self.state.world.rules.get(&Bucket::Global).map(Vec::as_slice);
        known.unwrap_or_default() == self.shared.rules.as_slice()
    }

    /// Takes the rules of the settings into the session before the first thing is judged by them.
    /// A session that is only looked at is not written to; one whose store fails judges nothing by
    /// older rules.
    fn take_the_rules(
        &self,
        then: impl FnOnce(&mut Self, Result<(), Refusal>) + Send + 'static,
    ) -> Work {
        let rules = self.shared.rules.clone();
        let command = Command::SetRules { bucket: Bucket::Global, rules };
        Work::new(command, Box::new(move |actor, taken| then(actor, taken.map(drop))))
    }

    /// Decides `work` with what comes next.
    fn again(&self, work: Work) {
        let sender = self.handle.sender.clone();
        tokio::spawn(async move {
            let _ = sender.send(Message::Do(Box::new(work), None)).await;
        });
    }

    /// The last client that could answer has gone: open requests fail at once, unless they were
    /// told to wait for `stead permit`.
    pub(in crate::session) fn leave_unattended(&self, work: &mut Vec<Work>) {
        if self.attached > 0 || self.attendance == Attendance::Detached {
            return;
        }
        for id in self.state.branch.permissions.keys() {
            let command = Command::Permit { id: *id, answer: Answer::Headless };
            work.push(Work::new(command, Box::new(|_, _| {})));
        }
    }
}
