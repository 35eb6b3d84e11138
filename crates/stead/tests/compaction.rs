//! Compaction in the real engine: what the model is shown changes, what is stored does not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so by panicking"
)]

mod common;

use std::path::Path;
use std::process::Command;

use stead_core::id::SessionId;
use stead_core::path::AgentPath;
use stead_engine::api::EventNotification;
use stead_testkit::until;

use common::{check_told, client, follow, log, message, runtime, start, world};

const PLAYBOOK: &str = r#"
[[agent]]
path = "/root"
summary = "it was about hay"
[[agent.turn]]
when = "begin"
step = [
  { call = [
    { tool = "task_write", with = { tasks = [{ subject = "mow the meadow" }] } },
    { tool = "agent", as = "helper", with = { task_name = "helper", message = "help" } },
  ] },
  { wait = ["{{helper}}"] },
  { say = "begun" },
]
[[agent.turn]]
when = "cut"
step = [
  { call = { tool = "list_agents" } },
  { say = "{{summary}}" },
]
[[agent.turn]]
step = [{ say = "{{summary}}" }]

[[agent]]
path = "/root/*"
[[agent.turn]]
step = [{ say = "helped" }]
"#;

fn kinds(events: &[EventNotification], kind: &str) -> usize {
    events.iter().filter(|event| event.kind == kind).count()
}

#[test]
fn field_ses_08_a_compaction_drops_no_event_and_is_the_same_after_a_crash() {
    let world = world();
    let session = SessionId::parse("long").unwrap();
    let (told, shown) = runtime().block_on(async {
        let client = client(&world).await.unwrap();
        // Longer than any conversation stays.
        let begin = format!("begin {}", "hay ".repeat(110_000));
        client.start(&start(&world, "long", PLAYBOOK, &begin)).await.unwrap();
        let mut told = follow(&client, &session, 0).await;
        let before = told.last().unwrap().position;
        client.send(&session, &message(&world, "m1", "/root", "cut", true)).await.unwrap();
        told.extend(follow(&client, &session, before).await);
        assert_eq!(kinds(&told, "compacted"), 1);
        let end = told.last().unwrap();
        assert_eq!(end.body["outcome"], "completed", "{end:?}");
        let shown = end.text.clone().unwrap();
        (told, shown)
    });
    // What no summary may forget stands beside it, although the summary has no word of it.
    for part in ["it was about hay", "mow the meadow", "/root/helper idle", "first 1 turns"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("hay hay"));
    let positions: Vec<u64> = told.iter().map(|event| event.position).collect();
    assert!(positions.iter().copied().eq(1..=told.last().unwrap().position));
    // The calls behind the cut have names that no call before it had.
    let calls: Vec<String> = told
        .iter()
        .filter(|e| e.kind == "said" && e.conversation.as_ref().is_some_and(AgentPath::is_root))
        .flat_map(|e| e.body["calls"].as_array().cloned().unwrap_or_default())
        .map(|call| call.to_string())
        .collect();
    let distinct: std::collections::BTreeSet<_> = calls.iter().collect();
    assert!(calls.len() >= 3 && distinct.len() == calls.len(), "{calls:?}");

    let engine = world.engine().unwrap();
    assert!(Command::new("kill").args(["-KILL", &engine.to_string()]).status().unwrap().success());
    until("it is gone", || (!Path::new(&format!("/proc/{engine}/exe")).exists()).then_some(()));
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        let stored = log(&client, &session).await.unwrap();
        check_told(&told, &stored, 0);
        assert_eq!(stored.len(), told.len(), "every event of before and no other");
        let before = stored.last().unwrap().position;
        client.send(&session, &message(&world, "m2", "/root", "again", true)).await.unwrap();
        let again = follow(&client, &session, before).await;
        assert_eq!(kinds(&again, "compacted"), 0, "it is short now");
        assert_eq!(again.last().unwrap().text.as_deref(), Some(shown.as_str()));
    });
}
