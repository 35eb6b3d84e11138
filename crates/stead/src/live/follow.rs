//! The events of a session, across engines: when one ends underneath, the next goes on.

use std::time::Duration;

use stead_core::id::{Position, SessionId};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_engine::api::{Activity, EventNotification, EventsParams, Notification};
use stead_engine::{Client, EventStream};

use crate::context::Context;
use crate::exit::Failure;

/// How often a new engine is tried without hearing anything from one.
const TRIES: u32 = 5;
/// How long to wait before the second try; each further one waits that much longer.
const PAUSE: Duration = Duration::from_millis(200);

/// What comes next.
pub(crate) enum Step {
    /// A durable event.
    Event(Box<EventNotification>),
    /// An agent began or ended waiting.
    Activity(AgentPath, Activity),
    /// How far an agent's copies are: files, bytes, and what there will be.
    Copying(AgentPath, u64, u64, Option<(u64, u64)>),
    /// All that was stored has been told.
    CaughtUp,
    /// The engine went away; a new one goes on after this position.
    Restarted(Position),
    /// There is no more: only what was stored was asked for.
    End,
}

/// Follows one session.
pub(crate) struct Follower<'a> {
    context: &'a Context,
    /// The client of the engine that serves the session now.
    pub(crate) client: Client,
    session: SessionId,
    params: EventsParams,
    stream: Option<EventStream>,
    failures: u32,
    heard: bool,
}

impl<'a> Follower<'a> {
    /// Follows `session` from the event after `params.after`; nothing is asked for yet.
    pub(crate) fn new(
        context: &'a Context,
        client: Client,
        session: SessionId,
        params: EventsParams,
    ) -> Self {
        Self { context, client, session, params, stream: None, failures: 0, heard: false }
    }

    /// The next step. May be dropped at any time: nothing is lost by it.
    pub(crate) async fn next(&mut self) -> Result<Step, Failure> {
        loop {
            let Some(stream) = &mut self.stream else {
                match self.open().await {
                    Ok(true) => return Ok(Step::Restarted(self.params.after)),
                    Ok(false) => continue,
                    Err(refusal) if refusal.kind == RefusalKind::Unavailable => {
                        self.failures += 1;
                        if self.failures >= TRIES {
                            return Err(refusal.into());
                        }
                        tokio::time::sleep(PAUSE * self.failures).await;
                        continue;
                    }
                    Err(refusal) => return Err(refusal.into()),
                }
            };
            match stream.next().await {
                Ok(Some(notification)) => {
                    self.failures = 0;
                    self.heard = true;
                    return match notification {
                        Notification::Event(event) => {
                            self.params.after = event.position;
                            Ok(Step::Event(event))
                        }
                        Notification::Activity { path, activity } => {
                            Ok(Step::Activity(path, activity))
                        }
                        Notification::Copying { path, files, bytes, of } => {
                            Ok(Step::Copying(path, files, bytes, of))
                        }
                        Notification::CaughtUp { .. } if !self.params.follow => Ok(Step::End),
                        Notification::CaughtUp { .. } => Ok(Step::CaughtUp),
                        Notification::Failed { line } => {
                            Err(Refusal::new(RefusalKind::Unreadable, line)
                                .hint("`stead doctor` shows what is damaged")
                                .into())
                        }
                    };
                }
                Ok(None) => {
                    self.stream = None;
                    self.failures += 1;
                    if self.failures >= TRIES {
                        return Err(Refusal::new(
                            RefusalKind::Unavailable,
                            "the engine ends again and again",
                        )
                        .hint("`stead doctor` looks at the home")
                        .into());
                    }
                }
                Err(refusal) => return Err(refusal.into()),
            }
        }
    }

    /// Opens the stream; true when the engine that was asked first, or heard, is gone.
    async fn open(&mut self) -> Result<bool, Refusal> {
        let again = self.failures > 0 || self.heard;
        if again {
            self.client = self.context.connect().await?;
        }
        self.stream = Some(self.client.events(&self.session, &self.params).await?);
        self.heard = false;
        Ok(again)
    }
}
