//! `stead sessions list`.

use serde::Serialize;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_engine::Home;
use stead_engine::api::SessionView;
use stead_store::{Store, StoreError};

use crate::clean;
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
        match damage(&context.home)? {
            Some(line) => Err(damaged(&line).into()),
            None => Ok(Exit::DONE),
        }
    })
}

/// What is wrong with the database: then what is listed may not be all.
fn damage(home: &Home) -> Result<Option<String>, Refusal> {
    let damage = Store::open_reader(home.data()).and_then(|reader| reader.damage());
    match damage {
        Ok(lines) => Ok(lines.into_iter().next()),
        Err(StoreError::Absent(_)) => Ok(None),
        Err(error) => Err(error.refusal()),
    }
}

fn damaged(line: &str) -> Refusal {
    let line = format!("the database is damaged, and sessions may be missing: {line}");
    Refusal::new(RefusalKind::Unreadable, clean::brief(&line, 300))
        .hint("copy the home away before anything else; `stead doctor` shows what is damaged")
}
