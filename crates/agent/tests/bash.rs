//! `bash` through a whole turn: real processes, a session that answers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // the helpers of tests are not exempt by themselves

mod common;

use std::fs;
use std::time::{Duration, Instant};

use common::{World, call, is_running, run, say};
use serde_json::json;
use stead_core::event::Outcome;
use stead_core::permission::Answer;

const SHORT: Duration = Duration::from_millis(200);

#[tokio::test]
async fn a_command_is_told_by_its_exit_status() {
    let world = World::new();
    let results = world
        .calls(&[
            ("bash", json!({ "command": "echo one; echo two >&2" })),
            ("bash", json!({ "command": "exit 3" })),
            ("bash", json!({ "command": "kill -9 $$" })),
            ("bash", json!({ "command": "pwd; echo $STEAD_NONE$HOME." })),
        ])
        .await;
    assert_eq!(results[0].text, "exit status 0\n\none\ntwo\n");
    assert_eq!((results[1].text.as_str(), results[1].failed), ("exit status 3", true));
    assert_eq!(results[1].structured.as_ref().unwrap()["exit_status"], 3);
    assert_eq!(results[2].text, "ended by signal 9");
    assert_eq!(results[3].text, format!("exit status 0\n\n{}\n.\n", world.app().display()));
}

#[tokio::test]
async fn agents_55_a_cd_lasts_for_its_call_only() {
    let world = World::new();
    let results = world
        .calls(&[
            ("bash", json!({ "command": "cd / && pwd" })),
            ("bash", json!({ "command": "pwd" })),
        ])
        .await;
    assert!(results[0].text.ends_with("\n/\n"));
    assert!(results[1].text.ends_with(&format!("\n{}\n", world.app().display())));
}

#[tokio::test]
async fn field_hng_02_input_is_at_its_end_and_nothing_prompts() {
    let world = World::new();
    let start = Instant::now();
    let results = world
        .calls(&[
            ("bash", json!({ "command": "read -r x; echo got:$x" })),
            ("bash", json!({ "command": "echo $GIT_TERMINAL_PROMPT $SSH_ASKPASS_REQUIRE" })),
        ])
        .await;
    assert!(results[0].text.ends_with("got:\n") && results[1].text.ends_with("0 never\n"));
    assert!(start.elapsed() < Duration::from_secs(8));
}

#[tokio::test]
async fn field_prc_01_a_time_limit_ends_the_whole_tree() {
    let world = World::new();
    let start = Instant::now();
    let command = "mkfifo p; (while :; do echo c; sleep 7.0101; done) >p & cat p";
    let results = world.calls(&[("bash", json!({ "command": command, "timeout_ms": 500 }))]).await;
    assert!(results[0].text.starts_with("timed out and ended, with all its processes\n"));
    assert!(results[0].failed && results[0].text.ends_with("\n\nc\n"), "{}", results[0].text);
    assert!(start.elapsed() < Duration::from_secs(6));
    assert!(!is_running("7.0101"));
}

#[tokio::test]
async fn field_prc_02_the_end_of_the_command_ends_the_call() {
    let world = World::new();
    let start = Instant::now();
    let commands = [
        "sleep 40.0201 & echo ok",
        "sleep 40.0201 </dev/null >/dev/null & echo ok",
        "sleep 40.0201 2>/dev/null & echo ok",
    ];
    let calls = commands.map(|command| ("bash", json!({ "command": command })));
    for result in world.calls(&calls).await {
        assert!(result.text.starts_with("exit status 0\n1 processes were left running"));
        assert!(result.text.contains("sleep") && result.text.ends_with("ok\n"));
    }
    assert!(start.elapsed() < Duration::from_secs(9));
    assert!(!is_running("40.0201"));
}

#[tokio::test]
async fn a_long_command_yields_and_is_waited_for_and_ended_by_its_number() {
    let world = World::new();
    let calls = [
        ("bash", json!({ "command": "echo a; sleep 0.5; echo b; sleep 30.0301" })),
        ("bash", json!({ "shell": 1 })),
        ("bash", json!({ "shell": 1 })),
        ("bash", json!({ "shell": 1 })),
        ("bash", json!({ "shell": 1, "stop": true })),
        ("bash", json!({ "shell": 1 })),
        ("bash", json!({ "shell": 9 })),
        ("bash", json!({ "command": "echo next" })),
    ];
    let results = world.calls_in(world.turn(), SHORT, &calls).await;
    let texts: Vec<_> = results.iter().map(|result| result.text.as_str()).collect();
    assert!(texts[0].starts_with("still running as shell 1;") && texts[0].ends_with("\n\na\n"));
    let later = texts[1..4].concat();
    assert_eq!((later.matches("still running").count(), later.matches("b\n").count()), (3, 1));
    assert!(!later.contains("\na\n"), "what was shown is shown again: {later}");
    assert!(texts[4].starts_with("stopped, with all its processes"), "{}", texts[4]);
    assert!(texts[5].starts_with("shell 1 has ended: stopped"));
    assert!(texts[6].starts_with("you have no shell 9"));
    assert!(texts[7].ends_with("next\n"));
    assert!(!is_running("30.0301"));
}

#[tokio::test]
async fn agents_81_a_shell_answers_to_its_agent_only() {
    let world = World::new();
    let first = world.turn();
    let agent = first.agent.clone();
    let mut step = 0;
    let cancel = first.cancel.clone();
    let running = tokio::spawn(run(first, SHORT, move |_| {
        step += 1;
        Ok(call(
            &format!("{agent}-{step}"),
            "bash",
            match step {
                1 => json!({ "command": "sleep 30.0401" }),
                _ => json!({ "shell": 1 }),
            },
        ))
    }));
    while !is_running("30.0401") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let second = world.turn_of("child", "/root/child", &world.app());
    let calls = [("bash", json!({ "shell": 1 })), ("bash", json!({ "shell": 1, "stop": true }))];
    let other = world.calls_in(second, SHORT, &calls).await;
    let mine = other.iter().filter(|result| result.id.as_str().starts_with("child"));
    for result in mine {
        assert!(result.failed && result.text.starts_with("you have no shell 1"), "{}", result.text);
    }
    assert!(is_running("30.0401"));
    cancel.cancel();
    assert_eq!(running.await.unwrap().outcome, Outcome::Interrupted);
    assert!(!is_running("30.0401"));
}

#[tokio::test]
async fn field_cwd_04_every_agent_keeps_its_own_directory() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        fs::create_dir(world.app().join(name)).unwrap();
    }
    let turns = ["a", "b", "c"].map(|name| {
        let directory = world.app().join(name);
        let turn = world.turn_of(name, &format!("/root/{name}"), &directory);
        let mut step = 0;
        let name = name.to_owned();
        run(turn, SHORT, move |_| {
            step += 1;
            Ok(match step {
                6 => say("done"),
                _ => {
                    call(&format!("{name}-{step}"), "bash", json!({ "command": "pwd >>log; cd /" }))
                }
            })
        })
    });
    let [a, b, c] = turns;
    let (a, b, c) = tokio::join!(a, b, c);
    assert!([a, b, c].iter().all(|end| end.outcome == Outcome::Completed));
    for name in ["a", "b", "c"] {
        let directory = world.app().join(name);
        let log = fs::read_to_string(directory.join("log")).unwrap();
        assert_eq!(log, format!("{}\n", directory.display()).repeat(5));
    }
}

#[tokio::test]
async fn a_turn_ends_after_its_commands() {
    let world = World::new();
    let calls = [("bash", json!({ "command": "sleep 0.6; echo late >late" }))];
    world.calls_in(world.turn(), Duration::from_millis(50), &calls).await;
    assert_eq!(fs::read_to_string(world.app().join("late")).unwrap(), "late\n");
}

#[tokio::test]
async fn field_prc_08_an_interrupt_ends_every_process_of_the_turn() {
    let world = World::new();
    let turn = world.turn();
    let cancel = turn.cancel.clone();
    let mut step = 0;
    let running = tokio::spawn(run(turn, SHORT, move |_| {
        step += 1;
        let mut reply = call(
            &format!("c{step}"),
            "bash",
            json!({ "command": "trap '' TERM; (while :; do echo x >>beat; sleep 0.05; done) & wait" }),
        );
        reply.text = format!("step {step}");
        Ok(reply)
    }));
    let beat = world.app().join("beat");
    while !beat.exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(SHORT * 2).await;
    cancel.cancel();
    let end = running.await.unwrap();
    assert_eq!(end.outcome, Outcome::Interrupted);
    assert!(end.result.starts_with("step ") && end.reason.is_some());
    let size = fs::metadata(&beat).unwrap().len();
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(fs::metadata(&beat).unwrap().len(), size);
}

#[tokio::test]
async fn field_out_05_what_was_cut_is_in_the_log_that_the_answer_names() {
    let world = World::new();
    let results = world
        .calls(&[
            ("bash", json!({ "command": "seq 400000; exit 3" })),
            (
                "bash",
                json!({ "command": "head -c 3000 /dev/urandom; printf '\\033]0;x\\a\\377\\000'" }),
            ),
        ])
        .await;
    let text = &results[0].text;
    assert!(text.starts_with("exit status 3\n\n1\n2\n") && text.ends_with("\n400000\n"));
    assert!(text.len() < 1024 * 1024 + 200 && text.contains("bytes omitted; log: "));
    let log = results[0].structured.as_ref().unwrap()["log"].as_str().unwrap().to_owned();
    assert!(fs::read_to_string(log).unwrap().contains("\n200000\n"));
    assert!(results[1].text.contains("\u{fffd}") && !results[1].failed);
}

#[tokio::test]
async fn without_leave_nothing_is_started() {
    let world = World::new();
    for (answer, says) in
        [(Answer::Denied, "the person denied it"), (Answer::Headless, "stead permit allow ID")]
    {
        world.state().answer = answer;
        let calls = [("bash", json!({ "command": "touch made\nsecond" }))];
        let results = world.calls(&calls).await;
        assert!(results[0].failed && results[0].text.contains(says), "{}", results[0].text);
    }
    assert!(!world.app().join("made").exists());
    let asked = world.state().asked.clone();
    let asked = asked.iter().find(|ask| ask.starts_with("permission")).unwrap();
    assert!(asked.contains(r#"Command("touch made\nsecond") run touch made …"#), "{asked}");
}

#[tokio::test]
async fn a_turn_that_is_taken_up_again_keeps_the_logs_it_named() {
    let world = World::new();
    let mut logs = Vec::new();
    for word in ["first", "second"] {
        let results = world.calls(&[("bash", json!({ "command": format!("echo {word}") }))]).await;
        let log = results[0].structured.as_ref().unwrap()["log"].as_str().unwrap().to_owned();
        logs.push((log, format!("{word}\n")));
    }
    for (log, text) in logs {
        assert_eq!(fs::read_to_string(log).unwrap(), text);
    }
}

#[tokio::test]
async fn a_command_that_kills_the_spawner_costs_itself_only() {
    let world = World::new();
    let kill = "kill -9 $(cut -d ' ' -f 4 /proc/$PPID/stat); sleep 60";
    let results = world
        .calls(&[("bash", json!({ "command": kill })), ("bash", json!({ "command": "pwd" }))])
        .await;
    assert!(results[0].failed && results[0].text.contains("look before"), "{results:?}");
    assert!(results[1].text.starts_with("exit status 0"), "{results:?}");
}

#[tokio::test]
async fn no_command_runs_where_a_link_took_the_directory_s_place() {
    let world = World::new();
    let results = world
        .calls(&[
            (
                "bash",
                json!({ "command": "mkdir ../other; mv ../app ../moved; ln -s other ../app" }),
            ),
            ("bash", json!({ "command": "touch was-here" })),
        ])
        .await;
    assert!(results[1].failed && results[1].text.contains("leads to"), "{results:?}");
    assert!(!world.app().join("was-here").exists());
}
