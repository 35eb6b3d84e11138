//! Finding the engine of a home, or starting it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use stead_core::env;
use stead_core::id::SessionId;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_process::start_detached;

use crate::api::PROTOCOL;
use crate::client::Client;
use crate::home::Home;

/// How long a client waits for an engine to be there, or to be gone.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it waits between two looks.
const LOOK: Duration = Duration::from_millis(5);

/// How to start an engine.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments: those that make it serve and say on standard output how that went.
    pub arguments: Vec<OsString>,
    /// The client's environment; the engine gets the part that names its folders.
    pub environment: BTreeMap<OsString, OsString>,
    /// The build of the client.
    pub build: String,
}

/// What a starting engine says on its standard output: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Greeting {
    /// It listens.
    Ready,
    /// It does not, because.
    Refused(Refusal),
}

/// The engine of this home if it runs, whatever its build.
///
/// Terminals may disagree about the runtime folder, and so about the socket: where the engine says
/// that it listens counts first.
pub async fn find_running(home: &Home) -> Option<Client> {
    let told = read_record(home).filter(|r| r.process.is_alive()).map(|r| r.socket);
    for socket in told.into_iter().chain(home.socket().ok()) {
        let client = Client::new(socket);
        if client.is_listening().await {
            return Some(client);
        }
    }
    None
}

/// A client of this home's engine, which is started when it does not run. An engine of another
/// build is replaced when it is idle, and named when it is busy.
///
/// A process that an agent started has a socket of its own (`STEAD_SOCKET`), on which it is that
/// agent; it goes there and starts nothing.
pub async fn connect(home: &Home, launch: &Launch) -> Result<Client, Refusal> {
    if let Some(socket) = launch.environment.get(OsStr::new(env::STEAD_SOCKET)) {
        return inside(Client::new(socket), &launch.build).await;
    }
    let deadline = Instant::now() + PATIENCE;
    let mut started = false;
    loop {
        if let Some(client) = find_running(home).await {
            match client.engine().await {
                Ok(engine) if engine.protocol == PROTOCOL && engine.build == launch.build => {
                    return Ok(client);
                }
                Ok(engine) if started => {
                    return Err(Refusal::new(
                        RefusalKind::Unavailable,
                        format!(
                            "{} is another program than this one by now (build {}, not {})",
                            launch.program.display(),
                            engine.build,
                            launch.build
                        ),
                    )
                    .hint("the same command again uses the new one"));
                }
                Ok(engine) if engine.busy.is_empty() => {
                    // Another client may have stopped it first.
                    let _ = client.stop().await;
                    wait_gone(&client, engine.pid, deadline).await?;
                }
                Ok(engine) => {
                    let sessions: Vec<&str> = engine.busy.iter().map(SessionId::as_str).collect();
                    return Err(Refusal::new(
                        RefusalKind::Unavailable,
                        format!(
                            "an engine of another build (stead {}, build {}, process {}) is at \
                             work on {}",
                            engine.version,
                            engine.build,
                            engine.pid,
                            sessions.join(", ")
                        ),
                    )
                    .hint(
                        "wait until it is idle: it is replaced by itself then; or end it with \
                         `stead serve --stop`, which settles what runs as interrupted",
                    ));
                }
                // It was about to end.
                Err(refusal) if Instant::now() > deadline => return Err(refusal),
                Err(_) => tokio::time::sleep(LOOK).await,
            }
            continue;
        }
        match start(launch).await? {
            Greeting::Ready => started = true,
            // Another client's engine was faster: it will be found.
            Greeting::Refused(refusal)
                if refusal.kind == RefusalKind::Unavailable && Instant::now() < deadline =>
            {
                tokio::time::sleep(LOOK).await;
            }
            Greeting::Refused(refusal) => return Err(refusal),
        }
    }
}

async fn inside(client: Client, build: &str) -> Result<Client, Refusal> {
    let engine = client.engine().await?;
    if engine.protocol == PROTOCOL && engine.build == build {
        return Ok(client);
    }
    Err(Refusal::new(
        RefusalKind::Unavailable,
        format!(
            "the engine that runs this agent (stead {}, build {}) is not of this program's build",
            engine.version, engine.build
        ),
    )
    .hint("call the program that runs it"))
}

async fn wait_gone(client: &Client, pid: u32, deadline: Instant) -> Result<(), Refusal> {
    while client.is_listening().await {
        if Instant::now() > deadline {
            return Err(Refusal::new(
                RefusalKind::Unavailable,
                format!("the engine of another build, process {pid}, does not end"),
            )
            .hint(format!("`kill {pid}` ends it; nothing is lost")));
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Starts an engine and waits for its greeting.
async fn start(launch: &Launch) -> Result<Greeting, Refusal> {
    let failed = |e: &dyn std::fmt::Display| {
        Refusal::new(RefusalKind::Unavailable, format!("the engine cannot be started: {e}"))
            .hint("`stead serve` in a terminal shows why; `stead doctor` looks at the home")
    };
    let arguments: Vec<&OsStr> = launch.arguments.iter().map(OsString::as_os_str).collect();
    let mut output = start_detached(&launch.program, &arguments, &clean(&launch.environment))
        .map_err(|e| failed(&e))?;
    let line = tokio::task::spawn_blocking(move || {
        let mut line = Vec::new();
        let mut byte = [0_u8; 1];
        while output.read(&mut byte)? == 1 && byte != *b"\n" {
            line.extend(byte);
        }
        Ok::<_, std::io::Error>(line)
    })
    .await
    .map_err(|e| failed(&e))?
    .map_err(|e| failed(&e))?;
    if line.is_empty() {
        return Err(failed(&"it ended without a word"));
    }
    serde_json::from_slice(&line).map_err(|e| failed(&e))
}

/// What an engine needs of the environment: where its folders are, and nothing else. What agents'
/// commands get comes with each request.
fn clean(environment: &BTreeMap<OsString, OsString>) -> BTreeMap<OsString, OsString> {
    let kept = [
        env::STEAD_HOME,
        env::STEAD_LOG,
        env::XDG_DATA_HOME,
        env::XDG_CONFIG_HOME,
        env::XDG_STATE_HOME,
        env::XDG_RUNTIME_DIR,
        env::HOME,
        "PATH",
        "TMPDIR",
        "LANG",
        "LC_ALL",
        "TZ",
        env::STEAD_STEPS,
    ];
    environment
        .iter()
        .filter(|(name, _)| kept.iter().any(|k| name.as_os_str() == OsStr::new(k)))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Whether the file at `path` says that an engine serves the home; for `stead doctor`.
pub fn read_record(home: &Home) -> Option<crate::serve::EngineRecord> {
    serde_json::from_slice(&stead_files::read_file(&home.engine_record()).ok()?).ok()
}
