//! `bash`: starts a command line, waits for it, ends it.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use stead_core::permission::Deed;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_process::environment::{silence, without_git_discovery};
use stead_process::{Command, Ended, How, Pipes};

use super::catalogue::BashCall;
use super::output::{LARGEST_OUTPUT, Output, Piece, piece};
use super::run::{Stopped, Tools, blocking};
use super::shells::{GRACE, LARGEST_LOG, ShellKey, describe};

impl Tools {
    pub(super) async fn bash(&mut self, call: BashCall) -> Result<Output, Stopped> {
        let owner = self.turn.agent.clone();
        match call {
            BashCall::Start { command, limit } => {
                let subject = format!("run {}", first_line(&command));
                self.permit(Deed::Command(command.clone()), subject).await?;
                let key = self.start(&command, limit).await?;
                self.watch(key).await
            }
            BashCall::Watch(number) => self.watch(ShellKey { owner, number }).await,
            BashCall::Stop(number) => {
                let key = ShellKey { owner, number };
                self.shells.stop(&key)?;
                self.watch(key).await
            }
        }
    }

    async fn start(&mut self, line: &str, limit: Duration) -> Result<ShellKey, Refusal> {
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
            pipes: Pipes::None,
            log: PathBuf::new(),
            log_limit: LARGEST_LOG,
            held: Some(held),
        };
        self.shells.start(&turn.agent, &turn.spawners, log, command).await
    }

    async fn watch(&mut self, key: ShellKey) -> Result<Output, Stopped> {
        let patience = self.yield_after;
        let cancel = self.turn.cancel.clone();
        let (ended, shell) = self.shells.wait(&key, patience, &cancel).await?;
        let (log, from, limit) = (shell.log.clone(), shell.shown, shell.limit);
        let unstored = ended.as_ref().map_or(0, |ended| ended.omitted);
        let running = ended.is_none();
        let path = log.clone();
        let new = if ended.as_ref().is_some_and(is_silent) {
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
        if let Ok(new) = &new {
            shell.shown = new.next;
        }
        if !running {
            self.shells.forget(&key);
        }
        // What the command did must not get lost because its output cannot be read.
        let (said, omitted) = match new {
            Ok(new) => (new.text, new.omitted),
            Err(refusal) => (format!("[stead: {}]", refusal.line), 0),
        };
        let number = key.number;
        let mut text = match &ended {
            Some(ended) => status(ended, limit),
            None => format!(
                "still running as shell {number}; bash {{\"shell\": {number}}} waits on, with \
                 \"stop\": true it ends it; log: {}",
                log.display()
            ),
        };
        if !said.is_empty() {
            text.push_str("\n\n");
            text.push_str(&said);
        }
        let (exit_status, signal) = match ended.as_ref().map(|ended| ended.how) {
            Some(How::Exited(code)) => (Some(code), None),
            Some(How::Signalled(signal)) => (None, Some(signal)),
            _ => (None, None),
        };
        let structured = json!({
            "shell": number,
            "running": running,
            "exit_status": exit_status,
            "signal": signal,
            "timed_out": matches!(&ended, Some(ended) if ended.how == How::TimedOut),
            "survivors": ended.as_ref().map(|ended| ended.survivors.clone()).unwrap_or_default(),
            "omitted": omitted,
            "log": log.display().to_string(),
        });
        let failed = matches!(&ended, Some(ended) if ended.how != How::Exited(0));
        Ok(Output { text, structured, failed })
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
