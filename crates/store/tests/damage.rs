//! Stores of other programs, damaged ones, and what nobody refers to.
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

use std::fs;
use std::path::Path;
use std::time::Duration;

use kit::{append, home, session};
use rusqlite::Connection;
use stead_core::event::{BranchEvent, Event, MailKind, Sender};
use stead_core::id::TurnId;
use stead_core::refusal::RefusalKind;
use stead_store::{Append, Body, Finding, Store, StoreError, Sweep};

fn change(home: &Path, sql: &str) {
    Connection::open(home.join("stead.db")).unwrap().execute_batch(sql).unwrap();
}

fn heard(id: &str, expect: u64, body: &Body) -> Append {
    let mut batch = append(&session(id), expect, &[("", expect + 1)]);
    batch.events[0].event = Event::Branch(BranchEvent::Heard {
        turn: TurnId(1),
        from: Sender::Person,
        mail: None,
        sort: MailKind::User,
        body: body.reference(),
    });
    batch.bodies = vec![body.clone()];
    batch
}

#[test]
fn a_newer_store_is_refused_and_untouched() {
    let home = home();
    drop(Store::open(home.path()).unwrap());
    change(home.path(), "PRAGMA user_version = 7; CREATE TABLE novelty (x)");
    let before = fs::read(home.path().join("stead.db")).unwrap();
    let writer = Store::open(home.path()).err();
    let reader = Store::open_reader(home.path()).err();
    for refused in [writer, reader] {
        let refused = refused.unwrap();
        assert!(matches!(refused, StoreError::Newer { found: 7, known: 1, .. }), "{refused}");
        assert_eq!(refused.refusal().kind, RefusalKind::Unreadable);
    }
    assert_eq!(fs::read(home.path().join("stead.db")).unwrap(), before);
    assert!(!home.path().join("stead.db-wal").exists());
}

#[test]
fn a_database_of_somebody_else_is_refused_and_untouched() {
    let home = home();
    change(home.path(), "CREATE TABLE theirs (x)");
    let before = fs::read(home.path().join("stead.db")).unwrap();
    assert!(matches!(Store::open(home.path()), Err(StoreError::Foreign(_))));
    assert_eq!(fs::read(home.path().join("stead.db")).unwrap(), before);
    fs::write(home.path().join("stead.db"), "not a database, but a longer text than any header")
        .unwrap();
    assert!(matches!(Store::open(home.path()), Err(StoreError::Database { .. })));
    assert!(matches!(Store::open_reader(home.path()), Err(StoreError::Database { .. })));
}

#[test]
fn an_empty_file_that_a_crash_left_becomes_a_store() {
    let home = home();
    fs::write(home.path().join("stead.db"), "").unwrap();
    assert!(matches!(Store::open_reader(home.path()), Err(StoreError::Absent(_))));
    Store::open(home.path()).unwrap().append(append(&session("s"), 0, &[("", 1)])).unwrap();
}

#[test]
fn an_event_of_a_newer_program_is_named_and_kept() {
    let home = home();
    let s = session("s");
    let store = Store::open(home.path()).unwrap();
    store.append(append(&s, 0, &[("", 1), ("", 2), ("", 3)])).unwrap();
    change(home.path(), "UPDATE events SET version = 2, kind = 'dreamt' WHERE position = 2");
    let unreadable = store.reader().read(&s, 1, 10).unwrap_err();
    match &unreadable {
        StoreError::NewerEvent { position: 2, kind, version: 2, .. } => assert_eq!(kind, "dreamt"),
        other => panic!("{other}"),
    }
    assert_eq!(unreadable.refusal().kind, RefusalKind::Unreadable);
    assert_eq!(store.reader().read(&s, 1, 1).unwrap().len(), 1);
    assert_eq!(store.reader().read(&s, 3, 9).unwrap().len(), 1);
}

#[test]
fn events_of_this_program_keep_their_stored_form() {
    let home = home();
    let s = session("s");
    let store = Store::open(home.path()).unwrap();
    store.append(append(&s, 0, &[("", 1)])).unwrap();
    let row: (String, String, u16, String) = Connection::open(home.path().join("stead.db"))
        .unwrap()
        .query_row("SELECT scope, kind, version, body FROM events", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .unwrap();
    // What an older program wrote is what this one reads: a change here needs a new version.
    assert_eq!((&*row.0, &*row.1, row.2), ("branch", "note-set", 1));
    let body: serde_json::Value = serde_json::from_str(&row.3).unwrap();
    assert_eq!(body, serde_json::json!({"owner": "/root", "note": "n1"}));
}

#[test]
fn damage_is_named_by_session_and_position_and_harms_no_other_session() {
    for (sql, position, reason) in [
        ("UPDATE events SET body = '{' WHERE position = 2 AND session = 1", 2, "note-set"),
        ("UPDATE events SET kind = 'gone' WHERE position = 3 AND session = 1", 3, "gone"),
        ("UPDATE events SET scope = 'moon' WHERE position = 1 AND session = 1", 1, "moon"),
        ("DELETE FROM events WHERE position = 2 AND session = 1", 2, "missing"),
        ("UPDATE events SET position = -3 WHERE position = 3 AND session = 1", 3, "missing"),
        ("UPDATE streams SET agent = '..' WHERE session = 1 AND agent = ''", 1, "session id"),
    ] {
        let home = home();
        let (bad, good) = (session("bad"), session("good"));
        let store = Store::open(home.path()).unwrap();
        store.append(append(&bad, 0, &[("", 1), ("", 2), ("", 3), ("", 4)])).unwrap();
        store.append(append(&good, 0, &[("", 1)])).unwrap();
        change(home.path(), sql);
        match store.reader().read(&bad, 1, 10).unwrap_err() {
            StoreError::Corrupt { session, position: at, reason: why } => {
                assert_eq!((session, at), (bad.clone(), position), "{sql}");
                assert!(why.contains(reason), "{sql}: {why}");
            }
            other => panic!("{sql}: {other}"),
        }
        assert_eq!(store.reader().read(&good, 1, 10).unwrap().len(), 1);
        assert_eq!(store.reader().sessions().unwrap().len(), 2, "{sql}");
        store.append(append(&good, 1, &[("", 2)])).unwrap();
        let report = store.reader().check(Duration::ZERO, |_| false).unwrap();
        assert!(!report.is_sound() || sql.contains("'..'"), "{sql}");
        let named = report.findings.iter().all(|finding| match finding {
            Finding::Missing { session, position: at } => (&**session, *at) == ("bad", position),
            Finding::Unreadable { session, .. } => session == "bad",
            _ => false,
        });
        assert!(named, "{sql}: {report:?}");
    }
}

#[test]
fn a_damaged_page_is_an_error_and_no_panic() {
    let home = home();
    let (s, other) = (session("s"), session("other"));
    let store = Store::open(home.path()).unwrap();
    store.append(append(&other, 0, &[("", 1)])).unwrap();
    for tip in 0..300 {
        store.append(append(&s, tip, &[("", tip + 1)])).unwrap();
    }
    drop(store);
    let path = home.path().join("stead.db");
    let bytes = fs::read(&path).unwrap();
    let pages = bytes.len() / 4096;
    let mut refused = 0;
    for page in 1..pages {
        let mut torn = bytes.clone();
        torn[page * 4096..page * 4096 + 600].fill(0xa5);
        fs::write(&path, &torn).unwrap();
        let Ok(reader) = Store::open_reader(home.path()) else { continue };
        refused += u32::from(reader.read(&s, 1, usize::MAX).is_err());
        let report = reader.check(Duration::ZERO, |_| false);
        assert!(report.is_err() || !report.unwrap().is_sound(), "page {page}");
    }
    assert!(refused > 0);
}

#[test]
fn only_what_no_event_refers_to_is_removed() {
    let home = home();
    let store = Store::open(home.path()).unwrap();
    let kept = [Body::new("kept"), Body::new(vec![1; 70_000])];
    let lost = [Body::new("lost"), Body::new(vec![2; 70_000])];
    let theirs = Body::new(vec![3; 70_000]);
    for (expect, body) in (0..).zip(&kept) {
        store.append(heard("s", expect, body)).unwrap();
    }
    let mut strange = append(&session("s"), 2, &[("", 3)]);
    strange.bodies = lost.to_vec();
    store.append(strange).unwrap();
    store.reader().blobs().put(&theirs).unwrap();
    let left = home.path().join("blobs").join("00");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join(".stead-new-1-1"), "half").unwrap();
    fs::write(left.join("a stranger"), "").unwrap();
    let keep = {
        let theirs = theirs.digest();
        move |digest: &_| *digest == theirs
    };
    // A newer program's event keeps what it refers to.
    change(home.path(), "UPDATE events SET kind = 'dreamt', version = 9 WHERE position = 2");

    let report = store.reader().check(Duration::ZERO, keep).unwrap();
    let orphans = report.findings.iter().filter(|f| matches!(f, Finding::Orphan { .. })).count();
    assert_eq!(orphans, 2, "the lost file and the half one: {report:?}");
    let young = store.collect(Sweep::List, Duration::from_hours(1), keep).unwrap();
    assert_eq!(young.len(), 1, "files are left alone while they are young: {young:?}");
    let listed = store.collect(Sweep::List, Duration::ZERO, keep).unwrap();
    assert_eq!(listed.len(), 3, "{listed:?}");
    let removed = store.collect(Sweep::Remove, Duration::ZERO, keep).unwrap();
    assert_eq!(removed, listed);
    assert!(store.collect(Sweep::List, Duration::ZERO, keep).unwrap().is_empty());
    for body in kept.iter().chain([&theirs]) {
        let found = store.reader().body(&body.digest()).unwrap();
        assert_eq!(found.as_deref(), Some(body.bytes()));
    }
    for body in &lost {
        assert_eq!(store.reader().body(&body.digest()).unwrap(), None);
    }
    assert!(left.join("a stranger").exists(), "what is not ours stays");
}

#[test]
fn a_missing_body_is_found() {
    let home = home();
    let store = Store::open(home.path()).unwrap();
    let (row, file) = (Body::new("row"), Body::new(vec![1; 70_000]));
    store.append(heard("s", 0, &row)).unwrap();
    store.append(heard("s", 1, &file)).unwrap();
    assert!(store.reader().check(Duration::ZERO, |_| false).unwrap().findings.is_empty());
    fs::write(store.reader().blobs().path(&file.digest()), vec![1; 69_999]).unwrap();
    let report = store.reader().check(Duration::ZERO, |_| false).unwrap();
    assert_eq!(report.findings.len(), 1, "a cut one is as good as missing: {report:?}");
    change(home.path(), "DELETE FROM bodies");
    fs::remove_file(store.reader().blobs().path(&file.digest())).unwrap();
    let report = store.reader().check(Duration::ZERO, |_| false).unwrap();
    let missing = |position, body: &Body| Finding::MissingBody {
        session: "s".to_owned(),
        position,
        body: body.reference(),
    };
    assert_eq!(report.findings, [missing(1, &row), missing(2, &file)]);
    assert_eq!((report.sessions, report.events), (1, 2));
}
