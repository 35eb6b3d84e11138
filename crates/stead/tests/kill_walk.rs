//! The kill walk: one scenario, killed with SIGKILL before and after each of its steps, started
//! again, and looked at (product promise: nothing is lost, nothing runs twice).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so by panicking"
)]
#![cfg(feature = "steps")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use common::{check_told, client, follow, log, message, patient_client, runtime, start, world};
use stead_core::id::SessionId;
use stead_core::path::AgentPath;
use stead_engine::Client;
use stead_engine::api::{EventNotification, TreeResponse};
use stead_testkit::{World, within};
use tokio::runtime::Runtime;

const PLAYBOOK: &str = include_str!("walk/playbook.toml");
/// The most steps that the scenario may have.
const MOST_STEPS: usize = 60;

/// Every step of the scenario, undisturbed: name and moment, in order.
fn recorded() -> Vec<String> {
    let mut world = prepared();
    let record = world.folder().join("steps");
    world.set("STEAD_STEPS", format!("record={}", record.display()));
    let told = runtime().block_on(async {
        let client = client(&world).await.unwrap();
        let started = client.start(&start(&world, "walk", PLAYBOOK, "begin")).await.unwrap();
        follow(&client, &started.session, 0).await
    });
    assert_eq!(told.last().unwrap().body["outcome"], "completed", "{told:#?}");
    world.ok(["serve", "--stop"]);
    fs::read_to_string(record).unwrap().lines().map(str::to_owned).collect()
}

fn prepared() -> World {
    let world = world();
    world.write("text", "before\n");
    world
}

#[test]
fn the_scenario_is_small_and_passes_every_kind_of_step() {
    let steps = recorded();
    let befores = steps.iter().filter(|s| s.ends_with(" before")).count();
    assert!(befores <= MOST_STEPS, "{befores} steps: {steps:#?}");
    for kind in ["store.append", "files.replace", "process.start", "process.spawner-start"] {
        assert!(steps.iter().any(|s| s.starts_with(kind)), "{kind} is not passed: {steps:#?}");
    }
}

#[test]
fn killed_at_every_fourth_step_from_the_first() {
    walk(0);
}

#[test]
fn killed_at_every_fourth_step_from_the_second() {
    walk(1);
}

#[test]
fn killed_at_every_fourth_step_from_the_third() {
    walk(2);
}

#[test]
fn killed_at_every_fourth_step_from_the_fourth() {
    walk(3);
}

/// The one step that a client passes: the start of an engine. It is killed before and after it.
#[test]
fn a_client_that_is_killed_while_it_starts_an_engine_leaves_nothing_in_the_way() {
    for number in [1, 2] {
        let mut world = prepared();
        let counter = world.folder().join("counter");
        let record = world.folder().join("record");
        let (counter, shown) = (counter.display(), record.display());
        world.set("STEAD_STEPS", format!("record={shown},kill={number},counter={counter}"));
        let killed = world.run(["sessions"]);
        assert_eq!(killed.status.code(), None, "{killed:?}");
        let steps = fs::read_to_string(&record).unwrap();
        assert!(steps.starts_with("process.detach before"), "{steps}");
        world.ok(["sessions"]);
        check_doctor(&world, number);
    }
}

/// Kills at every fourth pass. Order and number of passes differ a little from run to run: agents
/// work at the same time, and those that are at it together share an append. Every pass of every run
/// is somewhere among the numbers; the last ones may come after a run's end.
fn walk(offset: usize) {
    let passes = recorded().len();
    let mut killed = 0;
    for number in (1..=passes).skip(offset).step_by(4) {
        if kill_at(number) {
            killed += 1;
        }
    }
    assert!(killed * 4 >= passes / 4 * 3, "only {killed} of {passes} / 4 were killed");
}

/// One walk: whether the kill came before the scenario's end.
fn kill_at(number: usize) -> bool {
    let mut world = prepared();
    let counter = world.folder().join("counter");
    world.set("STEAD_STEPS", format!("kill={number},counter={}", counter.display()));
    let session = SessionId::parse("walk").unwrap();
    let runtime = runtime();
    let begin = start(&world, "walk", PLAYBOOK, "begin");

    let (told, answered) = runtime.block_on(async {
        let Ok(client) = client(&world).await else { return (Vec::new(), false) };
        let answered = client.start(&begin).await.is_ok();
        (follow(&client, &session, 0).await, answered)
    });
    let is_end = |e: &EventNotification| e.kind == "turn-settled" && e.body["path"] == "/root";
    let finished = told.last().is_some_and(is_end);

    check_explained(&world, number);

    // Started again by whatever comes first: here the same request, which has one effect whether
    // or not it was answered. The kill may come as late as in this second engine.
    let again = within(Duration::from_secs(30), "the start is answered", || {
        runtime.block_on(async { patient_client(&world).await.start(&begin).await.ok() })
    });
    assert_eq!(again.session, session, "at {number}");
    let (client, tree) =
        within(Duration::from_secs(30), &format!("the session settles after {number}"), || {
            runtime.block_on(async {
                let client = patient_client(&world).await;
                let tree = client.tree(&session).await.ok()?;
                tree.agents.iter().all(|a| a.turn.is_none()).then_some((client, tree))
            })
        });
    let stored = runtime.block_on(log(&client, &session)).unwrap();
    check_told(&told, &stored, number);
    assert!(!answered || !stored.is_empty(), "an answered start is lost at {number}");
    check_log(&stored, number);
    check_runs(&world, &stored, number);
    check_settled(&tree, number);

    // The conversation can be continued, and hears what waited. A kill may still come here, in a
    // run that passed fewer steps before; then it is continued once more.
    let client = go_on(&world, &runtime, &client, "again")
        .or_else(|| {
            let client = runtime.block_on(patient_client(&world));
            go_on(&world, &runtime, &client, "once-more")
        })
        .unwrap_or_else(|| panic!("at {number}: the session cannot be continued"));
    let stored = runtime.block_on(log(&client, &session)).unwrap();
    check_log(&stored, number);
    check_runs(&world, &stored, number);
    check_heard(&stored, number);
    check_doctor(&world, number);
    !finished
}

/// Continues the session; none when the engine was killed meanwhile.
fn go_on(world: &World, runtime: &Runtime, client: &Client, request: &str) -> Option<Client> {
    let session = SessionId::parse("walk").unwrap();
    runtime.block_on(async {
        let before = log(client, &session).await.ok()?.len();
        let go_on = message(world, request, "/root", "continue", true);
        client.send(&session, &go_on).await.ok()?;
        let told = follow(client, &session, u64::try_from(before).unwrap()).await;
        let end = told.last()?;
        if end.kind != "turn-settled" {
            return None;
        }
        assert_eq!(end.body["outcome"], "completed", "{end:?}");
        let result = client.result(&session, &AgentPath::root()).await.ok()?;
        assert_eq!(result.text, "continued");
        Some(client.clone())
    })
}

/// All mail to `/root` was heard, once.
fn check_heard(stored: &[EventNotification], number: usize) {
    let to_root = |e: &&EventNotification| e.body["to"] == "/root";
    let sent: Vec<u64> = stored
        .iter()
        .filter(|e| e.kind == "mail-stored")
        .filter(to_root)
        .map(|e| e.position)
        .collect();
    let heard: Vec<u64> = stored
        .iter()
        .filter(|e| e.kind == "mail-delivered")
        .filter(to_root)
        .flat_map(|e| e.body["mail"].as_array().unwrap())
        .map(|mail| mail.as_u64().unwrap())
        .collect();
    assert_eq!(heard, sent, "at {number}: mail was lost, doubled or heard out of order");
}

/// The log by itself: contiguous, each turn settled once with one RESULT, mail delivered at most
/// once, each call with one end.
fn check_log(stored: &[EventNotification], number: usize) {
    let positions: Vec<u64> = stored.iter().map(|e| e.position).collect();
    let contiguous: Vec<u64> = (1..=u64::try_from(stored.len()).unwrap()).collect();
    assert_eq!(positions, contiguous, "at {number}");
    let of = |kind: &str| stored.iter().filter(|e| e.kind == kind).collect::<Vec<_>>();
    assert_eq!(of("turn-started").len(), of("turn-settled").len(), "at {number}");
    let children = of("turn-settled").iter().filter(|e| e.body["path"] != "/root").count();
    let results = of("mail-stored").iter().filter(|e| e.body["kind"] == "RESULT").count();
    assert_eq!(children, results, "at {number}: one RESULT a settled turn");
    let turns: BTreeSet<u64> =
        of("turn-settled").iter().map(|e| e.body["turn"].as_u64().unwrap()).collect();
    assert_eq!(turns.len(), of("turn-settled").len(), "at {number}: a turn settled twice");
    let mut delivered = BTreeSet::new();
    for event in of("mail-delivered") {
        for mail in event.body["mail"].as_array().unwrap() {
            assert!(delivered.insert(mail.as_u64().unwrap()), "at {number}: mail came twice");
        }
    }
    let mut calls: BTreeMap<(String, String), usize> = BTreeMap::new();
    for event in of("said") {
        let agent = event.conversation.as_ref().unwrap().to_string();
        for call in event.body["calls"].as_array().unwrap() {
            calls.insert((agent.clone(), call.as_str().unwrap().to_owned()), 0);
        }
    }
    for event in of("answered").iter().chain(&of("unanswered")) {
        let agent = event.conversation.as_ref().unwrap().to_string();
        let call = event.body["call"].as_str().unwrap().to_owned();
        *calls.get_mut(&(agent, call)).unwrap() += 1;
    }
    assert!(calls.values().all(|ends| *ends == 1), "at {number}: {calls:?}");
}

/// No command ran twice; what the log says was answered did run.
fn check_runs(world: &World, stored: &[EventNotification], number: usize) {
    let ran = fs::read_to_string(world.work().join("ran")).unwrap_or_default();
    for name in ["root", "one"] {
        let times = ran.lines().filter(|line| *line == name).count();
        assert!(times <= 1, "at {number}: the command of {name} ran {times} times");
        let answered = stored.iter().any(|e| {
            e.kind == "answered"
                && e.conversation.as_ref().is_some_and(|p| p.name() == name)
                && e.text.as_ref().is_some_and(|t| t.contains("exit status 0"))
        });
        assert!(
            !answered || times == 1,
            "at {number}: an answered command of {name} left no trace"
        );
    }
    let text = fs::read_to_string(world.work().join("text")).unwrap();
    assert!(text == "before\n" || text == "after\n", "at {number}: {text:?}");
}

fn check_settled(tree: &TreeResponse, number: usize) {
    assert!(tree.agents.iter().all(|a| a.turn.is_none()), "at {number}: {tree:#?}");
    assert!(tree.permissions.is_empty(), "at {number}");
}

/// Before anything is started again, the person can ask what happened: what was abandoned is named,
/// and so is the command that helps.
fn check_explained(world: &World, number: usize) {
    let engine = world.engine().is_some_and(|pid| Path::new(&format!("/proc/{pid}/exe")).exists());
    let reader = stead_store::Store::open_reader(&world.home());
    let abandoned = reader.and_then(|reader| reader.unfinished()).unwrap_or_default();
    if engine || abandoned.is_empty() {
        return;
    }
    // A process that is being killed may still listen for a moment.
    within(Duration::from_secs(30), &format!("doctor explains the kill at {number}"), || {
        let output = world.run(["doctor"]);
        let text = String::from_utf8_lossy(&output.stdout);
        (text.contains("abandoned") && text.contains("walk")).then_some(())
    });
}

/// The person can ask what is wrong, and nothing is.
fn check_doctor(world: &World, number: usize) {
    let output = world.run(["doctor"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "at {number}: {text}");
    assert!(Path::new(&world.home()).join("stead.db").exists());
}
