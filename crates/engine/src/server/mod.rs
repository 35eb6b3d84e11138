//! HTTP over Unix sockets: routes, and nothing decided.

mod copies;
mod permissions;
mod sessions;
mod steering;

use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use stead_core::refusal::{Refusal, RefusalKind};
use tokio::net::UnixListener;

use crate::api::{EngineResponse, Failure, GarbageParams, GarbageResponse};
use crate::caller::{Behind, Caller, Peer};
use crate::engine::Engine;

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
        .route("/v1/find", get(sessions::find))
        .route("/v1/garbage", post(collect))
        .route("/v1/roots", get(copies::roots))
        .route("/v1/roots/{root}", post(copies::rebind))
        .route("/v1/sessions", get(sessions::list).post(sessions::start))
        .route("/v1/sessions/{session}", get(sessions::tree))
        .route("/v1/sessions/{session}/tasks", get(sessions::tasks))
        .route("/v1/sessions/{session}/tasks/{task}/review", post(copies::review))
        .route("/v1/sessions/{session}/tasks/{task}/apply", post(copies::apply))
        .route("/v1/sessions/{session}/tasks/{task}/discard", post(copies::discard))
        .route("/v1/sessions/{session}/events", get(sessions::stream))
        .route("/v1/sessions/{session}/result", get(sessions::result))
        .route("/v1/sessions/{session}/messages", post(steering::send))
        .route("/v1/sessions/{session}/interrupts", post(steering::interrupt))
        .route(
            "/v1/sessions/{session}/permissions",
            get(permissions::list).post(permissions::permit),
        )
        .route("/v1/sessions/{session}/rules", post(permissions::rule))
        .route("/v1/sessions/{session}/revocations", post(permissions::revoke))
        .route("/v1/sessions/{session}/mode", post(steering::mode))
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
