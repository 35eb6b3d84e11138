//! The program as a whole: its verbs, and how a call ends.

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use super::{
    completions, demo, doctor, exec, gc, log, mode, paths, permit, places, reference, release,
    roots, run as running, send, serve, sessions, stop, task, tree, welcome,
};
use crate::exit::{Done, Failure, TABLE};
use crate::output::{say, say_refusal};

/// The hidden first argument that makes this process the engine's spawner; it never reaches clap.
pub(crate) const SPAWNER: &str = "spawner";

/// The hidden verb that makes this process the keeper of one run.
pub(crate) const KEEPER: &str = "keep";

/// Run a team of coding agents on your own machine.
///
/// Every agent has an address, such as /root/fix-parser, and a conversation that survives whatever
/// is killed. `stead` alone says how to begin.
#[derive(Debug, Parser)]
#[command(name = "stead", version, max_term_width = 100, after_help = statuses())]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Demo(demo::DemoArguments),
    Run(running::RunArguments),
    Tree(tree::TreeArguments),
    Log(log::LogArguments),
    Send(send::SendArguments),
    Stop(stop::StopArguments),
    Sessions(sessions::SessionsArguments),
    Task(task::TaskArguments),
    Roots(roots::RootsArguments),
    Permit(permit::PermitArguments),
    Mode(mode::ModeArguments),
    Exec(exec::ExecArguments),
    Release(release::ReleaseArguments),
    Places(places::PlacesArguments),
    Serve(serve::ServeArguments),
    Doctor(doctor::DoctorArguments),
    Gc(gc::GcArguments),
    Paths(paths::PathsArguments),
    Completions(completions::CompletionsArguments),
    #[command(hide = true)]
    Keep(exec::KeepArguments),
    #[command(hide = true)]
    Reference(reference::ReferenceArguments),
}

/// Which session a command is about.
#[derive(Debug, Args)]
pub(crate) struct Chosen {
    /// The session: an id, the beginning of one, or a label; left out, the newest of this folder
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

/// Whether programs read the answer.
#[derive(Debug, Args)]
pub(crate) struct Json {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses the arguments, does what they say and tells why not.
pub(crate) fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers, everything else is a complaint; both know their stream.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match dispatch(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            match &failure {
                Failure::Refused(refusal) => say_refusal(refusal),
                Failure::Unknown(refusal) => {
                    say_refusal(refusal);
                    say("whether it was stored is not known: look with `stead log`");
                }
                Failure::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
                Failure::Output(error) => say(format_args!("stead: cannot write: {error}")),
            }
            failure.exit().into()
        }
    }
}

fn dispatch(cli: Cli) -> Done {
    match cli.verb {
        None => welcome::welcome(),
        Some(Verb::Demo(arguments)) => demo::demo(&arguments),
        Some(Verb::Run(arguments)) => running::run(arguments),
        Some(Verb::Tree(arguments)) => tree::tree(&arguments),
        Some(Verb::Log(arguments)) => log::log(&arguments),
        Some(Verb::Send(arguments)) => send::send(&arguments),
        Some(Verb::Stop(arguments)) => stop::stop(&arguments),
        Some(Verb::Sessions(arguments)) => sessions::sessions(&arguments),
        Some(Verb::Task(arguments)) => task::task(&arguments),
        Some(Verb::Roots(arguments)) => roots::roots(&arguments),
        Some(Verb::Permit(arguments)) => permit::permit(&arguments),
        Some(Verb::Mode(arguments)) => mode::mode(&arguments),
        Some(Verb::Exec(arguments)) => exec::exec(&arguments),
        Some(Verb::Release(arguments)) => release::release(&arguments),
        Some(Verb::Places(arguments)) => places::places(&arguments),
        Some(Verb::Keep(arguments)) => Ok(exec::keep(&arguments)),
        Some(Verb::Serve(arguments)) => serve::serve(&arguments),
        Some(Verb::Doctor(arguments)) => doctor::doctor(&arguments),
        Some(Verb::Gc(arguments)) => gc::gc(&arguments),
        Some(Verb::Paths(arguments)) => paths::paths(&arguments),
        Some(Verb::Completions(arguments)) => completions::completions(&arguments),
        Some(Verb::Reference(arguments)) => reference::reference(&arguments),
    }
}

fn statuses() -> String {
    let mut text = "Exit statuses:\n".to_owned();
    for (status, meaning) in TABLE {
        text.push_str(&format!("  {status:<6} {meaning}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_declaration_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_names_every_verb_and_every_status() {
        insta::assert_snapshot!(Cli::command().term_width(100).render_help());
    }
}
