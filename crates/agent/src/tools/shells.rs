//! The commands of one turn: each answers to the agent that started it only, and none outlives the
//! turn.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use stead_core::id::SessionId;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_process::{Command, Ended, How, Run, SpawnError, Spawners};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::run::{Stopped, blocking};

/// How long a command may run that was given no limit.
pub const USUAL_LIMIT: Duration = Duration::from_mins(2);
/// The longest limit that a call may give.
pub const LONGEST_LIMIT: Duration = Duration::from_mins(10);
/// After so long a call answers although its command goes on.
pub const YIELD_AFTER: Duration = Duration::from_secs(10);

/// How long processes may take to end after TERM.
pub(super) const GRACE: Duration = Duration::from_secs(2);
/// The most bytes of one command's log.
pub(super) const LARGEST_LOG: u64 = 64 * 1024 * 1024;
/// The most commands of one turn at once.
const MOST_SHELLS: usize = 16;
/// A supervisor ends a tree within the grace and five seconds; what takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a shell is found by: its owner, who is the agent with this id, and its number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShellKey {
    pub(crate) owner: SessionId,
    pub(crate) number: u32,
}

/// A command that is running.
pub(super) struct Shell {
    run: AsyncFd<Watched>,
    pub(super) log: PathBuf,
    /// Its log was shown up to here.
    pub(super) shown: u64,
    pub(super) limit: Duration,
}

struct Watched(Run);

impl AsRawFd for Watched {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

#[expect(deprecated, reason = "its replacement is unsafe; a Run owns its descriptor and keeps it")]
fn watch(run: Run) -> std::io::Result<AsyncFd<Watched>> {
    AsyncFd::with_interest(Watched(run), Interest::READABLE)
}

impl Shell {
    /// Waits for the end of the command, at most so long. Dropping the future loses nothing.
    async fn ended(&mut self, limit: Duration) -> Result<Option<Ended>, Refusal> {
        let failed = |reason: String| Refusal::new(RefusalKind::Failed, reason);
        let end = async {
            loop {
                let mut ready = self.run.readable_mut().await.map_err(|e| failed(e.to_string()))?;
                let run = &mut ready.get_inner_mut().0;
                match run.wait(Some(Duration::ZERO)).map_err(|e| failed(e.to_string()))? {
                    Some(ended) => return Ok(ended),
                    None => ready.clear_ready(),
                }
            }
        };
        timeout(limit, end).await.ok().transpose()
    }

    fn stop(&self) {
        if let Err(error) = self.run.get_ref().0.stop() {
            tracing::warn!(%error, "a command cannot be told to stop");
        }
    }
}

/// The living commands of a turn, and what became of the others.
#[derive(Default)]
pub(crate) struct Shells {
    living: BTreeMap<ShellKey, Shell>,
    ended: BTreeMap<ShellKey, String>,
    last: u32,
}

impl Shells {
    /// Starts a command; `log` names the log of a number.
    pub(super) async fn start(
        &mut self,
        owner: &SessionId,
        spawners: &Arc<Spawners>,
        log: impl Fn(u32) -> PathBuf + Send + 'static,
        command: Command,
    ) -> Result<ShellKey, Refusal> {
        if self.living.len() >= MOST_SHELLS {
            return Err(Refusal::new(
                RefusalKind::NoRoom,
                format!("{MOST_SHELLS} commands of this turn are still running"),
            )
            .hint("wait for one with `shell`, or end it with `stop`"));
        }
        let limit = command.time_limit;
        let spawners = spawners.clone();
        let first = self.last.saturating_add(1);
        let (number, log, run) = blocking(move || {
            // A turn that is taken up again finds the logs that its answers have named: they stay.
            let number = (first..=u32::MAX).find(|number| !log(*number).exists()).unwrap_or(first);
            let log = log(number);
            let run = launch(&spawners, Command { log: log.clone(), ..command })?;
            Ok((number, log, run))
        })
        .await?;
        let run = watch(run).map_err(|error| {
            Refusal::new(RefusalKind::Failed, format!("cannot watch the command: {error}"))
        })?;
        self.last = number;
        let key = ShellKey { owner: owner.clone(), number };
        self.living.insert(key.clone(), Shell { run, log, shown: 0, limit });
        Ok(key)
    }

    /// Waits for a shell of `key`'s owner. An end is told once.
    pub(super) async fn wait(
        &mut self,
        key: &ShellKey,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<(Option<Ended>, &mut Shell), Stopped> {
        let shell = self.find(key)?;
        let ended = cancel.run_until_cancelled(shell.ended(limit)).await;
        let ended = ended.ok_or(Stopped::Cancelled)??;
        if let Some(ended) = &ended {
            self.ended.insert(key.clone(), describe(ended));
        }
        Ok((ended, self.find_living(key)?))
    }

    /// Forgets a shell whose end was told.
    pub(super) fn forget(&mut self, key: &ShellKey) {
        self.living.remove(key);
    }

    /// Tells a shell to end; [`wait`](Self::wait) then sees it.
    pub(super) fn stop(&mut self, key: &ShellKey) -> Result<(), Refusal> {
        self.find(key).map(|shell| shell.stop())
    }

    fn find(&mut self, key: &ShellKey) -> Result<&mut Shell, Refusal> {
        if let Some(fate) = self.ended.get(key) {
            return Err(Refusal::new(
                RefusalKind::WrongState,
                format!("shell {} has ended: {fate}", key.number),
            )
            .hint("its end was told; start a new command"));
        }
        self.find_living(key)
    }

    fn find_living(&mut self, key: &ShellKey) -> Result<&mut Shell, Refusal> {
        let mine = self.living.keys().filter(|k| k.owner == key.owner);
        let mine: Vec<_> = mine.map(|k| k.number.to_string()).collect();
        self.living.get_mut(key).ok_or_else(|| {
            let running = match mine.as_slice() {
                [] => "none of yours is running".to_owned(),
                some => format!("yours that are running: {}", some.join(", ")),
            };
            Refusal::new(RefusalKind::NotFound, format!("you have no shell {}", key.number))
                .hint(format!("{running}; a shell ends with its turn"))
        })
    }

    /// Waits until every command has ended by itself or by its limit. Ends early, with the commands
    /// alive, when the turn is cancelled.
    pub(crate) async fn finish(&mut self, cancel: &CancellationToken) {
        for shell in self.living.values_mut() {
            let limit = shell.limit + GRACE + PATIENCE;
            if cancel.run_until_cancelled(shell.ended(limit)).await.is_none() {
                return;
            }
        }
        self.living.clear();
    }

    /// Ends every command and waits until nothing of them runs.
    pub(crate) async fn end(&mut self) {
        self.living.values().for_each(Shell::stop);
        for (key, shell) in &mut self.living {
            match shell.ended(GRACE + PATIENCE).await {
                Ok(Some(_)) => {}
                Ok(None) => tracing::warn!(shell = key.number, "a command cannot be ended"),
                Err(error) => tracing::warn!(shell = key.number, %error, "a command is lost"),
            }
        }
        self.living.clear();
    }
}

/// Starts the command line with `bash`, or with `sh` where there is none.
fn launch(spawners: &Spawners, mut command: Command) -> Result<Run, Refusal> {
    // The path may lead elsewhere since the turn began; one that leads nowhere is refused below.
    if let Ok(now) = command.directory.canonicalize()
        && now != command.directory
    {
        let line = format!(
            "the command was not started: your directory {} leads to {} now",
            command.directory.display(),
            now.display()
        );
        return Err(Refusal::new(RefusalKind::Failed, line));
    }
    if let Some(folder) = command.log.parent() {
        std::fs::create_dir_all(folder).map_err(|error| {
            let line = format!("cannot make the folder of logs {}: {error}", folder.display());
            Refusal::new(RefusalKind::Storage, line)
        })?;
    }
    let started = match start(spawners, &command) {
        Err(SpawnError::NotFound(_)) => {
            command.program = "sh".into();
            start(spawners, &command)
        }
        other => other,
    };
    started.map_err(|error| {
        let kind = match error {
            SpawnError::Gone(_) | SpawnError::Spawner { .. } => RefusalKind::Unavailable,
            _ => RefusalKind::Failed,
        };
        match error {
            SpawnError::Unknown(_) | SpawnError::NoAnswer(_) => {
                Refusal::new(kind, error.to_string()).hint("look before you repeat it")
            }
            error => Refusal::new(kind, format!("the command was not started: {error}")),
        }
    })
}

/// Starts the command by a spawner that lives; one that is found dead has started nothing.
fn start(spawners: &Spawners, command: &Command) -> Result<Run, SpawnError> {
    match spawners.living()?.run(command) {
        Err(SpawnError::Gone(pid)) => {
            tracing::warn!(pid, "the spawner is gone; another one takes its place");
            spawners.living()?.run(command)
        }
        other => other,
    }
}

/// How a command ended, in words that say no more than is known.
pub(super) fn describe(ended: &Ended) -> String {
    of_how(ended.how)
}

pub(super) fn of_how(how: How) -> String {
    match how {
        How::Exited(code) => format!("exit status {code}"),
        How::Signalled(signal) => format!("ended by signal {signal}"),
        How::TimedOut => "timed out and ended, with all its processes".to_owned(),
        How::Stopped => "stopped, with all its processes".to_owned(),
        How::Lost => "its outcome is unknown; look before you repeat it".to_owned(),
    }
}
