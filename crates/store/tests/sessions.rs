//! Sessions and ids: created once, moved on by one, found again.
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

use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Instant;

use kit::{append, home, note, session};
use stead_core::event::{BranchEvent, Event, MailKind, Sender, Stream};
use stead_core::path::AgentPath;
use stead_store::{Appended, Body, Store, StoreError};

#[test]
fn agents_77_of_two_creations_at_once_one_wins() {
    let home = home();
    let store = Arc::new(Store::open(home.path()).unwrap());
    for round in 0..50 {
        let start = Arc::new(Barrier::new(2));
        let creators: Vec<_> = [1, 2]
            .map(|events: u64| {
                let (store, start) = (Arc::clone(&store), Arc::clone(&start));
                thread::spawn(move || {
                    let places: Vec<_> = (1..=events).map(|seq| ("", seq)).collect();
                    start.wait();
                    store.append(append(&session(&format!("s{round}")), 0, &places))
                })
            })
            .into_iter()
            .map(|creator| creator.join().unwrap())
            .collect();
        let won: Vec<_> = creators.iter().flatten().collect();
        let lost: Vec<_> = creators.iter().filter_map(|c| c.as_ref().err()).collect();
        assert_eq!((won.len(), lost.len()), (1, 1), "{creators:?}");
        assert!(matches!(lost[0], StoreError::SessionExists(_)), "{}", lost[0]);
        let tip = store.reader().tip(&session(&format!("s{round}"))).unwrap();
        assert_eq!(tip, Some(won[0].last), "the loser leaves nothing");
    }
}

#[test]
fn agents_78_a_stored_session_is_not_created_again() {
    let home = home();
    let s = session("s");
    Store::open(home.path()).unwrap().append(append(&s, 0, &[("", 1), ("s", 1)])).unwrap();
    let store = Store::open(home.path()).unwrap();
    let before = store.reader().read(&s, 1, 10).unwrap();
    let refused = store.append(append(&s, 0, &[("", 1)])).unwrap_err();
    assert!(matches!(&refused, StoreError::SessionExists(id) if *id == s), "{refused}");
    assert_eq!(store.reader().read(&s, 1, 10).unwrap(), before);
}

#[test]
fn agents_86_an_id_that_was_ever_used_is_refused() {
    let home = home();
    let store = Store::open(home.path()).unwrap();
    let (a, b, child) = (session("a"), session("b"), session("child"));
    let mut spawn = append(&a, 0, &[("", 1)]);
    spawn.claims = vec![child.clone()];
    store.append(spawn).unwrap();
    store.append(append(&b, 0, &[("", 1)])).unwrap();
    for (id, expect) in [(&child, 1), (&a, 1), (&b, 1)] {
        let mut forced = append(&b, expect, &[("", 2)]);
        forced.claims = vec![session("fresh"), (*id).clone()];
        let refused = store.append(forced).unwrap_err();
        assert!(matches!(&refused, StoreError::IdTaken(taken) if taken == id), "{refused}");
        assert_eq!(store.reader().tip(&b).unwrap(), Some(1));
    }
    assert_eq!(store.reader().owner(&session("fresh")).unwrap(), None, "nothing of it is kept");
    let refused = store.append(append(&child, 0, &[("", 1)])).unwrap_err();
    assert!(matches!(refused, StoreError::IdTaken(_)), "an agent's id is no new session's");
    assert_eq!(store.reader().owner(&child).unwrap(), Some(a.clone()));
    assert_eq!(store.reader().owner(&b).unwrap(), Some(b));
    assert_eq!(store.reader().read(&a, 1, 10).unwrap().len(), 1);
}

#[test]
fn numbers_that_leave_a_gap_or_go_back_are_refused() {
    let home = home();
    let store = Store::open(home.path()).unwrap();
    let s = session("s");
    store.append(append(&s, 0, &[("", 1), ("s", 1)])).unwrap();
    for expect in [1, 3, u64::MAX / 2, u64::MAX - 2] {
        let refused = store.append(append(&s, expect, &[("", 2)])).unwrap_err();
        assert!(
            matches!(refused, StoreError::Conflict { found: 2, .. } | StoreError::Malformed { .. }),
            "{expect}: {refused}"
        );
    }
    for places in [&[("", 1)][..], &[("", 3)], &[("", 2), ("", 2)], &[("s", 1)], &[("new", 2)], &[]]
    {
        let refused = store.append(append(&s, 2, places)).unwrap_err();
        assert!(matches!(refused, StoreError::Malformed { .. }), "{places:?}: {refused}");
    }
    let mut shifted = append(&s, 2, &[("", 2)]);
    shifted.events[0].position = 4;
    assert!(matches!(store.append(shifted), Err(StoreError::Malformed { position: 3, .. })));
    let refused = store.append(append(&session("absent"), 1, &[("", 2)])).unwrap_err();
    assert!(matches!(refused, StoreError::UnknownSession(_)), "{refused}");
    let unknown = store.reader().read(&session("absent"), 1, 1).unwrap_err();
    assert!(matches!(unknown, StoreError::UnknownSession(_)), "{unknown}");
    assert_eq!(store.append(append(&s, 2, &[("", 2), ("s", 2)])).unwrap().last, 4);
}

#[test]
fn a_refused_append_costs_the_others_of_its_group_nothing() {
    let home = home();
    let store = Store::open(home.path()).unwrap();
    let (sender, outcomes) = mpsc::channel();
    // Submitted at once; whatever way they are grouped, the outcome is the same.
    for (number, expect) in [(1, 0), (2, 0), (2, 1), (2, 7), (1, 1), (3, 0)] {
        let sender = sender.clone();
        let id = session(&format!("s{number}"));
        store.submit(append(&id, expect, &[("", expect + 1)]), move |outcome| {
            sender.send((number, expect, outcome)).unwrap();
        });
    }
    drop(sender);
    for (number, expect, outcome) in outcomes {
        match (number, expect) {
            (2, 7) => assert!(matches!(outcome, Err(StoreError::Conflict { found: 2, .. }))),
            _ => {
                assert_eq!(outcome.unwrap(), Appended { first: expect + 1, last: expect + 1 });
            }
        }
    }
}

#[test]
fn dropping_the_store_stores_what_was_submitted_even_from_a_completion() {
    let home = home();
    let s = session("s");
    let store = Arc::new(Store::open(home.path()).unwrap());
    let last = Arc::clone(&store);
    let (sender, done) = mpsc::channel();
    store.submit(append(&s, 0, &[("", 1)]), move |outcome| {
        // The main thread has dropped its handle by now, or drops it later: both must end.
        drop(last);
        sender.send(outcome).unwrap();
    });
    drop(store);
    done.recv().unwrap().unwrap();
    let tip = (0..500).find_map(|_| {
        thread::sleep(std::time::Duration::from_millis(10));
        Store::open(home.path()).ok().map(|store| store.reader().tip(&s).unwrap())
    });
    assert_eq!(tip, Some(Some(1)));
}

/// Mail to `/root` as the event that stores it.
fn mail(body: &Body) -> Event {
    Event::Branch(BranchEvent::MailStored {
        kind: MailKind::Mail,
        from: Sender::Person,
        to: AgentPath::root(),
        body: body.reference(),
        wake: false,
    })
}

#[test]
fn field_msg_01_fifty_senders_lose_nothing() {
    for _ in 0..20 {
        let home = home();
        let store = Arc::new(Store::open(home.path()).unwrap());
        let s = session("lead");
        store.append(append(&s, 0, &[("", 1)])).unwrap();
        let senders: Vec<_> = (0..50)
            .map(|number| {
                let (store, s) = (Arc::clone(&store), s.clone());
                thread::spawn(move || {
                    let body = Body::new(format!("m{number}"));
                    loop {
                        let tip = store.reader().tip(&s).unwrap().unwrap();
                        let mut batch = append(&s, tip, &[("", tip + 1)]);
                        batch.events[0].event = mail(&body);
                        batch.bodies = vec![body.clone()];
                        match store.append(batch) {
                            Ok(done) => return done.first,
                            Err(StoreError::Conflict { .. }) => {}
                            Err(other) => panic!("{other}"),
                        }
                    }
                })
            })
            .collect();
        let mut ids: Vec<_> = senders.into_iter().map(|s| s.join().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(ids, (2..=51).collect::<Vec<_>>());
        let mut texts: Vec<_> = store
            .reader()
            .read(&s, 2, 100)
            .unwrap()
            .into_iter()
            .map(|record| match record.envelope.event {
                Event::Branch(BranchEvent::MailStored { body, .. }) => {
                    String::from_utf8(store.reader().body(&body.digest).unwrap().unwrap()).unwrap()
                }
                other => panic!("{other:?}"),
            })
            .collect();
        texts.sort();
        let mut sent: Vec<_> = (0..50).map(|number| format!("m{number}")).collect();
        sent.sort();
        assert_eq!(texts, sent);
    }
}

#[test]
fn field_msg_04_handled_mail_does_not_slow_down_new_mail() {
    let home = home();
    let store = Store::open(home.path()).unwrap();
    let s = session("lead");
    let send = |tip: u64, count: u64| {
        let places: Vec<_> = (tip + 1..=tip + count).map(|seq| ("", seq)).collect();
        let mut batch = append(&s, tip, &places);
        for (number, envelope) in (tip..).zip(&mut batch.events) {
            let body = Body::new(format!("{number:02048}"));
            envelope.event = mail(&body);
            batch.bodies.push(body);
        }
        store.append(batch).unwrap().last
    };
    let last_one = |tip: u64| {
        let began = Instant::now();
        let last = send(tip, 1);
        let record = store.reader().read(&s, last, 10).unwrap().remove(0);
        let Event::Branch(BranchEvent::MailStored { body, .. }) = record.envelope.event else {
            panic!("{record:?}")
        };
        let text = store.reader().body(&body.digest).unwrap().unwrap();
        assert_eq!(text, format!("{tip:02048}").into_bytes());
        assert_eq!(store.reader().tip(&s).unwrap(), Some(last));
        (last, began.elapsed())
    };
    let (mut tip, _) = last_one(0);
    for _ in 0..50 {
        tip = send(tip, 100);
    }
    let (_, slow) = last_one(tip);
    assert!(slow.as_secs() < 1, "{slow:?}");
    // The whole cost of one more stays a few reads of an index, which no clock shows reliably:
    // the plan of the query does.
    let plan: Vec<String> = rusqlite::Connection::open(home.path().join("stead.db"))
        .unwrap()
        .prepare(
            "EXPLAIN QUERY PLAN SELECT body FROM events WHERE session = 1 AND position >= 5000
             ORDER BY position LIMIT 1",
        )
        .unwrap()
        .query_map([], |row| row.get(3))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(plan.iter().all(|line| line.contains("USING INDEX")), "{plan:?}");
}

#[test]
fn a_stream_is_read_by_its_own_numbers() {
    let home = home();
    let store = Store::open(home.path()).unwrap();
    let s = session("s");
    store.append(append(&s, 0, &[("", 1), ("s", 1), ("child", 1), ("s", 2)])).unwrap();
    let numbers = |stream: &Stream, from| {
        let records = store.reader().read_stream(&s, stream, from, 10).unwrap();
        records.iter().map(|r| (r.envelope.seq, r.envelope.position)).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&Stream::Control, 0), [(1, 1)]);
    assert_eq!(numbers(&Stream::Conversation(s.clone()), 0), [(1, 2), (2, 4)]);
    assert_eq!(numbers(&Stream::Conversation(s.clone()), 3), []);
    assert_eq!(numbers(&Stream::Conversation(session("none")), 1), []);
    assert_eq!(store.reader().read(&s, 3, 1).unwrap()[0].envelope.event, note(3));
}
