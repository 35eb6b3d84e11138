//! What is frozen about a new agent at its spawn: role, profile, budget, and what it is given of
//! its parent's conversation.

use stead_agent::port::Configuration;
use stead_core::budget::Budget;
use stead_core::context::Context;
use stead_core::event::Frozen;
use stead_core::id::{BodyRef, CallId, RoleName};
use stead_core::path::AgentPath;
use stead_core::profile::{Profile, Role};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::settings::Settings;
use stead_store::{Body, Reader};

use super::actor::{Actor, Shared};
use super::conversation::{Wanted, body_bytes};
use super::seed;

/// What is frozen about an agent, with the bodies that this names.
pub(super) struct Outfit {
    pub(super) role: Option<RoleName>,
    pub(super) frozen: Box<Frozen>,
    pub(super) bodies: Vec<Body>,
}

/// What of its parent a new agent takes after.
pub(super) struct Parent {
    profile: Option<BodyRef>,
    conversation: Option<Wanted>,
}

impl Actor {
    /// The caller, as an agent that it spawns now takes after it.
    pub(super) fn parent(&self, caller: &AgentPath) -> Parent {
        let agent = self.state.branch.roster.at(caller);
        Parent {
            profile: agent.and_then(|agent| agent.frozen.profile),
            conversation: agent.map(|agent| self.whole_conversation(agent)),
        }
    }
}

/// Whether freezing this reads nothing from the store.
pub(super) fn is_quick(asked: &Configuration) -> bool {
    let named = [&asked.role, &asked.model, &asked.effort].iter().any(|name| name.is_some());
    !named && asked.context == Context::None
}

/// Judges what a call asks for, and freezes it. It may block unless it [`is_quick`].
pub(super) fn freeze(
    shared: &Shared,
    parent: &Parent,
    call: &CallId,
    asked: Configuration,
) -> Result<Outfit, Refusal> {
    let Configuration { role, context, model, effort, budget } = asked;
    let (settings, reader) = (&shared.settings, shared.store.reader());
    let role = role_named(settings, role.as_deref())?;
    let mut bodies = Vec::new();
    let mut frozen = Frozen {
        rules: role.as_ref().map(|(_, role)| role.permissions.rules()).unwrap_or_default(),
        budget: Budget { own: settings.sessions.agent_budget, tree: budget },
        ..Frozen::default()
    };
    if role.is_some() || model.is_some() || effort.is_some() {
        let role = role.as_ref().map(|(_, role)| role);
        for named in model.iter().chain(role.and_then(|role| role.model.as_ref())) {
            check_model(settings, named)?;
        }
        let profile = Profile::spawned(&profile(reader, parent.profile)?, role, model, effort);
        let text = serde_json::to_vec(&profile)
            .map_err(|e| Refusal::new(RefusalKind::Failed, format!("a profile: {e}")))?;
        let body = Body::new(text);
        frozen.profile = Some(body.reference());
        bodies.push(body);
    }
    if let Some(conversation) = &parent.conversation
        && let Some(body) = seed::take(reader, conversation, call, context)?
    {
        frozen.seed = Some(body.reference());
        bodies.push(body);
    }
    Ok(Outfit { role: role.map(|(name, _)| name), frozen: Box::new(frozen), bodies })
}

/// The profile that an agent was frozen with; none: that of an agent without a role.
pub(super) fn profile(reader: &Reader, body: Option<BodyRef>) -> Result<Profile, Refusal> {
    let Some(body) = body else { return Ok(Profile::default()) };
    serde_json::from_slice(&body_bytes(reader, body)?).map_err(|e| {
        Refusal::new(RefusalKind::Unreadable, format!("the profile {}: {e}", body.digest))
            .hint("`stead doctor` lists what is damaged")
    })
}

/// The role that a call names; none: the caller's.
fn role_named(
    settings: &Settings,
    role: Option<&str>,
) -> Result<Option<(RoleName, Role)>, Refusal> {
    let Some(name) = role.filter(|role| *role != "default") else { return Ok(None) };
    let refuse = |line: String| Refusal::new(RefusalKind::InvalidArgument, line);
    let name = RoleName::parse(name).map_err(|error| refuse(error.to_string()))?;
    let role = settings.roles.get(&name).cloned().or_else(|| Role::built_in(&name));
    let Some(role) = role else {
        let configured: Vec<&str> = settings.roles.keys().map(RoleName::as_str).collect();
        let configured = match configured.as_slice() {
            [] => String::new(),
            names => format!("; the settings add {}", names.join(", ")),
        };
        return Err(refuse(format!("there is no role {name}")).hint(format!(
            "leave `role` out to inherit the caller's; stead's own are worker, explorer, reviewer \
             and verifier{configured}"
        )));
    };
    Ok(Some((name, role)))
}

fn check_model(settings: &Settings, name: &str) -> Result<(), Refusal> {
    if settings.models.contains_key(name) {
        return Ok(());
    }
    let shown = stead_core::line::brief(name);
    let line = format!("there is no model {shown}");
    let known: Vec<&str> = settings.models.keys().map(String::as_str).collect();
    Err(Refusal::new(RefusalKind::InvalidArgument, line).hint(match known.as_slice() {
        [] => "leave `model` out: no `[models.NAME]` stands in the settings".to_owned(),
        names => format!("the settings have {}", names.join(", ")),
    }))
}
