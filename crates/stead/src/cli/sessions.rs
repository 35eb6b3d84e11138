//! `stead sessions`: root sessions.

use clap::{Args, Subcommand};
use serde::Serialize;
use stead_core::path::AgentPath;
use stead_core::refusal::RefusalKind;
use stead_engine::api::{ResultResponse, SessionView, TreeResponse};

use super::program::Json;
use crate::clean;
use crate::context::{Context, block_on};
use crate::exit::{Done, Exit};
use crate::output::{answer, document, say};
use crate::render;

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

#[derive(Serialize)]
struct List {
    sessions: Vec<SessionView>,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    tree: TreeResponse,
    result: Option<ResultResponse>,
}

/// Lists or shows.
pub(crate) fn sessions(arguments: &SessionsArguments) -> Done {
    match &arguments.what {
        None => list(arguments.json.json),
        Some(What::List { json }) => list(json.json),
        Some(What::Show { session, json }) => show(session, json.json),
    }
}

fn list(json: bool) -> Done {
    let context = Context::new()?;
    block_on(async {
        let sessions = context.connect().await?.sessions().await?;
        if json {
            document(&List { sessions })?;
        } else if sessions.is_empty() {
            say("no sessions yet; `stead run` starts one, `stead` alone says how");
        } else {
            answer(render::sessions(&sessions))?;
        }
        Ok(Exit::DONE)
    })
}

fn show(name: &str, json: bool) -> Done {
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, Some(name)).await?;
        let tree = client.tree(&session).await?;
        let result = match client.result(&session, &AgentPath::root()).await {
            Ok(result) => Some(result),
            // A turn runs, or none has ended yet.
            Err(refusal)
                if matches!(refusal.kind, RefusalKind::WrongState | RefusalKind::NotFound) =>
            {
                None
            }
            Err(refusal) => return Err(refusal.into()),
        };
        if json {
            document(&Shown { tree, result })?;
            return Ok(Exit::DONE);
        }
        answer(render::tree(&tree))?;
        if let Some(result) = result.filter(|result| !result.text.is_empty()) {
            answer(format_args!("\n{}\n", clean::block(&result.text).trim_end()))?;
        }
        Ok(Exit::DONE)
    })
}
