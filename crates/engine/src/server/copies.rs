//! Requests about private copies and the roots they are copies of.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use stead_core::id::{RootId, SessionId, TaskId};

use super::Answer;
use crate::api::{
    ApplyParams, ApplyResponse, DiscardParams, DiscardResponse, RebindParams, ReviewParams,
    ReviewResponse, RootView,
};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::registry::Registry;

pub(super) async fn roots(State(engine): State<Arc<Engine>>) -> Answer<Vec<RootView>> {
    Ok(Json(engine.roots(Registry::list).await?))
}

pub(super) async fn rebind(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path(root): Path<RootId>,
    Json(RebindParams { directory }): Json<RebindParams>,
) -> Answer<RootView> {
    caller.require_person("rebind a root")?;
    let bound = engine.rebind(root, directory).await?;
    Ok(Json(bound))
}

pub(super) async fn review(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path((session, task)): Path<(SessionId, TaskId)>,
    Json(params): Json<ReviewParams>,
) -> Answer<ReviewResponse> {
    caller.require_person("review a copy")?;
    Ok(Json(engine.review(&session, task, params).await?))
}

pub(super) async fn apply(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path((session, task)): Path<(SessionId, TaskId)>,
    Json(params): Json<ApplyParams>,
) -> Answer<ApplyResponse> {
    caller.require_person("apply a copy")?;
    Ok(Json(engine.apply(&session, task, params).await?))
}

pub(super) async fn discard(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path((session, task)): Path<(SessionId, TaskId)>,
    Json(params): Json<DiscardParams>,
) -> Answer<DiscardResponse> {
    caller.require_person("discard a copy")?;
    Ok(Json(engine.discard(&session, task, params).await?))
}
