//! The stored form of every kind of event: what an older program wrote and a newer one reads.

mod newer;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::log::{call, directory, driver, id, path, root, started};
use crate::delegated::{AdmittedCopy, ApplyOutcome, Checkout, Review};
use crate::event::{
    BranchEvent, CallFate, DriverSpec, EVENT_VERSION, Event, MailKind, Outcome, Sender,
    StoredEvent, Unreadable, WorldEvent,
};
use crate::id::{
    ApplyId, BodyRef, Digest, Label, MailId, PermissionId, RoleName, SlotName, TaskId, Timestamp,
    TurnId,
};
use crate::layout::RootIdentity;
use crate::permission::{Answer, Deed, Mode};
use crate::task::{Owner, Status, Task};

const DIGEST: &str = "0707070707070707070707070707070707070707070707070707070707070707";

fn slot() -> SlotName {
    SlotName::parse("app").unwrap()
}

fn text() -> BodyRef {
    BodyRef { digest: Digest::from_bytes([7; 32]), bytes: 12 }
}

/// Every kind, once with all optional fields and once with none where there are any; and the
/// scope, kind and body that this version stores. A line here is a promise: it may be added to,
/// never changed.
fn pinned() -> Vec<(Event, &'static str, &'static str, Value)> {
    let a = || path("/root/a");
    let body_json = || json!({"digest": DIGEST, "bytes": 12});
    let branch = |event, kind, body| (Event::Branch(event), "branch", kind, body);
    let world = |event, kind, body| (Event::World(event), "world", kind, body);
    let ended = |outcome, json: Value| {
        let (task, apply, snapshot) = (TaskId(2), ApplyId(9), text().digest);
        world(
            WorldEvent::ApplyEnded { task, slot: slot(), apply, snapshot, outcome },
            "apply-ended",
            json!({"task": 2, "slot": "app", "apply": 9, "snapshot": DIGEST, "outcome": json}),
        )
    };
    let root_json = json!({"id": "app", "slot": "app", "directory": "/w/app", "access": "write",
        "identity": {"inode": 7}});
    let mut full = started(8);
    full.label = Some(Label::parse("nightly").unwrap());
    full.roots[0].identity = RootIdentity { inode: 7, birth: Some((-1, 5)) };
    full.roots.push(root("lib", "/w/lib"));
    full.roots[1].directory = directory("/w/l\u{e9}");
    full.plan_ceiling = true;
    vec![
        world(
            WorldEvent::SessionStarted(started(8)),
            "session-started",
            json!({"session": "root-session", "roots": [root_json], "placement": "in-place",
                "capacity": 8, "mode": "ask", "plan_ceiling": false}),
        ),
        world(
            WorldEvent::SessionStarted(full),
            "session-started",
            json!({"session": "root-session", "label": "nightly", "roots": [
                {"id": "app", "slot": "app", "directory": "/w/app", "access": "write",
                    "identity": {"inode": 7, "birth": [-1, 5]}},
                {"id": "lib", "slot": "lib", "directory": "/w/l\u{e9}", "access": "write",
                    "identity": {"inode": 7}}],
                "placement": "in-place", "capacity": 8, "mode": "ask", "plan_ceiling": true}),
        ),
        world(WorldEvent::TasksNumbered { last: TaskId(3) }, "tasks-numbered", json!({"last": 3})),
        world(
            WorldEvent::ModeSet { mode: Mode::FullAuto, plan_ceiling: false },
            "mode-set",
            json!({"mode": "full-auto", "plan_ceiling": false}),
        ),
        world(
            WorldEvent::Granted { grant: Deed::Edit("src/lib.rs".to_owned()) },
            "granted",
            json!({"grant": {"edit": "src/lib.rs"}}),
        ),
        world(WorldEvent::Rewound { to: 9 }, "rewound", json!({"to": 9})),
        world(
            WorldEvent::TaskReserved {
                task: TaskId(2),
                owner: a(),
                title: "Fix it".to_owned(),
                blocked_by: BTreeSet::from([TaskId(1)]),
                roots: vec![root("app", "/w/app")],
            },
            "task-reserved",
            json!({"task": 2, "owner": "/root/a", "title": "Fix it", "blocked_by": [1],
                "roots": [root_json]}),
        ),
        world(
            WorldEvent::TaskReserved {
                task: TaskId(2),
                owner: a(),
                title: "Fix it".to_owned(),
                blocked_by: BTreeSet::new(),
                roots: Vec::new(),
            },
            "task-reserved",
            json!({"task": 2, "owner": "/root/a", "title": "Fix it"}),
        ),
        world(
            WorldEvent::TaskAdmitted {
                task: TaskId(2),
                copies: vec![AdmittedCopy {
                    slot: slot(),
                    directory: directory("/h/copies/2/app"),
                    base: text().digest,
                }],
                notes: vec!["left out: a".to_owned()],
            },
            "task-admitted",
            json!({"task": 2, "copies": [
                {"slot": "app", "directory": "/h/copies/2/app", "base": DIGEST}],
                "notes": ["left out: a"]}),
        ),
        world(
            WorldEvent::TaskAdmitted { task: TaskId(2), copies: Vec::new(), notes: Vec::new() },
            "task-admitted",
            json!({"task": 2}),
        ),
        world(
            WorldEvent::TaskRefused { task: TaskId(2), reason: "no".to_owned() },
            "task-refused",
            json!({"task": 2, "reason": "no"}),
        ),
        world(
            WorldEvent::TaskSettled { task: TaskId(2), outcome: Outcome::Completed },
            "task-settled",
            json!({"task": 2, "outcome": "completed"}),
        ),
        world(
            WorldEvent::CopyReviewed {
                task: TaskId(2),
                slot: slot(),
                review: Review {
                    snapshot: text().digest,
                    base: text().digest,
                    checkout: Some(Checkout::Branch("refs/heads/main".to_owned())),
                },
            },
            "copy-reviewed",
            json!({"task": 2, "slot": "app", "review": {"snapshot": DIGEST, "base": DIGEST,
                "checkout": {"branch": "refs/heads/main"}}}),
        ),
        world(
            WorldEvent::CopyReviewed {
                task: TaskId(2),
                slot: slot(),
                review: Review { snapshot: text().digest, base: text().digest, checkout: None },
            },
            "copy-reviewed",
            json!({"task": 2, "slot": "app", "review": {"snapshot": DIGEST, "base": DIGEST}}),
        ),
        world(
            WorldEvent::ApplyBegun { task: TaskId(2), slot: slot(), snapshot: text().digest },
            "apply-begun",
            json!({"task": 2, "slot": "app", "snapshot": DIGEST}),
        ),
        ended(
            ApplyOutcome::Applied { base: text().digest, paths: 3 },
            json!({"state": "applied", "base": DIGEST, "paths": 3}),
        ),
        ended(
            ApplyOutcome::Refused {
                reason: "no".to_owned(),
                conflict: true,
                paths: vec!["a".to_owned()],
                half_way: false,
            },
            json!({"state": "refused", "reason": "no", "conflict": true, "paths": ["a"]}),
        ),
        ended(
            ApplyOutcome::RolledBack {
                cause: "full".to_owned(),
                conflict: false,
                paths: Vec::new(),
                rescue: None,
            },
            json!({"state": "rolled-back", "cause": "full"}),
        ),
        ended(
            ApplyOutcome::RecoveryNeeded {
                cause: "odd".to_owned(),
                paths: Vec::new(),
                rescue: "/h/r".to_owned(),
            },
            json!({"state": "recovery-needed", "cause": "odd", "rescue": "/h/r"}),
        ),
        world(
            WorldEvent::CopyDiscarded { task: TaskId(2), slot: slot() },
            "copy-discarded",
            json!({"task": 2, "slot": "app"}),
        ),
        branch(
            BranchEvent::AgentReserved {
                agent: id("agent-1"),
                path: a(),
                role: Some(RoleName::parse("reviewer").unwrap()),
                driver: DriverSpec { body: Some(text()), ..driver() },
                directory: directory("/w/app"),
                message: Some(text()),
                call: Some(call("call_1")),
                task: Some(TaskId(2)),
                frozen: Box::default(),
            },
            "agent-reserved",
            json!({"agent": "agent-1", "path": "/root/a", "role": "reviewer",
                "driver": {"kind": "playbook", "name": "book.toml", "body": body_json()},
                "directory": "/w/app", "message": body_json(), "call": "call_1", "task": 2}),
        ),
        branch(
            BranchEvent::AgentReserved {
                agent: id("agent-1"),
                path: a(),
                role: None,
                driver: driver(),
                directory: directory("/w/app"),
                message: Some(text()),
                call: None,
                task: None,
                frozen: Box::default(),
            },
            "agent-reserved",
            json!({"agent": "agent-1", "path": "/root/a",
                "driver": {"kind": "playbook", "name": "book.toml"},
                "directory": "/w/app", "message": body_json()}),
        ),
        branch(
            BranchEvent::AgentPublished { path: a(), directory: None },
            "agent-published",
            json!({"path": "/root/a"}),
        ),
        branch(
            BranchEvent::AgentPublished {
                path: a(),
                directory: Some(directory("/h/copies/2/app")),
            },
            "agent-published",
            json!({"path": "/root/a", "directory": "/h/copies/2/app"}),
        ),
        branch(
            BranchEvent::AgentRefused { path: a(), reason: "no".to_owned() },
            "agent-refused",
            json!({"path": "/root/a", "reason": "no"}),
        ),
        branch(
            BranchEvent::TurnStarted { path: a(), context: Vec::new() },
            "turn-started",
            json!({"path": "/root/a"}),
        ),
        branch(
            BranchEvent::TurnSettled {
                path: a(),
                turn: TurnId(7),
                outcome: Outcome::Completed,
                result: None,
                reason: None,
                worked_until: None,
            },
            "turn-settled",
            json!({"path": "/root/a", "turn": 7, "outcome": "completed"}),
        ),
        branch(
            BranchEvent::TurnSettled {
                path: a(),
                turn: TurnId(7),
                outcome: Outcome::Errored,
                result: Some(text()),
                reason: Some("503".to_owned()),
                worked_until: Some(Timestamp(5)),
            },
            "turn-settled",
            json!({"path": "/root/a", "turn": 7, "outcome": "errored", "result": body_json(),
                "reason": "503", "worked_until": 5}),
        ),
        branch(
            BranchEvent::MailStored {
                kind: MailKind::Result,
                from: Sender::Agent(a()),
                to: path("/root"),
                body: text(),
                wake: false,
            },
            "mail-stored",
            json!({"kind": "RESULT", "from": {"agent": "/root/a"}, "to": "/root",
                "body": body_json(), "wake": false}),
        ),
        branch(
            BranchEvent::MailDelivered { to: a(), mail: vec![MailId(8), MailId(9)] },
            "mail-delivered",
            json!({"to": "/root/a", "mail": [8, 9]}),
        ),
        branch(
            BranchEvent::TasksWritten {
                by: Sender::Stead,
                tasks: vec![
                    Task {
                        id: TaskId(1),
                        subject: "one".to_owned(),
                        description: String::new(),
                        status: Status::InProgress,
                        owner: Owner::Main,
                        blocked_by: BTreeSet::new(),
                    },
                    Task {
                        id: TaskId(2),
                        subject: "two".to_owned(),
                        description: "more".to_owned(),
                        status: Status::Pending,
                        owner: Owner::Agent(a()),
                        blocked_by: BTreeSet::from([TaskId(1)]),
                    },
                ],
            },
            "tasks-written",
            json!({"by": "stead", "tasks": [
                {"id": 1, "subject": "one", "status": "in_progress", "owner": "/root"},
                {"id": 2, "subject": "two", "description": "more", "status": "pending",
                    "owner": "/root/a", "blocked_by": [1]}]}),
        ),
        branch(
            BranchEvent::NoteSet { owner: Owner::Bucket("later".to_owned()), note: None },
            "note-set",
            json!({"owner": "later", "note": null}),
        ),
        branch(
            BranchEvent::PermissionAsked {
                path: a(),
                turn: TurnId(7),
                grant: Deed::Command("make".to_owned()),
                subject: "run make".to_owned(),
            },
            "permission-asked",
            json!({"path": "/root/a", "turn": 7, "grant": {"command": "make"},
                "subject": "run make"}),
        ),
        branch(
            BranchEvent::PermissionSettled { id: PermissionId(8), answer: Answer::Session },
            "permission-settled",
            json!({"id": 8, "answer": "session"}),
        ),
        branch(
            BranchEvent::Heard {
                turn: TurnId(7),
                from: Sender::Person,
                mail: None,
                sort: MailKind::User,
                body: text(),
            },
            "heard",
            json!({"turn": 7, "from": "person", "sort": "USER", "body": body_json()}),
        ),
        branch(
            BranchEvent::Heard {
                turn: TurnId(7),
                from: Sender::Agent(a()),
                mail: Some(MailId(6)),
                sort: MailKind::Mail,
                body: text(),
            },
            "heard",
            json!({"turn": 7, "from": {"agent": "/root/a"}, "mail": 6, "sort": "MAIL",
                "body": body_json()}),
        ),
        branch(
            BranchEvent::Said {
                turn: TurnId(7),
                body: text(),
                calls: vec![call("c1")],
                usage: None,
            },
            "said",
            json!({"turn": 7, "body": body_json(), "calls": ["c1"]}),
        ),
        branch(
            BranchEvent::Answered { turn: TurnId(7), call: call("c1"), body: text() },
            "answered",
            json!({"turn": 7, "call": "c1", "body": body_json()}),
        ),
        branch(
            BranchEvent::Unanswered {
                turn: TurnId(7),
                call: call("c1"),
                fate: CallFate::NotStarted,
            },
            "unanswered",
            json!({"turn": 7, "call": "c1", "fate": "not-started"}),
        ),
    ]
    .into_iter()
    .chain(newer::pinned())
    .collect()
}

fn stored(scope: &str, kind: &str, version: u16, body: &str) -> StoredEvent {
    StoredEvent { scope: scope.to_owned(), kind: kind.to_owned(), version, body: body.to_owned() }
}

#[test]
fn every_kind_is_stored_as_it_was_and_reads_back() {
    let mut kinds = BTreeSet::new();
    for (event, scope, kind, body) in pinned() {
        kinds.insert(kind);
        let written = event.encode().unwrap();
        assert_eq!((written.scope.as_str(), written.kind.as_str()), (scope, kind));
        assert_eq!(written.version, EVENT_VERSION);
        assert_eq!(serde_json::from_str::<Value>(&written.body).unwrap(), body, "{kind}");
        assert_eq!(Event::decode(&written).unwrap(), event);
        let old = stored(scope, kind, 1, &body.to_string());
        assert_eq!(Event::decode(&old).unwrap(), event, "{kind}");
        assert_eq!(event.kind(), kind);
    }
    // serde names every kind it knows: none may be missing above.
    for (scope, count) in [("world", 18), ("branch", 23)] {
        let error = Event::decode(&stored(scope, "no-such-kind", 1, "{}")).unwrap_err();
        let message = error.to_string();
        let named: BTreeSet<_> =
            message.split('`').skip(1).step_by(2).filter(|kind| *kind != "no-such-kind").collect();
        assert_eq!(named.len(), count, "{message}");
        assert!(named.is_subset(&kinds), "{named:?} {kinds:?}");
    }
}

#[test]
fn what_a_newer_program_added_is_skipped_and_what_it_changed_is_refused() {
    for (event, scope, kind, mut body) in pinned() {
        body["a_field_of_the_future"] = json!({"x": [1, null]});
        assert_eq!(Event::decode(&stored(scope, kind, 1, &body.to_string())).unwrap(), event);
        let newer = stored(scope, kind, EVENT_VERSION + 1, "what it wrote");
        let expected = Unreadable::Newer { kind: kind.to_owned(), version: EVENT_VERSION + 1 };
        assert_eq!(Event::decode(&newer), Err(expected));
    }
}

#[test]
fn damage_is_named_by_kind_and_never_read() {
    let deep = "[".repeat(100_000);
    let bad = [
        ("world", "no-such-kind", "{}"),
        ("branch", "rewound", "{\"to\":9}"),
        ("world", "heard", "{}"),
        ("nowhere", "rewound", "{\"to\":9}"),
        ("world", "rewound", ""),
        ("world", "rewound", "{\"to\":9"),
        ("world", "rewound", "{\"to\":-1}"),
        ("world", "rewound", "{\"to\":1.5}"),
        ("world", "rewound", "{}"),
        ("world", "rewound", "null"),
        ("world", "rewound", &deep),
        ("branch", "turn-started", "{\"path\":\"/root/A\"}"),
        ("branch", "turn-started", "{\"path\":\"/root/../x\"}"),
        ("branch", "note-set", "{\"owner\":\"/root/\",\"note\":null}"),
        ("branch", "said", "{\"turn\":1,\"body\":{\"digest\":\"zz\",\"bytes\":1},\"calls\":[]}"),
    ];
    for (scope, kind, body) in bad {
        let error = Event::decode(&stored(scope, kind, 1, body)).unwrap_err();
        assert!(matches!(&error, Unreadable::Damaged { kind: named, .. } if named == kind));
        assert!(error.to_string().contains(kind), "{error}");
    }
}

#[test]
fn ids_and_directories_of_a_stored_event_are_parsed_again() {
    let (event, scope, kind, good) =
        pinned().into_iter().find(|(_, _, kind, _)| *kind == "agent-reserved").unwrap();
    let with = |field: &str, value: Value| {
        let mut bad = good.clone();
        bad[field] = value;
        Event::decode(&stored(scope, kind, 1, &bad.to_string()))
    };
    assert_eq!(with("path", json!("/root/a")).unwrap(), event);
    for (field, value) in [
        ("agent", json!("../../etc")),
        ("agent", json!("")),
        ("agent", json!("a/b")),
        ("role", json!("a b")),
        ("call", json!("\u{0}")),
        ("directory", json!("relative")),
        ("directory", json!("/w/../etc")),
        ("directory", json!({"hex": "2f7"})),
        ("directory", json!({"hex": "2F77"})),
        ("message", json!({"digest": DIGEST.replace('7', "A"), "bytes": 1})),
    ] {
        assert!(with(field, value.clone()).is_err(), "{field} {value}");
    }
    assert!(with("directory", json!({"hex": "2f77ff"})).is_ok());
}
