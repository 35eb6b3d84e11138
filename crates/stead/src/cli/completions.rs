//! `stead completions`: what a shell needs to complete stead's commands.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::program::Cli;
use crate::exit::{Done, Exit};
use crate::output::answer;

/// Print completions for a shell
///
/// For bash: `stead completions bash > ~/.local/share/bash-completion/completions/stead`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(crate) fn completions(arguments: &CompletionsArguments) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "stead", &mut script);
    answer(String::from_utf8_lossy(&script))?;
    Ok(Exit::DONE)
}
