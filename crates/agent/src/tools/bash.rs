//! `bash`: starts a command line, waits for it, talks to it, ends it.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use stead_core::permission::Deed;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::shell::{OwnerToken, ShellId};
use stead_process::environment::{silence, without_git_discovery};
use stead_process::{Command, Ended, How, Pipes};

use super::catalogue::BashCall;
use super::launch::{GRACE, PATIENCE, Process, describe};
use super::output::{LARGEST_OUTPUT, Output, Piece, piece};
use super::run::{Stopped, Tools, ask, blocking};
use super::shells::{LARGEST_LOG, ShellKey};
use crate::port::Ask;

/// A shell that is talked to answers soon or has nothing to say yet.
const TALK: Duration = Duration::from_secs(1);

impl Tools {
    pub(super) async fn bash(&mut self, call: BashCall) -> Result<Output, Stopped> {
        let owner = OwnerToken::of(&self.turn.agent);
        let patience = self.yield_after;
        match call {
            BashCall::Start { command, limit, open_input } => {
                let subject = format!("run {}", first_line(&command));
                self.permit(Deed::Command(command.clone()), subject).await?;
                self.shells.check_room()?;
                let process = self.start(&command, limit, open_input).await?;
                self.first_answer(owner, process, &command).await
            }
            BashCall::Watch(shell) => self.watch(ShellKey { owner, shell }, patience).await,
            BashCall::Write { shell, text, last } => {
                // What a shell reads may be commands.
                let subject = format!("write to shell {shell}: {}", first_line(&text));
                self.permit(Deed::Command(text.clone()), subject).await?;
                let key = ShellKey { owner, shell };
                self.shells.write(&key, text, last).await?;
                self.watch(key, patience.min(TALK)).await
            }
            BashCall::Stop(shell) => {
                let key = ShellKey { owner, shell };
                self.shells.stop(&key)?;
                self.watch(key, patience.max(GRACE + PATIENCE)).await
            }
        }
    }

    async fn start(
        &self,
        line: &str,
        limit: Duration,
        open_input: bool,
    ) -> Result<Process, Refusal> {
        let turn = &self.turn;
        let mut environment = turn.environment.clone();
        without_git_discovery(&mut environment);
        silence(&mut environment);
        let held = turn.runs.share().map_err(|error| {
            Refusal::new(RefusalKind::Storage, format!("cannot hold the lock of runs: {error}"))
        })?;
        let logs = turn.logs.join(format!("{}-{}", turn.agent, turn.id));
        let log = move |number| logs.with_added_extension(format!("{number}.log"));
        let command = Command {
            program: "bash".into(),
            arguments: vec!["-c".into(), line.into()],
            environment,
            directory: turn.situation.directory.as_path().to_owned(),
            time_limit: limit,
            grace: GRACE,
            pipes: if open_input { Pipes::Stdin } else { Pipes::None },
            log: PathBuf::new(),
            log_limit: LARGEST_LOG,
            held: Some(held),
        };
        Process::start(&turn.spawners, log, command).await
    }

    /// Waits for a command; one that goes on becomes a background shell.
    async fn first_answer(
        &mut self,
        owner: OwnerToken,
        mut process: Process,
        command: &str,
    ) -> Result<Output, Stopped> {
        let talks = process.stdin.is_some();
        let patience = if talks { self.yield_after.min(TALK) } else { self.yield_after };
        let cancel = self.turn.cancel.clone();
        match cancel.run_until_cancelled(process.ended(patience)).await {
            Some(Ok(Some(ended))) => {
                let seen = Seen { shell: None, log: process.log.clone(), from: 0 };
                let (output, _) = seen.output(Some(&ended), process.limit).await;
                return Ok(output);
            }
            Some(Ok(None)) => {}
            Some(Err(refusal)) => return Err(refusal.into()),
            None => {
                process.end().await;
                return Err(Stopped::Cancelled);
            }
        }
        let line = command.to_owned();
        match ask(&self.turn, |answer| Ask::StartShell { command: line, answer }).await {
            Ok(shell) => {
                let key = ShellKey { owner, shell };
                let port = self.turn.port.clone();
                self.shells.keep(key.clone(), process, &first_line(command), port);
                self.watch(key, Duration::ZERO).await
            }
            Err(stopped) => {
                process.end().await;
                Err(stopped)
            }
        }
    }

    /// Tells what is new of a shell, and its end if that comes in time.
    async fn watch(&mut self, key: ShellKey, patience: Duration) -> Result<Output, Stopped> {
        let cancel = self.turn.cancel.clone();
        let (ended, shell) = self.shells.wait(&key, patience, &cancel).await?;
        let seen = Seen { shell: Some(key.shell), log: shell.log.clone(), from: shell.shown };
        let (output, next) = seen.output(ended.as_ref(), shell.limit).await;
        shell.shown = next;
        if let Some(ended) = &ended {
            self.shells.forget(&key, ended);
        }
        Ok(output)
    }
}

/// What is to be seen of a command.
struct Seen {
    /// Its number, if it is in the background.
    shell: Option<ShellId>,
    log: PathBuf,
    /// Where what was not shown yet begins.
    from: u64,
}

impl Seen {
    /// What the agent is told, and up to where it was shown the log.
    async fn output(self, ended: Option<&Ended>, limit: Duration) -> (Output, u64) {
        let Self { shell, log, from } = self;
        let unstored = ended.map_or(0, |ended| ended.omitted);
        let running = ended.is_none();
        let path = log.clone();
        let new = if ended.is_some_and(is_silent) {
            Ok(Piece::default())
        } else {
            blocking(move || {
                piece(&path, from, LARGEST_OUTPUT, running, unstored).map_err(|error| {
                    let line = format!("cannot read the log {}: {error}", path.display());
                    Refusal::new(RefusalKind::Storage, line)
                })
            })
            .await
        };
        // What the command did must not get lost because its output cannot be read.
        let (said, omitted, next) = match new {
            Ok(new) => (new.text, new.omitted, new.next),
            Err(refusal) => (format!("[stead: {}]", refusal.line), 0, from),
        };
        let mut text = match (ended, shell) {
            (Some(ended), _) => status(ended, limit),
            (None, Some(shell)) => format!(
                "still running as shell {shell}; bash {{\"shell\": {shell}}} waits on, with \
                 \"stop\": true it ends it; log: {}",
                log.display()
            ),
            (None, None) => format!("still running; log: {}", log.display()),
        };
        if !said.is_empty() {
            text.push_str("\n\n");
            text.push_str(&said);
        }
        let (exit_status, signal) = match ended.map(|ended| ended.how) {
            Some(How::Exited(code)) => (Some(code), None),
            Some(How::Signalled(signal)) => (None, Some(signal)),
            _ => (None, None),
        };
        let structured = json!({
            "shell": shell,
            "running": running,
            "exit_status": exit_status,
            "signal": signal,
            "timed_out": ended.is_some_and(|ended| ended.how == How::TimedOut),
            "survivors": ended.map(|ended| ended.survivors.clone()).unwrap_or_default(),
            "omitted": omitted,
            "log": log.display().to_string(),
        });
        let failed = ended.is_some_and(|ended| ended.how != How::Exited(0));
        (Output { text, structured, failed }, next)
    }
}

/// Whether it is known that nothing was written, as it is not of a command that was lost.
fn is_silent(ended: &Ended) -> bool {
    ended.bytes == 0 && ended.how != How::Lost
}

fn status(ended: &Ended, limit: Duration) -> String {
    let mut lines = vec![describe(ended)];
    if ended.how == How::TimedOut {
        lines.push(format!("its limit was {limit:?}; timeout_ms may be up to 600000"));
    }
    if ended.survivor_count > 0 {
        let names = ended.survivors.join(", ");
        let count = ended.survivor_count;
        lines.push(format!("{count} processes were left running and were ended: {names}"));
    }
    if !ended.left.is_empty() {
        lines.push(format!("processes that could not be ended: {:?}", ended.left));
    }
    lines.join("\n")
}

/// The command for a list of requests; the whole of it is in the deed.
pub(super) fn first_line(command: &str) -> String {
    let line = command.trim().lines().next().unwrap_or_default();
    let short: String = line.chars().take(200).collect();
    if short.len() < command.trim().len() { format!("{short} …") } else { short }
}
