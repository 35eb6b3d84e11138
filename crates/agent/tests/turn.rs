//! Whole turns of the loop: what is asked of the session, in which order, and how turns end.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // the helpers of tests are not exempt by themselves

mod common;

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Function, World, call, heard, replies, results, run, say};
use serde_json::json;
use stead_agent::{Driver as _, Entry, Loop};
use stead_core::event::{CallFate, Outcome};
use stead_core::id::{CallId, TurnId};
use stead_core::permission::Answer;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::usage::Usage;
use stead_model::{Message, Model, ModelError, Reply, Request};

const YIELD: Duration = Duration::from_secs(10);

#[tokio::test]
async fn what_is_said_is_recorded_before_it_is_done() {
    let world = World::new();
    let end = run(world.turn(), YIELD, |request| {
        Ok(match replies(request) {
            0 => {
                let mut both = call("a", "write", json!({ "path": "f", "content": "x" }));
                both.calls.extend(call("b", "task_list", json!({})).calls);
                both
            }
            _ => say("all done"),
        })
    })
    .await;
    assert_eq!((end.outcome, end.result.as_str()), (Outcome::Completed, "all done"));
    let file = world.app().join("f").display().to_string();
    assert_eq!(
        world.state().asked,
        [
            "boundary",
            "say a b",
            &format!("permission Edit({file:?}) write f"),
            "answer a",
            "tool b",
            "answer b",
            "boundary",
            "say ",
        ]
    );
}

#[tokio::test]
async fn what_a_reply_used_is_recorded_with_it() {
    let world = World::new();
    let usage = Usage { input: 1200, output: 80, cost_micros: Some(900) };
    let end = run(world.turn(), YIELD, move |request| {
        Ok(match replies(request) {
            0 => Reply { usage: Some(usage), ..call("a", "list_agents", json!({})) },
            _ => say("done"),
        })
    })
    .await;
    assert_eq!(end.result, "done");
    let state = world.state();
    let used = state.entries.iter().filter_map(|entry| match entry {
        Entry::Said { reply, .. } => Some(reply.usage),
        _ => None,
    });
    assert_eq!(used.collect::<Vec<_>>(), [Some(usage), None]);
}

#[tokio::test]
async fn mail_is_heard_at_the_next_boundary() {
    let world = World::new();
    world.state().mail.extend([heard("one"), heard("two")]);
    let end = run(world.turn(), YIELD, |request| {
        let texts: Vec<_> = request
            .messages
            .iter()
            .filter_map(|message| match message {
                Message::User { text, opens_turn, from, .. } => {
                    Some(format!("{from} {text} {opens_turn}"))
                }
                _ => None,
            })
            .collect();
        match replies(request) {
            0 => {
                assert_eq!(texts, ["person do it true", "person one false"]);
                Ok(call("a", "list_agents", json!({})))
            }
            _ => Ok(say(&texts.join(", "))),
        }
    })
    .await;
    assert_eq!(end.result, "person do it true, person one false, person two false");
}

#[tokio::test]
async fn a_last_word_is_held_back_while_mail_waits() {
    let world = World::new();
    let refusal = Refusal::new(RefusalKind::MailWaiting, "mail has come");
    world.state().refuse_say = Some(refusal);
    let mut asked = 0;
    let end = run(world.turn(), YIELD, move |_| {
        asked += 1;
        Ok(say(&format!("word {asked}")))
    })
    .await;
    assert_eq!((end.outcome, end.result.as_str()), (Outcome::Completed, "word 2"));
}

#[tokio::test]
async fn a_turn_that_has_its_last_word_is_not_asked_again() {
    let world = World::new();
    world.state().entries.push(Entry::Said { turn: TurnId(1), reply: say("said before") });
    let end = run(world.turn(), YIELD, |_| panic!("asked again")).await;
    assert_eq!((end.outcome, end.result.as_str()), (Outcome::Completed, "said before"));
}

#[tokio::test]
async fn a_model_that_fails_ends_the_turn_with_its_reason() {
    let world = World::new();
    let end = run(world.turn(), YIELD, |request| match replies(request) {
        0 => {
            let mut reply = call("a", "list", json!({}));
            reply.text = "half a thought".into();
            Ok(reply)
        }
        _ => Err(ModelError::Provider("the provider is down".into())),
    })
    .await;
    assert_eq!(end.outcome, Outcome::Errored);
    assert_eq!(end.result, "half a thought");
    assert_eq!(end.reason.as_deref(), Some("the provider is down"));
}

#[tokio::test]
async fn circles_and_repeated_call_ids_end_the_turn() {
    let world = World::new();
    let mut number = 0;
    let model = Function(Mutex::new(move |_: &Request| {
        number += 1;
        Ok(call(&format!("c{number}"), "list", json!({})))
    }));
    let end = Loop::new(Arc::new(model)).most_steps(5).run(world.turn()).await;
    assert_eq!(end.outcome, Outcome::Errored);
    assert!(end.reason.unwrap().contains("5 steps"));
    let end = run(world.turn(), YIELD, |_| Ok(call("same", "list", json!({})))).await;
    assert!(end.reason.unwrap().contains("the id same"));
}

#[tokio::test]
async fn a_bad_call_is_an_answer_and_the_turn_goes_on() {
    let world = World::new();
    world.state().answer = Answer::Headless;
    let results = world
        .calls(&[
            ("reed", json!({})),
            ("read", json!({ "file": "x" })),
            ("read", json!({ "path": "../../etc/passwd" })),
            ("read", json!("x")),
            ("interrupt_agent", json!({ "target": "child" })),
            ("list", json!({})),
        ])
        .await;
    for (result, says) in results.iter().zip([
        "there is no tool `reed`\nhint: did you mean `read`?",
        "`read` has no field `file`\nhint: its fields: limit (optional), offset (optional), path",
        "etc/passwd, outside the working roots; nothing was done",
        "the arguments of `read` must be an object, not a string",
        "no agent child\nhint: list_agents names",
    ]) {
        assert!(result.failed && result.text.contains(says), "{}", result.text);
    }
    assert!(!results[5].failed);
}

#[tokio::test]
async fn files_are_written_and_edited_with_leave_only() {
    let world = World::new();
    let file = world.app().join("f");
    let edit = ("edit", json!({ "path": "f", "old": "one", "new": "two" }));
    let write = ("write", json!({ "path": "f", "content": "one\n" }));
    world.state().answer = Answer::Headless;
    let refused = world.calls(&[write.clone(), edit.clone()]).await;
    assert!(refused.iter().all(|result| result.failed) && !file.exists());
    assert!(refused[0].text.contains("--mode edits"));
    // An edit that cannot work is not even asked for.
    assert!(refused[1].text.starts_with("there is no f"));
    world.state().answer = Answer::Session;
    let done = world.calls(&[write, edit, ("read", json!({ "path": "f" }))]).await;
    assert_eq!(done[2].text, "two\n");
    assert_eq!(fs::read_to_string(file).unwrap(), "two\n");
}

struct Silent;

#[async_trait::async_trait]
impl Model for Silent {
    async fn reply(&self, _: &Request) -> Result<Reply, ModelError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_cancel_ends_the_turn_wherever_it_waits() {
    let world = World::new();
    let turn = world.turn();
    turn.cancel.cancel();
    let end = run(turn, YIELD, |_| panic!("asked")).await;
    assert_eq!(end.outcome, Outcome::Interrupted);

    let turn = world.turn();
    let cancel = turn.cancel.clone();
    let silent = Loop::new(Arc::new(Silent));
    let (end, ()) = tokio::join!(silent.run(turn), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    });
    assert_eq!(end.outcome, Outcome::Interrupted);

    let turn = world.turn();
    let cancel = turn.cancel.clone();
    let waiting =
        run(turn, YIELD, |_| Ok(call("w", "wait_agent", json!({ "timeout_ms": "soon" }))));
    let (end, ()) = tokio::join!(waiting, async {
        while !world.state().asked.contains(&"wait".to_owned()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        cancel.cancel();
    });
    assert_eq!(end.outcome, Outcome::Interrupted);
    assert!(results(&world.state().entries).is_empty());
}

#[tokio::test]
async fn field_ses_04_the_turn_after_an_interrupt_works() {
    let world = World::new();
    let turn = world.turn();
    let cancel = turn.cancel.clone();
    let first = tokio::spawn(run(turn, YIELD, |_| {
        let mut reply = call("a", "bash", json!({ "command": "touch begun; sleep 60.0501" }));
        reply.calls.extend(call("b", "list", json!({})).calls);
        Ok(reply)
    }));
    while !world.app().join("begun").exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    cancel.cancel();
    assert_eq!(first.await.unwrap().outcome, Outcome::Interrupted);
    // As the session settles an interrupted turn: only of what it knows does it say more.
    let call = CallId::parse("b").unwrap();
    let unanswered = Entry::Unanswered { turn: TurnId(1), call, fate: CallFate::NotStarted };
    world.state().entries.extend([unanswered, heard("hello")]);
    let end = run(world.turn(), YIELD, |request| {
        let told: Vec<_> = request
            .messages
            .iter()
            .filter_map(|message| match message {
                Message::Tool(result) => Some(result.text.as_str()),
                _ => None,
            })
            .collect();
        assert!(told[0].contains("its outcome is unknown") && told[1].contains("was not started"));
        Ok(say("hello to you"))
    })
    .await;
    assert_eq!((end.outcome, end.result.as_str()), (Outcome::Completed, "hello to you"));
}

#[tokio::test]
async fn a_model_is_told_who_and_where_it_is() {
    let world = World::new();
    let turn = world.turn_of("child", "/root/a/child", &world.app());
    let app = world.app().display().to_string();
    let end = run(turn, YIELD, move |request| {
        assert!(request.instructions.contains("You are /root/a/child,"));
        assert!(request.instructions.contains("goes to /root/a as your RESULT"));
        assert!(request.instructions.contains(&format!("- app: {app} (read and write)")));
        assert_eq!(request.tools.len(), stead_agent::tools::catalogue().len());
        Ok(say("ok"))
    })
    .await;
    assert_eq!(end.outcome, Outcome::Completed);
}
