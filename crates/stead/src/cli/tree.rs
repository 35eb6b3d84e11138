//! `stead tree`: a session's agents as they are now.

use clap::Args;

use super::program::{Chosen, Json};
use crate::context::{Context, block_on};
use crate::exit::{Done, Exit};
use crate::output::{answer, document};
use crate::render;

/// Show the agents of a session: what they do, their mail and tasks
#[derive(Debug, Args)]
pub(crate) struct TreeArguments {
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    json: Json,
}

/// Prints the tree.
pub(crate) fn tree(arguments: &TreeArguments) -> Done {
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, arguments.chosen.session.as_deref()).await?;
        let tree = client.tree(&session).await?;
        if arguments.json.json {
            document(&tree)?;
        } else {
            answer(render::tree(&tree))?;
        }
        Ok(Exit::DONE)
    })
}
