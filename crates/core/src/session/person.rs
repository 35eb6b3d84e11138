//! What only the person decides: permission requests, the mode, going back.

use super::command::{Decision, Outcomes};
use super::decide::{control, done, world};
use super::left;
use super::state::State;
use crate::event::{BranchEvent, WorldEvent};
use crate::id::{Label, PermissionId, Position};
use crate::permission::{Answer, Mode, Request, Verdict};
use crate::refusal::{Refusal, RefusalKind};
use crate::roster::Standing;

pub(super) fn permit(state: &State, id: PermissionId, answer: Answer) -> Result<Decision, Refusal> {
    let open = &state.branch.permissions;
    let Some(request) = open.get(&id) else {
        return Err(Refusal::new(
            RefusalKind::NotFound,
            format!("no permission request {id} is open"),
        )
        .hint("`stead permit list` names the open ones"));
    };
    let grant = &request.grant;
    match answer {
        Answer::Withdrawn => {
            return Err(Refusal::new(
                RefusalKind::InvalidArgument,
                "a request is withdrawn by the end of its turn only",
            ));
        }
        Answer::Once | Answer::Session => still_possible(state, request)?,
        Answer::Denied | Answer::Headless => {}
    }
    let mut events = vec![control(BranchEvent::PermissionSettled { id, answer })];
    if answer == Answer::Session {
        // Whoever waits for the same leave has it too (A13).
        events.extend(
            open.values()
                .filter(|other| other.id != id && other.grant == *grant)
                .map(|other| control(BranchEvent::PermissionSettled { id: other.id, answer })),
        );
        events.push(world(WorldEvent::Granted { grant: grant.clone() }));
    }
    Ok(done(events))
}

/// What denies, and the plan ceiling, outlast an answer.
fn still_possible(state: &State, request: &Request) -> Result<(), Refusal> {
    let agent = state.branch.roster.find(&request.path)?;
    let subject = &request.subject;
    let (line, hint) = match state.judge(agent, &request.grant, &[]) {
        Verdict::Allow | Verdict::Ask => return Ok(()),
        Verdict::Forbid => (
            format!("{subject}: the plan ceiling is on"),
            "`stead mode --plan off` lifts it; the request stays open",
        ),
        Verdict::Deny(rule) => (
            format!("{subject}: the rule `{rule}` is in force"),
            "take the rule back first; the request stays open",
        ),
    };
    Err(Refusal::new(RefusalKind::Denied, line).hint(hint))
}

pub(super) fn set_mode(state: &State, mode: Option<Mode>, plan_ceiling: Option<bool>) -> Decision {
    let mode = mode.or(state.world.mode).unwrap_or(Mode::Ask);
    let plan_ceiling = plan_ceiling.unwrap_or(state.world.plan_ceiling);
    if Some(mode) == state.world.mode && plan_ceiling == state.world.plan_ceiling {
        return done(Vec::new());
    }
    done(vec![world(WorldEvent::ModeSet { mode, plan_ceiling })])
}

pub(super) fn rewind(state: &State, to: Position, stable: bool) -> Result<Decision, Refusal> {
    if let Some(busy) = state.branch.roster.all().find(|a| a.standing != Standing::Idle) {
        return Err(Refusal::new(
            RefusalKind::WrongState,
            format!("{} is not idle; a session is rewound when nothing runs", busy.path),
        )
        .hint(format!("`stead stop {}` ends its turn", busy.path)));
    }
    let first = state.first_batch().unwrap_or(Position::MAX);
    if to < first || to > state.tip || !stable {
        return Err(Refusal::new(
            RefusalKind::NotFound,
            format!("position {to} is not the end of a batch of this session"),
        ));
    }
    if to > first && state.root_worked(to) {
        return Err(Refusal::new(
            RefusalKind::WrongState,
            format!("position {to} is inside a turn of /root"),
        )
        .hint("`stead log` names the positions at which its turns ended"));
    }
    let answer = Outcomes::Rewound(left::dropped(state));
    Ok(Decision { events: vec![world(WorldEvent::Rewound { to })], answer })
}

/// A label is what people call a session; it is no name that anything is found by (B2, agents_85).
pub(super) fn rename(state: &State, label: Option<Label>) -> Decision {
    if state.world.label == label {
        return done(Vec::new());
    }
    done(vec![world(WorldEvent::SessionRenamed { label })])
}
