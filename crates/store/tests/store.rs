//! The store as its users see it, on a real database.
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

use kit::{append, home, note, session};
use stead_core::event::{BranchEvent, Event, Outcome, Stream};
use stead_core::id::{RequestId, TurnId};
use stead_core::path::AgentPath;
use stead_store::{Body, Store, StoreError};

#[test]
fn what_was_appended_is_read_back() {
    let home = home();
    let store = Store::open(home.path()).unwrap();
    let s = session("s");
    let done = store.append(append(&s, 0, &[("", 1), ("s", 1), ("", 2)])).unwrap();
    assert_eq!((done.first, done.last), (1, 3));
    store.append(append(&s, 3, &[("s", 2)])).unwrap();
    let reader = store.reader();
    assert_eq!(reader.tip(&s).unwrap(), Some(4));
    assert_eq!(reader.tip(&session("other")).unwrap(), None);
    let all = reader.read(&s, 1, 100).unwrap();
    assert_eq!(all.iter().map(|r| r.last_of_batch).collect::<Vec<_>>(), [false, false, true, true]);
    assert_eq!(all[1].envelope.event, note(2));
    assert_eq!(reader.read(&s, 2, 2).unwrap(), all[1..3]);
    let talk = reader.read_stream(&s, &Stream::Conversation(s.clone()), 2, 10).unwrap();
    assert_eq!(talk, all[3..]);
    assert!(reader.is_stable(&s, 3).unwrap() && !reader.is_stable(&s, 2).unwrap());
    assert!(!reader.is_stable(&s, u64::MAX).unwrap_or(false));
    let summary = reader.sessions().unwrap().remove(0);
    assert_eq!((summary.id, summary.tip, summary.first), (s, 4, Ok(note(1))));
}

#[test]
fn a_request_is_found_again_and_taken_once() {
    let home = home();
    let store = Store::open(home.path()).unwrap();
    let s = session("s");
    let id = RequestId::parse("r-1").unwrap();
    let mut batch = append(&s, 0, &[("", 1), ("", 2)]);
    batch.events[1].request = Some(id.clone());
    store.append(batch).unwrap();
    assert_eq!(store.reader().request(&s, &id).unwrap(), Some(2));
    let mut again = append(&s, 2, &[("", 3)]);
    again.events[0].request = Some(id);
    let refused = store.append(again).unwrap_err();
    assert!(matches!(refused, StoreError::RequestTaken { position: 2, .. }), "{refused}");
    assert_eq!(store.reader().tip(&s).unwrap(), Some(2));
}

#[test]
fn bodies_short_and_long_come_back_whole() {
    let home = home();
    let store = Store::open(home.path()).unwrap();
    let s = session("s");
    let (short, long) = (Body::new(vec![7; 65536]), Body::new(vec![7; 65537]));
    let mut batch = append(&s, 0, &[("", 1)]);
    batch.bodies = vec![short.clone(), long.clone(), Body::new(Vec::new())];
    store.append(batch).unwrap();
    assert!(store.reader().blobs().path(&long.digest()).is_file());
    assert!(!store.reader().blobs().path(&short.digest()).exists());
    for body in [&short, &long, &Body::new("")] {
        assert_eq!(store.reader().body(&body.digest()).unwrap().as_deref(), Some(body.bytes()));
    }
    assert_eq!(store.reader().body(&Body::new("absent").digest()).unwrap(), None);
    std::fs::write(store.reader().blobs().path(&long.digest()), "cut").unwrap();
    let damaged = store.reader().body(&long.digest()).unwrap_err();
    assert!(matches!(damaged, StoreError::Damaged(_)), "{damaged}");
    let mut again = append(&s, 1, &[("", 2)]);
    again.bodies = vec![long.clone()];
    store.append(again).unwrap();
    assert_eq!(store.reader().body(&long.digest()).unwrap().as_deref(), Some(long.bytes()));
}

#[test]
fn unfinished_work_is_found() {
    let home = home();
    let store = Store::open(home.path()).unwrap();
    let path = AgentPath::root();
    let started =
        Event::Branch(BranchEvent::TurnStarted { path: path.clone(), context: Vec::new() });
    let settled = Event::Branch(BranchEvent::TurnSettled {
        path,
        turn: TurnId(1),
        outcome: Outcome::Completed,
        result: None,
        reason: None,
        worked_until: None,
    });
    for (id, events) in [("running", vec![&started]), ("idle", vec![&started, &settled])] {
        let places: Vec<_> = (1..).zip(&events).map(|(seq, _)| ("", seq)).collect();
        let mut batch = append(&session(id), 0, &places);
        for (envelope, event) in batch.events.iter_mut().zip(events) {
            envelope.event = event.clone();
        }
        store.append(batch).unwrap();
    }
    assert_eq!(store.reader().unfinished().unwrap(), [session("running")]);
}
