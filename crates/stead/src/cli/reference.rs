//! `stead reference`: the pages that the program writes about itself (`docs/commands.md`,
//! `docs/tools.md`). A check of the workspace compares them.

mod commands;
mod tools;

use clap::{Args, ValueEnum};

use crate::exit::{Done, Exit};
use crate::output::answer;

/// Print a generated page of the documentation
#[derive(Debug, Args)]
pub(crate) struct ReferenceArguments {
    /// Which page
    page: Page,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Page {
    Commands,
    Tools,
}

/// Prints the page.
pub(crate) fn reference(arguments: &ReferenceArguments) -> Done {
    answer(match arguments.page {
        Page::Commands => commands::page(),
        Page::Tools => tools::page(),
    })?;
    Ok(Exit::DONE)
}
