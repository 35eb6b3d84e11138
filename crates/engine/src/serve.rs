//! The life of an engine: take the home, recover, listen, end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stead_core::bound::Bound;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::settings::Settings;
use stead_files::{Lock, holder, is_network_file_system, private_dir, replace};
use stead_process::{ProcessIdentity, Spawners};
use stead_store::Store;
use tokio::signal::unix::{SignalKind, signal};

use crate::door::Doors;
use crate::drivers::Drivers;
use crate::engine::Engine;
use crate::home::Home;
use crate::launch::read_record;
use crate::presence::{FrontDoor, Served};
use crate::registry::Registry;
use crate::session::{Shared, check_hooks};
use crate::unrecorded::Unrecorded;

/// How long an engine that nobody uses stays.
const IDLE: Duration = Duration::from_mins(10);
/// How long a new engine waits for the commands of one that died: longer than they are given to
/// end.
const LINGER: Duration = Duration::from_secs(30);
/// How often an engine looks whether it is still needed.
const LOOK: Duration = Duration::from_secs(2);

/// What it takes to serve a home.
pub struct Options {
    /// The home.
    pub home: Home,
    /// The program and arguments that become the spawner process.
    pub spawner: (PathBuf, Vec<OsString>),
    /// The program and arguments that become the keeper of one run.
    pub keeper: (PathBuf, Vec<OsString>),
    /// The engine's own environment, in which Git is found and called; agents' commands get none
    /// of it.
    pub environment: BTreeMap<OsString, OsString>,
    /// The build of the program, as clients compare it.
    pub build: String,
}

/// Who serves a home, as `engine.json` has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineRecord {
    /// Where it listens.
    pub socket: PathBuf,
    /// Its process.
    pub process: ProcessIdentity,
    /// The program's version.
    pub version: String,
    /// The program's build.
    pub build: String,
}

/// Serves a home until it is told to stop or nothing needs it. Calls `ready` once it listens.
///
/// Refuses, changing nothing, when another engine serves the home, when the home cannot be written
/// or is on a network file system, and when a newer program wrote it.
pub fn serve(options: Options, ready: impl FnOnce()) -> Result<(), Refusal> {
    let Options { home, spawner, keeper, environment, build } = options;
    let lock = take(&home)?;
    let store = Store::open(home.data()).map_err(|e| e.refusal())?;
    let settings = read_settings(&home)?;
    check_hooks(&settings.hooks)?;
    let socket = home.socket()?;
    let served = Served::now(home.database()).map_err(|e| storage(e.to_string()))?;
    private_dir(home.runtime()).map_err(|e| storage(e.to_string()))?;
    private_dir(&home.logs()).map_err(|e| storage(e.to_string()))?;
    let runs = Arc::new(await_runs(&home)?);
    end_abandoned(&home);
    let (program, arguments) = spawner;
    let spawners = Spawners::start(program, arguments).map_err(|e| failed(e.to_string()))?;
    let record = EngineRecord {
        socket: socket.clone(),
        process: ProcessIdentity::of_self().map_err(|e| failed(e.to_string()))?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: build.clone(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| failed(e.to_string()))?;
    let shared = Arc::new(Shared {
        copies: stead_copies::Home::new(home.data()),
        home: home.clone(),
        served,
        store,
        spawners: Arc::new(spawners),
        runs,
        host: home.places(),
        bound: bound_here(&settings),
        keeper,
        environment,
        rules: settings.permissions.rules(),
        settings,
        registry: Registry::new(home.roots()),
        drivers: Drivers::default(),
        doors: Doors::default(),
        unrecorded: Unrecorded::default(),
        keeping: Arc::default(),
    });
    runtime.block_on(live(shared, &record, ready))?;
    // A turn that would not end in time is left to recovery, not waited for.
    runtime.shutdown_timeout(Duration::from_secs(1));
    // The engine of a home that took this one's place may have written its own by now.
    if read_record(&home).is_some_and(|now| now == record) {
        let _ = fs::remove_file(home.engine_record());
    }
    drop(lock);
    Ok(())
}

async fn live(
    shared: Arc<Shared>,
    record: &EngineRecord,
    ready: impl FnOnce(),
) -> Result<(), Refusal> {
    let home = shared.home.clone();
    let engine = Engine::new(shared, record.build.clone());
    engine.recover().await?;
    let mut door = FrontDoor::open(engine.clone(), &record.socket)
        .map_err(|e| failed(format!("the socket {}: {e}", record.socket.display())))?;
    let text = serde_json::to_vec_pretty(record).map_err(|e| failed(e.to_string()))?;
    replace(&home.engine_record(), &text, Some(0o600)).map_err(|e| storage(e.to_string()))?;
    tracing::info!(socket = %record.socket.display(), pid = record.process.pid, "serving");
    ready();
    let reason = until_end(&engine, &mut door, &record.socket).await?;
    tracing::info!(reason, "ending");
    engine.end_turns(reason).await;
    drop(door);
    Ok(())
}

/// Waits for a reason to end, and gives it.
async fn until_end(
    engine: &Arc<Engine>,
    door: &mut FrontDoor,
    socket: &Path,
) -> Result<&'static str, Refusal> {
    let handler = |kind| signal(kind).map_err(|e| failed(e.to_string()));
    let mut terminate = handler(SignalKind::terminate())?;
    let mut interrupt = handler(SignalKind::interrupt())?;
    let mut stop = engine.stop.subscribe();
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok("the engine was stopped"),
            _ = interrupt.recv() => return Ok("the engine was stopped"),
            _ = stop.changed() => return Ok("the engine was stopped"),
            _ = look.tick() => {
                engine.forget_closed().await;
                // There is nothing left to serve.
                if !engine.shared.served.is_there() {
                    return Ok("the home was removed");
                }
                if !door.is_there() {
                    if engine.busy().await.is_empty() {
                        return Ok("the socket was removed");
                    }
                    // The runtime folder goes when its user logs out. The work goes on, and is
                    // found again once the folder can be there again.
                    match FrontDoor::open(engine.clone(), socket) {
                        Ok(new) => *door = new,
                        Err(error) => tracing::debug!(%error, "nobody can reach this engine"),
                    }
                }
                if engine.unused() > IDLE
                    && !engine.is_watched().await
                    && engine.busy().await.is_empty()
                {
                    return Ok("nobody needs the engine");
                }
            }
        }
    }
}

/// Makes the home and takes its lock.
fn take(home: &Home) -> Result<Lock, Refusal> {
    private_dir(home.data()).map_err(|e| {
        storage(format!("the home {} cannot be used: {e}", home.data().display()))
            .hint("STEAD_HOME names another folder")
    })?;
    if is_network_file_system(home.data()).unwrap_or(false) {
        return Err(storage(format!(
            "the home {} is on a network file system, where locks cannot be trusted",
            home.data().display()
        ))
        .hint("set STEAD_HOME to a folder on a disk of this machine"));
    }
    let path = home.engine_lock();
    match Lock::try_exclusive(&path, "serves this home") {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => {
            let by = holder(&path)
                .ok()
                .flatten()
                .map_or_else(|| "another engine".to_owned(), |h| h.to_string());
            Err(Refusal::new(
                RefusalKind::Unavailable,
                format!("the home {} is served by {by}", home.data().display()),
            )
            .hint("nothing has to be done: every command finds it by itself"))
        }
        Err(error) => Err(storage(error.to_string())
            .hint("`stead doctor` looks at the home; STEAD_HOME names another folder")),
    }
}

/// Waits until no command of an engine that died runs any more (recovery, step 1): their
/// supervisors end them when it dies, and each holds this lock until it has.
fn await_runs(home: &Home) -> Result<Lock, Refusal> {
    let path = home.runs_lock();
    Lock::exclusive_within(&path, "runs of agents", LINGER)
        .map_err(|e| storage(e.to_string()))?
        .ok_or_else(|| {
            Refusal::new(
                RefusalKind::Unavailable,
                format!("a command of an engine that died has not ended within {LINGER:?}"),
            )
            .hint("try again in a moment; nothing is settled while it may still act")
        })
}

/// Ends what `exec` was running for turns of an engine that died: they are about to be settled. A
/// host whose facts cannot be read keeps no engine from serving.
fn end_abandoned(home: &Home) {
    match home.places().end_abandoned() {
        Ok(left) if left.is_empty() => {}
        Ok(left) => tracing::error!(?left, "runs of an engine that died cannot be ended"),
        Err(error) => tracing::error!(%error, "runs of an engine that died are not looked for"),
    }
}

/// The person's settings; a missing file is an empty one.
pub fn read_settings(home: &Home) -> Result<Settings, Refusal> {
    let path = home.settings();
    let text = match stead_files::open_file(&path).and_then(std::io::read_to_string) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(format!("the settings {}: {error}", path.display()))),
    };
    Settings::parse(&text).map_err(|e| {
        Refusal::new(RefusalKind::InvalidArgument, format!("the settings {}: {e}", path.display()))
            .hint("mend the file; stead never writes it")
    })
}

/// The bound of this host, as the person set it.
pub fn bound_here(settings: &Settings) -> Bound {
    settings.runs.on(std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

fn storage(line: String) -> Refusal {
    Refusal::new(RefusalKind::Storage, line)
}

fn failed(line: String) -> Refusal {
    Refusal::new(RefusalKind::Failed, line)
}
