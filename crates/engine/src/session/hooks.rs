//! Hooks: programs of the person, run one after another beside the session's owner (A18).
//!
//! A hook that cannot be asked does not let anything through: it might have objected. A stop hook
//! only watches.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::json;
use stead_core::hook::{HookVerdict, Moment, Payload};
use stead_core::id::{SessionId, TurnId};
use stead_core::layout::AbsoluteDir;
use stead_core::line;
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::roster::Agent;
use stead_core::session::{Command, Outcomes, decide};
use stead_core::settings::{HookSettings, Hooks};
use stead_process::environment::scrubbed;
use stead_process::tool::{Tool, find};
use stead_store::Body;

use super::actor::{Actor, Shared};
use super::conversation::text_body;
use super::message::{Message, Work};

/// The most bytes that a hook may answer.
const LONGEST_ANSWER: usize = 128 << 10;

/// What hooks said of a task that is about to be given to an agent.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// Why the agent does not get it.
    pub(crate) refusal: Option<Refusal>,
    /// What the agent hears with the next task that it does get, oldest first.
    pub(crate) notes: Vec<Body>,
}

/// Whom hooks are told about, and in which surroundings they run.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) root: SessionId,
    pub(crate) agent: SessionId,
    pub(crate) path: AgentPath,
    pub(crate) directory: AbsoluteDir,
    /// The whole environment of the programs.
    pub(crate) environment: BTreeMap<OsString, OsString>,
}

impl Subject {
    fn payload(&self, moment: Moment, subject: serde_json::Value) -> Payload {
        let (root, agent) = (self.root.clone(), self.agent.clone());
        let (path, directory) = (self.path.clone(), self.directory.clone());
        let mut payload = Payload::new(moment, root, agent, path, directory);
        payload.subject = subject;
        payload
    }

    /// Asks the hooks of a new agent: that it starts, and what it is given first. May block.
    pub(crate) fn start(&self, hooks: &Hooks, task: Option<&str>, cancel: &Cancel) -> Judged {
        let mut judged = self.judge(hooks, Moment::Start, json!({ "task": task }), cancel);
        if let (None, Some(task)) = (&judged.refusal, task) {
            let prompt = self.prompt(hooks, task, cancel);
            judged.refusal = prompt.refusal;
            judged.notes.extend(prompt.notes);
        }
        judged
    }

    /// Asks the hooks of a task that an agent is about to be given. May block.
    pub(crate) fn prompt(&self, hooks: &Hooks, task: &str, cancel: &Cancel) -> Judged {
        self.judge(hooks, Moment::Prompt, json!({ "task": task }), cancel)
    }

    fn judge(
        &self,
        hooks: &Hooks,
        moment: Moment,
        subject: serde_json::Value,
        cancel: &Cancel,
    ) -> Judged {
        if hooks.at(moment).is_empty() {
            return Judged::default();
        }
        let verdict = match self.run(hooks.at(moment), &self.payload(moment, subject), cancel) {
            Ok(verdict) => verdict,
            Err(refusal) => return Judged { refusal: Some(refusal), notes: Vec::new() },
        };
        let denied = verdict.blocks().then(|| {
            let reason = verdict.reason.as_deref().unwrap_or("it gives no reason");
            let line = format!("a {} hook denies it: {}", name(moment), line::brief(reason));
            Refusal::new(RefusalKind::Denied, line)
                .hint("the person's hooks stand in `[hooks]` of the settings")
        });
        let context = verdict.context.filter(|text| !text.trim().is_empty());
        match context.map(|text| text_body(&text)).transpose() {
            Ok(note) => {
                Judged { refusal: denied, notes: note.into_iter().map(|(body, _)| body).collect() }
            }
            Err(refusal) => Judged { refusal: Some(refusal), notes: Vec::new() },
        }
    }

    /// Runs hooks one after another, each of which is told the same; the first that denies is the
    /// last.
    fn run(
        &self,
        hooks: &[HookSettings],
        payload: &Payload,
        cancel: &Cancel,
    ) -> Result<HookVerdict, Refusal> {
        let input = serde_json::to_vec(payload)
            .map_err(|e| Refusal::new(RefusalKind::Failed, format!("a hook's input: {e}")))?;
        let mut all = HookVerdict::default();
        for hook in hooks {
            let failed = |why: String| {
                let program = hook.command.first().map_or("", String::as_str);
                let line = format!("the {} hook {program}: {why}", name(payload.event));
                Refusal::new(RefusalKind::Failed, line)
                    .hint("mend it, or take it out of `[hooks]` of the settings")
            };
            all = all.and(self.ask(hook, input.clone(), cancel).map_err(failed)?);
            if all.blocks() {
                break;
            }
        }
        Ok(all)
    }

    fn ask(
        &self,
        hook: &HookSettings,
        input: Vec<u8>,
        cancel: &Cancel,
    ) -> Result<HookVerdict, String> {
        let (program, arguments) = hook.command.split_first().ok_or("it has no program")?;
        let output = Tool::new(self.program(program)?)
            .args(arguments)
            .env(self.environment.clone())
            .directory(self.directory.as_path())
            .input(input)
            .time_limit(Duration::from_secs(hook.seconds))
            .output_limit(LONGEST_ANSWER)
            .cancel(cancel.clone())
            .run()
            .map_err(|e| e.to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim();
            let said = if said.is_empty() { "it says nothing" } else { said };
            return Err(format!("{}: {}", output.status, line::brief(said)));
        }
        let answer = String::from_utf8(output.stdout).map_err(|e| e.to_string())?;
        HookVerdict::parse(&answer).map_err(|e| e.to_string())
    }

    fn program(&self, program: &str) -> Result<PathBuf, String> {
        if program.contains('/') {
            return Ok(Path::new(program).to_path_buf());
        }
        let path = self.environment.get(OsStr::new("PATH"));
        path.and_then(|path| find(program, path)).ok_or_else(|| "it is not in PATH".to_owned())
    }
}

/// Hooks end soon after this becomes true.
pub(crate) type Cancel = Arc<AtomicBool>;

fn name(moment: Moment) -> &'static str {
    match moment {
        Moment::Start => "start",
        Moment::Prompt => "prompt",
        Moment::BeforeTool => "before-tool",
        Moment::PermissionRequest => "permission-request",
        Moment::Stop => "stop",
    }
}

/// Refuses settings with hooks that nobody would run: a hook that is thought to watch and does not
/// is worse than none.
pub(crate) fn check(hooks: &Hooks) -> Result<(), Refusal> {
    for moment in [Moment::BeforeTool, Moment::PermissionRequest] {
        if !hooks.at(moment).is_empty() {
            let line = format!("[hooks]: {} hooks are not run yet", name(moment));
            return Err(Refusal::new(RefusalKind::InvalidArgument, line)
                .hint("take them out; start, prompt and stop hooks are run"));
        }
    }
    Ok(())
}

/// The environment of hooks: the client's, or what of the engine's own a command may have.
pub(crate) fn surroundings(
    shared: &Shared,
    client: &BTreeMap<OsString, OsString>,
) -> BTreeMap<OsString, OsString> {
    if client.is_empty() { scrubbed(shared.environment.clone()) } else { client.clone() }
}

impl Actor {
    /// An agent as hooks are told of it, with its directory.
    pub(super) fn subject(&self, agent: &Agent) -> Subject {
        Subject {
            root: self.session.clone(),
            agent: agent.id.clone(),
            path: agent.path.clone(),
            directory: agent.directory.clone(),
            environment: surroundings(&self.shared, &self.environment),
        }
    }

    /// Takes work that may give an idle agent a task: then the prompt hooks are asked first, beside
    /// the actor, and once. Mail, and words to a turn that runs, are none of theirs.
    pub(super) fn accept(&mut self, item: Work, work: &mut Vec<Work>) {
        let asked = self.wakes(&item).and_then(|path| {
            let subject = self.subject(self.state.branch.roster.at(&path)?);
            let Command::Send { body, .. } = &item.command else { return None };
            let body = item.bodies.iter().find(|known| known.reference() == *body)?;
            Some((subject, String::from_utf8_lossy(body.bytes()).into_owned()))
        });
        let Some((subject, task)) = asked else { return work.push(item) };
        self.hooking = self.hooking.saturating_add(1);
        let (shared, sender) = (self.shared.clone(), self.handle.sender.clone());
        tokio::task::spawn_blocking(move || {
            let path = subject.path.clone();
            let judged = subject.prompt(&shared.settings.hooks, &task, &Cancel::default());
            let _ = sender.blocking_send(Message::Judged { path, item: Box::new(item), judged });
        });
    }

    /// Whose turn this work would start, where a prompt hook wants to know.
    fn wakes(&self, item: &Work) -> Option<AgentPath> {
        let hooks = &self.shared.settings.hooks;
        if hooks.prompt.is_empty() || !matches!(item.command, Command::Send { .. }) {
            return None;
        }
        match decide(&self.state, item.command.clone()).ok()?.answer {
            Outcomes::Sent(receipt)
                if receipt.state == stead_core::mail::ReceiptState::TurnStarted =>
            {
                Some(receipt.to)
            }
            _ => None,
        }
    }

    /// Prompt hooks have judged a task: what they add is kept, whether they let it through or not,
    /// and heard once, with the next task that is (agents_43).
    pub(super) fn judged(
        &mut self,
        path: &AgentPath,
        item: Work,
        judged: Judged,
        work: &mut Vec<Work>,
    ) {
        self.hooking = self.hooking.saturating_sub(1);
        let Judged { refusal, notes } = judged;
        let refusal = refusal.or_else(|| self.check_open().err());
        work.extend(notes.into_iter().map(|note| noted(path, note)));
        match refusal {
            Some(refusal) => (item.then)(self, Err(refusal)),
            None => work.push(item),
        }
    }

    /// What tells the stop hooks of a turn, right behind what settles it and in one batch with
    /// that: once, whenever the engine is killed (agents_82). None: there are no such hooks.
    pub(super) fn stop_told(&self, path: &AgentPath, turn: TurnId) -> Option<Work> {
        if self.shared.settings.hooks.stop.is_empty() {
            return None;
        }
        let command = Command::NoteStop { path: path.clone(), turn };
        let path = path.clone();
        let then = Box::new(move |actor: &mut Self, noted: Result<Outcomes, Refusal>| {
            if noted.is_ok() {
                actor.run_stop_hooks(&path, turn);
            }
        });
        Some(Work::new(command, then))
    }

    /// What tells the stop hooks of the turns that a recovery is about to settle.
    pub(super) fn stops_of_recovery(&self) -> Vec<Work> {
        let running = self.state.branch.roster.all().filter_map(|agent| {
            let turn = agent.turn()?;
            self.stop_told(&agent.path, turn)
        });
        running.collect()
    }

    fn run_stop_hooks(&mut self, path: &AgentPath, turn: TurnId) {
        let Some(agent) = self.state.branch.roster.at(path) else { return };
        let Some(last) = agent.last.as_ref().filter(|last| last.turn == turn) else { return };
        let ended = json!({ "outcome": last.outcome, "reason": last.reason });
        let subject = self.subject(agent);
        let mut payload = subject.payload(Moment::Stop, ended);
        payload.turn = Some(turn);
        self.hooking = self.hooking.saturating_add(1);
        let (shared, sender) = (self.shared.clone(), self.handle.sender.clone());
        tokio::task::spawn_blocking(move || {
            for hook in &shared.settings.hooks.stop {
                let told = subject.run(std::slice::from_ref(hook), &payload, &Cancel::default());
                if let Err(refusal) = told {
                    tracing::warn!(path = %subject.path, %turn, why = %refusal.line, "a stop hook");
                }
            }
            let _ = sender.blocking_send(Message::StopTold);
        });
    }
}

/// Keeps what a hook added.
pub(super) fn noted(path: &AgentPath, note: Body) -> Work {
    let command = Command::NoteHook { path: path.clone(), context: note.reference() };
    let path = path.clone();
    let then = Box::new(move |_: &mut Actor, outcome: Result<Outcomes, Refusal>| {
        if let Err(refusal) = outcome {
            tracing::warn!(%path, why = %refusal.line, "what a hook added is not kept");
        }
    });
    Work::new(command, then).with(note)
}
