//! Runs the calls of one turn.

use std::sync::Arc;
use std::time::Duration;

use stead_core::id::CallId;
use stead_core::permission::{Answer, Deed, Terms, Verdict, Zone};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_model::{ToolCall, ToolResult};

use super::authority::{Authority, Found, Sight, name};
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
                let found = self.leave_to_read("read", Some(&call.path)).await?;
                blocking(move || read::read(&found, &call, &cancel)).await?
            }
            ToolCallParsed::List(call) => {
                let found = self.leave_to_read("list", call.path.as_deref()).await?;
                let sight = self.sight().await?;
                blocking(move || list::list(sight, &found, &call, &cancel)).await?
            }
            ToolCallParsed::Search(call) => {
                let found = self.leave_to_read("search", call.path.as_deref()).await?;
                let sight = self.sight().await?;
                blocking(move || search::search(&sight, &found, &call, &cancel)).await?
            }
            ToolCallParsed::Write(call) => {
                let (judging, judged) = (authority.clone(), call.clone());
                let judge = move || write::judge(&judging, &judged).map(drop);
                let found = self.leave_to_write("write", &call.path, judge).await?;
                blocking(move || write::write(&authority, &found, &call)).await?
            }
            ToolCallParsed::Edit(call) => {
                let (judging, judged) = (authority.clone(), call.clone());
                let judge = move || edit::judge(&judging, &judged).map(drop);
                let found = self.leave_to_write("edit", &call.path, judge).await?;
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

    /// Finds a path, none: the agent's directory, and asks for leave to read what is there.
    async fn leave_to_read(&self, act: &str, path: Option<&str>) -> Result<Found, Stopped> {
        let (authority, path) = (self.authority.clone(), path.unwrap_or(".").to_owned());
        let found = blocking(move || authority.reading(&path)).await?;
        self.permit_file(Deed::Read(name(&found.real)), act, &found).await?;
        Ok(found)
    }

    /// Finds a path and asks for leave to write what is there. `judge` looks whether the call can
    /// be done at all, so that nobody is asked in vain: first where the agent may read the file,
    /// else only as part of the deed, for its refusals tell what is in it.
    async fn leave_to_write(
        &self,
        act: &str,
        path: &str,
        judge: impl FnOnce() -> Result<(), Refusal> + Send + 'static,
    ) -> Result<Found, Stopped> {
        let (authority, path) = (self.authority.clone(), path.to_owned());
        let found = blocking(move || authority.writing(&path)).await?;
        let read = Deed::Read(name(&found.real));
        if self.terms().await?.authority().judge(&read, &[found.zone]) == Verdict::Allow {
            blocking(judge).await?;
        }
        self.permit_file(Deed::Edit(name(&found.real)), act, &found).await?;
        Ok(found)
    }

    /// What deeds are judged by now.
    async fn terms(&self) -> Result<Terms, Stopped> {
        ask(&self.turn, |answer| Ask::Terms { answer }).await
    }

    async fn sight(&self) -> Result<Arc<Sight>, Stopped> {
        let terms = self.terms().await?;
        Ok(Arc::new(Sight { authority: self.authority.clone(), terms }))
    }

    async fn permit_file(&self, deed: Deed, act: &str, found: &Found) -> Result<(), Stopped> {
        let settled = self.settle(deed, vec![found.zone], found.subject(act)).await;
        settled.map_err(|stopped| match (stopped, found.hint(&self.authority)) {
            (Stopped::Refused(refusal), Some(hint)) if refusal.kind == RefusalKind::Denied => {
                let hints = refusal.hint.iter().chain([&hint]).map(String::as_str);
                let hints = hints.collect::<Vec<_>>().join("; ");
                refusal.hint(hints).into()
            }
            (stopped, _) => stopped,
        })
    }

    /// Asks for leave to do what touches no file that is named.
    pub(super) async fn permit(&self, deed: Deed, subject: String) -> Result<(), Stopped> {
        self.settle(deed, Vec::new(), subject).await
    }

    /// Asks for leave and waits until it is settled; the session answers at once where nobody need
    /// be asked.
    async fn settle(&self, deed: Deed, zones: Vec<Zone>, subject: String) -> Result<(), Stopped> {
        let denied = |line: String| Refusal::new(RefusalKind::Denied, line);
        let line = subject.clone();
        let asked = |answer| Ask::Permission { deed, zones, subject: line, answer };
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
