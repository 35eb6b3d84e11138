//! Runs the calls of one turn.

use std::sync::Arc;
use std::time::Duration;

use stead_core::id::CallId;
use stead_core::permission::{Answer, Deed};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_model::{ToolCall, ToolResult};

use super::authority::Authority;
use super::catalogue::{Tool, ToolCallParsed, check_offered};
use super::output::{Output, refused};
use super::shells::Shells;
use super::{edit, list, read, search, write};
use crate::driver::Turn;
use crate::port::{Answering, Ask, SessionTool};

/// Why a call has no output, or a turn no last word.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The turn must end now.
    Cancelled,
    /// It was refused or failed.
    Refused(Refusal),
}

impl From<Refusal> for Stopped {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// What the calls of a turn share.
pub(crate) struct Tools {
    pub(super) turn: Turn,
    authority: Arc<Authority>,
    pub(super) yield_after: Duration,
    pub(crate) shells: Shells,
}

impl Tools {
    pub(crate) fn new(turn: Turn, yield_after: Duration) -> Self {
        let authority = Arc::new(Authority::of(&turn));
        Self { turn, authority, yield_after, shells: Shells::default() }
    }

    /// Runs one call to its result; none when the turn was cancelled meanwhile.
    pub(crate) async fn run(&mut self, call: ToolCall) -> Option<ToolResult> {
        let ToolCall { id, tool, arguments } = call;
        let offered = check_offered(&self.turn.profile, &tool);
        let output = match offered.and_then(|()| Tool::parse(&tool, arguments)) {
            Ok(ToolCallParsed::Session(tool)) => self.session(id.clone(), tool).await,
            Ok(parsed) => self.local(parsed).await,
            Err(refusal) => Err(refusal.into()),
        };
        match output {
            Ok(output) => Some(output.into_result(id)),
            Err(Stopped::Refused(refusal)) => Some(refused(id, &refusal)),
            Err(Stopped::Cancelled) => None,
        }
    }

    async fn session(&self, call: CallId, tool: SessionTool) -> Result<Output, Stopped> {
        let done = ask(&self.turn, |answer| Ask::Tool { call, tool, answer }).await?;
        Ok(Output::new(done.text, done.structured))
    }

    async fn local(&mut self, call: ToolCallParsed) -> Result<Output, Stopped> {
        let (cancel, authority) = (self.turn.cancel.clone(), self.authority.clone());
        // Blocking work is never left behind: it is awaited even when the turn is cancelled, and
        // what may take long looks at the token.
        let output = match call {
            ToolCallParsed::Read(call) => {
                blocking(move || read::read(&authority, &call, &cancel)).await?
            }
            ToolCallParsed::List(call) => {
                blocking(move || list::list(&authority, &call, &cancel)).await?
            }
            ToolCallParsed::Search(call) => {
                blocking(move || search::search(&authority, &call, &cancel)).await?
            }
            ToolCallParsed::Write(call) => {
                let (judging, judged) = (authority.clone(), call.clone());
                let found = blocking(move || write::judge(&judging, &judged)).await?;
                self.permit_edit(&found.real, &format!("write {}", found.shown)).await?;
                blocking(move || write::write(&authority, &found, &call)).await?
            }
            ToolCallParsed::Edit(call) => {
                let (judging, judged) = (authority.clone(), call.clone());
                let found = blocking(move || edit::judge(&judging, &judged)).await?;
                self.permit_edit(&found.real, &format!("edit {}", found.shown)).await?;
                blocking(move || edit::edit(&authority, &found, &call)).await?
            }
            ToolCallParsed::Bash(call) => self.bash(call).await?,
            ToolCallParsed::Exec(call) => self.exec(call).await?,
            ToolCallParsed::Release => self.release().await?,
            // `run` has taken those.
            ToolCallParsed::Session(tool) => return Err(misplaced(&tool).into()),
        };
        Ok(output)
    }

    async fn permit_edit(&self, real: &std::path::Path, subject: &str) -> Result<(), Stopped> {
        let deed = Deed::Edit(super::authority::display(real));
        self.permit(deed, subject.to_owned()).await
    }

    /// Asks for leave and waits until it is settled; the session answers at once where the mode
    /// allows it.
    pub(super) async fn permit(&self, deed: Deed, subject: String) -> Result<(), Stopped> {
        let denied = |line: String| Refusal::new(RefusalKind::Denied, line);
        let line = subject.clone();
        let asked = |answer| Ask::Permission { deed, subject: line, answer };
        let refusal = match ask(&self.turn, asked).await? {
            Answer::Once | Answer::Session => return Ok(()),
            Answer::Denied => denied(format!("the person denied it: {subject}; nothing was done"))
                .hint("do not try the same again; find another way, or say what you need"),
            Answer::Headless => {
                denied(format!("nobody is there to allow it: {subject}; nothing was done")).hint(
                    "the person may run with `--mode edits` or `--mode full-auto`, or with \
                     `--detach` and answer with `stead permit allow ID`",
                )
            }
            Answer::Withdrawn => {
                denied(format!("the request was withdrawn: {subject}; nothing was done"))
            }
        };
        Err(refusal.into())
    }
}

/// Asks the session, but waits for no answer once the turn is cancelled.
pub(crate) async fn ask<T>(
    turn: &Turn,
    ask: impl FnOnce(Answering<T>) -> Ask,
) -> Result<T, Stopped> {
    let answered = turn.cancel.run_until_cancelled(turn.port.ask(ask)).await;
    Ok(answered.ok_or(Stopped::Cancelled)??)
}

fn misplaced(tool: &SessionTool) -> Refusal {
    tracing::error!(?tool, "a tool of the session reached the local tools");
    Refusal::new(RefusalKind::Failed, "this tool belongs to the session")
}

/// Runs blocking work beside the runtime. A panic in it is a failed call, not the end of the turn.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a tool broke");
        Err(Refusal::new(RefusalKind::Failed, "the tool broke; its outcome is unknown")
            .hint("look before you repeat it"))
    })
}
