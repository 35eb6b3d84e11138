//! Compaction through whole turns: what the model is asked and shown, and what stays.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // the helpers of tests are not exempt by themselves

mod common;

use std::sync::{Arc, Mutex};

use common::{Function, World, call, heard, say};
use serde_json::json;
use stead_agent::{Driver as _, Entry, Loop, Turn, TurnEnd};
use stead_core::event::{MailKind, Outcome, Sender};
use stead_core::id::{CallId, TurnId};
use stead_core::usage::Usage;
use stead_model::{Message, ModelError, Purpose, Reply, Request, ToolResult};

const LIMIT: usize = 10_000;

async fn run(
    turn: Turn,
    model: impl FnMut(&Request) -> Result<Reply, ModelError> + Send + 'static,
) -> TurnEnd {
    Loop::new(Arc::new(Function(Mutex::new(model)))).compact_at(LIMIT).run(turn).await
}

fn heard_in(turn: u64, text: &str) -> Entry {
    Entry::Heard {
        turn: TurnId(turn),
        from: Sender::Person,
        sort: MailKind::User,
        text: text.to_owned(),
    }
}

/// Two turns before the running one, which is turn 1 in these tests; each with a call.
fn long_before(world: &World, bytes: usize) {
    let mut state = world.state();
    let mut entries = Vec::new();
    for turn in [90, 91] {
        let id = format!("old-{turn}");
        entries.push(heard_in(turn, &format!("task of {turn}")));
        entries
            .push(Entry::Said { turn: TurnId(turn), reply: call(&id, "list_agents", json!({})) });
        let id = CallId::parse(&id).unwrap();
        let text = "x".repeat(bytes / 2);
        let result = ToolResult { id, text, structured: None, failed: false };
        entries.push(Entry::Answered { turn: TurnId(turn), result });
        entries.push(Entry::Said { turn: TurnId(turn), reply: say("done") });
    }
    entries.append(&mut state.entries);
    state.entries = entries;
}

/// Every call has its result behind it, and no result is alone.
fn assert_paired(messages: &[Message]) {
    let mut open: Vec<CallId> = Vec::new();
    for message in messages {
        match message {
            Message::Assistant(reply) => {
                assert!(open.is_empty(), "{open:?} has no result");
                open = reply.calls.iter().map(|call| call.id.clone()).collect();
            }
            Message::Tool(result) => assert_eq!(open.remove(0), result.id),
            Message::User { .. } => assert!(open.is_empty()),
        }
    }
}

fn texts(request: &Request) -> Vec<String> {
    let texts = request.messages.iter().map(|message| match message {
        Message::User { text, .. } => text.clone(),
        Message::Assistant(reply) => format!("said {}", reply.text),
        Message::Tool(result) => format!("result {}", result.id),
    });
    texts.collect()
}

#[tokio::test]
async fn a_long_conversation_is_summed_up_before_the_running_turn() {
    let world = World::new();
    long_before(&world, 2 * LIMIT);
    world.state().standing = "The tasks now: 3. paint".to_owned();
    let before = world.state().entries.clone();
    let end = run(world.turn(), |request| {
        assert_paired(&request.messages);
        Ok(match request.purpose {
            Purpose::Summary => {
                assert!(request.tools.is_empty() && request.instructions.contains("summary"));
                let texts = texts(request);
                assert!(texts.contains(&"task of 90".to_owned()), "{texts:?}");
                assert!(!texts.contains(&"do it".to_owned()), "the running turn is not summed up");
                say("what was before")
            }
            Purpose::Turn => {
                assert_eq!(request.earlier_turns, 2);
                let texts = texts(request);
                assert!(texts[0].contains("what was before"), "{texts:?}");
                assert!(texts[0].contains("The tasks now: 3. paint"), "{texts:?}");
                assert_eq!(texts[1], "do it");
                match common::replies(request) {
                    0 => call("new", "list_agents", json!({})),
                    _ => say("done"),
                }
            }
        })
    })
    .await;
    assert_eq!((end.outcome, end.result.as_str()), (Outcome::Completed, "done"));
    let state = world.state();
    assert_eq!(state.asked.iter().filter(|asked| asked.starts_with("compact")).count(), 1);
    assert_eq!(state.entries[..before.len()], before[..], "nothing stored is dropped");
}

#[tokio::test]
async fn agents_36_a_result_that_comes_while_its_parent_is_summed_up_is_heard_after_it() {
    let world = World::new();
    long_before(&world, 2 * LIMIT);
    let state = world.shared();
    let end = run(world.turn(), move |request| {
        if request.purpose == Purpose::Summary {
            state.lock().unwrap().mail.push_back(Entry::Heard {
                turn: TurnId(1),
                from: Sender::Agent(stead_core::path::AgentPath::parse("/root/a").unwrap()),
                sort: MailKind::Result,
                text: "the child is done".to_owned(),
            });
            return Ok(say("so far"));
        }
        let texts = texts(request);
        let at = texts.iter().position(|text| text == "the child is done");
        Ok(match (common::replies(request), at) {
            (0, None) => call("new", "list_agents", json!({})),
            (1, Some(at)) => {
                assert!(texts[0].contains("so far") && at > 1, "{texts:?}");
                say("heard it")
            }
            found => panic!("{found:?}: {texts:?}"),
        })
    })
    .await;
    assert_eq!(end.result, "heard it", "{end:?}");
}

#[tokio::test]
async fn what_the_model_says_it_used_counts_as_length() {
    let world = World::new();
    long_before(&world, 100);
    let usage = Usage { input: stead_agent::COMPACT_TOKENS + 1, output: 1, cost_micros: None };
    if let Entry::Said { reply, .. } = &mut world.state().entries[7] {
        reply.usage = Some(usage);
    }
    let mut summaries = 0;
    let end = run(world.turn(), move |request| {
        summaries += usize::from(request.purpose == Purpose::Summary);
        Ok(say(&summaries.to_string()))
    })
    .await;
    assert_eq!(end.result, "1");
}

#[tokio::test]
async fn a_running_turn_is_never_cut_and_a_failed_summary_changes_nothing() {
    let world = World::new();
    world.state().entries = vec![heard(&"long ".repeat(LIMIT))];
    let end = run(world.turn(), |request| {
        assert_eq!(request.purpose, Purpose::Turn, "there is nothing before it");
        Ok(say("done"))
    })
    .await;
    assert_eq!(end.result, "done");

    let world = World::new();
    long_before(&world, 2 * LIMIT);
    let mut asked = 0;
    let end = run(world.turn(), move |request| match request.purpose {
        Purpose::Summary => {
            asked += 1;
            assert_eq!(asked, 1, "it is tried once a turn");
            Err(ModelError::Provider("too much".into()))
        }
        Purpose::Turn => {
            assert!(texts(request).contains(&"task of 90".to_owned()));
            Ok(match common::replies(request) {
                4 => call("new", "list_agents", json!({})),
                _ => say("went on"),
            })
        }
    })
    .await;
    assert_eq!((end.outcome, end.result.as_str()), (Outcome::Completed, "went on"));
    assert!(!world.state().asked.iter().any(|asked| asked.starts_with("compact")));
}

#[tokio::test]
async fn an_id_that_was_used_before_the_cut_is_refused_after_it() {
    let world = World::new();
    long_before(&world, 2 * LIMIT);
    let end = run(world.turn(), |request| {
        Ok(match request.purpose {
            Purpose::Summary => say("so far"),
            Purpose::Turn => call("old-90", "list_agents", json!({})),
        })
    })
    .await;
    assert_eq!(end.outcome, Outcome::Errored);
    assert!(end.reason.unwrap().contains("two calls the id old-90"));
}

#[tokio::test]
async fn an_interrupt_ends_a_turn_that_waits_for_its_summary() {
    struct Silent;
    #[async_trait::async_trait]
    impl stead_model::Model for Silent {
        async fn reply(&self, request: &Request) -> Result<Reply, ModelError> {
            assert_eq!(request.purpose, Purpose::Summary);
            std::future::pending().await
        }
    }
    let world = World::new();
    long_before(&world, 2 * LIMIT);
    let turn = world.turn();
    let cancel = turn.cancel.clone();
    let running =
        tokio::spawn(async move { Loop::new(Arc::new(Silent)).compact_at(LIMIT).run(turn).await });
    while !world.state().asked.iter().any(|asked| asked == "boundary") {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    assert_eq!(running.await.unwrap().outcome, Outcome::Interrupted);
}

#[tokio::test]
async fn a_summary_is_bounded_and_is_there_for_whoever_asks() {
    let driver = Loop::new(Arc::new(Function(Mutex::new(|request: &Request| {
        Ok(say(&match request.messages.len() {
            2 => "é".repeat(40_000),
            _ => "  ".to_owned(),
        }))
    }))));
    let root = stead_core::path::AgentPath::root();
    let summary = driver.summarise(&root, &[heard("one")]).await.unwrap();
    assert!(summary.text.chars().count() <= 32_768 && summary.text.contains("stead log /root"));
    let refusal = driver.summarise(&root, &[heard("one"), heard("two")]).await.unwrap_err();
    assert!(refusal.line.contains("no summary for /root"), "{refusal}");
}
