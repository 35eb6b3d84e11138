//! `stead roots`: the registered working roots.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use stead_core::id::RootId;
use stead_core::layout::AbsoluteDir;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_engine::api::{RebindParams, RootState, RootView};

use super::program::Json;
use crate::clean;
use crate::context::{Context, block_on, current_dir};
use crate::exit::{Done, Exit};
use crate::output::{answer, document, say, style, styled};

/// The folders that were selected as working roots
#[derive(Debug, Args)]
pub(crate) struct RootsArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List them, and whether each is still the folder that was selected
    List {
        #[command(flatten)]
        json: Json,
    },
    /// Show one
    Show {
        /// Its id
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        json: Json,
    },
    /// Say that a folder is this root from now on: it was moved, or made anew
    Rebind {
        /// The root's id
        #[arg(value_name = "ID")]
        id: String,
        /// The folder
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        #[command(flatten)]
        json: Json,
    },
}

#[derive(Serialize)]
struct List<'a> {
    roots: &'a [RootView],
}

/// Lists, shows or rebinds.
pub(crate) fn roots(arguments: &RootsArguments) -> Done {
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        match &arguments.what {
            What::List { json } => {
                let roots = client.roots().await?;
                if json.json {
                    document(&List { roots: &roots })?;
                } else if roots.is_empty() {
                    say("no folder was selected yet: `stead run --root DIR` selects one");
                } else {
                    answer(roots.iter().map(line).collect::<String>())?;
                }
            }
            What::Show { id, json } => {
                let roots = client.roots().await?;
                let root = roots.iter().find(|root| root.id.as_str() == id).ok_or_else(|| {
                    let id = clean::brief(id, 80);
                    Refusal::new(RefusalKind::NotFound, format!("there is no root {id}"))
                        .hint("`stead roots list` names them")
                })?;
                show(root, json.json)?;
            }
            What::Rebind { id, directory, json } => {
                let id = RootId::parse(id)
                    .map_err(|e| Refusal::new(RefusalKind::InvalidArgument, e.to_string()))?;
                let folder = current_dir()?.join(directory);
                let folder = folder.canonicalize().map_err(|e| {
                    let folder = clean::path(&folder);
                    let line = format!("the folder {folder} cannot be used: {e}");
                    Refusal::new(RefusalKind::InvalidArgument, line)
                })?;
                let directory = AbsoluteDir::new(folder)
                    .map_err(|e| Refusal::new(RefusalKind::InvalidArgument, e.to_string()))?;
                show(&client.rebind(&id, &RebindParams { directory }).await?, json.json)?;
            }
        }
        Ok(Exit::DONE)
    })
}

fn show(root: &RootView, json: bool) -> Result<(), crate::exit::Failure> {
    if json { document(root) } else { answer(line(root)) }
}

fn line(root: &RootView) -> String {
    let folder = clean::path(root.directory.as_path());
    let state = match root.state {
        RootState::Same => String::new(),
        RootState::Changed => styled(style::BAD, "  another folder is there now"),
        RootState::Gone => styled(style::BAD, "  gone"),
    };
    format!("{}  {folder}{state}\n", root.id)
}
