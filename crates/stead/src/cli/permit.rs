//! `stead permit`: the queue of permission requests.

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use stead_core::id::PermissionId;
use stead_core::permission::{Answer, Request};
use stead_engine::api::PermitParams;

use super::program::{Chosen, Json};
use crate::context::{Context, block_on};
use crate::exit::{Done, Exit};
use crate::output::{answer, answer_line, document, say};
use crate::render;

/// Answer what agents ask leave for
#[derive(Debug, Args)]
pub(crate) struct PermitArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the open requests, the oldest first
    List {
        #[command(flatten)]
        chosen: Chosen,
        #[command(flatten)]
        json: Json,
    },
    /// Allow a request
    Allow {
        /// Its number
        id: u64,
        /// For this time, or for the same again in this session
        #[arg(long = "for", value_enum, default_value_t = For::Once)]
        how_long: For,
        #[command(flatten)]
        chosen: Chosen,
        #[command(flatten)]
        json: Json,
    },
    /// Deny a request
    Deny {
        /// Its number
        id: u64,
        #[command(flatten)]
        chosen: Chosen,
        #[command(flatten)]
        json: Json,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum For {
    Once,
    Session,
}

#[derive(Serialize)]
struct Queue {
    permissions: Vec<Request>,
}

#[derive(Serialize)]
struct Answered {
    id: PermissionId,
    answer: Answer,
}

/// Lists or answers.
pub(crate) fn permit(arguments: &PermitArguments) -> Done {
    match &arguments.what {
        What::List { chosen, json } => list(chosen, json.json),
        What::Allow { id, how_long, chosen, json } => {
            let answer = match how_long {
                For::Once => Answer::Once,
                For::Session => Answer::Session,
            };
            settle(PermissionId(*id), answer, chosen, json.json)
        }
        What::Deny { id, chosen, json } => {
            settle(PermissionId(*id), Answer::Denied, chosen, json.json)
        }
    }
}

fn list(chosen: &Chosen, json: bool) -> Done {
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, chosen.session.as_deref()).await?;
        let permissions = client.tree(&session).await?.permissions;
        if json {
            document(&Queue { permissions })?;
        } else if permissions.is_empty() {
            say("nothing waits for your leave");
        } else {
            answer(render::permissions(&permissions))?;
        }
        Ok(Exit::DONE)
    })
}

fn settle(id: PermissionId, answer: Answer, chosen: &Chosen, json: bool) -> Done {
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, chosen.session.as_deref()).await?;
        client.permit(&session, &PermitParams { id, answer }).await?;
        if json {
            document(&Answered { id, answer })?;
        } else {
            answer_line(format_args!("request {id} is {}", render::answer(answer)))?;
        }
        Ok(Exit::DONE)
    })
}
