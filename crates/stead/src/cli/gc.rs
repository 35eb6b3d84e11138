//! `stead gc`: remove what nothing needs any more.

use clap::Args;
use stead_copies::{Home, clear_staging};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_engine::Client;
use stead_engine::api::{GarbageKind, GarbageParams, GarbageResponse};

use super::program::Json;
use crate::clean;
use crate::context::{Context, block_on};
use crate::exit::{Done, Exit};
use crate::output::{answer, document, say, style, styled};
use crate::render::size;

/// Empty the trash, and remove what nothing needs any more
///
/// What has been in the trash for more than 30 days goes, depots and bodies that nothing names, roots
/// whose folders are gone and of which no copy is left, and what killed processes left half made. Nothing but this command empties the trash.
#[derive(Debug, Args)]
pub(crate) struct GcArguments {
    /// First move to the trash: copies that hold nothing but what was applied, and copies whose
    /// session is gone. One with commits, a stash, staged or ignored files of its own stays
    #[arg(long)]
    copies: bool,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    json: Json,
}

/// Collects.
pub(crate) fn gc(arguments: &GcArguments) -> Done {
    let context = Context::new()?;
    block_on(async {
        let client = connect(&context, arguments.dry_run).await?;
        let params = GarbageParams { copies: arguments.copies, dry_run: arguments.dry_run };
        let response = client.collect(&params).await?;
        if arguments.json.json {
            document(&response)?;
            return Ok(Exit::DONE);
        }
        if response.removed.is_empty() {
            say("nothing to remove");
        }
        answer(text(&response))?;
        Ok(Exit::DONE)
    })
}

/// A client. Where no engine can start for want of room, what killed processes left half made goes
/// first: that needs no engine.
async fn connect(context: &Context, dry_run: bool) -> Result<Client, Refusal> {
    let refusal = match context.connect().await {
        Err(refusal) if refusal.kind == RefusalKind::Storage && !dry_run => refusal,
        connected => return connected,
    };
    match clear_staging(&Home::new(context.home.data())) {
        Ok(cleared) if !cleared.is_empty() => {
            for folder in cleared {
                say(format_args!("removed: half made, {}", clean::path(&folder)));
            }
            context.connect().await
        }
        _ => Err(refusal),
    }
}

fn text(response: &GarbageResponse) -> String {
    let mut text = String::new();
    for removed in &response.removed {
        let verb = match (response.dry_run, removed.kind) {
            (true, GarbageKind::Copy) => "would go to the trash",
            (true, _) => "would go",
            (false, GarbageKind::Copy) => "in the trash",
            (false, _) => "removed",
        };
        let bytes = removed.bytes.map(|bytes| format!(", {}", size(bytes))).unwrap_or_default();
        let what = format!("{} {}{bytes}", word(removed.kind), clean::line(&removed.name));
        text.push_str(&format!("{}: {what}\n", styled(style::BOLD, verb)));
    }
    for kept in &response.kept {
        let bytes = kept.bytes.map(|bytes| format!(", {}", size(bytes))).unwrap_or_default();
        let what = format!("{} {}{bytes}", word(kept.kind), clean::line(&kept.name));
        text.push_str(&format!(
            "{}: {what}: {}\n",
            styled(style::DIM, "kept"),
            clean::line(&kept.why)
        ));
    }
    text
}

fn word(kind: GarbageKind) -> &'static str {
    match kind {
        GarbageKind::Copy => "copy of",
        GarbageKind::Trash => "in the trash,",
        GarbageKind::Staging => "half made,",
        GarbageKind::Layout => "record of the copies of",
        GarbageKind::Depot => "object files of root",
        GarbageKind::Bodies => "bodies:",
        GarbageKind::Root => "root",
    }
}
