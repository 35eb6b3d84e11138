//! How a session begins.

use stead_core::budget::Budget;
use stead_core::delegated::LONGEST_TITLE;
use stead_core::event::{Frozen, SessionStarted};
use stead_core::id::{RequestId, SessionId};
use stead_core::layout::{AbsoluteDir, Placement};
use stead_core::line;
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Command, Outcomes, State};
use stead_store::Body;

use super::{Engine, failed};
use crate::api::{StartParams, StartResponse};
use crate::drivers;
use crate::roots;
use crate::session::{Actor, Cancel, Judged, Subject, Surroundings, surroundings, text_body};

impl Engine {
    /// Starts a session, or names the one that the same request started.
    pub(crate) async fn start(&self, params: StartParams) -> Result<StartResponse, Refusal> {
        let (driver, mut bodies) = drivers::freeze(params.driver.clone())?;
        let (message, message_ref) = text_body(&params.message)?;
        if params.message.trim().is_empty() {
            return Err(Refusal::new(RefusalKind::InvalidArgument, "the message is empty"));
        }
        // The request's id is the session's: the same request cannot start two.
        let session = SessionId::parse(params.request.as_str())
            .map_err(|e| Refusal::new(RefusalKind::InvalidArgument, e.to_string()))?;
        let (given, shared) = (params.roots.clone(), self.shared.clone());
        let roots = tokio::task::spawn_blocking(move || roots::admit(&shared.registry, given))
            .await
            .map_err(|e| failed(e.to_string()))??;
        let directory = roots
            .first()
            .map(|root| root.directory.clone())
            .ok_or_else(|| Refusal::new(RefusalKind::InvalidArgument, "no root was given"))?;
        let notes = self.ask_hooks(&params, &session, &directory).await?;
        let command = Command::Start {
            started: SessionStarted {
                session: session.clone(),
                label: params.label,
                roots,
                placement: params.placement,
                capacity: self.shared.settings.sessions.capacity,
                mode: params.mode,
                plan_ceiling: params.plan_ceiling,
                forked: None,
            },
            driver,
            directory,
            message: Some(message_ref),
            title: title_of(&params.message),
            frozen: Box::new(Frozen {
                budget: Budget { tree: self.shared.settings.sessions.budget, ..Budget::default() },
                ..Frozen::default()
            }),
            notes: notes.iter().map(Body::reference).collect(),
        };
        bodies.extend(notes);
        let surroundings = Surroundings::new(params.environment, params.attendance);
        let mut sessions = self.sessions.lock().await;
        if self.session_exists(&session).await? {
            drop(sessions);
            return self.replayed(&session, &params.request).await;
        }
        let (actor, handle) = Actor::new(self.shared.clone(), session.clone(), State::default());
        tokio::spawn(actor.run());
        bodies.push(message);
        let outcome = handle.run(command, bodies, Some(params.request), Some(surroundings)).await?;
        sessions.insert(session.clone(), handle);
        match outcome {
            Outcomes::Started { turn, .. } => Ok(StartResponse { session, tip: turn.0 + 1 }),
            _ => Ok(StartResponse { session, tip: 0 }),
        }
    }

    /// What start and prompt hooks add for `/root`'s first turn, where that begins at once; in
    /// private copies they are asked when those are there.
    async fn ask_hooks(
        &self,
        params: &StartParams,
        session: &SessionId,
        directory: &AbsoluteDir,
    ) -> Result<Vec<Body>, Refusal> {
        let hooks = &self.shared.settings.hooks;
        let none = hooks.start.is_empty() && hooks.prompt.is_empty();
        if none || params.placement != Placement::InPlace || self.session_exists(session).await? {
            return Ok(Vec::new());
        }
        let client = Surroundings::new(params.environment.clone(), params.attendance);
        let subject = Subject {
            root: session.clone(),
            agent: session.clone(),
            path: AgentPath::root(),
            directory: directory.clone(),
            environment: surroundings(&self.shared, &client.environment),
        };
        let (shared, task) = (self.shared.clone(), params.message.clone());
        let judged = tokio::task::spawn_blocking(move || {
            subject.start(&shared.settings.hooks, Some(&task), &Cancel::default())
        });
        let Judged { refusal, notes } = judged.await.map_err(|e| failed(e.to_string()))?;
        refusal.map_or(Ok(notes), Err)
    }

    /// The answer to a start that was answered before.
    async fn replayed(
        &self,
        session: &SessionId,
        request: &RequestId,
    ) -> Result<StartResponse, Refusal> {
        let (id, asked) = (session.clone(), request.clone());
        let known = self.shared.read(move |reader| reader.request(&id, &asked)).await?;
        if known == Some(1) {
            return Ok(StartResponse { session: session.clone(), tip: 5 });
        }
        Err(Refusal::new(RefusalKind::AlreadyExists, format!("session {session} exists")))
    }
}

/// The title of task 1: the first line of what the person asked for.
fn title_of(message: &str) -> String {
    let first = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line::cut(&line::one_line(first), LONGEST_TITLE)
}
