//! Requests that start, find and look at sessions.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use stead_core::event::Outcome;
use stead_core::id::SessionId;
use stead_core::path::AgentPath;
use tokio::sync::mpsc;

use super::Answer;
use crate::api::{
    EventsParams, Failure, FindParams, ResultResponse, SessionParams, SessionView, StartParams,
    StartResponse, TasksResponse, TreeResponse,
};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::events;
use crate::session::Message;

pub(super) async fn list(State(engine): State<Arc<Engine>>) -> Answer<Vec<SessionView>> {
    Ok(Json(engine.list().await?))
}

pub(super) async fn find(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Query(params): Query<FindParams>,
) -> Answer<SessionParams> {
    if let (Caller::Agent { session, .. }, None) = (&caller, &params.name) {
        return Ok(Json(SessionParams { session: session.clone() }));
    }
    Ok(Json(SessionParams { session: engine.find(params).await? }))
}

pub(super) async fn start(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Json(params): Json<StartParams>,
) -> Answer<StartResponse> {
    caller.require_person("start a session")?;
    Ok(Json(engine.start(params).await?))
}

pub(super) async fn tree(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<SessionId>,
) -> Answer<TreeResponse> {
    caller.check_session(&session)?;
    Ok(Json(engine.tree(&session).await?))
}

pub(super) async fn tasks(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<SessionId>,
) -> Answer<TasksResponse> {
    caller.check_session(&session)?;
    Ok(Json(engine.session(&session).await?.ask(Message::Tasks).await?))
}

#[derive(serde::Deserialize)]
pub(super) struct ResultParams {
    path: AgentPath,
}

pub(super) async fn result(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<SessionId>,
    Query(ResultParams { path }): Query<ResultParams>,
) -> Answer<ResultResponse> {
    caller.check_session(&session)?;
    let settled = engine
        .session(&session)
        .await?
        .ask(|answer| Message::LastResult { path: path.clone(), answer })
        .await??;
    let text = match settled.result {
        Some(body) => {
            engine.shared.read(move |reader| reader.body(&body.digest)).await?.unwrap_or_default()
        }
        None => Vec::new(),
    };
    let outcome: Outcome = settled.outcome;
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(Json(ResultResponse { path, outcome, reason: settled.reason, text }))
}

pub(super) async fn stream(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<SessionId>,
    Query(params): Query<EventsParams>,
) -> Result<Response, Failure> {
    caller.check_session(&session)?;
    if params.attached {
        caller.require_person("answer permission requests")?;
    }
    let handle = engine.session(&session).await?;
    // A client that stops reading stops the stream, not the session.
    let (lines, sent) = mpsc::channel(64);
    tokio::spawn(events::stream(engine, handle, session, params, lines));
    let body = futures_util::stream::unfold(sent, |mut sent| async {
        sent.recv().await.map(|line| (Ok::<Vec<u8>, Infallible>(line), sent))
    });
    let body = axum::body::Body::from_stream(body);
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}
