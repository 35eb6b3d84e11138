use serde_json::{Value, json};
use stead_core::id::Timestamp;
use stead_core::path::AgentPath;

use super::*;

fn notification(
    kind: &str,
    body: Value,
    text: Option<&str>,
    who: Option<&str>,
) -> EventNotification {
    EventNotification {
        position: 9,
        at: Timestamp(0),
        conversation: who.map(|who| AgentPath::parse(who).unwrap()),
        kind: kind.to_owned(),
        body,
        text: text.map(str::to_owned),
        calls: Vec::new(),
        failed: false,
        by: None,
    }
}

fn lines(teller: &mut Teller, events: &[EventNotification]) -> String {
    let told = events.iter().filter_map(|event| teller.tell(event));
    told.map(|said| [said.who, said.what].join(" ")).collect::<Vec<_>>().join("\n")
}

fn body_ref() -> Value {
    json!({ "digest": "00".repeat(32), "bytes": 1 })
}

fn story() -> Vec<EventNotification> {
    let reserved = json!({
        "agent": "a1", "path": "/root/fix", "directory": "/w", "message": body_ref(),
        "driver": { "kind": "playbook", "name": "p.toml" }
    });
    let said = "Let me \u{1b}[1msee\u{1b}[0m.";
    let calls = json!([
        { "id": "c1", "tool": "bash", "arguments": { "command": "cargo\n test" } },
        { "id": "c2", "tool": "task_write", "arguments": { "tasks": [{}, {}] } }
    ]);
    let spoken = json!({ "turn": 3, "body": body_ref(), "calls": [] });
    let task = json!({
        "id": 2, "subject": "Check it", "status": "in_progress", "owner": "/root/fix"
    });
    let asked = json!({
        "path": "/root/fix", "turn": 3, "grant": { "command": "make" }, "subject": "run make"
    });
    let mail = json!({
        "kind": "USER", "from": "person", "to": "/root/fix", "body": body_ref(), "wake": true
    });
    let result = "exit status 1\n\u{1b}]0;x\u{7}no";
    let settled =
        json!({ "path": "/root/fix", "turn": 3, "outcome": "completed", "result": body_ref() });
    let errored = json!({
        "path": "/root/fix", "turn": 3, "outcome": "errored", "reason": "the model is gone"
    });
    let fix = Some("/root/fix");
    vec![
        notification("agent-reserved", reserved, Some("Repair\nthe parser."), None),
        notification("agent-published", json!({ "path": "/root/fix" }), None, None),
        notification("turn-started", json!({ "path": "/root/fix" }), None, None),
        EventNotification {
            calls: serde_json::from_value(calls).unwrap(),
            ..notification("said", spoken.clone(), Some(said), fix)
        },
        notification("permission-asked", asked, None, None),
        notification("permission-settled", json!({ "id": 9, "answer": "session" }), None, None),
        EventNotification {
            failed: true,
            ..notification(
                "answered",
                json!({ "turn": 3, "call": "c1", "body": body_ref() }),
                Some(result),
                fix,
            )
        },
        notification(
            "unanswered",
            json!({ "turn": 3, "call": "c2", "fate": "unknown" }),
            None,
            fix,
        ),
        notification(
            "tasks-written",
            json!({ "by": { "agent": "/root/fix" }, "tasks": [task] }),
            None,
            None,
        ),
        notification("note-set", json!({ "owner": "/root/fix", "note": "half way" }), None, None),
        notification("mail-stored", mail, Some("Hurry."), None),
        notification("mail-delivered", json!({ "to": "/root/fix", "mail": [12] }), None, None),
        notification("said", spoken, Some("Done."), fix),
        notification("turn-settled", settled, Some("Done."), None),
        notification("turn-settled", errored, Some("half"), None),
        notification("invented-later", json!({}), None, None),
    ]
}

#[test]
fn a_plain_log_has_one_line_an_event() {
    let text = lines(&mut Teller::default(), &story());
    assert!(text.lines().all(|line| !line.chars().any(char::is_control)), "{text:?}");
    insta::assert_snapshot!(text);
}

#[test]
fn who_does_not_hear_agents_speak_is_told_their_last_words() {
    let text = lines(&mut Teller::terse(), &story());
    assert!(text.contains("/root/fix completed: Done."), "{text}");
}
