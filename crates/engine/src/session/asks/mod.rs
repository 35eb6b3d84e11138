//! What turns ask of their session: one file a sort of question. Tools have files of their own.

mod conversation;
mod permission;
mod record;

use stead_agent::{Ask, Asked};
use stead_core::refusal::{Refusal, RefusalKind};

use super::actor::Actor;
use super::message::Work;
use super::shells;

impl Actor {
    /// Takes what a turn asks: answers it, or turns it into work whose outcome answers it.
    pub(super) fn take_ask(&mut self, asked: Asked, work: &mut Vec<Work>) {
        let Asked { turn, ask } = asked;
        let Some(path) = self.live.get(&turn).map(|l| l.path.clone()) else {
            let line = format!("turn {turn} has ended");
            return ask.refuse(Refusal::new(RefusalKind::WrongState, line));
        };
        match ask {
            Ask::Conversation { answer } => self.tell_conversation(&path, answer),
            Ask::Boundary { answer } => self.boundary(path, turn, answer, work),
            Ask::Compact { summary, usage, answer } => {
                self.compact(path, turn, summary, usage, answer, work);
            }
            Ask::Say { reply, calls, usage, answer } => {
                work.push(record::say(path, turn, reply, calls, usage, answer));
            }
            Ask::Answer { call, result, answer } => {
                work.push(self.answer(path, turn, call, result, answer));
            }
            Ask::StartShell { command, answer } => {
                work.push(shells::start(path, turn, command, answer));
            }
            Ask::ShellEnded { shell, fate, report, answer } => {
                work.push(shells::end(path, shell, fate, report, answer));
            }
            Ask::Permission { deed, zones, subject, answer } => {
                let request = permission::Request { path, turn, deed, zones, subject };
                self.ask_permission(request, answer, work);
            }
            Ask::Terms { answer } => self.tell_terms(path, answer, work),
            Ask::Tool { call, tool, answer } => self.tool(path, turn, call, tool, answer, work),
        }
    }
}
