//! `stead task`: the task list of a session.

use clap::{Args, Subcommand};
use stead_core::id::TaskId;
use stead_core::refusal::{Refusal, RefusalKind};

use super::program::{Chosen, Json};
use crate::context::{Context, block_on};
use crate::exit::{Done, Exit};
use crate::output::{answer, document, say};
use crate::render;

/// The task list that the agents of a session share
#[derive(Debug, Args)]
pub(crate) struct TaskArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the tasks
    List {
        #[command(flatten)]
        chosen: Chosen,
        #[command(flatten)]
        json: Json,
    },
    /// Show one task whole
    Show {
        /// Its number
        #[arg(value_name = "N")]
        number: u32,
        #[command(flatten)]
        chosen: Chosen,
        #[command(flatten)]
        json: Json,
    },
}

/// Lists or shows.
pub(crate) fn task(arguments: &TaskArguments) -> Done {
    let (number, chosen, json) = match &arguments.what {
        What::List { chosen, json } => (None, chosen, json.json),
        What::Show { number, chosen, json } => (Some(TaskId(*number)), chosen, json.json),
    };
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, chosen.session.as_deref()).await?;
        let list = client.tasks(&session).await?;
        match number {
            Some(number) => {
                let task = list.tasks.iter().find(|task| task.id == number).ok_or_else(|| {
                    Refusal::new(RefusalKind::NotFound, format!("there is no task {number}"))
                        .hint("`stead task list` lists them")
                })?;
                if json {
                    document(task)?;
                } else {
                    answer(render::task(task))?;
                }
            }
            None if json => document(&list)?,
            None if list.tasks.is_empty() && list.notes.is_empty() => say("no tasks"),
            None => answer(render::tasks(&list))?,
        }
        Ok(Exit::DONE)
    })
}
