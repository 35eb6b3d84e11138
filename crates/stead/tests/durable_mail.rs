//! Mail is durable when the tool that sent it answers: the engine is killed right after the answer.
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
use stead_engine::api::{EventNotification, EventsParams, Notification};
use stead_testkit::until;

use common::{check_told, client, log, message, runtime, start, world};

/// How often the engine is killed.
const KILLS: usize = 20;

const PLAYBOOK: &str = r#"
[[agent]]
path = "/root"
[[agent.turn]]
step = [
  { call = { tool = "agent", with = { task_name = "a", message = "rest" } } },
  { wait = ["a"] },
  { label = "send", call = { tool = "send_message", with = { target = "a", message = "word" } } },
  { goto = "send", at_most = 900 },
  { say = "said all" },
]
[[agent]]
path = "/root/a"
[[agent.turn]]
step = [{ say = "rested" }]
"#;

fn is_answer_of_send(event: &EventNotification) -> bool {
    event.kind == "answered" && event.text.as_ref().is_some_and(|text| text.contains("stored for"))
}

fn mail(events: &[EventNotification], kind: &str) -> usize {
    events
        .iter()
        .filter(|e| e.kind == kind && e.body["to"] == "/root/a")
        .map(|e| e.body["mail"].as_array().map_or(1, Vec::len))
        .sum()
}

#[test]
fn mail_is_durable_when_send_message_answers() {
    let world = world();
    for round in 0..KILLS {
        let id = format!("s{round}");
        let session = SessionId::parse(&id).unwrap();
        let told = runtime().block_on(async {
            let client = client(&world).await.unwrap();
            let engine = world.engine().unwrap().to_string();
            client.start(&start(&world, &id, PLAYBOOK, "go")).await.unwrap();
            let params = EventsParams { after: 0, follow: true, attached: false };
            let mut events = client.events(&session, &params).await.unwrap();
            let mut told = Vec::new();
            let mut answers = 0;
            while let Ok(Some(notification)) = events.next().await {
                let Notification::Event(event) = notification else { continue };
                answers += usize::from(is_answer_of_send(&event));
                told.push(*event);
                if answers == 1 + round {
                    let kill = Command::new("kill").args(["-KILL", &engine]).status();
                    assert!(kill.unwrap().success());
                    break;
                }
            }
            until("it is gone", || {
                (!Path::new(&format!("/proc/{engine}/exe")).exists()).then_some(())
            });
            told
        });
        let answered = told.iter().filter(|event| is_answer_of_send(event)).count();
        assert_eq!(answered, 1 + round);
        runtime().block_on(async {
            let client = client(&world).await.unwrap();
            let tree = client.tree(&session).await.unwrap();
            let stored = log(&client, &session).await.unwrap();
            check_told(&told, &stored, round);
            let (mails, answers) =
                (mail(&stored, "mail-stored"), stored.iter().filter(|e| is_answer_of_send(e)));
            assert!(mails >= answers.count(), "round {round}: an answer without its mail");
            let unread = tree.agents.iter().find(|a| a.path.as_str() == "/root/a").unwrap().unread;
            assert_eq!(unread, mails, "round {round}");
        });
    }
    // The last one hears all of it, once.
    let session = SessionId::parse(&format!("s{}", KILLS - 1)).unwrap();
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        let before = log(&client, &session).await.unwrap();
        let mails = mail(&before, "mail-stored");
        client.send(&session, &message(&world, "m", "/root/a", "wake", true)).await.unwrap();
        while mail(&log(&client, &session).await.unwrap(), "mail-delivered") <= mails {
            tokio::task::yield_now().await;
        }
        let after = log(&client, &session).await.unwrap();
        let heard = |e: &&EventNotification| e.kind == "heard" && e.text.as_deref() == Some("word");
        assert_eq!(after.iter().filter(heard).count(), mails, "each is heard once");
    });
}
