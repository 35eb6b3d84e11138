//! Requests that steer a session while it runs.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use stead_core::id::SessionId;
use stead_core::session::Command;

use super::Answer;
use crate::api::{
    InterruptParams, InterruptResponse, ModeParams, ModeResponse, SendParams, SendResponse,
};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::session::Message;

pub(super) async fn send(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<SessionId>,
    Json(params): Json<SendParams>,
) -> Answer<SendResponse> {
    Ok(Json(engine.send(&caller, &session, params).await?))
}

pub(super) async fn interrupt(
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

pub(super) async fn mode(
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
