//! Random appends over sessions and streams, against a list in memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests, which clippy does not know as such"
)]

mod kit;

use std::collections::{HashMap, HashSet};
use std::sync::mpsc;

use kit::{append, home, session, stream};
use proptest::collection::vec;
use proptest::prelude::*;
use stead_core::event::{Envelope, Stream};
use stead_core::id::{RequestId, SessionId};
use stead_store::{Append, Body, Record, Store};

const SESSIONS: [&str; 3] = ["s0", "s1", "s2"];
const STREAMS: [&str; 3] = ["", "x", "y"];

/// One append as it is drawn: to which session, where to, and what is wrong with it.
#[derive(Debug, Clone)]
struct Draw {
    session: usize,
    streams: Vec<usize>,
    fault: Fault,
    request: Option<u8>,
    claim: Option<u8>,
    body: Option<usize>,
    /// Submitted together with the next one.
    together: bool,
    /// The store is opened again afterwards.
    reopen: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    StalePosition,
    EarlyPosition,
    StreamNumber,
}

fn draws() -> impl Strategy<Value = Vec<Draw>> {
    let fault = prop_oneof![
        6 => Just(Fault::None),
        1 => Just(Fault::StalePosition),
        1 => Just(Fault::EarlyPosition),
        1 => Just(Fault::StreamNumber),
    ];
    let draw = (
        0..SESSIONS.len(),
        vec(0..STREAMS.len(), 1..5),
        fault,
        proptest::option::weighted(0.3, 0..12_u8),
        proptest::option::weighted(0.2, 0..6_u8),
        proptest::option::weighted(0.3, prop_oneof![0..100_usize, 65_530..65_550_usize]),
        any::<bool>(),
        proptest::bool::weighted(0.05),
    );
    let draw =
        draw.prop_map(|(session, streams, fault, request, claim, body, together, reopen)| Draw {
            session,
            streams,
            fault,
            request,
            claim,
            body,
            together,
            reopen,
        });
    vec(draw, 1..40)
}

/// What must be stored.
#[derive(Default)]
struct Model {
    logs: HashMap<SessionId, Vec<Record>>,
    ids: HashSet<String>,
    bodies: Vec<Body>,
}

impl Model {
    fn log(&self, id: &SessionId) -> &[Record] {
        self.logs.get(id).map_or(&[], Vec::as_slice)
    }

    fn tip(&self, id: &SessionId) -> u64 {
        u64::try_from(self.log(id).len()).unwrap()
    }

    fn seq(&self, id: &SessionId, place: &Stream) -> u64 {
        self.log(id).iter().filter(|r| r.envelope.stream == *place).count().try_into().unwrap()
    }

    /// The append that is drawn and whether it must be stored.
    fn realise(&mut self, draw: &Draw) -> (Append, bool) {
        let id = session(SESSIONS[draw.session]);
        let tip = self.tip(&id);
        let expect = match draw.fault {
            Fault::StalePosition => tip.saturating_sub(1),
            Fault::EarlyPosition => tip + 1,
            _ => tip,
        };
        let mut numbers: HashMap<&str, u64> = HashMap::new();
        let places: Vec<_> = draw
            .streams
            .iter()
            .map(|index| {
                let name = STREAMS[*index];
                let seq = numbers.entry(name).or_insert_with(|| self.seq(&id, &stream(name)));
                *seq += 1;
                (name, *seq + u64::from(draw.fault == Fault::StreamNumber))
            })
            .collect();
        let mut batch = append(&id, expect, &places);
        batch.events[0].request =
            draw.request.map(|number| RequestId::parse(&format!("r{number}")).unwrap());
        batch.claims = draw.claim.iter().map(|n| session(&format!("agent{n}"))).collect();
        batch.bodies = draw.body.iter().map(|length| Body::new(vec![9; *length])).collect();
        let request_is_new = batch.events[0].request.is_none()
            || self.log(&id).iter().all(|r| r.envelope.request != batch.events[0].request);
        let claim_is_new = batch.claims.iter().all(|id| !self.ids.contains(id.as_str()));
        let good =
            expect == tip && draw.fault != Fault::StreamNumber && request_is_new && claim_is_new;
        if good {
            let last = batch.events.len() - 1;
            let records =
                batch.events.iter().enumerate().map(|(index, envelope): (_, &Envelope)| Record {
                    envelope: envelope.clone(),
                    last_of_batch: index == last,
                });
            self.logs.entry(id).or_default().extend(records);
            self.ids.extend(batch.claims.iter().map(|id| id.as_str().to_owned()));
            self.bodies.extend(batch.bodies.iter().cloned());
        }
        (batch, good)
    }

    fn compare(&self, store: &Store) {
        let reader = store.reader();
        assert_eq!(reader.sessions().unwrap().len(), self.logs.len());
        for (id, log) in &self.logs {
            assert_eq!(&reader.read(id, 1, usize::MAX).unwrap(), log);
            assert_eq!(reader.tip(id).unwrap(), Some(self.tip(id)));
            for name in STREAMS {
                let place = stream(name);
                let expected: Vec<_> =
                    log.iter().filter(|r| r.envelope.stream == place).cloned().collect();
                assert_eq!(reader.read_stream(id, &place, 1, usize::MAX).unwrap(), expected);
            }
            for record in log {
                let position = record.envelope.position;
                assert_eq!(reader.is_stable(id, position).unwrap(), record.last_of_batch);
                if let Some(request) = &record.envelope.request {
                    assert_eq!(reader.request(id, request).unwrap(), Some(position));
                }
            }
        }
        for body in &self.bodies {
            assert_eq!(
                reader.body(&body.digest()).unwrap().as_deref(),
                Some(body.bytes()),
                "a body is lost"
            );
        }
        assert!(reader.check(std::time::Duration::ZERO, |_| true).unwrap().is_sound());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_a_list_that_is_never_torn(draws in draws()) {
        let home = home();
        let mut store = Store::open(home.path()).unwrap();
        let mut model = Model::default();
        let mut waiting = Vec::new();
        for draw in draws {
            let (batch, good) = model.realise(&draw);
            let (sender, outcome) = mpsc::channel();
            store.submit(batch, move |result| sender.send(result).unwrap());
            waiting.push((outcome, good));
            if draw.together && !draw.reopen {
                continue;
            }
            for (outcome, good) in waiting.drain(..) {
                let outcome = outcome.recv().unwrap();
                prop_assert_eq!(outcome.is_ok(), good, "{:?}", outcome);
            }
            if draw.reopen {
                drop(store);
                store = Store::open(home.path()).unwrap();
                model.compare(&store);
            }
        }
        for (outcome, good) in waiting.drain(..) {
            prop_assert_eq!(outcome.recv().unwrap().is_ok(), good);
        }
        model.compare(&store);
        drop(store);
        model.compare(&Store::open(home.path()).unwrap());
    }
}
