//! The fold of a whole log, rewinds included.

use std::ops::RangeInclusive;

use super::state::State;
use crate::event::{BranchEvent, Envelope, Event};
use crate::id::Position;

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
                state.branch.evolve(envelope.position, &envelope.stream, event);
            }
        }
    }
    let roster = &mut state.branch.roster;
    for envelope in log {
        if let Event::Branch(BranchEvent::AgentPublished { path, .. }) = &envelope.event
            && roster.at(path).is_none()
        {
            let fate = || "a rewind left it behind".to_owned();
            roster.gone.entry(path.clone()).or_insert_with(fate);
        }
    }
    state
}
