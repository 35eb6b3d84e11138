use serde_json::json;
use stead_core::event::Outcome;
use stead_core::id::SessionId;
use stead_engine::api::{EventNotification, TasksResponse, TreeResponse};

use super::*;
use crate::clean;

fn tree() -> TreeResponse {
    let agent = |path: &str, activity: &str| {
        json!({
            "path": path, "agent": path.replace('/', "-").trim_start_matches('-'),
            "activity": activity, "turn": null, "turns": 1, "outcome": null, "reason": null,
            "unread": 0, "directory": "/w", "driver": "p", "open_tasks": 0, "note": null
        })
    };
    serde_json::from_value(json!({
        "session": "0192a3b4", "label": null, "roots": [], "placement": "in-place",
        "mode": "ask", "plan_ceiling": false, "capacity": 8, "tip": 10,
        "agents": [
            agent("/root", "waiting"),
            agent("/root/fix-parser", "running"),
            agent("/root/fix-server", "permission-blocked"),
            agent("/root/fix-server/helper", "idle"),
        ],
        "permissions": [
            { "id": 7, "path": "/root/fix-server", "turn": 4,
              "grant": { "command": "make" }, "subject": "run make\u{1b}[2J" },
            { "id": 9, "path": "/root/fix-parser", "turn": 5,
              "grant": { "command": "ls" }, "subject": "run ls" },
        ],
    }))
    .unwrap()
}

fn fold() -> Fold {
    let tasks: TasksResponse = serde_json::from_value(json!({
        "tasks": [
            { "id": 1, "subject": "a", "status": "pending", "owner": "/root/fix-parser" },
            { "id": 2, "subject": "b", "status": "completed", "owner": "/root/fix-parser" },
        ],
        "notes": [],
    }))
    .unwrap();
    let mut fold = Fold::new(&tree(), &tasks);
    let path = AgentPath::parse("/root/fix-parser").unwrap();
    let agent = fold.agents.get_mut(&path).unwrap();
    agent.since = Some(Timestamp(1000));
    agent.last = "bash cargo test 日本語日本語日本語日本語日本語日本語日本語".to_owned();
    agent.unread = 2;
    let path = AgentPath::parse("/root/fix-server/helper").unwrap();
    let agent = fold.agents.get_mut(&path).unwrap();
    agent.outcome = Some(Outcome::Errored);
    agent.reason = Some("the model is gone".to_owned());
    fold
}

fn drawn(fold: &Fold, width: usize, height: usize, notice: Option<&str>) -> String {
    let (now, began) = (Timestamp(68_000), Timestamp(0));
    let rows = view(fold, &Frame { width, height, now, began, notice, outlives: true });
    assert!(rows.len() <= height);
    let mut text = String::new();
    for row in rows {
        let line: String = row.into_iter().map(|(_, text)| text).collect();
        assert!(line.chars().map(clean::columns).sum::<usize>() <= width, "{line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[test]
fn agents_and_what_waits_for_the_person_are_shown() {
    insta::assert_snapshot!(drawn(&fold(), 79, 20, None));
}

#[test]
fn a_small_terminal_keeps_those_at_work_and_the_question() {
    insta::assert_snapshot!(drawn(&fold(), 40, 6, Some("leaving")));
    for (width, height) in [(10, 1), (10, 2), (1, 3), (300, 3)] {
        drawn(&fold(), width, height, None);
    }
}

fn event(position: u64, kind: &str, body: serde_json::Value) -> EventNotification {
    EventNotification {
        position,
        at: Timestamp(5000),
        conversation: None,
        kind: kind.to_owned(),
        body,
        text: None,
        calls: Vec::new(),
        failed: false,
        by: None,
    }
}

#[test]
fn events_change_what_is_known_once() {
    let mut fold = fold();
    let session = SessionId::parse("0192a3b4").unwrap();
    assert_eq!(fold.session, session);
    let settled = |path: &str| json!({ "path": path, "turn": 1, "outcome": "completed" });
    // What the tree had already is not taken twice.
    assert!(fold.apply(&event(10, "turn-settled", settled("/root"))));
    assert_eq!(fold.at_work(), 3);
    assert!(fold.apply(&event(11, "permission-settled", json!({ "id": 7, "answer": "once" }))));
    assert_eq!(fold.permissions.len(), 1);
    for (position, path) in [(12, "/root/fix-server"), (13, "/root/fix-parser"), (14, "/root")] {
        assert!(!fold.is_idle());
        assert!(fold.apply(&event(position, "turn-settled", settled(path))));
    }
    assert!(fold.is_idle());
    assert!(fold.apply(&event(15, "turn-started", json!({ "path": "/root" }))));
    assert!(!fold.is_idle());
    assert!(!fold.apply(&event(16, "rewound", json!({ "to": 3 }))), "the engine is asked again");
}
