//! `stead sessions list`.

use serde::Serialize;
use stead_engine::api::SessionView;

use crate::context::{Context, block_on};
use crate::exit::{Done, Exit};
use crate::output::{answer, document, say};
use crate::render;

#[derive(Serialize)]
struct List {
    sessions: Vec<SessionView>,
}

/// Lists all sessions, the newest first.
pub(super) fn list(json: bool) -> Done {
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
