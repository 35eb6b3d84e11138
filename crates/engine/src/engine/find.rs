//! Which sessions there are, and which one is meant.

use std::path::PathBuf;

use stead_core::event::{BranchEvent, Event, WorldEvent};
use stead_core::id::SessionId;
use stead_core::layout::AbsoluteDir;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_store::{Reader, StoreError};

use super::{Engine, unknown_session};
use crate::api::{AgentView, FindParams, SessionView};
use crate::session::Message;

/// As many events as a session has at most whose start was refused.
const REFUSED_START: u64 = 6;

/// Whether a session of `tip` events never came to be: nothing of it is shown.
pub(crate) fn was_refused(
    reader: &Reader,
    session: &SessionId,
    tip: u64,
) -> Result<bool, StoreError> {
    if tip > REFUSED_START {
        return Ok(false);
    }
    let records = reader.read(session, 1, usize::MAX)?;
    Ok(records.iter().any(|record| {
        let event = &record.envelope.event;
        matches!(event, Event::Branch(BranchEvent::AgentRefused { path, .. }) if path.is_root())
    }))
}

impl Engine {
    /// All sessions, the newest first.
    pub(crate) async fn list(&self) -> Result<Vec<SessionView>, Refusal> {
        Ok(self.listed().await?.into_iter().map(|(view, _)| view).collect())
    }

    /// The same, each with the folders that it works over.
    async fn listed(&self) -> Result<Vec<(SessionView, Vec<AbsoluteDir>)>, Refusal> {
        let summaries = self.shared.read(Reader::sessions).await?;
        let mut views = Vec::with_capacity(summaries.len());
        for summary in summaries {
            let Ok(Event::World(WorldEvent::SessionStarted(started))) = summary.first else {
                continue;
            };
            let Some(root) = started.roots.first() else { continue };
            let (tip, id) = (summary.tip, summary.id.clone());
            if self.shared.read(move |reader| was_refused(reader, &id, tip)).await? {
                continue;
            }
            let view = SessionView {
                session: summary.id.clone(),
                label: started.label.clone(),
                directory: root.directory.clone(),
                started: summary.first_at,
                newest: summary.last_at,
                events: summary.tip,
                active: self.active(&summary.id).await,
            };
            let roots = started.roots.iter().map(|root| root.directory.clone()).collect();
            views.push((view, roots));
        }
        Ok(views)
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
        let mut sessions = self.listed().await?;
        if let Some(name) = params.name {
            let labelled = |s: &SessionView| s.label.as_ref().is_some_and(|l| l.as_str() == name);
            if let Some((found, _)) = sessions.iter().find(|(view, _)| labelled(view)) {
                return Ok(found.session.clone());
            }
            sessions.retain(|(s, _)| s.session.as_str().starts_with(&name));
            return match sessions.as_slice() {
                [(one, _)] => Ok(one.session.clone()),
                [] => Err(unknown_session(&name)),
                [(first, _), (second, _), ..] => Err(Refusal::new(
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
            .filter(|(_, roots)| {
                roots.iter().any(|root| here.is_within(root) || root.is_within(&here))
            })
            .max_by_key(|(view, _)| view.newest)
            .map(|(view, _)| view.session.clone())
            .ok_or_else(|| {
                Refusal::new(
                    RefusalKind::NotFound,
                    format!("no session works in {}", directory.display()),
                )
                .hint("`stead sessions` lists them all; `--session ID` names one")
            })
    }
}
