//! `stead permit`: the queue of permission requests, and what is allowed without one.

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use stead_core::id::PermissionId;
use stead_core::id::SessionId;
use stead_core::permission::{Answer, Grant};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::rule::Rule;
use stead_engine::Client;
use stead_engine::api::{PermitParams, RevokeParams, RuleParams};

use super::program::{Chosen, Json};
use crate::clean;
use crate::context::{Context, block_on};
use crate::exit::{Done, Exit};
use crate::output::{answer, answer_line, document, say};
use crate::render;

/// Answer what agents ask leave for
#[derive(Debug, Args)]
pub(crate) struct PermitArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the open requests, the oldest first, then the session's grants and the rules
    List {
        #[command(flatten)]
        chosen: Chosen,
        #[command(flatten)]
        json: Json,
    },
    /// Allow a request
    Allow {
        /// Its number
        id: u64,
        /// For this time, or for the same again in this session
        #[arg(long = "for", value_enum, default_value_t = For::Once)]
        how_long: For,
        #[command(flatten)]
        chosen: Chosen,
        #[command(flatten)]
        json: Json,
    },
    /// Deny a request
    Deny {
        /// Its number
        id: u64,
        #[command(flatten)]
        chosen: Chosen,
        #[command(flatten)]
        json: Json,
    },
    /// Set a rule for the session: `deny command:git push`, `ask edit:*.lock`, `allow command:make`
    Rule {
        /// `deny`, `ask`, `allow`, `read-only` or `inaccessible`, and `command:WORDS`, `edit:GLOB` or
        /// `read:GLOB`
        #[arg(required = true, value_name = "RULE")]
        words: Vec<String>,
        #[command(flatten)]
        chosen: Chosen,
        #[command(flatten)]
        json: Json,
    },
    /// Take a grant or a rule of the session back
    Revoke {
        /// It, as `stead permit list` shows it
        #[arg(required = true, value_name = "WHAT")]
        words: Vec<String>,
        #[command(flatten)]
        chosen: Chosen,
        #[command(flatten)]
        json: Json,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum For {
    Once,
    Session,
}

#[derive(Serialize)]
struct Answered {
    id: PermissionId,
    answer: Answer,
}

#[derive(Serialize)]
struct Ruled {
    rule: Rule,
}

#[derive(Serialize)]
struct Revoked {
    revoked: String,
}

/// Lists or answers.
pub(crate) fn permit(arguments: &PermitArguments) -> Done {
    match &arguments.what {
        What::List { chosen, json } => list(chosen, json.json),
        What::Allow { id, how_long, chosen, json } => {
            let answer = match how_long {
                For::Once => Answer::Once,
                For::Session => Answer::Session,
            };
            settle(PermissionId(*id), answer, chosen, json.json)
        }
        What::Deny { id, chosen, json } => {
            settle(PermissionId(*id), Answer::Denied, chosen, json.json)
        }
        What::Rule { words, chosen, json } => rule(&words.join(" "), chosen, json.json),
        What::Revoke { words, chosen, json } => revoke(&words.join(" "), chosen, json.json),
    }
}

fn list(chosen: &Chosen, json: bool) -> Done {
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, chosen.session.as_deref()).await?;
        let found = client.permissions(&session).await?;
        if json {
            document(&found)?;
            return Ok(Exit::DONE);
        }
        if found.permissions.is_empty() {
            say("nothing waits for your leave");
        }
        answer(render::permissions(&found))?;
        Ok(Exit::DONE)
    })
}

fn rule(text: &str, chosen: &Chosen, json: bool) -> Done {
    let rule: Rule = text.parse().map_err(|error: stead_core::rule::BadPattern| {
        Refusal::new(RefusalKind::InvalidArgument, error.to_string())
            .hint("as in `stead permit rule deny command:git push`; `stead permit rule --help`")
    })?;
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, chosen.session.as_deref()).await?;
        client.rule(&session, &RuleParams::Add(rule.clone())).await?;
        if json {
            document(&Ruled { rule })?;
        } else {
            answer_line(format_args!("in force: {rule}"))?;
        }
        Ok(Exit::DONE)
    })
}

fn revoke(text: &str, chosen: &Chosen, json: bool) -> Done {
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, chosen.session.as_deref()).await?;
        if let Ok(rule) = text.parse::<Rule>() {
            client.rule(&session, &RuleParams::Remove(rule)).await?;
        } else {
            let grant = granted(&client, &session, text).await?;
            client.revoke(&session, &RevokeParams { grant }).await?;
        }
        if json {
            document(&Revoked { revoked: text.to_owned() })?;
        } else {
            answer_line(format_args!("no longer in force: {}", clean::line(text)))?;
        }
        Ok(Exit::DONE)
    })
}

/// The grant that a text means: written as a rule, or as the list shows it.
async fn granted(client: &Client, session: &SessionId, text: &str) -> Result<Grant, Refusal> {
    let grants = client.permissions(session).await?.grants;
    let found = grants.into_iter().find(|grant| {
        let whole = grant.to_string();
        whole == text || clean::line(&whole) == text
    });
    found.ok_or_else(|| {
        let line = format!("the session has neither a grant nor a rule {:?}", clean::line(text));
        Refusal::new(RefusalKind::NotFound, line).hint("`stead permit list` names them")
    })
}

fn settle(id: PermissionId, answer: Answer, chosen: &Chosen, json: bool) -> Done {
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, chosen.session.as_deref()).await?;
        client.permit(&session, &PermitParams { id, answer }).await?;
        if json {
            document(&Answered { id, answer })?;
        } else {
            answer_line(format_args!("request {id} is {}", render::answer(answer)))?;
        }
        Ok(Exit::DONE)
    })
}
