//! The engine: the sessions of one home, each with one live owner.

mod find;
mod send;
mod start;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stead_core::id::{RootId, SessionId};
use stead_core::layout::AbsoluteDir;
use stead_core::refusal::{Refusal, RefusalKind};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::api::{EngineResponse, PROTOCOL, RootView, TreeResponse};
use crate::copies::{beside, unmade};
use crate::registry::Registry;
use crate::roots;
use crate::session::{Actor, Busy, Handle, Message, Shared, load};

pub(crate) use find::was_refused;

/// How long a stop waits for turns to end before it leaves them to recovery.
const STOP: Duration = Duration::from_secs(20);

/// The sessions of one home.
pub(crate) struct Engine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) build: String,
    pub(crate) stop: tokio::sync::watch::Sender<bool>,
    /// Held while the rules of a session are changed.
    pub(crate) ruling: Mutex<()>,
    sessions: Mutex<BTreeMap<SessionId, Handle>>,
    used: std::sync::Mutex<Instant>,
}

impl Engine {
    pub(crate) fn new(shared: Arc<Shared>, build: String) -> Arc<Self> {
        let (stop, _) = tokio::sync::watch::channel(false);
        let engine = Arc::new(Self {
            shared,
            build,
            stop,
            ruling: Mutex::default(),
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
        tokio::task::spawn_blocking(move || {
            if let Err(error) = stead_copies::flush_all(&shared.copies) {
                tracing::error!(%error, "copies of an engine that died are not on the disk");
            }
        });
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

    async fn session_exists(&self, session: &SessionId) -> Result<bool, Refusal> {
        let session = session.clone();
        self.shared.read(move |reader| Ok(reader.tip(&session)?.is_some())).await
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

    /// The person says that a folder is the root `id` from now on; one that no copy could be made
    /// of is refused.
    pub(crate) async fn rebind(
        &self,
        id: RootId,
        directory: AbsoluteDir,
    ) -> Result<RootView, Refusal> {
        let shared = self.shared.clone();
        beside(move || {
            let (directory, identity) = roots::look(directory.as_path())?;
            stead_copies::check_root(&shared.copies, &shared.git()?, &directory, identity)
                .map_err(|error| unmade(&error))?;
            shared.registry.rebind(&id, directory.as_path())
        })
        .await
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

fn unknown_session(name: &str) -> Refusal {
    Refusal::new(RefusalKind::NotFound, format!("there is no session {name}"))
        .hint("`stead sessions` lists them all")
}

fn failed(line: String) -> Refusal {
    Refusal::new(RefusalKind::Failed, line)
}
