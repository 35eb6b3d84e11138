//! Background shells: the commands of a turn that go on while the agent does something else (A19).
//!
//! Each answers to the agent that started it only, and none outlives its turn. Its end is recorded
//! before anybody here is told of it, so whoever has waited for all of them can end the turn.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::shell::{MOST_SHELLS, OwnerToken, ShellFate, ShellId};
use stead_process::{Ended, How, Stdin};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::launch::{GRACE, PATIENCE, Process, describe};
use super::run::{Stopped, blocking};
use crate::port::{Ask, Port};

/// How long a command may run that was given no limit.
pub const USUAL_LIMIT: Duration = Duration::from_mins(2);
/// The longest limit that a call may give.
pub const LONGEST_LIMIT: Duration = Duration::from_mins(10);
/// After so long a call answers although its command goes on.
pub const YIELD_AFTER: Duration = Duration::from_secs(10);

/// The most bytes of one command's log.
pub(super) const LARGEST_LOG: u64 = 64 * 1024 * 1024;
/// How long a shell may take to read what is written to it.
const READ_ON: Duration = Duration::from_secs(5);

/// After so long an end that could not be stored is stored again.
const AGAIN: Duration = Duration::from_millis(500);

/// What a shell is found by: whose it is, and its number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShellKey {
    pub(crate) owner: OwnerToken,
    pub(crate) shell: ShellId,
}

/// A shell whose end was not told yet.
pub(super) struct Shell {
    pub(super) log: PathBuf,
    /// Its log was shown up to here.
    pub(super) shown: u64,
    pub(super) limit: Duration,
    stdin: Option<Stdin>,
    stop: CancellationToken,
    ended: watch::Receiver<Option<Ended>>,
    watcher: JoinHandle<()>,
    /// Whether the turn was held for it.
    held: bool,
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The background shells of a turn, and what became of those whose end was told.
#[derive(Default)]
pub(crate) struct Shells {
    shells: BTreeMap<ShellKey, Shell>,
    told: BTreeMap<ShellKey, String>,
}

impl Shells {
    /// Refuses when there is no room for one more.
    pub(super) fn check_room(&self) -> Result<(), Refusal> {
        let living = self.shells.values().filter(|shell| shell.ended.borrow().is_none()).count();
        if living < MOST_SHELLS {
            return Ok(());
        }
        Err(Refusal::new(
            RefusalKind::NoRoom,
            format!("{MOST_SHELLS} commands of this turn are still running"),
        )
        .hint("wait for one with `shell`, or end it with `stop`"))
    }

    /// Keeps a command that goes on; its start is recorded under `key`.
    pub(super) fn keep(&mut self, key: ShellKey, mut process: Process, command: &str, port: Port) {
        let (sender, ended) = watch::channel(None);
        let stop = CancellationToken::new();
        let stdin = process.stdin.take();
        let (log, limit) = (process.log.clone(), process.limit);
        let watcher = Watcher { process, shell: key.shell, command: command.to_owned(), port };
        let watcher = tokio::spawn(watcher.run(stop.clone(), sender));
        let shell = Shell { log, shown: 0, limit, stdin, stop, ended, watcher, held: false };
        self.shells.insert(key, shell);
    }

    /// Waits for a shell of `key`'s owner. An end is told once; the caller then
    /// [forgets](Self::forget) the shell.
    pub(super) async fn wait(
        &mut self,
        key: &ShellKey,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<(Option<Ended>, &mut Shell), Stopped> {
        let shell = self.find(key)?;
        let ended = cancel.run_until_cancelled(shell.until_ended(limit)).await;
        Ok((ended.ok_or(Stopped::Cancelled)?, shell))
    }

    /// Forgets a shell whose end was told.
    pub(super) fn forget(&mut self, key: &ShellKey, ended: &Ended) {
        self.shells.remove(key);
        self.told.insert(key.clone(), describe(ended));
    }

    /// Tells a shell to end; [`wait`](Self::wait) then sees it.
    pub(super) fn stop(&mut self, key: &ShellKey) -> Result<(), Refusal> {
        self.find(key).map(|shell| shell.stop.cancel())
    }

    /// Writes to the standard input of a shell, and closes it if this is `last`.
    pub(super) async fn write(
        &mut self,
        key: &ShellKey,
        text: String,
        last: bool,
    ) -> Result<(), Refusal> {
        let number = key.shell;
        let shell = self.find(key)?;
        let Some(mut stdin) = shell.stdin.take() else {
            let line = format!("the input of shell {number} is closed");
            return Err(Refusal::new(RefusalKind::WrongState, line)
                .hint("start a command with \"open_input\": true to write to it"));
        };
        let (stdin, written) = blocking(move || {
            let written = stdin.write(text.as_bytes(), READ_ON);
            Ok((stdin, written))
        })
        .await?;
        if !last {
            shell.stdin = Some(stdin);
        }
        written.map_err(|error| {
            Refusal::new(RefusalKind::Failed, format!("shell {number}: {error}"))
                .hint("a part may have been read; look before you repeat it")
        })
    }

    fn find(&mut self, key: &ShellKey) -> Result<&mut Shell, Refusal> {
        if let Some(fate) = self.told.get(key) {
            return Err(Refusal::new(
                RefusalKind::WrongState,
                format!("shell {} has ended: {fate}", key.shell),
            )
            .hint("its end was told; start a new command"));
        }
        let mine = self.shells.keys().filter(|k| k.owner == key.owner);
        let mine: Vec<_> = mine.map(|k| k.shell.to_string()).collect();
        self.shells.get_mut(key).ok_or_else(|| {
            let running = match mine.as_slice() {
                [] => "none of yours is running".to_owned(),
                some => format!("yours that are running: {}", some.join(", ")),
            };
            Refusal::new(RefusalKind::NotFound, format!("you have no shell {}", key.shell))
                .hint(format!("{running}; a shell ends with its turn"))
        })
    }

    /// Waits until every shell has ended by itself or by its limit: the turn is held for them.
    /// Whether it was for any, which its agent has to hear of. Ends early, with shells alive, when
    /// the turn is cancelled.
    pub(crate) async fn hold(&mut self, cancel: &CancellationToken) -> bool {
        let mut held = false;
        for shell in self.shells.values_mut().filter(|shell| !shell.held) {
            // Nobody is left to write to it.
            shell.stdin = None;
            let end = shell.until_ended(Duration::MAX);
            if cancel.run_until_cancelled(end).await.is_none() {
                return held;
            }
            shell.held = true;
            held = true;
        }
        held
    }

    /// Ends every shell and waits until nothing of them runs.
    pub(crate) async fn end(&mut self) {
        self.shells.values().for_each(|shell| shell.stop.cancel());
        for (key, shell) in &mut self.shells {
            if timeout(GRACE + PATIENCE * 2, &mut shell.watcher).await.is_err() {
                tracing::warn!(shell = %key.shell, "a shell's end is not known");
                shell.watcher.abort();
            }
        }
        self.shells.clear();
    }
}

impl Shell {
    /// How it ended, waiting at most so long.
    async fn until_ended(&mut self, limit: Duration) -> Option<Ended> {
        let end = self.ended.wait_for(Option::is_some);
        timeout(limit, end).await.ok()?.ok()?.clone()
    }
}

/// What sees a shell to its end.
struct Watcher {
    process: Process,
    shell: ShellId,
    command: String,
    port: Port,
}

impl Watcher {
    /// Waits for the end, records it, and only then tells of it.
    async fn run(mut self, stop: CancellationToken, sender: watch::Sender<Option<Ended>>) {
        let limit = self.process.limit + GRACE + PATIENCE;
        let ended = stop.run_until_cancelled(self.process.end_within(limit)).await;
        let ended = match ended {
            Some(ended) => ended,
            None => self.process.end().await,
        };
        let (shell, fate) = (self.shell, fate(ended.how));
        let report = format!(
            "shell {shell} {fate}: {}\nlog: {}; bash {{\"shell\": {shell}}} shows once what you have \
             not seen of it",
            self.command,
            self.process.log.display()
        );
        loop {
            let report = report.clone();
            let asked = |answer| Ask::ShellEnded { shell, fate, report, answer };
            match self.port.ask(asked).await {
                Ok(()) => break,
                // Its turn cannot complete before this is stored, and an interrupt stores it too.
                Err(refusal) if refusal.kind == RefusalKind::Storage && !stop.is_cancelled() => {
                    let _ = timeout(AGAIN, stop.cancelled()).await;
                }
                Err(refusal) => {
                    // Its turn has ended, which recorded it, or the session is being closed.
                    tracing::debug!(%shell, why = %refusal.line, "its end is not recorded here");
                    break;
                }
            }
        }
        let _ = sender.send(Some(ended));
    }
}

fn fate(how: How) -> ShellFate {
    match how {
        How::Exited(status) => ShellFate::Exited(status),
        How::Signalled(signal) => ShellFate::Signalled(signal),
        How::TimedOut => ShellFate::TimedOut,
        How::Stopped => ShellFate::Stopped,
        How::Lost => ShellFate::Lost,
    }
}
