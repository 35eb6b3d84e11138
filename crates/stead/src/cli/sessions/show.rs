//! `stead sessions show`.

use serde::Serialize;
use stead_core::path::AgentPath;
use stead_core::refusal::RefusalKind;
use stead_engine::api::{ResultResponse, TreeResponse};

use crate::clean;
use crate::context::{Context, block_on};
use crate::exit::{Done, Exit};
use crate::output::{answer, document};
use crate::render;

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    tree: TreeResponse,
    result: Option<ResultResponse>,
}

/// Shows one session and the last result of `/root`.
pub(super) fn show(name: &str, json: bool) -> Done {
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, Some(name)).await?;
        let tree = client.tree(&session).await?;
        let result = match client.result(&session, &AgentPath::root()).await {
            Ok(result) => Some(result),
            // A turn runs, or none has ended yet.
            Err(refusal)
                if matches!(refusal.kind, RefusalKind::WrongState | RefusalKind::NotFound) =>
            {
                None
            }
            Err(refusal) => return Err(refusal.into()),
        };
        if json {
            document(&Shown { tree, result })?;
            return Ok(Exit::DONE);
        }
        answer(render::tree(&tree))?;
        if let Some(result) = result.filter(|result| !result.text.is_empty()) {
            answer(format_args!("\n{}\n", clean::block(&result.text).trim_end()))?;
        }
        Ok(Exit::DONE)
    })
}
