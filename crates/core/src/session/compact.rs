//! Compacting an agent's conversation: see [`crate::compaction`].

use super::command::Decision;
use super::decide::{conversation, done};
use super::spawn::check_text;
use super::state::State;
use super::turn::{in_turn, no_open_call};
use crate::event::BranchEvent;
use crate::id::{BodyRef, TurnId};
use crate::path::AgentPath;
use crate::refusal::Refusal;
use crate::usage::Usage;

pub(super) fn compact(
    state: &State,
    path: &AgentPath,
    turn: TurnId,
    through: u64,
    summary: BodyRef,
    usage: Option<Usage>,
) -> Result<Decision, Refusal> {
    let agent = in_turn(state, path, turn)?;
    no_open_call(agent)?;
    check_text("a summary", summary)?;
    agent.cuts.check(through)?;
    let compacted = BranchEvent::Compacted { turn, through, summary, usage };
    Ok(done(vec![conversation(&agent.id, compacted)]))
}
