//! Any sequence of commands, possible or not, keeps what the specification promises.

use proptest::prelude::*;

use super::invariants::check;
use super::log::Log;
use super::steps::{Step, step};
use crate::event::{Envelope, Event};
use crate::roster::Standing;
use crate::session::{Command, Evolved, Outcomes, State, World, decide, replay, take};

/// How many sequences each property tries, and how long they are at most.
const CASES: u32 = 256;
const LONGEST: usize = 64;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..LONGEST)
}

/// A session of either placement.
fn session(capacity: u16, copies: bool) -> Log {
    if copies { Log::in_copies(capacity) } else { Log::new(capacity) }
}

fn run(capacity: u16, steps: &[Step]) -> Log {
    // Half of them, by something that the steps say.
    let mut log = session(capacity, steps.len().is_multiple_of(2));
    for step in steps {
        let command = step.on(&log);
        let _ = log.give(command);
    }
    log
}

/// The state after folding in all of `log` that comes after `state`, as an engine does.
fn fold(mut state: State, log: &[Envelope]) -> State {
    let from = usize::try_from(state.tip).unwrap();
    for (number, envelope) in log.iter().enumerate().skip(from) {
        if state.evolve(envelope) == Evolved::Replay {
            state = replay(&log[..=number]);
        }
    }
    state
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn no_sequence_of_commands_breaks_what_holds(
        capacity in 1_u16..5,
        copies in any::<bool>(),
        steps in steps(),
    ) {
        let mut log = session(capacity, copies);
        check(&log);
        for step in steps {
            let command = step.on(&log);
            let before = (log.state.clone(), log.log.len());
            match log.give(command.clone()) {
                Ok(_) => check(&log),
                // Refused: nothing changed, and asked again the answer is the same.
                Err(refusal) => {
                    prop_assert_eq!(&(log.state.clone(), log.log.len()), &before);
                    prop_assert_eq!(decide(&log.state, command), Err(refusal));
                }
            }
            prop_assert_eq!(&replay(&log.log), &log.state);
        }
    }

    #[test]
    fn the_log_is_the_state_however_it_is_folded(
        steps in steps(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let log = run(3, &steps);
        let whole = replay(&log.log);
        prop_assert_eq!(&whole, &log.state);
        prop_assert_eq!(&replay(&log.log), &whole);
        prop_assert_eq!(&fold(State::default(), &log.log), &whole);
        for cut in cuts {
            let head = &log.log[..cut.index(log.log.len())];
            let part = fold(State::default(), head);
            prop_assert_eq!(&part, &replay(head));
            prop_assert_eq!(&fold(part, &log.log), &whole);
        }
    }

    #[test]
    fn world_events_never_read_branch_state(
        steps in steps(),
        seed in prop::collection::vec(any::<prop::sample::Index>(), 32),
    ) {
        let log = run(3, &steps);
        // The world events alone.
        let mut world = World::default();
        for envelope in &log.log {
            if let Event::World(event) = &envelope.event {
                world.evolve(envelope.position, event);
            }
        }
        prop_assert_eq!(&world, &log.state.world);
        // All branch events dropped, or in any other order.
        let mut dropped = log.log.clone();
        dropped.retain(|e| matches!(e.event, Event::World(_)));
        prop_assert_eq!(&replay(&dropped).world, &world);
        let mut shuffled = log.log.clone();
        let branch: Vec<usize> = (0..shuffled.len())
            .filter(|at| matches!(shuffled[*at].event, Event::Branch(_)))
            .collect();
        for pair in seed.chunks(2) {
            let (a, b) = (branch[pair[0].index(branch.len())], branch[pair[1].index(branch.len())]);
            let (left, right) = (shuffled[a].clone(), shuffled[b].clone());
            shuffled[a].event = right.event;
            shuffled[a].stream = right.stream;
            shuffled[b].event = left.event;
            shuffled[b].stream = left.stream;
        }
        prop_assert_eq!(&replay(&shuffled).world, &world);
    }

    #[test]
    fn everything_is_stored_and_read_back(steps in steps()) {
        let log = run(3, &steps);
        for envelope in &log.log {
            let stored = envelope.event.encode().unwrap();
            prop_assert_eq!(&Event::decode(&stored).unwrap(), &envelope.event);
            let text = serde_json::to_string(envelope).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Envelope>(&text).unwrap(), envelope);
        }
    }

    /// Wherever a fork may be taken, it holds what a session holds, and it is the same however it
    /// is folded.
    #[test]
    fn a_fork_from_anywhere_is_a_session(
        steps in steps(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..3),
        after in prop::collection::vec(step(), 0..12),
    ) {
        let source = run(3, &steps);
        for cut in cuts {
            let at = u64::try_from(cut.index(source.log.len())).unwrap() + 1;
            let Ok(taken) = take(&source.log, at, true) else { continue };
            let mut child = Log::default();
            let session = super::log::id("fork");
            let fork = Command::Fork { session, label: None, taken: Box::new(taken) };
            child.ok(fork);
            let root = crate::path::AgentPath::root();
            if child.state.branch.roster.find(&root).is_err() {
                let admission = child.admission(&root);
                child.ok(Command::Publish { path: root, admission });
            }
            check(&child);
            prop_assert_eq!(&replay(&child.log), &child.state);
            for step in &after {
                let command = step.on(&child);
                let _ = child.give(command);
            }
            check(&child);
            prop_assert_eq!(&replay(&child.log), &child.state);
            prop_assert_eq!(&fold(State::default(), &child.log), &child.state);
        }
    }

    #[test]
    fn from_anywhere_a_recovery_leaves_all_idle(steps in steps()) {
        let mut log = run(3, &steps).restarted();
        log.ok(super::recovery::recover());
        check(&log);
        prop_assert!(log.state.branch.roster.all().all(|a| a.standing == Standing::Idle));
        prop_assert!(log.state.branch.permissions.is_empty());
        let length = log.log.len();
        let again = log.ok(super::recovery::recover());
        prop_assert_eq!(again, Outcomes::Recovered { turns: 0, reservations: 0 });
        prop_assert_eq!(log.log.len(), length);
        // And from there everything goes on: the person is heard, and the session can go back.
        log.send("person", "/root", true).unwrap();
        log.deliver("/root");
        log.complete("/root");
        let to = log.state.tip;
        log.ok(Command::Rewind { to, stable: true });
        check(&log);
        prop_assert_eq!(&replay(&log.log), &log.state);
    }
}
