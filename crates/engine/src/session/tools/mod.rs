//! The session's tools: one handler, whatever face a call came through.

mod directory;
mod list;
mod mail;
mod spawn;
mod tasks;

use serde_json::json;
use stead_agent::SessionTool;
use stead_agent::port::{Answering, Done};
use stead_core::id::{CallId, TurnId};
use stead_core::path::AgentPath;

pub(super) use self::directory::{still, still_own};
use self::list::activity_name;
pub(super) use self::spawn::{new_agent, told_path};
use super::actor::Actor;
use super::message::Work;

impl Actor {
    /// Does what a call of a turn asks of the session, and answers it.
    pub(super) fn tool(
        &mut self,
        path: AgentPath,
        turn: TurnId,
        call: CallId,
        tool: SessionTool,
        answer: Answering<Done>,
        work: &mut Vec<Work>,
    ) {
        match tool {
            SessionTool::Spawn(asked) => self.spawn(path, turn, call, asked, answer, work),
            SessionTool::Send { target, message, wake } => {
                self.send(path, target, &message, wake, answer, work);
            }
            SessionTool::Wait { timeout_ms } => self.wait(path, turn, timeout_ms, answer),
            SessionTool::Interrupt { target } => {
                let told = self.interrupt(Some(&path), &target).map(|response| Done {
                    text: format!("{} was {}", response.path, activity_name(response.was)),
                    structured: json!({ "path": response.path, "was": response.was }),
                });
                let _ = answer.send(told);
            }
            SessionTool::Result { target } => self.read_result(&path, &target, answer),
            SessionTool::List { path_prefix } => {
                let _ = answer.send(self.list(path_prefix.as_deref()));
            }
            SessionTool::WriteTasks { tasks, notes } => {
                tasks::write(path, tasks, notes, answer, work);
            }
            SessionTool::Propose(proposal) => {
                self.propose(path, turn, call, proposal, answer, work);
            }
            SessionTool::ListTasks => {
                let _ = answer.send(Ok(self.list_tasks()));
            }
        }
    }
}
