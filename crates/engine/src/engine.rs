//! The engine: the sessions of one home, each with one live owner.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stead_core::delegated::LONGEST_TITLE;
use stead_core::event::{BranchEvent, DriverSpec, Event, SessionStarted, WorldEvent};
use stead_core::id::{MailId, RequestId, SessionId};
use stead_core::layout::AbsoluteDir;
use stead_core::line;
use stead_core::mail::{Receipt, ReceiptState};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Command, Outcomes, State};
use stead_core::settings::Settings;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::api::{
    AgentView, ClientEnvironment, DriverParams, EngineResponse, FindParams, PROTOCOL, SendParams,
    SendResponse, SessionView, StartParams, StartResponse, TreeResponse,
};
use crate::caller::Caller;
use crate::drivers;
use crate::registry::Registry;
use crate::roots;
use crate::session::{Actor, Busy, Handle, Message, Shared, Surroundings, load, text_body};

/// As many events as a session has at most whose start was refused.
const REFUSED_START: u64 = 6;
/// How long a stop waits for turns to end before it leaves them to recovery.
const STOP: Duration = Duration::from_secs(20);

/// The sessions of one home.
pub(crate) struct Engine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) settings: Settings,
    pub(crate) build: String,
    pub(crate) stop: tokio::sync::watch::Sender<bool>,
    sessions: Mutex<BTreeMap<SessionId, Handle>>,
    used: std::sync::Mutex<Instant>,
}

impl Engine {
    pub(crate) fn new(shared: Arc<Shared>, settings: Settings, build: String) -> Arc<Self> {
        let (stop, _) = tokio::sync::watch::channel(false);
        let engine = Arc::new(Self {
            shared,
            settings,
            build,
            stop,
            sessions: Mutex::new(BTreeMap::new()),
            used: std::sync::Mutex::new(Instant::now()),
        });
        engine.shared.doors.lead_to(&engine);
        engine
    }

    /// Says that somebody uses the engine.
    pub(crate) fn touch(&self) {
        *self.used.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Instant::now();
    }

    /// For how long nobody has used it.
    pub(crate) fn unused(&self) -> Duration {
        self.used.lock().unwrap_or_else(std::sync::PoisonError::into_inner).elapsed()
    }

    /// Recovery (architecture, *Recovery*): settles what an engine that died left running. The
    /// supervisors of its turns ended with it; here every session that may have been at work is
    /// read, and what was abandoned is settled once.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<(), Refusal> {
        let mut open = self.shared.read(stead_store::Reader::unfinished).await?;
        let shared = self.shared.clone();
        let journals = tokio::task::spawn_blocking(move || {
            if let Err(error) = stead_copies::clear_staging(&shared.copies) {
                tracing::warn!(%error, "what was half made is not removed yet");
            }
            stead_copies::leftovers(&shared.copies)
        });
        match journals.await {
            Ok(Ok(journals)) => {
                let headers = journals.into_iter().filter_map(|left| left.header.ok());
                open.extend(headers.map(|header| header.session));
            }
            Ok(Err(error)) => tracing::error!(%error, "journals of applies cannot be listed"),
            Err(error) => return Err(failed(error.to_string())),
        }
        open.sort();
        open.dedup();
        for session in open {
            // One session that cannot be read keeps no other from being served.
            if let Err(why) = self.session(&session).await {
                tracing::error!(%session, why = %why.line, "a session cannot be recovered");
            }
        }
        Ok(())
    }

    /// The owner of a session, reading its log if nobody owns it yet.
    pub(crate) async fn session(&self, id: &SessionId) -> Result<Handle, Refusal> {
        let mut sessions = self.sessions.lock().await;
        if let Some(handle) = sessions.get(id).filter(|h| !h.is_closed()) {
            return Ok(handle.clone());
        }
        let state = load(&self.shared, id).await?;
        if state.world.started.is_none() {
            return Err(unknown_session(id.as_str()));
        }
        let (mut actor, handle) = Actor::new(self.shared.clone(), id.clone(), state);
        actor.recover().await?;
        tokio::spawn(actor.run());
        sessions.insert(id.clone(), handle.clone());
        Ok(handle)
    }

    /// Starts a session, or names the one that the same request started.
    pub(crate) async fn start(&self, params: StartParams) -> Result<StartResponse, Refusal> {
        let DriverParams::Playbook { name, text } = params.driver;
        drivers::parse(&name, &text)?;
        let (playbook, playbook_ref) = text_body(&text)?;
        let (message, message_ref) = text_body(&params.message)?;
        if params.message.trim().is_empty() {
            return Err(Refusal::new(RefusalKind::InvalidArgument, "the message is empty"));
        }
        // The request's id is the session's: the same request cannot start two.
        let session = SessionId::parse(params.request.as_str())
            .map_err(|e| Refusal::new(RefusalKind::InvalidArgument, e.to_string()))?;
        let (given, shared) = (params.roots, self.shared.clone());
        let roots = tokio::task::spawn_blocking(move || roots::admit(&shared.registry, given))
            .await
            .map_err(|e| failed(e.to_string()))??;
        let directory = roots
            .first()
            .map(|root| root.directory.clone())
            .ok_or_else(|| Refusal::new(RefusalKind::InvalidArgument, "no root was given"))?;
        let command = Command::Start {
            started: SessionStarted {
                session: session.clone(),
                label: params.label,
                roots,
                placement: params.placement,
                capacity: self.settings.sessions.capacity,
                mode: params.mode,
                plan_ceiling: params.plan_ceiling,
                forked: None,
            },
            driver: DriverSpec {
                kind: drivers::PLAYBOOK.to_owned(),
                name,
                body: Some(playbook_ref),
                reports: stead_core::usage::Reports::Nothing,
            },
            directory,
            message: Some(message_ref),
            title: title_of(&params.message),
            frozen: Box::default(),
        };
        let surroundings = Surroundings::new(params.environment, params.attendance);
        let mut sessions = self.sessions.lock().await;
        if self.session_exists(&session).await? {
            drop(sessions);
            return self.replayed(&session, &params.request).await;
        }
        let (actor, handle) = Actor::new(self.shared.clone(), session.clone(), State::default());
        tokio::spawn(actor.run());
        let bodies = vec![playbook, message];
        let outcome = handle.run(command, bodies, Some(params.request), Some(surroundings)).await?;
        sessions.insert(session.clone(), handle);
        match outcome {
            Outcomes::Started { turn, .. } => Ok(StartResponse { session, tip: turn.0 + 1 }),
            _ => Ok(StartResponse { session, tip: 0 }),
        }
    }

    async fn session_exists(&self, session: &SessionId) -> Result<bool, Refusal> {
        let session = session.clone();
        self.shared.read(move |reader| Ok(reader.tip(&session)?.is_some())).await
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

    /// Sends a message as the caller.
    pub(crate) async fn send(
        &self,
        caller: &Caller,
        session: &SessionId,
        params: SendParams,
    ) -> Result<SendResponse, Refusal> {
        caller.check_session(session)?;
        let from = caller.sender()?;
        let handle = self.session(session).await?;
        if let Some(receipt) = self.sent_before(session, &params.request).await? {
            return Ok(SendResponse { receipt });
        }
        let (body, reference) = text_body(&params.message)?;
        // What may start a turn brings its surroundings; a note that is only stored does not.
        let may_start = params.wake || params.target == AgentPath::root().as_str();
        let surroundings = (*caller == Caller::Person && may_start)
            .then(|| Surroundings::new(params.environment, params.attendance));
        let command =
            Command::Send { from, target: params.target, body: reference, wake: params.wake };
        let request = Some(params.request.clone());
        match handle.run(command, vec![body], request, surroundings).await {
            Ok(Outcomes::Sent(receipt)) => Ok(SendResponse { receipt }),
            Ok(other) => Err(failed(format!("a message came to {other:?}"))),
            // The same request came twice at once: what the faster one stored answers both.
            Err(refusal) if refusal.kind == RefusalKind::Conflict => {
                let receipt = self.sent_before(session, &params.request).await?.ok_or(refusal)?;
                Ok(SendResponse { receipt })
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// The receipt of a message that the same request sent, derived from what it stored.
    async fn sent_before(
        &self,
        session: &SessionId,
        request: &RequestId,
    ) -> Result<Option<Receipt>, Refusal> {
        let (id, asked) = (session.clone(), request.clone());
        let records = self
            .shared
            .read(move |reader| match reader.request(&id, &asked)? {
                Some(position) => reader.read(&id, position, 2),
                None => Ok(Vec::new()),
            })
            .await?;
        let mut events = records.into_iter().map(|r| (r.envelope.position, r.envelope.event));
        let Some((position, event)) = events.next() else { return Ok(None) };
        let Event::Branch(BranchEvent::MailStored { to, wake, .. }) = event else {
            return Err(Refusal::new(
                RefusalKind::AlreadyExists,
                format!("the request {request} did something else"),
            ));
        };
        let started = matches!(
            events.next(),
            Some((_, Event::Branch(BranchEvent::TurnStarted { path, .. }))) if path == to
        );
        let state = match (wake, started) {
            (_, true) => ReceiptState::TurnStarted,
            (true, false) => ReceiptState::QueuedForRunningTurn,
            (false, false) => ReceiptState::Stored,
        };
        let result_to = if wake { to.parent() } else { None };
        Ok(Some(Receipt { to, mail: MailId(position), state, result_to }))
    }

    /// All sessions, the newest first.
    pub(crate) async fn list(&self) -> Result<Vec<SessionView>, Refusal> {
        let summaries = self.shared.read(stead_store::Reader::sessions).await?;
        let mut views = Vec::with_capacity(summaries.len());
        for summary in summaries {
            let Ok(Event::World(WorldEvent::SessionStarted(started))) = summary.first else {
                continue;
            };
            let Some(root) = started.roots.first() else { continue };
            if summary.tip <= REFUSED_START && self.was_refused(&summary.id).await? {
                continue;
            }
            views.push(SessionView {
                session: summary.id.clone(),
                label: started.label.clone(),
                directory: root.directory.clone(),
                started: summary.first_at,
                newest: summary.last_at,
                events: summary.tip,
                active: self.active(&summary.id).await,
            });
        }
        Ok(views)
    }

    /// Whether a session never came to be: nothing of it is shown.
    async fn was_refused(&self, session: &SessionId) -> Result<bool, Refusal> {
        let session = session.clone();
        let records = self.shared.read(move |reader| reader.read(&session, 1, 16)).await?;
        Ok(records.iter().any(|record| {
            let event = &record.envelope.event;
            matches!(event, Event::Branch(BranchEvent::AgentRefused { path, .. }) if path.is_root())
        }))
    }

    async fn active(&self, session: &SessionId) -> usize {
        let handle = self.sessions.lock().await.get(session).cloned();
        let Some(handle) = handle else { return 0 };
        let working = |a: &AgentView| a.turn.is_some();
        match handle.ask(Message::Tree).await {
            Ok(tree) => tree.agents.iter().filter(|a| working(a)).count(),
            Err(_) => 0,
        }
    }

    /// The session that a person means: an id, an unambiguous prefix of one or a label; else the
    /// one of a folder with the newest event.
    pub(crate) async fn find(&self, params: FindParams) -> Result<SessionId, Refusal> {
        // One whose start was refused is not listed, and can be asked for by its id.
        if let Some(Ok(id)) = params.name.as_deref().map(SessionId::parse)
            && self.session_exists(&id).await?
        {
            return Ok(id);
        }
        let mut sessions = self.list().await?;
        if let Some(name) = params.name {
            let labelled = |s: &&SessionView| s.label.as_ref().is_some_and(|l| l.as_str() == name);
            if let Some(found) = sessions.iter().find(labelled) {
                return Ok(found.session.clone());
            }
            sessions.retain(|s| s.session.as_str().starts_with(&name));
            return match sessions.as_slice() {
                [one] => Ok(one.session.clone()),
                [] => Err(unknown_session(&name)),
                [first, second, ..] => Err(Refusal::new(
                    RefusalKind::InvalidArgument,
                    format!(
                        "{name} begins several sessions: {}, {}",
                        first.session, second.session
                    ),
                )
                .hint("give more of the id")),
            };
        }
        let directory = params
            .directory
            .ok_or_else(|| Refusal::new(RefusalKind::InvalidArgument, "no session was named"))?;
        let directory =
            std::fs::canonicalize(&directory).unwrap_or_else(|_| PathBuf::from(&directory));
        let here = AbsoluteDir::new(&directory)
            .map_err(|e| Refusal::new(RefusalKind::InvalidArgument, e.to_string()))?;
        sessions
            .iter()
            .filter(|s| here.is_within(&s.directory) || s.directory.is_within(&here))
            .max_by_key(|s| s.newest)
            .map(|s| s.session.clone())
            .ok_or_else(|| {
                Refusal::new(
                    RefusalKind::NotFound,
                    format!("no session works in {}", directory.display()),
                )
                .hint("`stead sessions` lists them all; `--session ID` names one")
            })
    }

    /// Asks the registry of roots, or changes it.
    pub(crate) async fn roots<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Registry) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let shared = self.shared.clone();
        tokio::task::spawn_blocking(move || act(&shared.registry))
            .await
            .map_err(|e| failed(e.to_string()))?
    }

    /// The session as it is.
    pub(crate) async fn tree(&self, session: &SessionId) -> Result<TreeResponse, Refusal> {
        self.session(session).await?.ask(Message::Tree).await
    }

    /// Who serves the home, and which sessions are at work.
    pub(crate) async fn describe(&self) -> EngineResponse {
        EngineResponse {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: self.build.clone(),
            pid: std::process::id(),
            busy: self.busy().await,
        }
    }

    /// The sessions at work.
    pub(crate) async fn busy(&self) -> Vec<SessionId> {
        let handles: Vec<(SessionId, Handle)> =
            self.sessions.lock().await.iter().map(|(id, h)| (id.clone(), h.clone())).collect();
        let mut busy = Vec::new();
        for (id, handle) in handles {
            if matches!(handle.ask(Message::Busy).await, Ok(Busy::Working)) {
                busy.push(id);
            }
        }
        busy
    }

    /// Whether anybody follows a session.
    pub(crate) async fn is_watched(&self) -> bool {
        let watched = |h: &Handle| h.published.receiver_count() > 0;
        self.sessions.lock().await.values().any(watched)
    }

    /// Drops the owners that have ended by themselves.
    pub(crate) async fn forget_closed(&self) {
        self.sessions.lock().await.retain(|_, handle| !handle.is_closed());
    }

    /// Ends every turn and settles it, within bounds; what is left is for recovery.
    pub(crate) async fn end_turns(&self, reason: &str) {
        let handles: Vec<Handle> = self.sessions.lock().await.values().cloned().collect();
        let mut stops = Vec::new();
        for handle in handles {
            let reason = reason.to_owned();
            stops.push(tokio::spawn(async move {
                let stop = handle.ask(|done| Message::Stop { reason, done });
                let _ = timeout(STOP, stop).await;
            }));
        }
        for stop in stops {
            let _ = stop.await;
        }
    }
}

impl Surroundings {
    fn new(environment: ClientEnvironment, attendance: crate::api::Attendance) -> Self {
        let environment =
            environment.into_iter().map(|(k, v)| (OsString::from(k), OsString::from(v)));
        Self { environment: stead_process::environment::scrubbed(environment), attendance }
    }
}

/// The title of task 1: the first line of what the person asked for.
fn title_of(message: &str) -> String {
    let first = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line::cut(&line::one_line(first), LONGEST_TITLE)
}

fn unknown_session(name: &str) -> Refusal {
    Refusal::new(RefusalKind::NotFound, format!("there is no session {name}"))
        .hint("`stead sessions` lists them all")
}

fn failed(line: String) -> Refusal {
    Refusal::new(RefusalKind::Failed, line)
}
