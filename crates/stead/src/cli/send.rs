//! `stead send`: a message to an agent, as the person.

use clap::Args;
use serde::Serialize;
use stead_core::mail::{Receipt, ReceiptState};
use stead_engine::api::{Attendance, SendParams};

use super::program::{Chosen, Json};
use super::run::message_of;
use crate::context::{Context, block_on, new_request, send_safely};
use crate::exit::{Done, Exit};
use crate::output::{answer_line, document, is_interactive};

/// Send a message to an agent
///
/// It is stored at once and read at the agent's next step or turn. A message to /root, and one
/// with --wake, starts a turn when none runs.
#[derive(Debug, Args)]
pub(crate) struct SendArguments {
    /// The agent's address, such as /root/fix-parser
    #[arg(value_name = "PATH")]
    target: String,
    /// The message; `-` reads standard input
    message: String,
    /// Start a turn if none runs
    #[arg(long)]
    wake: bool,
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    json: Json,
}

#[derive(Serialize)]
struct Sent<'a> {
    session: &'a str,
    receipt: &'a Receipt,
}

/// Sends and says what became of it, no more.
pub(crate) fn send(arguments: &SendArguments) -> Done {
    let message = message_of(&arguments.message)?;
    let context = Context::new()?;
    let params = SendParams {
        request: new_request()?,
        target: arguments.target.clone(),
        message,
        wake: arguments.wake,
        // A person at a terminal can answer `stead permit`; a script cannot.
        attendance: if is_interactive() { Attendance::Detached } else { Attendance::Headless },
        environment: context.for_commands(),
    };
    block_on(async {
        let mut client = context.connect().await?;
        let session = context.session(&client, arguments.chosen.session.as_deref()).await?;
        let sent = send_safely(&context, &mut client, |client| {
            let (session, params) = (session.clone(), params.clone());
            async move { client.send(&session, &params).await }
        })
        .await?;
        if arguments.json.json {
            document(&Sent { session: session.as_str(), receipt: &sent.receipt })?;
        } else {
            answer_line(told(&sent.receipt))?;
        }
        Ok(Exit::DONE)
    })
}

/// What became of a message. *Stored* is not *delivered*.
pub(crate) fn told(receipt: &Receipt) -> String {
    let Receipt { to, mail, state, result_to } = receipt;
    let told = match state {
        ReceiptState::Stored => {
            format!("mail {mail} is stored for {to}; it is read at its next step or turn")
        }
        ReceiptState::QueuedForRunningTurn => {
            format!("mail {mail} waits for the next step of {to}, which is at work")
        }
        ReceiptState::TurnStarted => format!("{to} began a turn that reads mail {mail}"),
    };
    match result_to {
        Some(parent) => format!("{told}; {parent} gets the result"),
        None => told,
    }
}
