//! `stead mode`: how much a session asks.

use clap::{Args, ValueEnum};
use stead_core::permission::Mode;
use stead_engine::api::{ModeParams, ModeResponse};

use super::program::{Chosen, Json};
use crate::context::{Context, block_on};
use crate::exit::{Done, Exit};
use crate::output::{answer_line, document};

/// Show or change how much a session asks; requests that are open already stay open
#[derive(Debug, Args)]
pub(crate) struct ModeArguments {
    /// The mode from now on
    #[arg(value_enum)]
    mode: Option<ModeName>,
    /// Whether agents may only plan: no edits, no commands, in any mode
    #[arg(long, value_enum)]
    plan: Option<Switch>,
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    json: Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// A mode as it is written on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeName {
    Ask,
    Edits,
    FullAuto,
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Ask => Self::Ask,
            ModeName::Edits => Self::Edits,
            ModeName::FullAuto => Self::FullAuto,
        }
    }
}

/// Changes what was named, and says how it is.
pub(crate) fn mode(arguments: &ModeArguments) -> Done {
    let context = Context::new()?;
    let params = ModeParams {
        mode: arguments.mode.map(Mode::from),
        plan_ceiling: arguments.plan.map(|switch| switch == Switch::On),
    };
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, arguments.chosen.session.as_deref()).await?;
        let now = if params == ModeParams::default() {
            let tree = client.tree(&session).await?;
            ModeResponse { mode: tree.mode, plan_ceiling: tree.plan_ceiling }
        } else {
            client.mode(&session, &params).await?
        };
        if arguments.json.json {
            document(&now)?;
        } else {
            let plan = if now.plan_ceiling { ", planning only" } else { "" };
            answer_line(format!("{}{plan}", crate::render::mode(now.mode)))?;
        }
        Ok(Exit::DONE)
    })
}
