//! What a role leaves an agent: tools that it does not have are neither shown to it nor run.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // the helpers of tests are not exempt by themselves

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{World, call, replies, results, run, say};
use serde_json::json;
use stead_core::profile::Profile;

#[tokio::test]
async fn a_tool_that_the_role_does_not_have_is_neither_shown_nor_run() {
    let world = World::new();
    let mut turn = world.turn();
    turn.profile = Profile {
        instructions: Some("Look, and touch nothing.".to_owned()),
        tools: Some(vec!["read".to_owned(), "agent".to_owned()]),
        delegates: false,
        ..Profile::default()
    };
    let shown = Arc::new(Mutex::new(Vec::new()));
    let seen = shown.clone();
    run(turn, Duration::from_secs(10), move |request| {
        let names = request.tools.iter().map(|tool| tool.name.clone());
        seen.lock().unwrap().extend(names);
        assert!(request.instructions.contains("touch nothing"));
        Ok(match replies(request) {
            0 => call("a", "bash", json!({ "command": "touch ran" })),
            1 => call("b", "agent", json!({ "task_name": "x", "message": "y" })),
            2 => call("c", "no_such", json!({})),
            _ => say("done"),
        })
    })
    .await;
    assert_eq!(shown.lock().unwrap()[..3], ["read", "send_message", "list_agents"]);
    let results = results(&world.state().entries);
    assert!(results.iter().all(|result| result.failed), "{results:?}");
    assert!(results[0].text.contains("your role has no tool `bash`"), "{results:?}");
    assert!(results[1].text.contains("your role has no tool `agent`"), "{results:?}");
    assert!(results[2].text.contains("there is no tool `no_such`"), "{results:?}");
    assert!(!world.app().join("ran").exists());
    assert!(!world.state().asked.iter().any(|asked| asked.starts_with("tool")));
}
