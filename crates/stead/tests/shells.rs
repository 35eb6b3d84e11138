//! Background shells in the real engine (A19): held for, heard of, ended, lost.
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

use serde_json::json;
use stead_core::id::SessionId;
use stead_engine::api::EventNotification;
use stead_testkit::{World, until};

use common::{client, follow, log, message, runtime, start, world};

/// `/root` takes these steps when it hears `go`, and else says what it heard.
fn playbook(steps: &str) -> String {
    format!(
        r#"
[[agent]]
path = "/root"
[[agent.turn]]
when = "go"
step = [
{steps}
]
[[agent.turn]]
step = [{{ say = "well" }}]
"#
    )
}

fn shell(command: &str) -> String {
    format!(
        "{{ call = {{ tool = \"bash\", with = {{ command = \"{command}\", open_input = true }} }} }},"
    )
}

fn of<'a>(events: &'a [EventNotification], kind: &str) -> Vec<&'a EventNotification> {
    events.iter().filter(|event| event.kind == kind).collect()
}

/// The EXECUTION mail that was heard.
fn heard(events: &[EventNotification]) -> Vec<String> {
    let heard = of(events, "heard").into_iter().filter(|e| e.body["sort"] == "EXECUTION");
    heard.filter_map(|e| e.text.clone()).collect()
}

fn kill_engine(world: &World) {
    let engine = world.engine().unwrap();
    assert!(Command::new("kill").args(["-KILL", &engine.to_string()]).status().unwrap().success());
    until("it is gone", || (!Path::new(&format!("/proc/{engine}/exe")).exists()).then_some(()));
}

#[test]
fn a_shell_that_ends_while_its_owner_waits_ends_the_wait_and_is_heard_of_once() {
    let world = world();
    let steps = shell("sleep 2; exit 4")
        + r#"
  { call = { tool = "wait_agent", as = "why", with = { timeout_ms = 60000 } } },
  { say = "{{why}}" },"#;
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        let started = client.start(&start(&world, "waits", &playbook(&steps), "go")).await.unwrap();
        let told = follow(&client, &started.session, 0).await;
        assert_eq!(told.last().unwrap().text.as_deref(), Some("mailbox"));
        let ended = of(&told, "shell-ended");
        assert_eq!(ended.len(), 1);
        assert_eq!(ended[0].body["fate"], json!({ "exited": 4 }));
        let heard = heard(&told);
        assert_eq!(heard.len(), 1);
        assert!(heard[0].starts_with("shell 1 ended with status 4: sleep 2; exit 4\nlog: /"));
    });
}

#[test]
fn a_settlement_waits_for_the_shell_and_the_agent_hears_of_its_end_first() {
    let world = world();
    let steps = shell("sleep 2.5; touch late") + r#"{ say = "done" },"#;
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        let started = client.start(&start(&world, "held", &playbook(&steps), "go")).await.unwrap();
        let told = follow(&client, &started.session, 0).await;
        let settled = told.last().unwrap();
        assert_eq!(
            (&settled.body["outcome"], settled.text.as_deref()),
            (&json!("completed"), Some("done"))
        );
        assert!(world.work().join("late").exists());
        assert_eq!(of(&told, "shell-ended")[0].body["fate"], json!({ "exited": 0 }));
        assert_eq!(heard(&told).len(), 1);
        // It had its last word before, and said it again.
        assert_eq!(of(&told, "said").len(), 3);
    });
}

#[test]
fn an_interrupt_ends_the_shell_and_mails_nobody() {
    let world = world();
    let steps = shell("echo on >on; sleep 60.1") + r#"{ say = "done" },"#;
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        let started = client.start(&start(&world, "cut", &playbook(&steps), "go")).await.unwrap();
        let session = started.session;
        loop {
            let events = log(&client, &session).await.unwrap();
            if of(&events, "said").len() == 2 {
                break;
            }
            tokio::task::yield_now().await;
        }
        world.ok(["stop", "/root", "--session", "cut"]);
        let told = follow(&client, &session, 0).await;
        assert_eq!(told.last().unwrap().body["outcome"], "interrupted");
        let ended = of(&told, "shell-ended");
        assert_eq!((ended.len(), &ended[0].body["fate"]), (1, &json!("stopped")));
        assert!(of(&told, "mail-stored").iter().all(|e| e.body["kind"] != "EXECUTION"));
    });
}

#[test]
fn a_shell_that_an_engine_left_is_lost_once_and_its_owner_hears_so() {
    let world = world();
    let steps = shell("sleep 60.2") + r#"{ say = "done" },"#;
    let session = SessionId::parse("lost").unwrap();
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        client.start(&start(&world, "lost", &playbook(&steps), "go")).await.unwrap();
        loop {
            let events = log(&client, &session).await.unwrap();
            if of(&events, "said").len() == 2 {
                break;
            }
            tokio::task::yield_now().await;
        }
    });
    for round in 0..2 {
        kill_engine(&world);
        runtime().block_on(async {
            let client = client(&world).await.unwrap();
            let tree = client.tree(&session).await.unwrap();
            assert_eq!((tree.agents[0].turn, tree.agents[0].unread), (None, 1), "{round}");
            let events = log(&client, &session).await.unwrap();
            let ended = of(&events, "shell-ended");
            assert_eq!((ended.len(), &ended[0].body["fate"]), (1, &json!("lost")), "{round}");
            assert_eq!(of(&events, "turn-settled")[0].body["outcome"], "interrupted");
        });
    }
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        let before = u64::try_from(log(&client, &session).await.unwrap().len()).unwrap();
        client.send(&session, &message(&world, "m", "/root", "hello", true)).await.unwrap();
        let told = follow(&client, &session, before).await;
        let heard = heard(&told);
        assert_eq!(heard.len(), 1);
        assert!(
            heard[0].contains("shell 1 was lost") && heard[0].contains("sleep 60.2"),
            "{heard:?}"
        );
        assert_eq!(told.last().unwrap().body["outcome"], "completed");
    });
}

#[test]
fn agents_81_each_agent_hears_of_its_own_shell_although_the_numbers_are_the_same() {
    let world = world();
    let playbook = r#"
[[agent]]
path = "/root"
[[agent.turn]]
step = [
  { call = { tool = "agent", as = "child", with = { task_name = "child", message = "go" } } },
  { call = { tool = "bash", with = { command = "sleep 1.5; exit 3", open_input = true } } },
  { wait = ["{{child}}"] },
  { say = "done" },
]
[[agent]]
path = "/root/child"
[[agent.turn]]
step = [
  { call = { tool = "bash", with = { command = "sleep 1.6; exit 5", open_input = true } } },
  { call = { tool = "bash", as = "other", with = { shell = 2, stop = true } } },
  { say = "{{other}}" },
]
"#;
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        let started = client.start(&start(&world, "two", playbook, "go")).await.unwrap();
        let told = follow(&client, &started.session, 0).await;
        assert_eq!(told.last().unwrap().body["outcome"], "completed");
        let shells = of(&told, "shell-started");
        let numbers: Vec<_> = shells.iter().map(|e| &e.body["shell"]).collect();
        assert_eq!(numbers, [&json!(1), &json!(1)]);
        let mut heard: Vec<_> = of(&told, "heard")
            .into_iter()
            .filter(|e| e.body["sort"] == "EXECUTION")
            .map(|e| (e.conversation.clone().unwrap().to_string(), e.text.clone().unwrap()))
            .collect();
        heard.sort();
        assert_eq!(heard.len(), 2);
        assert!(heard[0].0 == "/root" && heard[0].1.contains("status 3"), "{heard:?}");
        assert!(heard[1].0 == "/root/child" && heard[1].1.contains("status 5"), "{heard:?}");
    });
}
