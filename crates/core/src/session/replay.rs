//! The fold of a whole log, rewinds included.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::state::State;
use crate::event::{BranchEvent, Envelope, Event};
use crate::id::{Position, SessionId};
use crate::path::AgentPath;
use crate::roster::Roster;

/// What became of an agent that a rewind dropped.
const REWOUND: &str = "a rewind left it behind";

/// The positions whose branch events are on the way back from the tip, oldest range first.
///
/// `rewinds` are the rewinds' own positions and targets, oldest first. The parent of an event is
/// the one before it; after a rewind it is the rewind's target.
pub fn live(tip: Position, rewinds: &[(Position, Position)]) -> Vec<RangeInclusive<Position>> {
    let mut ranges = Vec::new();
    let mut end = tip;
    // Rewinds after `end` belong to branches that were left behind.
    for (at, to) in rewinds.iter().rev() {
        if *at <= end {
            ranges.push(at.saturating_add(1)..=end);
            end = (*to).min(at.saturating_sub(1));
        }
    }
    ranges.push(1..=end);
    ranges.reverse();
    ranges
}

/// The state after a whole log, in the order of its positions.
///
/// World events are all folded in; branch events only where they are [`live`]. Where two ranges
/// meet a rewind went back, and what it drops is dropped.
pub fn replay(log: &[Envelope]) -> State {
    let mut state = State::default();
    for envelope in log {
        state.pass(envelope);
        if let Event::World(event) = &envelope.event {
            state.world.evolve(envelope.position, event);
        }
    }
    let ranges = live(state.tip, &state.world.rewinds);
    for (number, range) in ranges.iter().enumerate() {
        if number > 0 {
            state.branch.clear_retained();
        }
        for envelope in log.iter().filter(|e| range.contains(&e.position)) {
            if let Event::Branch(event) = &envelope.event {
                state.branch.evolve(envelope, event);
            }
        }
    }
    let roster = &mut state.branch.roster;
    bury(roster, log);
    roster.leave(state.world.started.as_ref().and_then(|started| started.forked.as_ref()));
    state
}

/// What once was there and is not any more answers with what became of it (A5).
fn bury(roster: &mut Roster, log: &[Envelope]) {
    let mut ids: BTreeMap<&AgentPath, &SessionId> = BTreeMap::new();
    for envelope in log {
        match &envelope.event {
            Event::Branch(BranchEvent::AgentReserved { agent, path, .. }) => {
                ids.insert(path, agent);
            }
            Event::Branch(BranchEvent::AgentPublished { path, .. }) => {
                let fate = || REWOUND.to_owned();
                let id = ids.get(path).filter(|id| roster.with_id(id).is_none());
                if let Some(id) = id {
                    let buried = || (path.clone(), fate());
                    roster.gone_ids.entry((*id).clone()).or_insert_with(buried);
                }
                if roster.at(path).is_none() {
                    roster.gone.entry(path.clone()).or_insert_with(fate);
                }
            }
            _ => {}
        }
    }
}
