//! Sessions from the outside: what a person sees of them, in a pipe.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "helpers of tests, which clippy does not know as such"
)]

mod common;

use std::fs::File;
use std::io::BufRead as _;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use common::world;
use serde_json::Value;
use stead_testkit::{World, until};

const TEAM: &str = r#"
[[agent]]
path = "/root"

[[agent.turn]]
when = "fail"
step = [{ fail = "no provider" }]

[[agent.turn]]
when = "slow"
step = [{ call = { tool = "bash", with = { command = "touch started; sleep 60" } } }, { say = "slept" }]

[[agent.turn]]
when = "ask"
step = [{ call = { tool = "bash", as = "told", with = { command = "echo asked" } } }, { say = "{{told}}" }]

[[agent.turn]]
when = "team"
step = [
  { call = [
    { tool = "task_write", with = { tasks = [{ subject = "Look \u001b[2J twice" }] } },
    { tool = "agent", as = "a", with = { task_name = "first", message = "Do one half." } },
    { tool = "agent", as = "b", with = { task_name = "second", message = "Do the other half." } },
  ] },
  { wait = ["{{a}}", "{{b}}"], as = "reports" },
  { say = "Both:\n{{reports}}" },
]

[[agent.turn]]
step = [{ say = "heard: {{message}}" }]

[[agent]]
path = "/root/*"

[[agent.turn]]
step = [
  { call = { tool = "bash", as = "out", with = { command = '''printf '\033]0;x\007\033[2J\377\000%s' "$STEAD_AGENT" ''' } } },
  { say = "did it {{out}}" },
]
"#;

fn prepared() -> World {
    let world = world();
    world.write("team.toml", TEAM);
    world
}

fn run(world: &World, more: &[&str]) -> Output {
    let mut arguments =
        vec!["run", "--in-place", "--mode", "full-auto", "--agent", "playbook:team.toml"];
    arguments.extend(more);
    world.run(arguments)
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8 everywhere");
    (text(&output.stdout), text(&output.stderr))
}

fn wait_until(mut holds: impl FnMut() -> bool) {
    until("it holds", || holds().then_some(()));
}

fn assert_harmless(text: &str) {
    let harmful = |c: char| c.is_control() && c != '\n';
    assert!(!text.chars().any(harmful), "{text:?}");
}

#[test]
fn field_out_06_a_team_is_followed_in_a_pipe_and_every_answer_is_harmless() {
    let world = prepared();
    let output = run(&world, &["a team, please"]);
    let (out, errors) = texts(&output);
    assert!(output.status.success(), "{errors}");
    assert!(out.starts_with("Both:\ndid it"), "{out}");
    for line in
        ["/root/first was given: Do one half.", "/root/second completed", "go on: stead run"]
    {
        assert!(errors.contains(line), "{line}: {errors}");
    }
    let mut shown = vec![out, errors];
    for arguments in [
        &["tree"][..],
        &["log"],
        &["log", "/root/first"],
        &["sessions"],
        &["sessions", "list"],
        &["task", "list"],
        &["task", "show", "1"],
        &["permit", "list"],
        &["doctor"],
    ] {
        shown.push(world.ok(arguments));
        let json = world.ok(arguments.iter().chain([&"--json"]));
        for line in json.lines() {
            serde_json::from_str::<Value>(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        }
        shown.push(json);
    }
    for text in shown {
        assert_harmless(&text);
    }

    let tree = world.json(["tree"]);
    let agents: Vec<&str> =
        tree["agents"].as_array().unwrap().iter().map(|a| a["path"].as_str().unwrap()).collect();
    assert_eq!(agents, ["/root", "/root/first", "/root/second"]);
    assert_eq!(tree["version"], 1);
    let session = tree["session"].as_str().unwrap();
    let shown = world.json(["sessions", "show", &session[..13]]);
    assert_eq!(shown["result"]["outcome"], "completed");
    assert_eq!(world.json(["task", "list"])["tasks"][0]["id"], 1);
    let positions: Vec<u64> = world
        .ok(["log", "--json"])
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["position"].as_u64().unwrap())
        .collect();
    assert_eq!(positions, (1..=positions.last().copied().unwrap()).collect::<Vec<_>>());
}

#[test]
fn no_colours_reach_a_pipe_whatever_the_environment_asks_for() {
    let mut world = prepared();
    world.set("NO_COLOR", "1");
    world.set("CLICOLOR_FORCE", "1");
    world.set("TERM", "xterm-256color");
    let (out, errors) = texts(&run(&world, &["a team, please"]));
    for text in [out, errors, world.ok(["tree"]), world.ok(["doctor"]), world.ok(["--help"])] {
        assert_harmless(&text);
    }
}

#[test]
fn a_session_goes_on_by_id_and_by_label() {
    let world = prepared();
    let first = run(&world, &["--label", "nightly", "one"]);
    assert_eq!(texts(&first).0, "heard: one\n");
    // What is not of the new message is not told again.
    let second = run(&world, &["--label", "nightly", "two"]);
    let (out, errors) = texts(&second);
    assert_eq!(out, "heard: two\n");
    assert!(errors.contains("goes on") && !errors.contains("one"), "{errors}");
    let sessions = world.json(["sessions"]);
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
    let id = sessions["sessions"][0]["session"].as_str().unwrap();
    assert_eq!(world.ok(["run", "--session", id, "three"]), "heard: three\n");
    assert_eq!(world.ok(["run", "--session", "nightly", "--", "-x"]), "heard: -x\n");
}

#[test]
fn run_speaks_json_to_programs() {
    let world = prepared();
    let output = run(&world, &["--json", "hello"]);
    let (out, _) = texts(&output);
    let lines: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines[0]["kind"], "session-started");
    let end = lines.last().unwrap();
    assert_eq!((&end["type"], &end["version"]), (&"end".into(), &1.into()));
    assert_eq!((&end["outcome"], &end["result"]), (&"completed".into(), &"heard: hello".into()));
}

#[test]
fn an_errored_turn_and_a_refusal_have_statuses_of_their_own() {
    let world = prepared();
    let failed = run(&world, &["fail now"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(texts(&failed).1.contains("no provider"));
    for (arguments, status) in [
        (&["tree", "--session", "nobody"][..], 64),
        (&["task", "show", "9"], 64),
        (&["permit", "allow", "9"], 64),
        (&["send", "/root/nobody", "hello"], 64),
        (&["stop", "/root/nobody"], 64),
        (&["stop", "not/../a path"], 64),
        (&["serve"], 69),
    ] {
        let output = world.run(arguments);
        let (_, errors) = texts(&output);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {errors}");
        assert!(errors.starts_with("stead: "), "{errors}");
        assert!(errors.contains("\nhint: "), "{arguments:?}: {errors}");
    }
    assert_eq!(world.ok(["stop", "/root"]), "/root was idle; nothing had to be stopped\n");
}

#[test]
fn stored_is_not_called_delivered() {
    let world = prepared();
    run(&world, &["a team, please"]);
    let stored = world.ok(["send", "/root/first", "a word"]);
    assert!(stored.contains("is stored for /root/first"), "{stored}");
    let woken = world.json(["send", "/root/first", "and now", "--wake"]);
    assert_eq!(woken["receipt"]["state"], "turn-started");
    assert_eq!(woken["receipt"]["result_to"], "/root");
}

#[test]
fn what_waits_for_the_person_is_answered_from_elsewhere() {
    let world = prepared();
    let detached = ["run", "--in-place", "--agent", "playbook:team.toml", "--detach", "ask me"];
    let session = world.ok(detached).trim().to_owned();
    wait_until(|| world.json(["permit", "list"])["permissions"].get(0).is_some());
    let waiting = world.json(["permit", "list"]);
    let id = waiting["permissions"][0]["id"].to_string();
    assert_eq!(waiting["permissions"][0]["path"], "/root");
    assert_eq!(world.ok(["permit", "allow", &id]), format!("request {id} is allowed once\n"));
    wait_until(|| world.json(["tree"])["agents"][0]["outcome"] == "completed");
    assert!(world.ok(["sessions", "show", &session]).contains("asked"));

    // Without anybody who could answer, it fails at once and is told before.
    let headless = world.run(["run", "--in-place", "--agent", "playbook:team.toml", "ask me"]);
    let (out, errors) = texts(&headless);
    assert!(errors.contains("nobody can answer here"), "{errors}");
    assert!(out.contains("nobody is there to ask"), "{out}");
}

#[test]
fn a_run_survives_the_death_of_its_engine_and_says_so() {
    let world = prepared();
    let mut arguments = vec!["run", "--in-place", "--mode", "full-auto"];
    arguments.extend(["--agent", "playbook:team.toml", "slow work"]);
    let mut command = world.command(arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until(|| world.work().join("started").exists());
    let engine = rustix::process::Pid::from_raw(i32::try_from(world.engine().unwrap()).unwrap());
    rustix::process::kill_process(engine.unwrap(), rustix::process::Signal::KILL).unwrap();
    let doctor = world.run(["doctor"]);
    let output = child.wait_with_output().unwrap();
    let (_, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(130), "{errors}");
    assert!(errors.contains("the engine had ended; a new one goes on"), "{errors}");
    assert!(errors.contains("/root interrupted"), "{errors}");
    assert!(doctor.status.success(), "a dead engine is no fault: {:?}", texts(&doctor));
}

#[test]
fn an_interrupt_leaves_and_a_second_one_stops() {
    let world = prepared();
    let begin = || {
        let _ = std::fs::remove_file(world.work().join("started"));
        let mut arguments = vec!["run", "--in-place", "--mode", "full-auto"];
        arguments.extend(["--agent", "playbook:team.toml", "slow work"]);
        let mut command = world.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until(|| world.work().join("started").exists());
        child
    };
    let interrupt = |child: &std::process::Child| {
        let pid = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    };
    let child = begin();
    interrupt(&child);
    let left = child.wait_with_output().unwrap();
    let (_, errors) = texts(&left);
    assert_eq!(left.status.code(), Some(130));
    assert!(errors.contains("the agents go on without you"), "{errors}");
    assert_eq!(world.json(["tree"])["agents"][0]["activity"], "running");
    assert!(world.ok(["stop", "/root"]).contains("is being ended"));
    wait_until(|| world.json(["tree"])["agents"][0]["outcome"] == "interrupted");

    let child = begin();
    interrupt(&child);
    std::thread::sleep(Duration::from_millis(300));
    interrupt(&child);
    let stopped = child.wait_with_output().unwrap();
    let (_, errors) = texts(&stopped);
    assert_eq!(stopped.status.code(), Some(130));
    assert!(errors.contains("/root interrupted by the person"), "{errors}");
}

#[test]
fn field_hng_01_an_open_silent_input_holds_nobody_up() {
    let world = prepared();
    let silent = |arguments: &[&str]| {
        let began = Instant::now();
        let mut command = world.command(arguments);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Taken, and held open until the program has ended.
        let input = child.stdin.take();
        wait_until(|| child.try_wait().unwrap().is_some());
        drop(input);
        assert!(began.elapsed() < Duration::from_secs(20), "{arguments:?}");
    };
    let playbook = "playbook:team.toml";
    silent(&["run", "--in-place", "--mode", "full-auto", "--agent", playbook, "hello"]);
    for arguments in [
        &[][..],
        &["tree"],
        &["log"],
        &["send", "/root", "hello"],
        &["stop", "/root"],
        &["sessions"],
        &["task", "list"],
        &["permit", "list"],
        &["doctor"],
        &["paths"],
        &["serve"],
    ] {
        silent(arguments);
    }
}

#[test]
fn a_dash_reads_the_message_from_the_input() {
    let world = prepared();
    let file = world.write("message", "hello from a file\n");
    let mut command = world.command(["run", "--in-place", "--agent", "playbook:team.toml", "-"]);
    let output = command.stdin(File::open(file).unwrap()).output().unwrap();
    assert_eq!(texts(&output).0, "heard: hello from a file\n");
}

#[test]
fn an_output_that_nobody_reads_ends_quietly() {
    let world = prepared();
    run(&world, &["a team, please"]);
    for arguments in [&["log"][..], &["tree", "--json"], &["paths"], &["completions", "zsh"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = world.command(arguments);
        let child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(texts(&output).1, "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(141), "{arguments:?}");
    }
}

/// A folder whose copy takes a while.
fn large(world: &World) {
    for folder in 0..40 {
        for file in 0..400 {
            world.write(&format!("{folder}/{file}"), "x");
        }
    }
}

#[test]
fn field_out_an_interrupt_while_copies_are_made_starts_nothing() {
    let world = prepared();
    large(&world);
    let mut arguments = vec!["run", "--mode", "full-auto", "--agent", "playbook:team.toml"];
    for (last, expected) in [(&["slow"][..], 130), (&["--detach", "slow"], 130)] {
        arguments.truncate(5);
        arguments.extend(last);
        let mut child =
            world.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let pid = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
        let interrupt =
            || rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let staged = world.home().join("copies/.staging");
        wait_until(|| staged.read_dir().is_ok_and(|mut listed| listed.next().is_some()));
        interrupt();
        let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
        let leaving = lines.find(|line| line.as_ref().unwrap().contains("Ctrl-C again"));
        assert!(leaving.is_some());
        interrupt();
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        assert_eq!(child.wait().unwrap().code(), Some(expected), "{rest:?}");
        assert!(rest.iter().any(|line| line.contains("nothing was started")), "{rest:?}");
        assert_eq!(world.json(["sessions"])["sessions"], serde_json::json!([]));
        assert_eq!(world.json(["roots", "list"])["roots"], serde_json::json!([]));
        assert!(!world.home().join("copies").join("1").exists());
    }
}

#[test]
fn a_session_is_found_in_each_of_its_folders() {
    let world = prepared();
    for name in ["one", "two"] {
        world.write(&format!("{name}/f"), "");
    }
    let roots = ["--root", "one", "--root", "two"];
    assert!(run(&world, &[&roots[..], &["hello"]].concat()).status.success());
    for name in ["one", "two"] {
        let here = world.work().join(name);
        let listed = world.command(["task", "list"]).current_dir(here).output().unwrap();
        assert!(listed.status.success(), "{name}: {listed:?}");
    }
}

#[test]
fn a_damaged_database_is_told_where_sessions_are_listed() {
    use std::os::unix::fs::FileExt as _;
    let world = prepared();
    for _ in 0..30 {
        assert!(run(&world, &["a team, please"]).status.success());
    }
    world.ok(["serve", "--stop"]);
    let database = world.home().join("stead.db");
    let file = File::options().write(true).open(&database).unwrap();
    let half = file.metadata().unwrap().len() / 4096 / 2 * 4096;
    file.write_all_at(&[0xA5; 4096], half).unwrap();
    let output = world.run(["sessions"]);
    let (_, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(64), "{errors}");
    assert!(errors.contains("damaged") && errors.contains("stead doctor"), "{errors}");
    let output = world.run(["gc", "--copies"]);
    assert_eq!(output.status.code(), Some(64), "{output:?}");
}

#[test]
fn a_detached_start_that_is_refused_says_why_and_leaves_nothing() {
    let world = prepared();
    world.write("pipe/x", "");
    let pipe = world.work().join("pipe/p");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for more in [&[][..], &["--detach"], &["--detach", "--json"]] {
        let mut arguments = vec!["run", "--agent", "playbook:team.toml", "work"];
        arguments.extend(more);
        let output = world.run(&arguments);
        let (out, errors) = texts(&output);
        assert_eq!(output.status.code(), Some(64), "{more:?}: {errors}");
        assert!(errors.contains("pipe/p"), "{more:?}: {errors}");
        assert_eq!(out, "", "{more:?}");
        assert_eq!(world.json(["sessions"])["sessions"], serde_json::json!([]));
        until("its root is forgotten", || {
            (world.json(["roots", "list"])["roots"] == serde_json::json!([])).then_some(())
        });
    }
    std::fs::remove_file(pipe).unwrap();
    let told = world.ok(["run", "--detach", "--agent", "playbook:team.toml", "work"]);
    assert_eq!(world.json(["sessions"])["sessions"][0]["session"], told.trim());
}
