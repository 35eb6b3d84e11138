//! Background shells through whole turns (A19): what is recorded of them, and what their owner hears.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // the helpers of tests are not exempt by themselves

mod common;

use std::fs;
use std::time::Duration;

use common::{World, call, is_running, replies, run, say};
use serde_json::json;
use stead_core::event::{MailKind, Outcome};
use stead_core::permission::Answer;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::shell::{ShellFate, ShellId};
use stead_model::{Message, Request};

const SHORT: Duration = Duration::from_millis(100);

/// The EXECUTION mail that a conversation holds.
fn told(request: &Request) -> Vec<String> {
    let texts = request.messages.iter().filter_map(|message| match message {
        Message::User { sort: MailKind::Execution, from, text, .. } => {
            assert_eq!(from, "stead");
            Some(text.clone())
        }
        _ => None,
    });
    texts.collect()
}

#[tokio::test]
async fn a_command_that_is_quick_is_no_shell() {
    let world = World::new();
    let results = world.calls(&[("bash", json!({ "command": "echo quick" }))]).await;
    assert_eq!(results[0].text, "exit status 0\n\nquick\n");
    let state = world.state();
    assert_eq!((state.started, state.shells.len()), (0, 0));
}

#[tokio::test]
async fn a_settlement_is_held_until_the_shells_have_ended_and_were_heard_of() {
    let world = World::new();
    let command = "sleep 0.6; echo late | tee late; exit 3";
    let end = run(world.turn(), SHORT, move |request| {
        let told = told(request);
        Ok(match (replies(request), told.as_slice()) {
            (0, _) => call("a", "bash", json!({ "command": command })),
            (_, []) => say("too early"),
            (2, [text]) => {
                let first = text.lines().next().unwrap();
                assert_eq!(first, format!("shell 1 ended with status 3: {command}"));
                call("b", "bash", json!({ "shell": 1 }))
            }
            _ => say("heard of it"),
        })
    })
    .await;
    assert_eq!((end.outcome, end.result.as_str()), (Outcome::Completed, "heard of it"));
    assert_eq!(fs::read_to_string(world.app().join("late")).unwrap(), "late\n");
    let state = world.state();
    assert_eq!(state.shells, [(ShellId(1), ShellFate::Exited(3))]);
    let results = common::results(&state.entries);
    assert_eq!(results[1].text, "exit status 3\n\nlate\n");
    // The end was recorded before the turn went on.
    let at = |what: &str| state.asked.iter().position(|asked| asked == what).unwrap();
    assert!(at("shell 1 ended with status 3") < at("say b"), "{:?}", state.asked);
}

#[tokio::test]
async fn a_shell_that_ends_while_the_turn_goes_on_is_heard_of_at_the_next_boundary() {
    let world = World::new();
    let gate = world.app().join("gate");
    let end = run(world.turn(), SHORT, move |request| {
        let number = replies(request);
        Ok(match told(request).as_slice() {
            [] if number == 0 => {
                let command = "until [ -e gate ]; do sleep 0.05; done; kill -9 $$";
                call("c0", "bash", json!({ "command": command }))
            }
            [] => {
                fs::write(&gate, "").unwrap();
                assert!(number < 200, "nothing was heard");
                call(&format!("c{number}"), "bash", json!({ "command": "sleep 0.05" }))
            }
            [text] => {
                assert!(text.starts_with("shell 1 was ended by signal 9: until"), "{text}");
                say("done")
            }
            _ => panic!("it was told twice"),
        })
    })
    .await;
    assert_eq!(end.result, "done");
    assert_eq!(world.state().shells, [(ShellId(1), ShellFate::Signalled(9))]);
}

#[tokio::test]
async fn a_shell_s_owner_writes_to_its_input_and_closes_it() {
    let world = World::new();
    let reader = "while read -r line; do echo \"<$line>\"; done; echo end";
    let calls = [
        ("bash", json!({ "command": reader, "open_input": true })),
        ("bash", json!({ "shell": 1, "input": "grün\n" })),
        ("bash", json!({ "shell": 1, "input": "two\n", "end_input": true })),
        ("bash", json!({ "command": "sleep 30.0501" })),
        ("bash", json!({ "shell": 2, "input": "x\n" })),
        ("bash", json!({ "shell": 2, "stop": true })),
    ];
    let results = world.calls_in(world.turn(), Duration::from_millis(400), &calls).await;
    let texts: Vec<_> = results.iter().map(|result| result.text.as_str()).collect();
    assert!(texts[0].starts_with("still running as shell 1;"), "{}", texts[0]);
    assert!(texts[1].ends_with("\n\n<grün>\n"), "{}", texts[1]);
    assert_eq!(texts[2], "exit status 0\n\n<two>\nend\n");
    assert!(texts[4].starts_with("the input of shell 2 is closed"), "{}", texts[4]);
    assert!(texts[5].starts_with("stopped"), "{}", texts[5]);
    let asked = world.state().asked.clone();
    let leave: Vec<_> = asked.iter().filter(|ask| ask.starts_with("permission")).collect();
    assert!(leave[1].contains("Command(\"grün\\n\") write to shell 1: grün"), "{leave:?}");
    assert_eq!(
        world.state().shells,
        [(ShellId(1), ShellFate::Exited(0)), (ShellId(2), ShellFate::Stopped)]
    );
}

#[tokio::test]
async fn without_leave_nothing_is_written_to_a_shell() {
    let world = World::new();
    let state = world.shared();
    let app = world.app();
    let mut step = 0;
    let end = run(world.turn(), SHORT, move |request| {
        step += 1;
        // The command itself is allowed.
        state.lock().unwrap().answer = if step == 2 { Answer::Denied } else { Answer::Once };
        Ok(match step {
            1 => call("a", "bash", json!({ "command": "cat >got", "open_input": true })),
            2 => call("b", "bash", json!({ "shell": 1, "input": "denied\n" })),
            3 => call("c", "bash", json!({ "shell": 1, "end_input": true })),
            _ => {
                assert_eq!(fs::read_to_string(app.join("got")).unwrap(), "");
                say(&told(request).len().to_string())
            }
        })
    })
    .await;
    assert_eq!(end.outcome, Outcome::Completed);
    let results = common::results(&world.state().entries);
    assert!(results[1].failed && results[1].text.contains("denied it"), "{results:?}");
}

#[tokio::test]
async fn an_error_ends_the_shells_of_a_turn() {
    let world = World::new();
    let mut step = 0;
    let end = run(world.turn(), SHORT, move |_| {
        step += 1;
        match step {
            1 => Ok(call("a", "bash", json!({ "command": "sleep 30.0601" }))),
            _ => Err(stead_model::ModelError::Provider("gone".into())),
        }
    })
    .await;
    assert_eq!((end.outcome, end.reason.as_deref()), (Outcome::Errored, Some("gone")));
    assert!(!is_running("30.0601"));
    assert_eq!(world.state().shells, [(ShellId(1), ShellFate::Stopped)]);
}

#[tokio::test]
async fn a_time_limit_ends_a_shell_and_says_so() {
    let world = World::new();
    let end = run(world.turn(), SHORT, move |request| {
        Ok(match (replies(request), told(request).first()) {
            (0, _) => call("a", "bash", json!({ "command": "sleep 30.0701", "timeout_ms": 600 })),
            (_, None) => say("waiting"),
            (_, Some(text)) => say(text),
        })
    })
    .await;
    assert!(end.result.starts_with("shell 1 was ended by its time limit: sleep"), "{end:?}");
    assert!(!is_running("30.0701"));
}

#[tokio::test]
async fn an_interrupt_ends_the_shells_that_hold_a_turn() {
    let world = World::new();
    let turn = world.turn();
    let cancel = turn.cancel.clone();
    let running = tokio::spawn(run(turn, SHORT, move |request| {
        Ok(match replies(request) {
            0 => call("a", "bash", json!({ "command": "sleep 30.0801" })),
            _ => say("the last word"),
        })
    }));
    while !world.state().asked.iter().any(|asked| asked == "say ") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(is_running("30.0801"));
    cancel.cancel();
    let end = running.await.unwrap();
    assert_eq!((end.outcome, end.result.as_str()), (Outcome::Interrupted, "the last word"));
    assert!(!is_running("30.0801"));
    assert_eq!(world.state().shells, [(ShellId(1), ShellFate::Stopped)]);
}

#[tokio::test]
async fn an_end_that_cannot_be_stored_holds_the_turn_until_it_is() {
    let world = World::new();
    world.state().refuse_end = Some(Refusal::new(RefusalKind::Storage, "the disk is full"));
    let end = run(world.turn(), SHORT, move |request| {
        Ok(match (replies(request), told(request).len()) {
            (0, _) => call("a", "bash", json!({ "command": "sleep 0.3" })),
            (_, told) => say(&told.to_string()),
        })
    })
    .await;
    assert_eq!((end.outcome, end.result.as_str()), (Outcome::Completed, "1"));
    let state = world.state();
    assert!(state.refuse_end.is_none());
    assert_eq!(state.shells, [(ShellId(1), ShellFate::Exited(0))]);
}
