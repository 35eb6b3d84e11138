//! `stead serve`: the engine of a home, in the foreground; started by itself, it greets.

use std::io::Write as _;
use std::time::{Duration, Instant};

use clap::Args;
use stead_core::env;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_engine::{BUILD, Greeting, Options, find_running};
use stead_process::ProcessIdentity;
use tracing_subscriber::EnvFilter;

use super::program::{KEEPER, SPAWNER};
use crate::context::{Context, block_on, own_program};
use crate::exit::{Done, Exit};
use crate::output::say;

mod rotating;

/// How long an engine may take to end: its turns have 20 s.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serve this home in the foreground, or end the engine that serves it
///
/// Nothing needs it: every command starts an engine when none runs, and an engine that nobody needs
/// ends by itself. `STEAD_LOG` chooses what it logs, as in `STEAD_LOG=debug`.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// End the engine that serves this home: running turns are settled as interrupted
    #[arg(long, conflicts_with = "greet")]
    stop: bool,
    /// Say on standard output how it went, then log to a file
    #[arg(long, hide = true)]
    greet: bool,
}

/// Serves until told to stop, or tells the engine that serves to stop.
pub(crate) fn serve(arguments: &ServeArguments) -> Done {
    let context = Context::new()?;
    if arguments.stop {
        return stop(&context);
    }
    let greet = arguments.greet;
    let filter = filter(&context);
    if greet {
        let log = rotating::Log::new(context.home.logs().join("engine.log"));
        let log = std::sync::Mutex::new(log);
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(log).init();
    } else {
        let colours = crate::output::is_coloured();
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(colours)
            .with_writer(std::io::stderr)
            .init();
    }
    let program = own_program()?;
    let spawner = (program.clone(), vec![SPAWNER.into()]);
    let keeper = (program, vec![KEEPER.into()]);
    let Context { home, variables: environment, .. } = context;
    let options = Options { home, spawner, keeper, environment, build: BUILD.to_owned() };
    let served = stead_engine::serve(options, || {
        if greet {
            tell(&Greeting::Ready);
        }
    });
    match served {
        Err(refusal) if greet => {
            tracing::error!(why = %refusal.line, "the engine ends");
            let exit = Exit::of(refusal.kind);
            tell(&Greeting::Refused(refusal));
            Ok(exit)
        }
        Err(refusal) => Err(refusal.into()),
        Ok(()) => Ok(Exit::DONE),
    }
}

/// Greets whoever started this engine, who may be gone.
fn tell(greeting: &Greeting) {
    let Ok(mut line) = serde_json::to_vec(greeting) else { return };
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(&line).and_then(|()| out.flush());
}

fn filter(context: &Context) -> EnvFilter {
    let wanted = context.variables.get(std::ffi::OsStr::new(env::STEAD_LOG));
    let wanted = wanted.and_then(|value| value.to_str()).filter(|value| !value.is_empty());
    match wanted.map(EnvFilter::try_new) {
        Some(Ok(filter)) => filter,
        None => EnvFilter::new("info"),
        Some(Err(error)) => {
            say(format_args!("STEAD_LOG is no filter ({error}); `info` is used"));
            EnvFilter::new("info")
        }
    }
}

fn stop(context: &Context) -> Done {
    block_on(async {
        match end_engine(context).await? {
            None => say("no engine serves this home"),
            Some(pid) => say(format_args!("the engine, process {pid}, has ended")),
        }
        Ok(Exit::DONE)
    })
}

/// Ends the engine of the home and waits until its process is gone; gives its number, or none when
/// no engine serves the home.
pub(super) async fn end_engine(context: &Context) -> Result<Option<u32>, Refusal> {
    let Some(client) = find_running(&context.home).await else { return Ok(None) };
    // Its home is free only when the process is gone: it gives up the lock last.
    let process = ProcessIdentity::of(client.engine().await?.pid).ok();
    let engine = client.stop().await?;
    let deadline = Instant::now() + PATIENCE;
    let is_there = || process.as_ref().is_some_and(ProcessIdentity::is_alive);
    while client.is_listening().await || is_there() {
        if Instant::now() > deadline {
            return Err(Refusal::new(
                RefusalKind::Unavailable,
                format!("the engine, process {}, does not end", engine.pid),
            )
            .hint(format!("`kill {}` ends it; nothing that is stored is lost", engine.pid)));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(Some(engine.pid))
}
