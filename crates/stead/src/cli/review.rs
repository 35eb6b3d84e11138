//! `stead task review`: freeze a copy and show what an apply would bring.

use clap::Args;
use stead_core::layout::Access;
use stead_engine::api::ReviewParams;

use super::program::{Chosen, Json};
use super::task::CopyOf;
use crate::context::{Context, block_on};
use crate::exit::{Done, Exit};
use crate::output::{answer, document, say, style, styled};
use crate::render;

/// The most lines of a diff that are shown unless all of it is asked for.
const MOST: usize = 2000;

/// Freeze a copy and show what an apply would bring
#[derive(Debug, Args)]
pub(crate) struct ReviewArguments {
    #[command(flatten)]
    copy: CopyOf,
    /// Show the whole file diff, however long
    #[arg(long)]
    whole: bool,
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    json: Json,
}

/// Freezes and shows.
pub(crate) fn review(arguments: &ReviewArguments) -> Done {
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, arguments.chosen.session.as_deref()).await?;
        let (task, slot) = arguments.copy.find(&client, &session).await?;
        let most_lines = (!arguments.whole && !arguments.json.json).then_some(MOST);
        let params = ReviewParams { slot: slot.clone(), most_lines };
        let review = client.review(&session, task, &params).await?;
        if arguments.json.json {
            document(&review)?;
            return Ok(Exit::DONE);
        }
        answer(render::review(&review))?;
        if review.access == Access::Read {
            say("this root was given to be read: nothing of it can be applied");
        } else if !review.barred.is_empty() {
            say(
                "every apply of this is refused: take that away in the copy, or rename it, and review again",
            );
        } else if !review.changes.is_empty() {
            say(styled(
                style::DIM,
                format_args!(
                    "exactly this is applied by: stead task apply {task} {slot} --session {session}"
                ),
            ));
        }
        Ok(Exit::DONE)
    })
}
