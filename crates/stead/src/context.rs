//! What a verb needs of the world: the environment, the home, a way to the engine.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::path::PathBuf;

use stead_core::env;
use stead_core::id::{RequestId, SessionId};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_engine::api::{ClientEnvironment, FindParams};
use stead_engine::{BUILD, Client, CutShort, Home, Launch, finish_applies};

use crate::exit::{Failure, usage};
use crate::output::{say, say_refusal};
use crate::render;

/// The hidden option that makes `stead serve` say on standard output how it went.
pub(crate) const GREET: &str = "--greet";

/// The environment and the home of this call.
pub(crate) struct Context {
    /// All variables.
    pub(crate) variables: BTreeMap<OsString, OsString>,
    /// The home.
    pub(crate) home: Home,
    /// Applies that were cut short and that this call has led back or on.
    pub(crate) cut_short: Vec<CutShort>,
}

impl Context {
    /// Reads the environment, and makes whole what an apply that was cut short has left half-way:
    /// the first command of the person does, whatever it is (architecture, *Recovery*).
    pub(crate) fn new() -> Result<Self, Refusal> {
        let variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        let user = rustix::process::getuid().as_raw();
        let home = Home::derive(&variables, &std::env::temp_dir(), user)?;
        let mut context = Self { variables, home, cut_short: Vec::new() };
        // An agent's command never finishes an apply.
        if !context.variables.contains_key(OsStr::new(env::STEAD_AGENT)) {
            match finish_applies(&context.home) {
                Ok(finished) => context.cut_short = finished,
                Err(refusal) => say_refusal(&refusal),
            }
            context.cut_short.iter().for_each(|cut| say(render::cut_short(cut)));
        }
        Ok(context)
    }

    /// A client of the home's engine, which is started when it does not run.
    pub(crate) async fn connect(&self) -> Result<Client, Refusal> {
        let launch = Launch {
            program: own_program()?,
            arguments: vec!["serve".into(), GREET.into()],
            environment: self.variables.clone(),
            build: BUILD.to_owned(),
        };
        stead_engine::connect(&self.home, &launch).await
    }

    /// What of the environment goes with a request that can start a turn.
    pub(crate) fn for_commands(&self) -> ClientEnvironment {
        let all = self.variables.iter().map(|(name, value)| (name.clone(), value.clone()));
        stead_process::environment::scrubbed(all)
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    /// The session that a person means: a name, or the newest of this folder.
    pub(crate) async fn session(
        &self,
        client: &Client,
        name: Option<&str>,
    ) -> Result<SessionId, Refusal> {
        let directory = match name {
            Some(_) => None,
            None => Some(current_dir()?.into_os_string().into_string().map_err(|_| {
                usage("the name of this folder is not UTF-8").hint("`--session ID` names a session")
            })?),
        };
        client.find(&FindParams { name: name.map(str::to_owned), directory }).await
    }
}

/// This program, to start it once more.
pub(crate) fn own_program() -> Result<PathBuf, Refusal> {
    let current = std::env::current_exe().ok().filter(|program| program.exists());
    let called = || {
        // The file was replaced or removed since: how it was called may lead to its successor.
        let name = PathBuf::from(std::env::args_os().next()?);
        let found = if name.components().count() > 1 {
            std::path::absolute(&name).ok()?
        } else {
            on_path(&std::env::var_os("PATH")?, &name.to_string_lossy())?
        };
        found.exists().then_some(found)
    };
    current.or_else(called).ok_or_else(|| {
        Refusal::new(RefusalKind::Failed, "the program cannot find its own file")
            .hint("call it by its whole path")
    })
}

/// The first executable file of this name in the folders of `path`.
pub(crate) fn on_path(path: &std::ffi::OsStr, name: &str) -> Option<PathBuf> {
    std::env::split_paths(path).filter(|folder| folder.is_absolute()).map(|f| f.join(name)).find(
        |file| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok(),
    )
}

/// The folder in which the program was called.
pub(crate) fn current_dir() -> Result<PathBuf, Refusal> {
    std::env::current_dir().map_err(|error| {
        usage(format!("the current folder cannot be used: {error}"))
            .hint("change to a folder that exists")
    })
}

/// A new id for a request, and for the session that it may start.
pub(crate) fn new_request() -> Result<RequestId, Refusal> {
    RequestId::parse(&uuid::Uuid::now_v7().to_string())
        .map_err(|e| Refusal::new(RefusalKind::Failed, e.to_string()))
}

/// Runs what must wait for an engine, on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Refusal::new(RefusalKind::Failed, format!("no runtime: {e}")))?;
    let outcome = runtime.block_on(future);
    // A thread that waits for keys must not hold up the end.
    runtime.shutdown_background();
    outcome
}

/// Asks what can be asked twice without another effect. When the engine goes away underneath, it is
/// started again and asked once more.
pub(crate) async fn ask<T, F>(
    context: &Context,
    client: &mut Client,
    question: impl Fn(Client) -> F,
) -> Result<T, Refusal>
where
    F: Future<Output = Result<T, Refusal>>,
{
    match question(client.clone()).await {
        Err(refusal) if refusal.kind == RefusalKind::Unavailable => {
            *client = context.connect().await?;
            question(client.clone()).await
        }
        other => other,
    }
}

/// The same for what changes something: when no engine answers twice, its outcome is not known.
pub(crate) async fn send_safely<T, F>(
    context: &Context,
    client: &mut Client,
    request: impl Fn(Client) -> F,
) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Refusal>>,
{
    ask(context, client, request).await.map_err(|refusal| match refusal.kind {
        RefusalKind::Unavailable => Failure::Unknown(refusal),
        _ => Failure::Refused(refusal),
    })
}
