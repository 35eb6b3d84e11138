//! Rules and grants as the person sets them and takes them back (A13).

use super::command::Decision;
use super::decide::{done, world};
use super::state::State;
use crate::event::WorldEvent;
use crate::permission::Grant;
use crate::refusal::{Refusal, RefusalKind};
use crate::rule::{Bucket, MOST_RULES, Rule};

pub(super) fn set(state: &State, bucket: Bucket, rules: Vec<Rule>) -> Result<Decision, Refusal> {
    let invalid = |line: String| Err(Refusal::new(RefusalKind::InvalidArgument, line));
    if bucket == Bucket::Delegated {
        return invalid("the rules of a role are frozen with its agents".to_owned());
    }
    if rules.len() > MOST_RULES {
        return invalid(format!("at most {MOST_RULES} rules are taken"));
    }
    if let Some(bad) = rules.iter().find_map(|rule| rule.check().err()) {
        return invalid(bad.to_string());
    }
    let known = state.world.rules.get(&bucket).map(Vec::as_slice).unwrap_or_default();
    if known == rules {
        return Ok(done(Vec::new()));
    }
    Ok(done(vec![world(WorldEvent::RulesSet { bucket, rules })]))
}

/// From then on the same is asked again, by everybody (A13.5).
pub(super) fn revoke(state: &State, grant: Grant) -> Result<Decision, Refusal> {
    if !state.world.grants.contains(&grant) {
        return Err(Refusal::new(RefusalKind::NotFound, "there is no such grant")
            .hint("`stead permit list` names the grants of the session"));
    }
    Ok(done(vec![world(WorldEvent::GrantRevoked { grant })]))
}
