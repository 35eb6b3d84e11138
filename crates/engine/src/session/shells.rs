//! Background shells in the log: their starts, their ends, and those that an engine left (A19).

use stead_agent::Answering;
use stead_core::id::TurnId;
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Command, Outcomes};
use stead_core::shell::{ShellFate, ShellId};
use stead_store::Body;

use super::actor::Actor;
use super::message::Work;

/// Records that a command of a turn goes on in the background; its number answers.
pub(super) fn start(
    path: AgentPath,
    turn: TurnId,
    command: String,
    answer: Answering<ShellId>,
) -> Work {
    let then = Box::new(move |_: &mut Actor, outcome: Result<Outcomes, Refusal>| {
        let _ = answer.send(outcome.and_then(|outcome| match outcome {
            Outcomes::Shell(shell) => Ok(shell),
            other => {
                let line = format!("the start of a shell came to {other:?}");
                Err(Refusal::new(RefusalKind::Failed, line))
            }
        }));
    });
    Work::new(Command::StartShell { path, turn, command }, then)
}

/// Records that a shell has ended; its owner is mailed unless it was stopped.
pub(super) fn end(
    path: AgentPath,
    shell: ShellId,
    fate: ShellFate,
    report: String,
    answer: Answering<()>,
) -> Work {
    let report = Body::new(report);
    let command = Command::EndShell { path, shell, fate, report: report.reference() };
    let then = Box::new(move |_: &mut Actor, outcome: Result<Outcomes, Refusal>| {
        let _ = answer.send(outcome.map(drop));
    });
    Work::new(command, then).with(report)
}

impl Actor {
    /// Marks as lost the shells that an engine left, and mails their owners, before their turns are
    /// settled. One that is marked lives no more, so each is marked once.
    pub(super) async fn recover_shells(&mut self) -> Result<(), Refusal> {
        let agents = self.state.branch.roster.all();
        let left: Vec<(AgentPath, ShellId, String)> = agents
            .flat_map(|agent| {
                let shells = agent.shells.iter();
                shells.map(|(number, shell)| (agent.path.clone(), *number, shell.command.clone()))
            })
            .collect();
        for (path, shell, command) in left {
            let fate = ShellFate::Lost;
            let report = Body::new(format!(
                "shell {shell} {fate}, since the engine ended while it ran: {command}\nNothing of it \
                 runs any more; look at what it did before you repeat it."
            ));
            let command = Command::EndShell { path, shell, fate, report: report.reference() };
            self.settle(command, vec![report], Vec::new()).await?;
        }
        Ok(())
    }
}
