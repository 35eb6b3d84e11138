//! Requests about what is allowed in a session.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use stead_core::id::SessionId;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::rule::Bucket;
use stead_core::session::Command;

use super::Answer;
use crate::api::{
    GrantsResponse, PermissionsResponse, PermitParams, PermitResponse, RevokeParams, RuleParams,
    RulesResponse,
};
use crate::caller::Caller;
use crate::engine::Engine;

pub(super) async fn list(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<SessionId>,
) -> Answer<PermissionsResponse> {
    caller.check_session(&session)?;
    let settings = engine.shared.rules.clone();
    let handle = engine.session(&session).await?;
    let found = handle.look(|state| PermissionsResponse {
        permissions: state.branch.permissions.values().cloned().collect(),
        grants: state.world.grants.clone(),
        rules: state.world.rules.get(&Bucket::Session).cloned().unwrap_or_default(),
        settings,
    });
    Ok(Json(found.await?))
}

pub(super) async fn permit(
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

pub(super) async fn rule(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<SessionId>,
    Json(params): Json<RuleParams>,
) -> Answer<RulesResponse> {
    caller.require_person("set a rule")?;
    let handle = engine.session(&session).await?;
    // Two changes at once would each miss the other.
    let _alone = engine.ruling.lock().await;
    let known = |state: &stead_core::session::State| {
        state.world.rules.get(&Bucket::Session).cloned().unwrap_or_default()
    };
    let mut rules = handle.look(known).await?;
    match params {
        RuleParams::Add(rule) if rules.contains(&rule) => {}
        RuleParams::Add(rule) => rules.push(rule),
        RuleParams::Remove(rule) => {
            if !rules.contains(&rule) {
                let line = format!("the session has no rule `{rule}`");
                return Err(Refusal::new(RefusalKind::NotFound, line)
                    .hint("`stead permit list` names its rules")
                    .into());
            }
            rules.retain(|known| *known != rule);
        }
    }
    let command = Command::SetRules { bucket: Bucket::Session, rules: rules.clone() };
    handle.run(command, Vec::new(), None, None).await?;
    Ok(Json(RulesResponse { rules }))
}

pub(super) async fn revoke(
    State(engine): State<Arc<Engine>>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<SessionId>,
    Json(RevokeParams { grant }): Json<RevokeParams>,
) -> Answer<GrantsResponse> {
    caller.require_person("take a grant back")?;
    let handle = engine.session(&session).await?;
    handle.run(Command::Revoke { grant }, Vec::new(), None, None).await?;
    let grants = handle.look(|state| state.world.grants.clone()).await?;
    Ok(Json(GrantsResponse { grants }))
}
