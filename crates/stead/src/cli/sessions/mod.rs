//! `stead sessions`: root sessions.

mod list;
mod show;

use clap::{Args, Subcommand};

use super::program::Json;
use crate::exit::Done;

/// List sessions, or show one
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SessionsArguments {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    json: Json,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List all sessions, the newest first
    List {
        #[command(flatten)]
        json: Json,
    },
    /// Show one session: its folders, its agents, and the last result of /root in full
    Show {
        /// An id, the beginning of one, or a label
        session: String,
        #[command(flatten)]
        json: Json,
    },
}

/// Lists or shows.
pub(crate) fn sessions(arguments: &SessionsArguments) -> Done {
    match &arguments.what {
        None => list::list(arguments.json.json),
        Some(What::List { json }) => list::list(json.json),
        Some(What::Show { session, json }) => show::show(session, json.json),
    }
}
