//! HTTP over Unix sockets: routes, and nothing decided.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{ConnectInfo, Path, Query, Request, State};
use axum::http::header;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use stead_core::event::Outcome;
use stead_core::id::{RootId, SessionId, TaskId};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::Command;
use tokio::net::UnixListener;
use tokio::sync::mpsc;

use crate::api::{
    ApplyParams, ApplyResponse, DiscardParams, DiscardResponse, EngineResponse, EventsParams,
    Failure, FindParams, GarbageParams, GarbageResponse, InterruptParams, InterruptResponse,
    ModeParams, ModeResponse, PermitParams, PermitResponse, RebindParams, ResultResponse,
    ReviewParams, ReviewResponse, RootView, SendParams, SendResponse, SessionParams, SessionView,
    StartParams, StartResponse, TasksResponse, TreeResponse,
};
use crate::caller::{Behind, Caller, Peer};
use crate::engine::Engine;
use crate::events;
use crate::registry::Registry;
use crate::session::Message;

/// The largest request body, in bytes: a playbook and a message.
const LARGEST_REQUEST: usize = 32 * 1024 * 1024;

type Answer<T> = Result<Json<T>, Failure>;

#[derive(Clone)]
struct Here {
    engine: Arc<Engine>,
    behind: Behind,
}

/// Serves one socket until the task is dropped.
pub(crate) async fn serve(engine: Arc<Engine>, listener: UnixListener, behind: Behind) {
    let here = Here { engine: engine.clone(), behind };
    let router = Router::new()
        .route("/v1/engine", get(describe))
        .route("/v1/engine/stop", post(stop))
        .route("/v1/find", get(find))
        .route("/v1/garbage", post(collect))
        .route("/v1/roots", get(roots))
        .route("/v1/roots/{root}", post(rebind))
        .route("/v1/sessions", get(list).post(start))
        .route("/v1/sessions/{session}", get(tree))
        .route("/v1/sessions/{session}/tasks", get(tasks))
        .route("/v1/sessions/{session}/tasks/{task}/review", post(review))
        .route("/v1/sessions/{session}/tasks/{task}/apply", post(apply))
        .route("/v1/sessions/{session}/tasks/{task}/discard", post(discard))
        .route("/v1/sessions/{session}/events", get(stream))
        .route("/v1/sessions/{session}/result", get(result))
        .route("/v1/sessions/{session}/messages", post(send))
        .route("/v1/sessions/{session}/interrupts", post(interrupt))
        .route("/v1/sessions/{session}/permissions", post(permit))
        .route("/v1/sessions/{session}/mode", post(mode))
        .fallback(unknown)
        .layer(axum::extract::DefaultBodyLimit::max(LARGEST_REQUEST))
        .layer(from_fn_with_state(here.clone(), identify))
        .with_state(engine);
    let service = router.into_make_service_with_connect_info::<Peer>();
    if let Err(error) = axum::serve(listener, service).await {
        tracing::error!(%error, "a socket is no longer served");
    }
}

async fn identify(
    State(here): State<Here>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    if !here.engine.shared.served.is_there() {
        // What it stored now nobody would find.
        let refusal = Refusal::new(RefusalKind::Unavailable, "the home of this engine was removed")
            .hint("the same command again starts a new engine");
        return Failure(refusal).into_response();
    }
    here.engine.touch();
    let spawner = here.engine.shared.spawners.last().identity();
    let caller = Caller::judge(&here.behind, peer, &spawner);
    request.extensions_mut().insert(caller);
    next.run(request).await
}

async fn unknown() -> Response {
    let refusal = Refusal::new(RefusalKind::NotFound, "this engine has no such request")
        .hint("the client and the engine are of different versions");
    Failure(refusal).into_response()
}

async fn describe(State(engine): State<Arc<Engine>>) -> Json<EngineResponse> {
    Json(engine.describe().await)
}

async fn stop(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
) -> Answer<EngineResponse> {
    caller.require_person("stop the engine")?;
    let described = engine.describe().await;
    let _ = engine.stop.send(true);
    Ok(Json(described))
}

async fn collect(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Json(params): Json<GarbageParams>,
) -> Answer<GarbageResponse> {
    caller.require_person("collect garbage")?;
    Ok(Json(engine.collect(params).await?))
}

async fn list(State(engine): State<Arc<Engine>>) -> Answer<Vec<SessionView>> {
    Ok(Json(engine.list().await?))
}

async fn roots(State(engine): State<Arc<Engine>>) -> Answer<Vec<RootView>> {
    Ok(Json(engine.roots(Registry::list).await?))
}

async fn rebind(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path(root): Path<RootId>,
    Json(RebindParams { directory }): Json<RebindParams>,
) -> Answer<RootView> {
    caller.require_person("rebind a root")?;
    let bound = engine.roots(move |registry| registry.rebind(&root, directory.as_path())).await?;
    Ok(Json(bound))
}

async fn find(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Query(params): Query<FindParams>,
) -> Answer<SessionParams> {
    if let (Caller::Agent { session, .. }, None) = (&caller, &params.name) {
        return Ok(Json(SessionParams { session: session.clone() }));
    }
    Ok(Json(SessionParams { session: engine.find(params).await? }))
}

async fn start(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Json(params): Json<StartParams>,
) -> Answer<StartResponse> {
    caller.require_person("start a session")?;
    Ok(Json(engine.start(params).await?))
}

async fn tree(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<SessionId>,
) -> Answer<TreeResponse> {
    caller.check_session(&session)?;
    Ok(Json(engine.tree(&session).await?))
}

async fn tasks(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<SessionId>,
) -> Answer<TasksResponse> {
    caller.check_session(&session)?;
    Ok(Json(engine.session(&session).await?.ask(Message::Tasks).await?))
}

async fn review(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path((session, task)): Path<(SessionId, TaskId)>,
    Json(params): Json<ReviewParams>,
) -> Answer<ReviewResponse> {
    caller.require_person("review a copy")?;
    Ok(Json(engine.review(&session, task, params).await?))
}

async fn apply(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path((session, task)): Path<(SessionId, TaskId)>,
    Json(params): Json<ApplyParams>,
) -> Answer<ApplyResponse> {
    caller.require_person("apply a copy")?;
    Ok(Json(engine.apply(&session, task, params).await?))
}

async fn discard(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path((session, task)): Path<(SessionId, TaskId)>,
    Json(params): Json<DiscardParams>,
) -> Answer<DiscardResponse> {
    caller.require_person("discard a copy")?;
    Ok(Json(engine.discard(&session, task, params).await?))
}

#[derive(serde::Deserialize)]
struct ResultParams {
    path: AgentPath,
}

async fn result(
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

async fn send(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<SessionId>,
    Json(params): Json<SendParams>,
) -> Answer<SendResponse> {
    Ok(Json(engine.send(&caller, &session, params).await?))
}

async fn interrupt(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<SessionId>,
    Json(InterruptParams { target }): Json<InterruptParams>,
) -> Answer<InterruptResponse> {
    caller.check_session(&session)?;
    let caller = caller.sender()?;
    let handle = engine.session(&session).await?;
    let response = handle.ask(|answer| Message::Interrupt { caller, target, answer }).await??;
    Ok(Json(response))
}

async fn permit(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<SessionId>,
    Json(PermitParams { id, answer }): Json<PermitParams>,
) -> Answer<PermitResponse> {
    caller.require_person("answer a permission request")?;
    let handle = engine.session(&session).await?;
    handle.run(Command::Permit { id, answer }, Vec::new(), None, None).await?;
    Ok(Json(PermitResponse { id }))
}

async fn mode(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<SessionId>,
    Json(ModeParams { mode, plan_ceiling }): Json<ModeParams>,
) -> Answer<ModeResponse> {
    caller.require_person("choose how much is asked")?;
    let handle = engine.session(&session).await?;
    handle.run(Command::SetMode { mode, plan_ceiling }, Vec::new(), None, None).await?;
    let tree = handle.ask(Message::Tree).await?;
    Ok(Json(ModeResponse { mode: tree.mode, plan_ceiling: tree.plan_ceiling }))
}

async fn stream(
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
