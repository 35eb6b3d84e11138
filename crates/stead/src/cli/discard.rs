//! `stead task discard`: move a task's copies to the trash.

use clap::Args;
use stead_core::id::{SlotName, TaskId};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_engine::api::DiscardParams;

use super::program::{Chosen, Json};
use crate::context::{Context, block_on};
use crate::exit::{Done, Exit};
use crate::output::{answer, document, say};

/// Move a task's private copies to the trash
///
/// The original is not touched. `stead gc` empties what has been in the trash for 30 days.
#[derive(Debug, Args)]
pub(crate) struct DiscardArguments {
    /// The task's number
    #[arg(value_name = "N")]
    number: u32,
    /// Only this copy
    #[arg(value_name = "SLOT")]
    slot: Option<String>,
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    json: Json,
}

/// Discards.
pub(crate) fn discard(arguments: &DiscardArguments) -> Done {
    let slot = arguments.slot.as_deref().map(SlotName::parse).transpose();
    let slot = slot.map_err(|e| Refusal::new(RefusalKind::InvalidArgument, e.to_string()))?;
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, arguments.chosen.session.as_deref()).await?;
        let task = TaskId(arguments.number);
        let response = client.discard(&session, task, &DiscardParams { slot }).await?;
        if arguments.json.json {
            document(&response)?;
            return Ok(Exit::DONE);
        }
        let names =
            |slots: &[SlotName]| slots.iter().map(SlotName::as_str).collect::<Vec<_>>().join(", ");
        if !response.slots.is_empty() {
            answer(format_args!("in the trash: {}\n", names(&response.slots)))?;
        }
        if !response.gone.is_empty() {
            let gone = names(&response.gone);
            answer(format_args!("removed before, so nothing of it is in the trash: {gone}\n"))?;
        }
        if response.slots.is_empty() && response.gone.is_empty() {
            say(format_args!("task {task} has no copies left"));
        }
        Ok(Exit::DONE)
    })
}
