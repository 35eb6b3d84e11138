//! The tools `send_message`, `wait_agent` and `read_result`: mail is stored and waited for, and
//! what was too long for it is read.

use std::time::Duration;

use serde_json::json;
use stead_agent::port::{Answering, Done};
use stead_core::event::MailKind;
use stead_core::id::TurnId;
use stead_core::mail::{Receipt, ReceiptState};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::roster::Settled;
use stead_core::session::{Command, Outcomes};
use stead_core::wait;
use stead_store::Reader;

use crate::api::Activity;
use crate::session::actor::{Actor, Waiter};
use crate::session::conversation::{body_text, text_body};
use crate::session::message::{Message, Published, Work};

impl Actor {
    /// Stores mail of `from`, or continues an idle agent if its hooks let that through; the receipt
    /// answers.
    pub(super) fn send(
        &mut self,
        from: AgentPath,
        target: String,
        message: &str,
        wake: bool,
        answer: Answering<Done>,
        work: &mut Vec<Work>,
    ) {
        let (body, reference) = match text_body(message) {
            Ok(body) => body,
            Err(refusal) => return drop(answer.send(Err(refusal))),
        };
        let command = Command::Send { from: Some(from), target, body: reference, wake };
        let then = Box::new(move |_: &mut Self, outcome: Result<Outcomes, Refusal>| {
            let _ = answer.send(outcome.and_then(told_receipt));
        });
        self.accept(Work::new(command, then).with(body), work);
    }

    /// Answers when there is mail for `path`, at once if it is there, or when the time is over.
    pub(super) fn wait(
        &mut self,
        path: AgentPath,
        turn: TurnId,
        asked: Option<u64>,
        answer: Answering<Done>,
    ) {
        let used_ms = wait::clamp(asked);
        if self.waiting.contains_key(&path) {
            let line = format!("{path} waits already");
            return drop(answer.send(Err(Refusal::new(RefusalKind::WrongState, line))));
        }
        let queued = self.state.branch.roster.at(&path).and_then(|a| a.unread.front().cloned());
        if let Some(mail) = queued {
            return drop(answer.send(Ok(told_wait(reason(mail.kind, mail.wake), used_ms))));
        }
        self.waits += 1;
        let number = self.waits;
        self.later(
            Message::WaitOver { path: path.clone(), number },
            Duration::from_millis(used_ms),
        );
        self.publish(Published::Activity(path.clone(), Activity::Waiting));
        self.waiting.insert(path, Waiter { number, turn, used_ms, answer });
    }

    /// Mail was stored for `path`: whoever waits there goes on.
    pub(in crate::session) fn wake(&mut self, path: &AgentPath, kind: MailKind, asks: bool) {
        if let Some(waiter) = self.waiting.remove(path) {
            let _ = waiter.answer.send(Ok(told_wait(reason(kind, asks), waiter.used_ms)));
            self.publish(Published::Activity(path.clone(), Activity::Running));
        }
    }

    /// The time of a wait is over: a success. A late timer changes nothing.
    pub(in crate::session) fn wait_over(&mut self, path: &AgentPath, number: u64) {
        if self.waiting.get(path).is_some_and(|w| w.number == number)
            && let Some(waiter) = self.waiting.remove(path)
        {
            let _ = waiter.answer.send(Ok(told_wait("timeout", waiter.used_ms)));
            self.publish(Published::Activity(path.clone(), Activity::Running));
        }
    }
}

impl Actor {
    /// Answers the whole result of an agent's last turn; while one runs it is hidden (A10).
    pub(super) fn read_result(&self, caller: &AgentPath, target: &str, answer: Answering<Done>) {
        let found = self.state.branch.roster.resolve(caller, target);
        let settled = found.and_then(|agent| Ok((agent.path.clone(), agent.settled()?.clone())));
        let (path, settled) = match settled {
            Ok(settled) => settled,
            Err(refusal) => return drop(answer.send(Err(refusal))),
        };
        let shared = self.shared.clone();
        tokio::task::spawn_blocking(move || {
            let _ = answer.send(told_result(shared.store.reader(), &path, &settled));
        });
    }
}

fn told_result(reader: &Reader, path: &AgentPath, settled: &Settled) -> Result<Done, Refusal> {
    let result = settled.result.map(|body| body_text(reader, body)).transpose()?;
    let structured = json!({
        "path": path,
        "turn": settled.turn,
        "outcome": settled.outcome,
        "reason": settled.reason,
    });
    let text = result.unwrap_or_else(|| match &settled.reason {
        Some(reason) => format!("[no text: {reason}]"),
        None => "[no text]".to_owned(),
    });
    Ok(Done { text, structured })
}

fn told_receipt(outcome: Outcomes) -> Result<Done, Refusal> {
    let Outcomes::Sent(receipt) = outcome else {
        return Err(Refusal::new(RefusalKind::Failed, format!("a message came to {outcome:?}")));
    };
    let structured = serde_json::to_value(&receipt).unwrap_or_default();
    Ok(Done { text: receipt_text(&receipt), structured })
}

/// A receipt in one line.
fn receipt_text(receipt: &Receipt) -> String {
    let Receipt { to, state, result_to, .. } = receipt;
    let what = match state {
        ReceiptState::Stored => format!("stored for {to}; it starts nothing"),
        ReceiptState::QueuedForRunningTurn => {
            format!("queued: {to} hears it at the next boundary of its running turn")
        }
        ReceiptState::TurnStarted => format!("a turn of {to} was started that hears it"),
    };
    match result_to {
        Some(parent) => format!("{what}; its RESULT goes to {parent}"),
        None => what,
    }
}

fn told_wait(reason: &str, used_ms: u64) -> Done {
    Done { text: reason.to_owned(), structured: json!({ "reason": reason, "timeout_ms": used_ms }) }
}

fn reason(kind: MailKind, wake: bool) -> &'static str {
    match (kind, wake) {
        (MailKind::User, _) => "user",
        (MailKind::Mail, true) => "steering",
        _ => "mailbox",
    }
}
