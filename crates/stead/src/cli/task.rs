//! `stead task`: the task list of a session, and what becomes of the work on delegated tasks.

use clap::{Args, Subcommand};
use serde::Serialize;
use stead_core::id::{SessionId, SlotName, TaskId};
use stead_core::layout::Access;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::task::Task;
use stead_engine::Client;
use stead_engine::api::DelegatedView;

use super::program::{Chosen, Json};
use super::{apply, discard, review};
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
    Review(review::ReviewArguments),
    Apply(apply::ApplyArguments),
    Discard(discard::DiscardArguments),
}

/// A task whole, as programs read it.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    task: &'a Task,
    /// What it has of its own, when an agent of its own works on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    delegated: Option<&'a DelegatedView>,
}

/// Does what was asked of the task list.
pub(crate) fn task(arguments: &TaskArguments) -> Done {
    match &arguments.what {
        What::List { chosen, json } => list(chosen, json.json),
        What::Show { number, chosen, json } => show(TaskId(*number), chosen, json.json),
        What::Review(arguments) => review::review(arguments),
        What::Apply(arguments) => apply::apply(arguments),
        What::Discard(arguments) => discard::discard(arguments),
    }
}

fn list(chosen: &Chosen, json: bool) -> Done {
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, chosen.session.as_deref()).await?;
        let list = client.tasks(&session).await?;
        if json {
            document(&list)?;
        } else if list.tasks.is_empty() && list.notes.is_empty() && list.delegated.is_empty() {
            say("no tasks");
        } else {
            answer(render::tasks(&list))?;
        }
        Ok(Exit::DONE)
    })
}

fn show(number: TaskId, chosen: &Chosen, json: bool) -> Done {
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, chosen.session.as_deref()).await?;
        let list = client.tasks(&session).await?;
        let own = list.delegated.iter().find(|own| own.task == number);
        match list.tasks.iter().find(|task| task.id == number) {
            Some(task) if json => document(&Whole { task, delegated: own })?,
            Some(task) => answer(render::task(task, own))?,
            None => match own {
                Some(own) if json => document(own)?,
                Some(own) => answer(render::slots(own))?,
                None => return Err(unknown(number).into()),
            },
        }
        Ok(Exit::DONE)
    })
}

fn unknown(number: TaskId) -> Refusal {
    Refusal::new(RefusalKind::NotFound, format!("there is no task {number}"))
        .hint("`stead task list` lists them")
}

/// Which copy a verb is about.
#[derive(Debug, Args)]
pub(crate) struct CopyOf {
    /// The task's number
    #[arg(value_name = "N")]
    number: u32,
    /// The slot; may be left out where the task has one that is written
    #[arg(value_name = "SLOT")]
    slot: Option<String>,
}

impl CopyOf {
    /// The task and the slot.
    pub(crate) async fn find(
        &self,
        client: &Client,
        session: &SessionId,
    ) -> Result<(TaskId, SlotName), Refusal> {
        let task = TaskId(self.number);
        if let Some(slot) = &self.slot {
            let slot = SlotName::parse(slot)
                .map_err(|e| Refusal::new(RefusalKind::InvalidArgument, e.to_string()))?;
            return Ok((task, slot));
        }
        let list = client.tasks(session).await?;
        let Some(own) = list.delegated.into_iter().find(|own| own.task == task) else {
            let line = format!("task {task} has no copies of its own");
            let is_known = list.tasks.iter().any(|known| known.id == task);
            let refusal = || Refusal::new(RefusalKind::NotFound, line);
            return Err(if is_known { refusal() } else { unknown(task) });
        };
        let mut written = own.slots.iter().filter(|slot| slot.access == Access::Write);
        if let (Some(only), None) = (written.next(), written.next()) {
            return Ok((task, only.slot.clone()));
        }
        if let [only] = own.slots.as_slice() {
            return Ok((task, only.slot.clone()));
        }
        let names: Vec<&str> = own.slots.iter().map(|slot| slot.slot.as_str()).collect();
        Err(Refusal::new(
            RefusalKind::InvalidArgument,
            format!("which copy of task {task} is meant?"),
        )
        .hint(format!("its slots are {}", names.join(", "))))
    }
}
