//! The question for leave.

use stead_agent::Answering;
use stead_core::id::TurnId;
use stead_core::path::AgentPath;
use stead_core::permission::{Answer, Deed};
use stead_core::refusal::Refusal;
use stead_core::session::{Command, Outcomes};
use tokio::sync::oneshot;

use crate::api::Attendance;
use crate::session::actor::Actor;
use crate::session::message::Work;

impl Actor {
    /// Asks for leave; answers at once where nobody need be asked, else when it is settled.
    pub(super) fn ask_permission(
        &self,
        path: AgentPath,
        turn: TurnId,
        deed: Deed,
        subject: String,
        answer: Answering<Answer>,
        work: &mut Vec<Work>,
    ) {
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
        // The tools have refused what lies outside the turn's roots.
        let zones = vec![stead_core::permission::Zone::Root];
        work.push(Work::new(Command::Ask { path, turn, deed, zones, subject, attended }, then));
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
