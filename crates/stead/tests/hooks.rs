//! Hooks in the real engine: programs of the person that are told of agents' lives and may object.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so by panicking"
)]

mod common;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use common::{client, follow, log, message, runtime, start, world};
use serde_json::Value;
use stead_core::refusal::RefusalKind;
use stead_engine::api::{Activity, InterruptParams};
use stead_testkit::{World, until};

/// A world whose hooks at these moments are shell scripts. Each script has what it was told in
/// `$told`; that is also kept, a line each, in the world's file `hooks`. One that was told nothing,
/// since its engine was killed at that moment, keeps nothing.
fn hooked(hooks: &[(&str, &str)], more: &str) -> World {
    let world = world();
    let mut settings = String::from(more);
    settings.push_str("\n[hooks]\n");
    for (moment, script) in hooks {
        let file = world.folder().join(format!("{moment}.sh"));
        let kept = world.folder().join("hooks");
        let text = format!(
            "#!/bin/sh\ntold=$(cat)\n[ -n \"$told\" ] || exit 1\nprintf '%s\\n' \"$told\" >> '{}'\n{script}\n",
            kept.display()
        );
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let file = file.display();
        writeln!(settings, "{moment} = [{{ command = [\"{file}\"], seconds = 600 }}]").unwrap();
    }
    let path = common::home(&world).settings();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, settings).unwrap();
    world
}

/// What hooks were told so far, in order.
fn told(world: &World) -> Vec<Value> {
    let kept = fs::read_to_string(world.folder().join("hooks")).unwrap_or_default();
    kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn count(world: &World, event: &str, path: &str) -> usize {
    told(world).iter().filter(|t| t["event"] == event && t["path"] == path).count()
}

const TEAM: &str = r#"
[[agent]]
path = "/root"
[[agent.turn]]
step = [
  { call = { tool = "agent", as = "child", with = { task_name = "child", message = "begin" } } },
  { if = { result = "child", failed = true }, call = { tool = "agent", as = "child", with = { task_name = "child", message = "begin" } } },
  { if = { result = "child", failed = true }, say = "no child: {{child}}" },
  { wait = ["{{child}}"] },
  { say = "{{child}}" },
]
[[agent]]
path = "/root/*"
[[agent.turn]]
step = [{ say = "done" }]
"#;

#[test]
fn agents_82_a_hook_is_told_one_id_and_each_turn_has_one_stop() {
    let context = r#"printf '{"context": "mind the gap"}'"#;
    let world = hooked(&[("start", context), ("prompt", ""), ("stop", "")], "");
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        let session = client.start(&start(&world, "hooks", TEAM, "go")).await.unwrap().session;
        follow(&client, &session, 0).await;
        let wake = message(&world, "wake", "/root/child", "again", true);
        client.send(&session, &wake).await.unwrap();
        until("all stops are told", || (count(&world, "stop", "/root/child") == 2).then_some(()));
        until("the root's too", || (count(&world, "stop", "/root") == 1).then_some(()));
        let tree = client.tree(&session).await.unwrap();
        for agent in &tree.agents {
            let path = agent.path.as_str();
            assert_eq!(count(&world, "start", path), 1, "once for each agent");
            assert_eq!(count(&world, "prompt", path), usize::try_from(agent.turns).unwrap());
        }
        for payload in told(&world) {
            assert_eq!(payload["session_id"], payload["agent_id"], "{payload}");
            let agent = tree.agents.iter().find(|a| payload["path"] == a.path.as_str()).unwrap();
            assert_eq!(payload["agent_id"], agent.agent.as_str(), "{payload}");
            assert_eq!(payload["root_session_id"], "hooks");
            assert_eq!(
                (&payload["transcript_path"], payload["cwd"].as_str().unwrap()),
                (&"".into(), world.work().to_str().unwrap())
            );
        }
        let stored = log(&client, &session).await.unwrap();
        let heard: Vec<_> =
            stored.iter().filter(|e| e.kind == "heard" && e.body["sort"] == "NOTE").collect();
        assert_eq!(heard.len(), 2, "each agent hears the start hook's context once: {heard:#?}");
        let of = |kind: &str| stored.iter().filter(|e| e.kind == kind).count();
        assert_eq!((of("turn-settled"), of("stop-noted")), (3, 3));
    });
}

#[test]
fn agents_43_a_hook_that_stops_a_wake_starts_no_turn_and_its_context_is_heard_once() {
    let script = r#"case $told in
*forbidden*) printf '{"decision": "deny", "reason": "not today", "context": "the rule is three"}' ;;
esac"#;
    let world = hooked(&[("prompt", script)], "");
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        let session = client.start(&start(&world, "hooks", TEAM, "go")).await.unwrap().session;
        follow(&client, &session, 0).await;
        let send = async |id: &str, text: &str| {
            client.send(&session, &message(&world, id, "/root/child", text, true)).await
        };
        let refusal = send("one", "forbidden").await.unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Denied);
        assert!(refusal.line.contains("a prompt hook denies it: not today"), "{refusal}");
        let child = async || client.tree(&session).await.unwrap().agents[1].clone();
        assert_eq!((child().await.turns, child().await.unread), (1, 0), "no turn, no mail");
        for (id, turns) in [("two", 2), ("three", 3)] {
            send(id, "allowed").await.unwrap();
            while child().await.activity != Activity::Idle {
                tokio::task::yield_now().await;
            }
            assert_eq!(child().await.turns, turns);
        }
        let stored = log(&client, &session).await.unwrap();
        let notes: Vec<_> =
            stored.iter().filter(|e| e.kind == "heard" && e.body["sort"] == "NOTE").collect();
        assert_eq!(notes.len(), 1, "{notes:#?}");
        assert_eq!(notes[0].text.as_deref(), Some("the rule is three"));
        let second = stored
            .iter()
            .filter(|e| e.kind == "turn-started" && e.body["path"] == "/root/child")
            .nth(1)
            .unwrap();
        assert_eq!(notes[0].body["turn"], second.position);
    });
}

#[test]
fn a_hook_that_denies_a_spawn_frees_path_and_room() {
    let script = format!(
        "case $told in *'\"path\":\"/root/child\"'*) if mkdir once 2>/dev/null; then {}; fi ;; esac",
        r#"printf '{"decision": "deny", "reason": "busy"}'"#
    );
    let world = hooked(&[("start", &script)], "[sessions]\ncapacity = 1\n");
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        let session = client.start(&start(&world, "hooks", TEAM, "go")).await.unwrap().session;
        let end = follow(&client, &session, 0).await;
        assert_eq!(end.last().unwrap().text.as_deref(), Some("/root/child"), "the same path again");
        let refused = end.iter().find(|e| e.kind == "agent-refused").unwrap();
        assert!(refused.body["reason"].as_str().unwrap().contains("busy"), "{refused:?}");
        assert_eq!(count(&world, "start", "/root/child"), 2);
    });
}

#[test]
fn a_denied_start_is_no_session() {
    let deny = r#"printf '{"decision": "deny"}'"#;
    let world = hooked(&[("start", deny)], "");
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        let refusal = client.start(&start(&world, "hooks", TEAM, "go")).await.unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Denied, "{refusal}");
        assert!(client.sessions().await.unwrap().is_empty());
    });
}

#[test]
fn an_interrupt_ends_the_hook_of_a_spawn_and_frees_path_and_room() {
    let script =
        "case $told in *'\"path\":\"/root/child\"'*) echo $$ > pid; exec sleep 600 ;; esac";
    let world = hooked(&[("start", script)], "");
    let pid = world.work().join("pid");
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        let session = client.start(&start(&world, "hooks", TEAM, "go")).await.unwrap().session;
        let sleeps =
            until("the hook runs", || fs::read_to_string(&pid).ok()?.trim().parse::<u32>().ok());
        let target = InterruptParams { target: "/root".to_owned() };
        client.interrupt(&session, &target).await.unwrap();
        follow(&client, &session, 0).await;
        while client.tree(&session).await.unwrap().agents.len() > 1 {
            tokio::task::yield_now().await;
        }
        assert!(!Path::new(&format!("/proc/{sleeps}")).exists(), "the hook is killed");
    });
}

#[test]
fn a_hook_that_cannot_be_asked_lets_nothing_through() {
    for script in ["exit 3", "echo no json"] {
        let world = hooked(&[("prompt", script)], "");
        runtime().block_on(async {
            let client = client(&world).await.unwrap();
            let refusal = client.start(&start(&world, "hooks", TEAM, "go")).await.unwrap_err();
            assert!(refusal.line.contains("the prompt hook"), "{refusal}");
            assert!(refusal.line.contains("prompt.sh"), "{refusal}");
        });
    }
}

#[cfg(feature = "steps")]
mod walk {
    use std::time::Duration;

    use stead_core::id::SessionId;
    use stead_testkit::within;

    use super::*;
    use common::patient_client;

    fn prepared() -> World {
        hooked(&[("start", ""), ("prompt", ""), ("stop", "")], "")
    }

    fn passes() -> usize {
        let mut world = prepared();
        let record = world.folder().join("steps");
        world.set("STEAD_STEPS", format!("record={}", record.display()));
        runtime().block_on(async {
            let client = client(&world).await.unwrap();
            let started = client.start(&start(&world, "walk", TEAM, "go")).await.unwrap();
            follow(&client, &started.session, 0).await;
        });
        world.ok(["serve", "--stop"]);
        assert_eq!((count(&world, "stop", "/root"), count(&world, "stop", "/root/child")), (1, 1));
        fs::read_to_string(record).unwrap().lines().count()
    }

    /// Kills at every third pass, beginning with this one.
    fn walk(offset: usize) {
        for number in (1..=passes()).skip(offset).step_by(3) {
            kill_at(number);
        }
    }

    fn kill_at(number: usize) {
        let mut world = prepared();
        let counter = world.folder().join("counter");
        world.set("STEAD_STEPS", format!("kill={number},counter={}", counter.display()));
        let session = SessionId::parse("walk").unwrap();
        let runtime = runtime();
        let begin = start(&world, "walk", TEAM, "go");
        runtime.block_on(async {
            let Ok(client) = client(&world).await else { return };
            if client.start(&begin).await.is_ok() {
                follow(&client, &session, 0).await;
            }
        });
        within(Duration::from_mins(1), &format!("the session settles after {number}"), || {
            runtime.block_on(async {
                let client = patient_client(&world).await;
                client.start(&begin).await.ok()?;
                let tree = client.tree(&session).await.ok()?;
                tree.agents.iter().all(|a| a.turn.is_none()).then_some(())
            })
        });
        let stored = within(Duration::from_secs(30), "the log is read", || {
            runtime.block_on(async { log(&patient_client(&world).await, &session).await.ok() })
        });
        // An engine that stops waits for its hooks.
        world.run(["serve", "--stop"]);
        let turns = |kind: &str, key: &str| {
            let of = stored.iter().filter(|e| e.kind == kind);
            of.map(|e| if key.is_empty() { e.position } else { e.body[key].as_u64().unwrap() })
                .collect::<Vec<u64>>()
        };
        let mut started = turns("turn-started", "");
        let mut stopped = turns("stop-noted", "turn");
        started.sort_unstable();
        stopped.sort_unstable();
        assert_eq!(started, stopped, "at {number}: one stop a start");
        let told = told(&world);
        let mut ran: Vec<u64> = told
            .iter()
            .filter(|t| t["event"] == "stop")
            .map(|t| t["turn"].as_u64().unwrap())
            .collect();
        let all = ran.len();
        ran.sort_unstable();
        ran.dedup();
        assert_eq!(all, ran.len(), "at {number}: a stop was told twice");
        assert!(ran.iter().all(|turn| stopped.contains(turn)), "at {number}");
        assert!(told.iter().all(|t| t["session_id"] == t["agent_id"]), "at {number}");
        // A kill may come between the note and the hook's start; it costs that one batch.
        assert!(ran.len() + 2 >= stopped.len(), "at {number}: {ran:?} of {stopped:?}");
    }

    #[test]
    fn agents_82_one_stop_a_start_killed_at_every_third_step_from_the_first() {
        walk(0);
    }

    #[test]
    fn agents_82_one_stop_a_start_killed_at_every_third_step_from_the_second() {
        walk(1);
    }

    #[test]
    fn agents_82_one_stop_a_start_killed_at_every_third_step_from_the_third() {
        walk(2);
    }
}
