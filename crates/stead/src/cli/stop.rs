//! `stead stop`: end one turn.

use clap::Args;
use stead_engine::api::{Activity, InterruptParams};

use super::program::{Chosen, Json};
use crate::context::{Context, block_on};
use crate::exit::{Done, Exit};
use crate::output::{answer_line, document};

/// End an agent's turn; it keeps its conversation, and its own agents go on
#[derive(Debug, Args)]
pub(crate) struct StopArguments {
    /// The agent's address, such as /root
    #[arg(value_name = "PATH")]
    target: String,
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    json: Json,
}

/// Asks for the end of the turn and says what the agent was doing.
pub(crate) fn stop(arguments: &StopArguments) -> Done {
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, arguments.chosen.session.as_deref()).await?;
        let params = InterruptParams { target: arguments.target.clone() };
        let stopped = client.interrupt(&session, &params).await?;
        if arguments.json.json {
            document(&stopped)?;
        } else {
            let path = &stopped.path;
            answer_line(match stopped.was {
                Activity::Idle => format!("{path} was idle; nothing had to be stopped"),
                was => {
                    format!("{path} was {}; its turn is being ended", crate::render::activity(was))
                }
            })?;
        }
        Ok(Exit::DONE)
    })
}
