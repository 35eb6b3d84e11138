//! `stead demo`: the whole story on a small real project, in a home of its own.

mod checks;
mod key;
mod project;
mod stage;
mod story;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use stead_core::refusal::Refusal;
use tokio::signal::unix::{SignalKind, signal};

use crate::context::block_on;
use crate::exit::{Done, Exit, Failure, usage};
use crate::output::{is_interactive, say, say_refusal, style, styled};
use stage::Stage;

/// See the whole story on a small real project: repair, review, apply
///
/// Needs cargo and git, and neither a model nor an account nor the network. In a temporary folder with
/// a home of its own: a small project is written whose tests fail; two agents repair a library and a
/// service at the same time, each in a private copy, and run checks and servers there on ports of their
/// own; /root merges both, a third agent reviews; you see what would be applied and say yes or no; then
/// the tests of the original are run. The agents follow a playbook, everything that they do is real.
///
/// Exits with 0 only when all of that really happened and was looked at, with 1 when you say no. The
/// question needs a terminal or --yes: without both nothing is begun, and it exits with 2. Leaves
/// nothing behind, neither files nor processes nor ports, also after Ctrl-C and when something fails.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Do it all in this folder, which must be new or empty, and keep it to look around in
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Apply what was reviewed without asking
    #[arg(long)]
    yes: bool,
}

/// Tells the story, and clears away what it left.
pub(crate) fn demo(arguments: &DemoArguments) -> Done {
    if !arguments.yes && !is_interactive() {
        return Err(usage("the demo asks one question, and nobody can answer it here")
            .hint("`stead demo --yes` applies what was reviewed without asking")
            .into());
    }
    block_on(async {
        let mut ending = Ending::new()?;
        // Before anything is written.
        let tools = checks::Tools::find()?;
        let stage = Arc::new(Stage::new(arguments.keep.as_deref())?);
        let told = tokio::select! {
            told = story::tell(stage.clone(), tools, arguments.yes) => told,
            exit = ending.wait() => Ok(exit),
        };
        if let Ok(exit) = &told
            && exit.0 >= 128
        {
            say("\ninterrupted: ending what was begun");
        }
        let cleared = stage::clear(&stage).await;
        finish(&stage, told, cleared)
    })
}

/// The exit status, once it is known what was left behind.
fn finish(stage: &Stage, told: Done, cleared: Result<(), Refusal>) -> Done {
    match &cleared {
        Ok(()) => stage.tell_end(told.is_err()),
        // The first error is the one to tell at last.
        Err(refusal) if told.is_err() => say_refusal(refusal),
        Err(_) => {}
    }
    match (told, cleared) {
        (Ok(Exit::DONE), Ok(())) => {
            say(styled(style::GOOD.bold(), "All of it really happened."));
            Ok(Exit::DONE)
        }
        (Ok(Exit::DONE), Err(refusal)) => Err(Failure::Refused(refusal)),
        (told, _) => told,
    }
}

/// The signals that end the demo.
struct Ending {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

impl Ending {
    fn new() -> Result<Self, Failure> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn wait(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::INTERRUPTED,
            _ = self.terminate.recv() => Exit::TERMINATED,
            _ = self.hangup.recv() => Exit(129),
        }
    }
}
