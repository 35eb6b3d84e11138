//! The session's tools: one handler, whatever face a call came through.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use stead_agent::SessionTool;
use stead_agent::port::Told;
use stead_core::event::MailKind;
use stead_core::id::{CallId, RoleName, SessionId, TurnId};
use stead_core::layout::{AbsoluteDir, Root};
use stead_core::mail::ReceiptState;
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Command, Outcomes};
use stead_core::task::TaskChange;
use stead_core::{mail::Receipt, task::Owner, wait};

use super::actor::{Actor, Waiter};
use super::admission::Reserved;
use super::asks::{Reply, text_body};
use super::message::{Message, Published, Work};
use crate::api::Activity;

impl Actor {
    pub(super) fn tool(
        &mut self,
        path: AgentPath,
        turn: TurnId,
        call: CallId,
        tool: SessionTool,
        answer: Reply,
        work: &mut Vec<Work>,
    ) {
        match tool {
            SessionTool::Spawn { task_name, message, role, working_directory } => {
                let spawn = Spawn { caller: path, turn, call, task_name, message, role };
                self.spawn(spawn, working_directory, answer, work);
            }
            SessionTool::Send { target, message, wake } => {
                let (body, reference) = match text_body(&message) {
                    Ok(body) => body,
                    Err(refusal) => return drop(answer.send(Err(refusal))),
                };
                let from = Some(path);
                let command = Command::Send { from, target, body: reference, wake };
                let then = Box::new(move |_: &mut Self, outcome: Result<Outcomes, Refusal>| {
                    let _ = answer.send(outcome.map(|o| told_receipt(&o)));
                });
                work.push(Work::new(command, then).with(body));
            }
            SessionTool::Wait { timeout_ms } => self.wait(path, turn, timeout_ms, answer),
            SessionTool::Interrupt { target } => {
                let told = self.interrupt(Some(&path), &target).map(|response| Told::Done {
                    text: format!("{} was {}", response.path, activity_name(response.was)),
                    structured: json!({ "path": response.path, "was": response.was }),
                });
                let _ = answer.send(told);
            }
            SessionTool::List { path_prefix } => {
                let _ = answer.send(self.list(path_prefix.as_deref()));
            }
            SessionTool::WriteTasks { tasks, notes } => {
                write_tasks(path, tasks, notes, answer, work);
            }
            SessionTool::Propose(proposal) => {
                self.propose(path, turn, call, proposal, answer, work);
            }
            SessionTool::ListTasks => {
                let tasks = self.tasks();
                let text = crate::text::tasks(&tasks);
                let structured = serde_json::to_value(&tasks).unwrap_or_default();
                let _ = answer.send(Ok(Told::Done { text, structured }));
            }
        }
    }

    fn spawn(
        &mut self,
        spawn: Spawn,
        working_directory: Option<String>,
        answer: Reply,
        work: &mut Vec<Work>,
    ) {
        if let Err(refusal) = self.check_open() {
            return drop(answer.send(Err(refusal)));
        }
        let Some(chosen) = working_directory else {
            match spawn.work(None, answer) {
                Ok(item) => work.push(item),
                Err((answer, refusal)) => drop(answer.send(Err(refusal))),
            }
            return;
        };
        // Looking at directories may block: it happens beside the actor, before any reservation.
        let caller = self.state.branch.roster.at(&spawn.caller);
        let parent = caller.map(|agent| agent.directory.clone());
        let roots = caller.map(|agent| self.routes(agent)).unwrap_or_default();
        let sender = self.handle.sender.clone();
        tokio::spawn(async move {
            let judged = tokio::task::spawn_blocking(move || {
                judge_directory(parent.as_ref(), &roots, Path::new(&chosen))
            })
            .await
            .unwrap_or_else(|e| Err(Refusal::new(RefusalKind::Failed, e.to_string())));
            match judged {
                Ok(directory) => match spawn.work(Some(directory), answer) {
                    Ok(item) => drop(sender.send(Message::Do(Box::new(item), None)).await),
                    Err((answer, refusal)) => drop(answer.send(Err(refusal))),
                },
                Err(refusal) => drop(answer.send(Err(refusal))),
            }
        });
    }

    fn wait(&mut self, path: AgentPath, turn: TurnId, asked: Option<u64>, answer: Reply) {
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
    pub(super) fn wake(&mut self, path: &AgentPath, kind: MailKind, asks: bool) {
        if let Some(waiter) = self.waiting.remove(path) {
            let _ = waiter.answer.send(Ok(told_wait(reason(kind, asks), waiter.used_ms)));
            self.publish(Published::Activity(path.clone(), Activity::Running));
        }
    }

    /// The time of a wait is over: a success. A late timer changes nothing.
    pub(super) fn wait_over(&mut self, path: &AgentPath, number: u64) {
        if self.waiting.get(path).is_some_and(|w| w.number == number)
            && let Some(waiter) = self.waiting.remove(path)
        {
            let _ = waiter.answer.send(Ok(told_wait("timeout", waiter.used_ms)));
            self.publish(Published::Activity(path.clone(), Activity::Running));
        }
    }

    fn list(&self, prefix: Option<&str>) -> Result<Told, Refusal> {
        let prefix = prefix
            .map(AgentPath::parse)
            .transpose()
            .map_err(|e| Refusal::new(RefusalKind::InvalidArgument, e.to_string()))?;
        let mut agents: Vec<_> = self
            .tree()
            .agents
            .into_iter()
            .filter(|a| a.activity != Activity::Preparing)
            .filter(|a| prefix.as_ref().is_none_or(|p| a.path.is_within(p)))
            .collect();
        let all = agents.len();
        if all > MOST_LISTED {
            // Active first, then those with the most recent turn.
            agents.sort_by_key(|a| (a.activity == Activity::Idle, std::cmp::Reverse(a.turn)));
            agents.truncate(MOST_LISTED);
            agents.sort_by(|a, b| a.path.cmp(&b.path));
        }
        let mut lines: Vec<String> =
            agents.iter().map(|a| format!("{} {}", a.path, activity_name(a.activity))).collect();
        let more = all - agents.len();
        if more > 0 {
            lines.push(format!("and {more} more; give a path_prefix to see them"));
        }
        let listed: Vec<_> = agents
            .iter()
            .map(|a| json!({ "path": a.path, "activity": a.activity, "driver": a.driver }))
            .collect();
        Ok(Told::Done {
            text: lines.join("\n"),
            structured: json!({ "agents": listed, "more": more }),
        })
    }
}

/// The most agents that one listing has (`decisions.md`).
const MOST_LISTED: usize = 100;

/// One call of `agent`, its directory aside.
struct Spawn {
    caller: AgentPath,
    turn: TurnId,
    call: CallId,
    task_name: String,
    message: String,
    role: Option<String>,
}

impl Spawn {
    fn work(self, directory: Option<AbsoluteDir>, answer: Reply) -> Result<Work, (Reply, Refusal)> {
        let (body, message) = match text_body(&self.message) {
            Ok(body) => body,
            Err(refusal) => return Err((answer, refusal)),
        };
        let named = role_named(self.role.as_deref()).and_then(|role| Ok((role, new_agent()?)));
        let (role, agent) = match named {
            Ok(named) => named,
            Err(refusal) => return Err((answer, refusal)),
        };
        let (turn, asked) = (self.turn, Instant::now());
        let command = Command::Reserve {
            caller: self.caller,
            agent: agent.clone(),
            call: Some(self.call),
            task_name: self.task_name,
            role,
            message,
            directory,
            driver: None,
            frozen: Box::default(),
        };
        let then =
            Box::new(move |actor: &mut Actor, outcome: Result<Outcomes, Refusal>| match outcome {
                Ok(Outcomes::Reserved { path, again: false, .. }) => {
                    actor.reserved.insert(path, Reserved::by(turn, asked, answer));
                }
                Ok(Outcomes::Reserved { path, .. }) => {
                    let _ = answer.send(Ok(told_path(&path)));
                }
                Ok(_) => {}
                Err(refusal) => drop(answer.send(Err(refusal))),
            });
        let mut work = Work::new(command, then).with(body);
        work.claims.push(agent);
        Ok(work)
    }
}

/// The role that a call names; none: the caller's.
pub(super) fn role_named(role: Option<&str>) -> Result<Option<RoleName>, Refusal> {
    let Some(role) = role.filter(|role| *role != "default") else { return Ok(None) };
    // Roles come with their configuration in a later issue; none is known yet.
    let line = match RoleName::parse(role) {
        Ok(role) => format!("there is no role {role}"),
        Err(error) => error.to_string(),
    };
    Err(Refusal::new(RefusalKind::InvalidArgument, line)
        .hint("leave `role` out to inherit the caller's"))
}

/// The id of a new agent.
pub(super) fn new_agent() -> Result<SessionId, Refusal> {
    SessionId::parse(&uuid::Uuid::now_v7().to_string())
        .map_err(|error| Refusal::new(RefusalKind::Failed, error.to_string()))
}

/// Judges a directory that a spawn asked for (A12): absolute, or relative to the parent's;
/// existing; canonical; inside one of the folders that the parent uses.
fn judge_directory(
    parent: Option<&AbsoluteDir>,
    roots: &[Root],
    chosen: &Path,
) -> Result<AbsoluteDir, Refusal> {
    let refuse = |line: String| {
        Refusal::new(RefusalKind::InvalidArgument, line)
            .hint("leave `working_directory` out to work in the caller's directory")
    };
    let whole = match parent {
        Some(parent) => parent.as_path().join(chosen),
        None => PathBuf::from(chosen),
    };
    let canonical = whole
        .canonicalize()
        .map_err(|e| refuse(format!("the directory {} cannot be used: {e}", whole.display())))?;
    if !canonical.is_dir() {
        return Err(refuse(format!("{} is not a directory", canonical.display())));
    }
    let directory = AbsoluteDir::new(canonical).map_err(|e| refuse(e.to_string()))?;
    if roots.iter().any(|root| directory.is_within(&root.directory)) {
        return Ok(directory);
    }
    Err(refuse(format!(
        "the directory {} is in none of the caller's folders",
        directory.as_path().display()
    )))
}

fn write_tasks(
    by: AgentPath,
    changes: Vec<TaskChange>,
    notes: Vec<(Option<String>, String)>,
    answer: Reply,
    work: &mut Vec<Work>,
) {
    let notes: Result<Vec<_>, String> = notes
        .into_iter()
        .map(|(owner, text)| Ok((owner.map(Owner::try_from).transpose()?, text)))
        .collect();
    let notes = match notes {
        Ok(notes) => notes,
        Err(line) => {
            let refusal = Refusal::new(RefusalKind::InvalidArgument, line);
            return drop(answer.send(Err(refusal)));
        }
    };
    let command = Command::WriteTasks { by: Some(by), changes, notes };
    let then = Box::new(move |_: &mut Actor, outcome: Result<Outcomes, Refusal>| {
        let _ = answer.send(outcome.map(|outcome| match outcome {
            Outcomes::Written { tasks, notes_dropped } => {
                let numbers: Vec<String> = tasks.iter().map(ToString::to_string).collect();
                let mut lines = vec![format!("written: {}", numbers.join(", "))];
                for owner in &notes_dropped {
                    let owner = String::from(owner.clone());
                    lines.push(format!("the note of {owner} was not kept: no task is open"));
                }
                Told::Done { text: lines.join("\n"), structured: json!({ "tasks": tasks }) }
            }
            _ => Told::Recorded,
        }));
    });
    work.push(Work::new(command, then));
}

pub(super) fn told_path(path: &AgentPath) -> Told {
    Told::Done { text: path.to_string(), structured: json!({ "path": path }) }
}

fn told_receipt(outcome: &Outcomes) -> Told {
    let Outcomes::Sent(receipt) = outcome else { return Told::Recorded };
    Told::Done {
        text: receipt_text(receipt),
        structured: serde_json::to_value(receipt).unwrap_or_default(),
    }
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

fn told_wait(reason: &str, used_ms: u64) -> Told {
    Told::Done {
        text: reason.to_owned(),
        structured: json!({ "reason": reason, "timeout_ms": used_ms }),
    }
}

fn reason(kind: MailKind, wake: bool) -> &'static str {
    match (kind, wake) {
        (MailKind::User, _) => "user",
        (MailKind::Mail, true) => "steering",
        _ => "mailbox",
    }
}

/// An activity in the words that people and models see.
pub(crate) fn activity_name(activity: Activity) -> &'static str {
    match activity {
        Activity::Preparing => "preparing",
        Activity::Running => "running",
        Activity::Waiting => "waiting",
        Activity::PermissionBlocked => "permission-blocked",
        Activity::Idle => "idle",
    }
}
