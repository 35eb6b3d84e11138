//! Turns, mail and waits in the real engine.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so by panicking"
)]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use stead_core::id::SessionId;
use stead_core::path::AgentPath;
use stead_core::refusal::RefusalKind;
use stead_engine::api::Activity;
use stead_testkit::{skip, until};

use common::{client, follow, log, message, runtime, start, world};

/// A playbook in which `/root` takes these steps and every child runs its assignment as a command
/// and answers with what it printed.
fn team(steps: &str) -> String {
    format!(
        r#"
[[agent]]
path = "/root"
[[agent.turn]]
step = [
{steps}
]
[[agent]]
path = "/root/*"
[[agent.turn]]
step = [
  {{ call = {{ tool = "bash", as = "out", with = {{ command = "{{{{message}}}}" }} }} }},
  {{ say = "{{{{out}}}}" }},
]
"#
    )
}

fn path(text: &str) -> AgentPath {
    AgentPath::parse(text).unwrap()
}

#[test]
fn agents_38_agents_39_a_wait_ends_once_and_a_late_timer_changes_nothing() {
    let world = world();
    // The first wait would end by its timer after 10 s; mail ends it before. The second wait is
    // still on at that moment, and only mail may end it. The third finds mail that came between
    // the boundary and the call.
    let steps = r#"
  { call = { tool = "agent", as = "quick", with = { task_name = "quick", message = "true" } } },
  { call = { tool = "wait_agent", as = "first", with = { timeout_ms = 1 } } },
  { call = { tool = "agent", as = "slow", with = { task_name = "slow", message = "sleep 11" } } },
  { call = { tool = "wait_agent", as = "second", with = { timeout_ms = 60000 } } },
  { call = { tool = "agent", as = "queued", with = { task_name = "queued", message = "touch ended" } } },
  { call = [
    { tool = "bash", with = { command = "until test -e ended; do sleep 0.05; done; sleep 1" } },
    { tool = "wait_agent", as = "third", with = { timeout_ms = 60000 } },
  ] },
  { say = "{{first}} {{second}} {{third}}" },"#;
    let runtime = runtime();
    let told = runtime.block_on(async {
        let client = client(&world).await.unwrap();
        let session = client.start(&start(&world, "waits", &team(steps), "go")).await.unwrap();
        follow(&client, &session.session, 0).await
    });
    let end = told.last().unwrap();
    assert_eq!(end.text.as_deref(), Some("mailbox mailbox mailbox"), "{end:?}");
}

#[test]
fn agents_40_agents_41_a_long_result_is_previewed_and_read_whole_by_its_path() {
    let world = world();
    // 40,000 characters of two bytes each.
    let steps = r#"
  { call = { tool = "agent", as = "child", with = { task_name = "child", message = "cat text" } } },
  { wait = ["{{child}}"], as = "result" },
  { say = "{{result}}" },
]
[[agent.turn]]
step = [
  { call = { tool = "read_result", as = "whole", with = { target = "child" } } },
  { say = "{{whole}}" },"#;
    let playbook = team(steps).replacen("step = [", "when = \"go\"\nstep = [", 1);
    world.write("text", &"é".repeat(40_000));
    let runtime = runtime();
    runtime.block_on(async {
        let client = client(&world).await.unwrap();
        let session = client.start(&start(&world, "long", &playbook, "go")).await.unwrap().session;
        let told = follow(&client, &session, 0).await;
        assert_eq!(told.last().unwrap().body["outcome"], "completed");
        let whole = client.result(&session, &path("/root/child")).await.unwrap();
        assert_eq!(whole.text.matches('é').count(), 40_000);
        let heard = client.result(&session, &AgentPath::root()).await.unwrap().text;
        assert!(heard.chars().count() <= 32_768, "{}", heard.chars().count());
        assert!(heard.contains(r#"the whole: read_result {"target": "/root/child"}"#));

        // A model reads it by the same path, whole.
        let peer = message(&world, "peer", "/root", "READ", true);
        let before = told.last().unwrap().position;
        client.send(&session, &peer).await.unwrap();
        follow(&client, &session, before).await;
        let read = client.result(&session, &AgentPath::root()).await.unwrap().text;
        assert_eq!(read, whole.text);

        // While a turn runs, the old result is hidden.
        let again = message(&world, "again", "/root/child", "echo on > on; sleep 30", true);
        client.send(&session, &again).await.unwrap();
        until("the second turn runs", || world.work().join("on").exists().then_some(()));
        let hidden = client.result(&session, &path("/root/child")).await.unwrap_err();
        assert_eq!(hidden.kind, RefusalKind::WrongState);
        let hide = message(&world, "hide", "/root", "READ", true);
        let before = log(&client, &session).await.unwrap().last().unwrap().position;
        client.send(&session, &hide).await.unwrap();
        follow(&client, &session, before).await;
        let refused = client.result(&session, &AgentPath::root()).await.unwrap().text;
        assert!(refused.contains("the result of /root/child is not ready"), "{refused}");
    });
}

#[test]
fn agents_42_a_send_that_cannot_be_stored_wakes_nobody() {
    let world = world();
    fs::create_dir(world.home()).unwrap();
    let mount = |options: &[&str]| {
        Command::new("mount").args(options).arg(world.home()).status().is_ok_and(|s| s.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=2m,mode=0700", "stead-test"]) {
        return skip("agents_42", "mounting needs root");
    }
    let steps = r#"
  { call = { tool = "wait_agent", as = "why", with = { timeout_ms = 60000 } } },
  { say = "{{why}}" },"#;
    let runtime = runtime();
    let session = SessionId::parse("full").unwrap();
    runtime.block_on(async {
        let client = client(&world).await.unwrap();
        client.start(&start(&world, "full", &team(steps), "go")).await.unwrap();
        let is_waiting =
            async || client.tree(&session).await.unwrap().agents[0].activity == Activity::Waiting;
        while !is_waiting().await {
            tokio::task::yield_now().await;
        }
        let filler = world.home().join("filler");
        let _ = fs::write(&filler, vec![0_u8; 4 << 20]);
        // Too long for a row: its file is written first, and there is no room for it.
        let text = "x".repeat(200_000);
        let refusal =
            client.send(&session, &message(&world, "m1", "/root", &text, true)).await.unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Storage, "{refusal}");
        let after = client.tree(&session).await.unwrap();
        assert_eq!((after.agents[0].unread, after.agents[0].activity), (0, Activity::Waiting));

        fs::remove_file(&filler).unwrap();
        client.send(&session, &message(&world, "m1", "/root", &text, true)).await.unwrap();
        let told = follow(&client, &session, 0).await;
        assert_eq!(told.last().unwrap().text.as_deref(), Some("user"));
    });
    let _ = world.run(["serve", "--stop"]);
    assert!(Command::new("umount").arg("-l").arg(world.home()).status().unwrap().success());
}

#[test]
fn field_msg_02_field_msg_05_mail_to_a_killed_agent_is_heard_once_in_its_next_turn() {
    let world = world();
    let playbook = r#"
[[agent]]
path = "/root"
[[agent.turn]]
when = "sleep"
step = [
  { call = { tool = "bash", with = { command = "echo on > on; sleep 60" } } },
  { say = "slept" },
]
[[agent.turn]]
step = [{ say = "heard: {{message}}" }]
"#;
    let runtime = runtime();
    let session = SessionId::parse("busy").unwrap();
    runtime.block_on(async {
        let client = client(&world).await.unwrap();
        client.start(&start(&world, "busy", playbook, "sleep")).await.unwrap();
        until("the turn is busy", || world.work().join("on").exists().then_some(()));
        let send = message(&world, "m1", "/root", "note one", true);
        let receipt = client.send(&session, &send).await.unwrap().receipt;
        assert_eq!(format!("{:?}", receipt.state), "QueuedForRunningTurn");
    });
    let engine = world.engine().unwrap();
    assert!(Command::new("kill").args(["-KILL", &engine.to_string()]).status().unwrap().success());
    until("it is gone", || (!Path::new(&format!("/proc/{engine}/exe")).exists()).then_some(()));
    runtime.block_on(async {
        let client = client(&world).await.unwrap();
        let tree = client.tree(&session).await.unwrap();
        assert_eq!((tree.agents[0].turn, tree.agents[0].unread), (None, 1));
        let before = u64::try_from(log(&client, &session).await.unwrap().len()).unwrap();
        // The same request again has one effect.
        client.send(&session, &message(&world, "m1", "/root", "note one", true)).await.unwrap();
        client.send(&session, &message(&world, "m2", "/root", "go on", true)).await.unwrap();
        let told = follow(&client, &session, before).await;
        let heard: Vec<_> =
            told.iter().filter(|e| e.kind == "heard").filter_map(|e| e.text.clone()).collect();
        assert_eq!(heard, ["note one", "go on"]);
        assert_eq!(told.last().unwrap().body["outcome"], "completed");
    });
}

#[test]
fn an_interrupt_ends_the_processes_and_settles_once() {
    let world = world();
    let steps = r#"
  { call = { tool = "agent", as = "child", with = { task_name = "child", message = "echo $$ > pid; sleep 60 & setsid sleep 61; true" } } },
  { wait = ["{{child}}"], as = "result" },
  { say = "{{result}}" },"#;
    let runtime = runtime();
    runtime.block_on(async {
        let client = client(&world).await.unwrap();
        let session =
            client.start(&start(&world, "stop", &team(steps), "go")).await.unwrap().session;
        let pid = until("the command runs", || {
            fs::read_to_string(world.work().join("pid")).ok()?.trim().parse::<u32>().ok()
        });
        world.ok(["stop", "/root/child", "--session", "stop"]);
        let told = follow(&client, &session, 0).await;
        let end = told.last().unwrap();
        assert_eq!(end.body["outcome"], "completed");
        assert!(end.text.as_ref().unwrap().contains("interrupted by the person"), "{end:?}");
        assert!(!Path::new(&format!("/proc/{pid}/exe")).exists());
        let settled = told.iter().filter(|e| e.kind == "turn-settled");
        assert_eq!(settled.filter(|e| e.body["path"] == "/root/child").count(), 1);
    });
}
