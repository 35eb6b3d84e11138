//! `exec` and `release` through whole turns: real runs in real places.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // the helpers of tests are not exempt by themselves

mod common;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{World, call, heard, is_running, run, say};
use serde_json::{Value, json};
use stead_agent::Turn;
use stead_core::bound::Bound;
use stead_core::event::Outcome;
use stead_core::permission::Answer;
use stead_place::{Ask, Entered, Patience, Room, top_of};

const USUAL: Duration = Duration::from_secs(10);

/// A server that answers with the agent's address, and a client of it.
const LISTEN: &str =
    concat!("echo $STEAD_PORT $STEAD_AGENT | ", env!("CARGO_BIN_EXE_stead-agent-listener"), " & ");
const TALK: &str = "exec 3<>/dev/tcp/127.0.0.1/$STEAD_PORT && cat <&3";

fn exec(command: &str) -> (&'static str, Value) {
    ("exec", json!({ "command": command }))
}

/// Waits until a file is there.
async fn until_there(path: &Path) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !path.exists() {
        assert!(Instant::now() < deadline, "{} is not there after 20 s", path.display());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Takes room in a place of its own, as another agent's run would.
fn hold_room(world: &World) -> Room {
    let ask = Ask {
        bound: Bound { runs: world.bound, reserved: 0 },
        patience: Patience::Refuse,
        command: "make everything",
        session: None,
        cancel: None,
    };
    let place = top_of(&world.beside("other")).unwrap();
    match world.host().enter(&place, &ask, &mut |_| {}).unwrap() {
        Entered::Room(room) => *room,
        Entered::Enclosed { .. } => panic!("the test is no run"),
    }
}

#[tokio::test]
async fn a_run_is_told_by_its_status_its_output_and_the_ports_of_its_place() {
    let world = World::new();
    let results = world
        .calls(&[
            exec("echo one; echo two >&2; exit 3"),
            exec("pwd; echo $STEAD_AGENT $STEAD_SESSION $STEAD_SOCKET; test \"$TMPDIR\" = \"$STEAD_SCRATCH\""),
            exec("echo $STEAD_PORT $STEAD_PORT_15"),
        ])
        .await;
    let data = |number: usize| results[number].structured.clone().unwrap();
    assert!(results[0].failed && results[0].text.starts_with("exit status 3\n"));
    assert!(results[0].text.contains("nothing is left running"), "{}", results[0].text);
    assert!(results[0].text.ends_with("\n\none\ntwo\n"), "{}", results[0].text);
    assert_eq!((&data(0)["exit_status"], &data(0)["running"]), (&json!(3), &json!([])));
    let app = world.app().display().to_string();
    let expected = format!("\n\n{app}\n/root root-session /nowhere.sock\n");
    assert!(!results[1].failed && results[1].text.ends_with(&expected), "{}", results[1].text);
    let (first, last) = (&data(2)["first_port"], &data(2)["last_port"]);
    assert!(results[2].text.ends_with(&format!("\n{first} {last}\n")), "{}", results[2].text);
    assert_eq!(data(2)["place"], app);
    let asked = world.state().asked.join("\n");
    assert!(asked.contains("permission Command(\"echo one"), "{asked}");
}

#[tokio::test]
async fn places_48_a_server_answers_in_later_turns_until_its_release() {
    let world = World::new();
    let started = world.calls(&[exec(&format!("{LISTEN} sleep 0"))]).await;
    let data = started[0].structured.as_ref().unwrap();
    assert_eq!(data["running"].as_array().unwrap().len(), 1, "{}", started[0].text);
    // It may not listen yet.
    let patient = format!("for i in $(seq 200); do {TALK} && exit; sleep 0.05; done; exit 1");
    let answered = world.calls(&[exec(&patient)]).await;
    assert!(answered[0].text.ends_with("/root listens\n"), "{}", answered[0].text);
    // A shell may have become the server since, under another name.
    let pid = |data: &serde_json::Value| data["running"][0]["pid"].clone();
    assert_eq!(pid(answered[0].structured.as_ref().unwrap()), pid(data));

    let released = world.calls(&[("release", json!({})), exec(TALK), ("release", json!({}))]).await;
    assert_eq!(released[0].structured.as_ref().unwrap()["released"][0]["ended"], 1);
    assert!(released[0].text.contains("are given back"), "{}", released[0].text);
    assert!(released[1].failed, "{}", released[1].text);
    assert!(!released[2].failed);
    let again = world.calls(&[("release", json!({}))]).await;
    assert_eq!(again[0].text, "your place holds nothing");
}

#[tokio::test]
async fn places_3_two_agents_have_disjoint_ports() {
    let world = World::new();
    let port = "echo $STEAD_PORT; exec sleep 0";
    let mut firsts = Vec::new();
    for (agent, folder) in [("a-1", "one"), ("a-2", "two")] {
        let turn = world.turn_of(agent, &format!("/root/{folder}"), &world.beside(folder));
        let results = world.calls_in(turn, USUAL, &[exec(port)]).await;
        firsts.push(results[0].structured.as_ref().unwrap()["first_port"].as_u64().unwrap());
    }
    assert!(firsts[0].abs_diff(firsts[1]) >= 16, "{firsts:?}");
}

#[tokio::test]
async fn a_run_ends_at_its_limit_and_no_denied_command_runs() {
    let world = World::new();
    let command = json!({ "command": "sleep 31.0101 & sleep 31.0101", "time_limit_ms": 300 });
    let results = world.calls(&[("exec", command)]).await;
    assert!(results[0].text.starts_with("timed out and ended, with all its processes; its limit"));
    assert!(results[0].failed && !is_running("31.0101"));
    world.state().answer = Answer::Denied;
    let results = world.calls(&[exec("touch here")]).await;
    assert!(results[0].failed && !world.app().join("here").exists());
}

#[tokio::test]
async fn places_12_without_room_no_wait_is_refused_and_a_wait_is_told() {
    let mut world = World::new();
    world.bound = 1;
    let room = hold_room(&world);
    let refused = world.calls(&[("exec", json!({ "command": "true", "no_wait": true }))]).await;
    assert!(refused[0].failed, "{}", refused[0].text);
    for part in ["there is no room", "`make everything` in ", "hint: "] {
        assert!(refused[0].text.contains(part), "{}", refused[0].text);
    }
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        drop(room);
    });
    let waited = world.calls(&[exec("echo ran")]).await;
    later.join().unwrap();
    assert!(waited[0].text.contains("\nit had to wait for room; it was held by `make everything`"));
    assert!(waited[0].text.ends_with("\n\nran\n"), "{}", waited[0].text);
}

/// Runs a turn of one `exec`, cancels it once `ready` is there, and gives how long that took.
async fn cancelled(world: &World, turn: Turn, command: &str, ready: &Path) -> Duration {
    world.state().entries.push(heard("go on"));
    let cancel = turn.cancel.clone();
    let mut calls = vec![call("c-1", "exec", json!({ "command": command }))];
    let turn =
        tokio::spawn(run(turn, USUAL, move |_| Ok(calls.pop().unwrap_or_else(|| say("done")))));
    until_there(ready).await;
    let start = Instant::now();
    cancel.cancel();
    assert_eq!(turn.await.unwrap().outcome, Outcome::Interrupted);
    start.elapsed()
}

#[tokio::test]
async fn a_cancelled_turn_ends_its_command_and_not_what_earlier_runs_left() {
    let world = World::new();
    world.calls(&[exec("sleep 32.0101 &")]).await;
    let ready = world.app().join("ready");
    let command = "sleep 32.0202 & touch ready; sleep 32.0303";
    let took = cancelled(&world, world.turn(), command, &ready).await;
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert!(!is_running("32.0202") && !is_running("32.0303") && is_running("32.0101"));
    world.calls(&[("release", json!({}))]).await;
    assert!(!is_running("32.0101"));
}

#[tokio::test]
async fn places_23_a_cancelled_turn_leaves_the_line_and_its_command_never_runs() {
    let mut world = World::new();
    world.bound = 1;
    let room = hold_room(&world);
    // The head of the line, and one that waits for it.
    let line = world.beside("host").join("line");
    let first = world.turn_of("a-1", "/root/one", &world.beside("one"));
    let head = tokio::spawn(run(first.clone(), USUAL, {
        let mut calls = vec![call("h-1", "exec", json!({ "command": "touch ran" }))];
        move |_| Ok(calls.pop().unwrap_or_else(|| say("done")))
    }));
    until_there(&line.join("1")).await;
    let second = world.turn_of("a-2", "/root/two", &world.beside("two"));
    let took = cancelled(&world, second, "touch ran", &line.join("2")).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    first.cancel.cancel();
    assert_eq!(head.await.unwrap().outcome, Outcome::Interrupted);
    drop(room);
    assert!(fs::read_dir(&line).unwrap().next().is_none());
    assert!(!world.beside("one").join("ran").exists() && !world.beside("two").join("ran").exists());
}
