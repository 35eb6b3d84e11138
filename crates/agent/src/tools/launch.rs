//! One command of `bash`: started, watched, ended.

use std::os::fd::{AsFd as _, AsRawFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use stead_core::refusal::{Refusal, RefusalKind};
use stead_process::{Command, Ended, How, Run, SpawnError, Spawners, Stdin};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

use super::run::blocking;

/// How long processes may take to end after TERM.
pub(super) const GRACE: Duration = Duration::from_secs(2);
/// A supervisor ends a tree within the grace and five seconds; what takes longer is given up.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// A command that was started. Dropping it ends the command.
pub(super) struct Process {
    run: AsyncFd<Watched>,
    /// Its standard input, where that was left open.
    pub(super) stdin: Option<Stdin>,
    pub(super) log: PathBuf,
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

impl Process {
    /// Starts a command whose log has the first free name that `log` gives for a number.
    pub(super) async fn start(
        spawners: &Arc<Spawners>,
        log: impl Fn(u32) -> PathBuf + Send + 'static,
        command: Command,
    ) -> Result<Self, Refusal> {
        let limit = command.time_limit;
        let spawners = spawners.clone();
        let (log, mut run) = blocking(move || {
            // A turn that is taken up again finds the logs that its answers have named: they stay.
            let number = (1..=u32::MAX).find(|number| !log(*number).exists()).unwrap_or(1);
            let log = log(number);
            let run = launch(&spawners, Command { log: log.clone(), ..command })?;
            Ok((log, run))
        })
        .await?;
        let stdin = run.stdin.take();
        let run = watch(run).map_err(|error| {
            Refusal::new(RefusalKind::Failed, format!("cannot watch the command: {error}"))
        })?;
        Ok(Self { run, stdin, log, limit })
    }

    /// Waits for the end of the command, at most so long. Dropping the future loses nothing.
    pub(super) async fn ended(&mut self, limit: Duration) -> Result<Option<Ended>, Refusal> {
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

    /// Ends the command and waits until nothing of it runs. One that cannot be ended, or whose end
    /// cannot be seen, is lost.
    pub(super) async fn end(&mut self) -> Ended {
        if let Err(error) = self.run.get_ref().0.stop() {
            tracing::warn!(%error, "a command cannot be told to stop");
        }
        self.end_within(GRACE + PATIENCE).await
    }

    /// Waits for its end, which must come within `limit`.
    pub(super) async fn end_within(&mut self, limit: Duration) -> Ended {
        match self.ended(limit).await {
            Ok(Some(ended)) => return ended,
            Ok(None) => tracing::warn!(log = %self.log.display(), "a command cannot be ended"),
            Err(error) => tracing::warn!(%error, "a command is lost"),
        }
        Ended {
            how: How::Lost,
            survivors: Vec::new(),
            survivor_count: 0,
            left: Vec::new(),
            bytes: 0,
            omitted: 0,
        }
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
