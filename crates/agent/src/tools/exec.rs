//! `exec` and `release`: bounded runs in the agent's place, and the end of what they left.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use stead_core::layout::AbsoluteDir;
use stead_core::permission::Deed;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_place::{
    Ask, Entered, ExecError, GRACE, Hold, Host, Identity, LONGEST_WAIT, Notice, Patience,
    ReleaseError, Released, Request, Started, Which, top_of,
};
use stead_process::{How, KeepError, Kept};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

use super::authority::display;
use super::bash::first_line;
use super::catalogue::ExecCall;
use super::launch::of_how;
use super::output::{LARGEST_OUTPUT, Output, piece};
use super::run::{Stopped, Tools, blocking};
use super::shells::LARGEST_LOG;
use crate::driver::Turn;

/// How long the end of a run is waited for that was told to end: its grace, then the kernel's time
/// for killing.
const PATIENCE: Duration = Duration::from_secs(15);

/// The shells that a command line is given to, the first that there is.
const SHELLS: [&str; 2] = ["bash", "sh"];

impl Tools {
    /// Runs a command line in the agent's place to its end. A cancelled turn stops the wait for
    /// room and ends the command, but not what earlier runs left.
    pub(super) async fn exec(&mut self, call: ExecCall) -> Result<Output, Stopped> {
        let subject = format!("run {}", first_line(&call.command));
        self.permit(Deed::Command(call.command.clone()), subject).await?;
        let (Started { hold, run, kept }, said) = self.begin(&call).await?;
        let supervisor = kept.supervisor.pid;
        let how = self.until_ended(kept).await?;
        let host = self.turn.exec.host.clone();
        let answer = blocking(move || {
            let left = left(&host, &hold, supervisor);
            Ok(answer(how, &call, &hold, &left, &run.log(), said))
        });
        Ok(answer.await?)
    }

    /// Takes room and starts the command; gives what is to be said of that.
    async fn begin(&self, call: &ExecCall) -> Result<(Started, Vec<String>), Stopped> {
        let (turn, call) = (self.turn.clone(), call.clone());
        let cancelled = Arc::new(AtomicBool::new(false));
        let flag = cancelled.clone();
        let mut work = std::pin::pin!(blocking(move || start(&turn, &call, &flag)));
        let cancel = &self.turn.cancel;
        let Some(began) = cancel.run_until_cancelled(&mut work).await else {
            // It is waited for all the same: it may just have got its room.
            cancelled.store(true, Ordering::Relaxed);
            if let Ok((started, _)) = work.await {
                end(started.kept).await;
            }
            return Err(Stopped::Cancelled);
        };
        Ok(began?)
    }

    async fn until_ended(&self, kept: Kept) -> Result<How, Stopped> {
        let failed = |error: io::Error| {
            let line = format!("the run goes on, but cannot be watched: {error}");
            Refusal::new(RefusalKind::Failed, line).hint("release ends it")
        };
        let mut kept = watch(kept).map_err(failed)?;
        if let Some(how) = self.turn.cancel.run_until_cancelled(ended(&mut kept)).await {
            return Ok(how.map_err(failed)?);
        }
        end(kept.into_inner().0).await;
        Err(Stopped::Cancelled)
    }

    /// Releases the agent's own place.
    pub(super) async fn release(&mut self) -> Result<Output, Stopped> {
        let turn = self.turn.clone();
        let released = blocking(move || {
            let place = place(&turn)?;
            let which = Which::At(place.as_path().to_owned());
            turn.exec.host.release(&which).map_err(|error| unreleased(&error))
        })
        .await?;
        let failed = released.iter().any(|one| !one.left.is_empty());
        let structured = json!({ "released": released.iter().map(as_data).collect::<Vec<_>>() });
        let lines: Vec<String> = released.iter().map(told).collect();
        let text =
            if lines.is_empty() { "your place holds nothing".to_owned() } else { lines.join("\n") };
        Ok(Output { text, structured, failed })
    }
}

/// The top of the copy in which the agent works; in place, that of its worktree.
fn place(turn: &Turn) -> Result<AbsoluteDir, Refusal> {
    let directory = turn.situation.directory.as_path();
    let gone = |why: String| Refusal::new(RefusalKind::Failed, format!("nothing was done: {why}"));
    // The path may lead elsewhere since the turn began.
    match directory.canonicalize() {
        Ok(now) if now == directory => {}
        Ok(now) => {
            let (directory, now) = (display(directory), display(&now));
            return Err(gone(format!("your directory {directory} leads to {now} now")));
        }
        Err(error) => {
            return Err(gone(format!("your directory {}: {error}", display(directory))));
        }
    }
    if !turn.situation.originals.is_empty() {
        let mut roots = turn.situation.roots.iter().map(|root| &root.directory);
        if let Some(copy) = roots.find(|copy| directory.starts_with(copy.as_path())) {
            return Ok(copy.clone());
        }
    }
    top_of(directory).map_err(|error| gone(error.to_string()))
}

fn start(
    turn: &Turn,
    call: &ExecCall,
    cancelled: &AtomicBool,
) -> Result<(Started, Vec<String>), Refusal> {
    let place = place(turn)?;
    let mut said = Vec::new();
    for shell in SHELLS {
        match start_with(shell, turn, &place, call, cancelled, &mut said) {
            Err(ExecError::Start(KeepError::NotFound(_))) => {}
            Err(error) => return Err(refusal(&error)),
            Ok(started) => return Ok((started, said)),
        }
    }
    Err(Refusal::new(RefusalKind::Failed, "there is neither bash nor sh to run a command line"))
}

fn start_with(
    shell: &str,
    turn: &Turn,
    place: &AbsoluteDir,
    call: &ExecCall,
    cancelled: &AtomicBool,
    said: &mut Vec<String>,
) -> Result<Started, ExecError> {
    let exec = &turn.exec;
    let ask = Ask {
        bound: exec.bound,
        patience: if call.waits { Patience::Wait(LONGEST_WAIT) } else { Patience::Refuse },
        command: &first_line(&call.command),
        session: Some(turn.agent.clone()),
        cancel: Some(cancelled),
    };
    let room = match exec.host.enter(place, &ask, &mut |notice| hear(&notice, said))? {
        Entered::Room(room) => *room,
        // The engine itself was started by a run of this place, whose room is not its own.
        Entered::Enclosed { .. } => return Err(ExecError::OwnRoom(Vec::new())),
    };
    for stranger in exec.host.strangers(&room.hold)? {
        said.push(format!("{stranger} is not of your place, whose port it is"));
    }
    let (keeper, arguments) = &exec.keeper;
    let arguments: Vec<&OsStr> = arguments.iter().map(AsRef::as_ref).collect();
    let request = Request {
        program: shell.into(),
        arguments: vec!["-c".into(), call.command.clone().into()],
        client: &exec.client,
        identity: Some(Identity {
            agent: &turn.agent,
            path: &turn.situation.path,
            socket: &exec.socket,
        }),
        directory: turn.situation.directory.as_path().to_owned(),
        time_limit: call.limit,
        grace: GRACE,
    };
    room.start_by(keeper, &arguments, request, LARGEST_LOG)
}

/// Remembers what the agent is told with the result. Of a wait that goes on the last word counts.
fn hear(notice: &Notice<'_>, said: &mut Vec<String>) {
    match notice {
        Notice::Waiting { holders, waited, .. } => {
            said.retain(|line| !line.starts_with(WAITED));
            let holders: Vec<String> = holders.iter().map(ToString::to_string).collect();
            let by =
                if holders.is_empty() { "others before it".into() } else { holders.join("; ") };
            let long = match waited.as_secs() {
                0 => String::new(),
                seconds => format!(", {seconds} s and more"),
            };
            said.push(format!("{WAITED}{long}; it was held by {by}"));
        }
        Notice::Stale(hold) => said.push(format!(
            "another folder was at this path and still holds ports {}-{} as place {}",
            hold.ports.first(),
            hold.ports.last(),
            hold.id
        )),
        Notice::SetAside(_) => {}
    }
}

/// How the line begins that says that there was no room at once.
const WAITED: &str = "it had to wait for room";

struct Watched(Kept);

impl AsRawFd for Watched {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

#[expect(deprecated, reason = "its replacement is unsafe; a Kept owns its descriptor and keeps it")]
fn watch(kept: Kept) -> io::Result<AsyncFd<Watched>> {
    AsyncFd::with_interest(Watched(kept), Interest::READABLE)
}

/// Waits for the end of the command. Dropping the future loses nothing.
async fn ended(kept: &mut AsyncFd<Watched>) -> io::Result<How> {
    loop {
        let mut ready = kept.readable_mut().await?;
        match ready.get_inner().0.ended(Some(Duration::ZERO))? {
            Some(how) => return Ok(how),
            None => ready.clear_ready(),
        }
    }
}

/// Ends a command and waits until it has ended.
async fn end(kept: Kept) {
    if let Err(error) = kept.stop(rustix::process::Signal::TERM) {
        tracing::warn!(%error, "a run cannot be told to stop");
    }
    let keeper = kept.keeper.pid;
    let Ok(mut kept) = watch(kept) else { return };
    if timeout(GRACE + PATIENCE, ended(&mut kept)).await.is_err() {
        tracing::warn!(keeper, "a run cannot be ended");
    }
}

/// What all runs of the place have left running; the supervisor of the last may be on its way out.
fn left(host: &Host, hold: &Hold, supervisor: u32) -> Vec<(u32, String)> {
    let listed = host.list().unwrap_or_default().into_iter().find(|listed| listed.id == hold.id);
    let mut left = listed.map(|listed| listed.left).unwrap_or_default();
    left.retain(|(pid, _)| *pid != supervisor);
    left
}

/// What the agent is told of a run that has ended; `said` is what was to be said before.
fn answer(
    how: How,
    call: &ExecCall,
    hold: &Hold,
    left: &[(u32, String)],
    log: &Path,
    said: Vec<String>,
) -> Output {
    let (first, last) = (hold.ports.first(), hold.ports.last());
    let ports = format!("ports of your place: {first}-{last}, STEAD_PORT is the first");
    let mut lines = vec![status(how, call.limit)];
    lines.extend(said);
    lines.extend([ports, running(left)]);
    // What the command did must not get lost because its output cannot be read.
    let (text, omitted) = match piece(log, 0, LARGEST_OUTPUT, false, 0) {
        Ok(piece) => (piece.text, piece.omitted),
        Err(error) => (format!("[stead: cannot read {}: {error}]", display(log)), 0),
    };
    if !text.is_empty() {
        lines.extend([String::new(), text]);
    }
    let running = left.iter().map(|(pid, name)| json!({ "pid": pid, "name": name }));
    let structured = json!({
        "exit_status": if let How::Exited(code) = how { Some(code) } else { None },
        "signal": if let How::Signalled(signal) = how { Some(signal) } else { None },
        "timed_out": how == How::TimedOut,
        "place": display(hold.directory.as_path()),
        "first_port": first,
        "last_port": last,
        "running": running.collect::<Vec<_>>(),
        "omitted": omitted,
        "log": display(log),
    });
    Output { text: lines.join("\n"), structured, failed: how != How::Exited(0) }
}

fn status(how: How, limit: Duration) -> String {
    match how {
        How::TimedOut => {
            format!("{}; its limit was {limit:?}, time_limit_ms sets it", of_how(how))
        }
        how => of_how(how),
    }
}

fn running(left: &[(u32, String)]) -> String {
    if left.is_empty() {
        return "nothing is left running in your place".to_owned();
    }
    let names: Vec<_> = left.iter().map(|(pid, name)| format!("{name} ({pid})")).collect();
    format!("left running in your place, until release: {}", names.join(", "))
}

fn refusal(error: &ExecError) -> Refusal {
    let (kind, hint) = match error {
        ExecError::NoRoom(_) => (RefusalKind::NoRoom, "without `no_wait` it waits its turn"),
        ExecError::GaveUp { .. } | ExecError::Cancelled => (RefusalKind::NoRoom, "try again later"),
        ExecError::OwnRoom(_) => (
            RefusalKind::NoRoom,
            "the engine itself was started inside a run; the person ends it with `stead serve \
             --stop` and calls stead outside of that run",
        ),
        ExecError::NoPorts(_) => (
            RefusalKind::NoRoom,
            "release what you hold; the person frees more with `stead places`",
        ),
        ExecError::Releasing { .. } => (RefusalKind::WrongState, "try again in a moment"),
        ExecError::AllReserved { .. } => (
            RefusalKind::InvalidArgument,
            "the person makes `[runs] reserved` smaller than `[runs] bound`; use bash meanwhile",
        ),
        ExecError::NoPlace(_) | ExecError::Start(_) | ExecError::Host(_) => {
            (RefusalKind::Failed, "tell the person: `stead doctor` and `stead places` look")
        }
    };
    Refusal::new(kind, format!("the command was not started: {error}")).hint(hint)
}

fn unreleased(error: &ReleaseError) -> Refusal {
    let kind = match error {
        ReleaseError::FromWithin(_) | ReleaseError::Busy { .. } => RefusalKind::WrongState,
        ReleaseError::Unknown(_) => RefusalKind::NotFound,
        ReleaseError::Host(_) => RefusalKind::Storage,
    };
    Refusal::new(kind, error.to_string()).hint("the person can call `stead release`")
}

fn told(released: &Released) -> String {
    let Released { hold, interrupted, ended, left } = released;
    let ports = format!("ports {}-{}", hold.ports.first(), hold.ports.last());
    let line = match interrupted {
        0 => format!("ended {ended} processes"),
        runs => format!("ended {ended} processes, {runs} runs among them that were not through"),
    };
    if left.is_empty() {
        return format!("{line}; {ports} and the scratch folder are given back");
    }
    let left: Vec<String> = left.iter().map(ToString::to_string).collect();
    format!("{line}; {ports} stay held: {}", left.join("; "))
}

fn as_data(released: &Released) -> Value {
    json!({
        "place": display(released.hold.directory.as_path()),
        "ended": released.ended,
        "interrupted": released.interrupted,
        "left": released.left.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
