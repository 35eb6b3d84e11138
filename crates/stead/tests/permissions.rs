//! Rules, grants and protected paths with the real program.
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

use serde_json::{Value, json};
use stead_core::id::SessionId;
use stead_core::permission::Mode;
use stead_engine::api::{Attendance, StartParams};
use stead_testkit::{World, until};

use common::copies::{git, repository};
use common::{STEAD, client, follow, message, runtime, start, world};

/// `/root` makes these calls, each named `a`, `b`, … as in `{ tool = … }`, and says what they came
/// to.
fn calls(calls: &[Value]) -> String {
    let names = "abcdefgh";
    let mut steps = String::new();
    let mut said = String::new();
    for (call, name) in calls.iter().zip(names.chars()) {
        let with: Vec<String> = call["with"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, value)| format!("{key} = {value}"))
            .collect();
        let (tool, with) = (&call["tool"], with.join(", "));
        let _ = writeln!(steps, "{{ tool = {tool}, as = \"{name}\", with = {{ {with} }} }},");
        let _ = write!(said, "{name}: {{{{{name}}}}}\\n");
    }
    format!(
        "[[agent]]\npath = \"**\"\n[[agent.turn]]\nstep = [\n{{ call = [\n{steps}] }},\n\
         {{ say = \"{said}\" }},\n]\n"
    )
}

fn call(tool: &str, with: Value) -> Value {
    json!({ "tool": tool, "with": with })
}

/// A session whose `/root` makes the calls in full-auto, to its end: what it said.
fn made(world: &World, name: &str, wanted: &[Value]) -> String {
    made_as(world, start(world, name, &calls(wanted), "go"))
}

fn made_as(world: &World, params: StartParams) -> String {
    runtime().block_on(async {
        let client = client(world).await.unwrap();
        let session = client.start(&params).await.unwrap().session;
        let told = follow(&client, &session, 0).await;
        let end = told.last().unwrap();
        assert_eq!(end.body["outcome"], "completed", "{end:?}");
        end.text.clone().unwrap()
    })
}

/// The answers to the calls, by name.
fn answer<'a>(said: &'a str, name: &str) -> &'a str {
    let (_, rest) = said.split_once(&format!("{name}: ")).unwrap();
    let next = char::from(name.as_bytes()[0] + 1);
    rest.split(&format!("\n{next}: ")).next().unwrap()
}

fn settings(world: &World, text: &str) {
    let file = world.folder().join("config/stead/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

#[test]
fn agents_61_rules_of_the_settings_hold_in_every_tool_and_mode() {
    let world = world();
    for (path, text) in [
        ("a.txt", "needle here"),
        ("secrets/key", "needle in a secret"),
        ("denied/.env", "needle denied"),
        ("lock/x.lock", "one"),
    ] {
        world.write(path, text);
    }
    settings(
        &world,
        "[permissions]\ndeny = [\"command:git push\", \"read:.env\"]\n\
         inaccessible = [\"secrets\"]\nread_only = [\"*.lock\"]\n",
    );
    let said = made(
        &world,
        "rules",
        &[
            call("bash", json!({ "command": "touch ran; sudo git push" })),
            call("read", json!({ "path": "denied/.env" })),
            call("edit", json!({ "path": "denied/.env", "old": "nothing", "new": "x" })),
            call("read", json!({ "path": "secrets/key" })),
            call("search", json!({ "pattern": "needle" })),
            call("list", json!({ "depth": 3 })),
            call("write", json!({ "path": "lock/x.lock", "content": "two" })),
            call("read", json!({ "path": "lock/x.lock" })),
        ],
    );
    let says = |name: &str, text: &str| {
        assert!(answer(&said, name).contains(text), "{name} {text}: {said}");
    };
    says("a", "the rule `deny command:git push` is in force");
    assert!(!world.work().join("ran").exists());
    says("b", "the rule `deny read:.env` is in force");
    says("c", "the rule `deny read:.env` is in force");
    says("d", "nobody is there to ask");
    says("e", "a.txt:1:needle here");
    says("e", "2 files or folders need leave of their own");
    assert!(!answer(&said, "e").contains("secret\n") && !answer(&said, "e").contains("denied"));
    says("f", "secrets/");
    assert!(!answer(&said, "f").contains("secrets/key"), "{said}");
    says("g", "nobody is there to ask");
    says("h", "one");
    assert_eq!(fs::read_to_string(world.work().join("lock/x.lock")).unwrap(), "one");

    // The settings are those of the engine that judges, also for a session that is older.
    world.ok(["serve", "--stop"]);
    settings(&world, "[permissions]\ndeny = [\"command:true\"]\n");
    let listed = world.ok(["permit", "list", "--session", "rules"]);
    assert!(listed.contains("deny command:true") && !listed.contains("git push"), "{listed}");
    let again = world.run(["run", "--session", "rules", "again"]);
    let again = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(answer(&again, "b").contains("needle denied"), "{again}");
}

#[test]
fn agents_56_what_lies_outside_is_asked_for_and_granted_exactly() {
    let world = world();
    repository(&world);
    let there = world.folder().join("wt");
    git(&world.work(), &["worktree", "add", "-q", &there.display().to_string()]);
    let (file, beside) = (there.join("a.txt"), there.join("b.txt"));
    let inner = calls(&[
        call("write", json!({ "path": "a.txt", "content": "mine" })),
        call("read", json!({ "path": "a.txt" })),
    ]);
    let root = format!(
        r#"
[[agent]]
path = "/root"
[[agent.turn]]
step = [
  {{ call = {{ tool = "agent", as = "kid", with = {{ task_name = "kid", message = "go", working_directory = {there:?} }} }} }},
  {{ wait = ["{{{{kid}}}}"], as = "result" }},
  {{ say = "{{{{result}}}}" }},
]
"#
    );
    let playbook = root + &inner;
    // Nobody is there: refused in every mode, and the reason names the roots.
    let said = made_as(&world, start(&world, "alone", &playbook, "go"));
    assert!(answer(&said, "a").contains("nobody is there to ask"), "{said}");
    assert!(said.contains("only an exact leave of the person allows it; the roots are: "));
    assert!(!there.join("sub/x").exists());
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n");

    let mut params = start(&world, "asked", &playbook, "go");
    params.attendance = Attendance::Detached;
    let listed = || world.json(["permit", "list", "--session", "asked"]);
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        client.start(&params).await.unwrap();
    });
    let request =
        until("a request", || listed()["permissions"].as_array().unwrap().first().cloned());
    assert_eq!(request["path"], "/root/kid");
    let name = file.display().to_string();
    assert_eq!(request["grant"], json!({ "edit": name }));
    assert!(request["subject"].as_str().unwrap().contains("outside the working roots"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n", "nothing before the answer");
    let id = request["id"].to_string();
    world.ok(["permit", "allow", &id, "--for", "session", "--session", "asked"]);
    // Who may write it may read it: the turn ends without another question.
    until("the end", || {
        let tree = world.json(["tree", "--session", "asked"]);
        (tree["agents"][0]["outcome"] == "completed").then_some(())
    });
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let text = world.ok(["permit", "list", "--session", "asked"]);
    assert!(text.contains(&format!("edit:{name}")), "{text}");

    // A path beside it is asked for, and so is the same one once the grant is taken back.
    let same = format!("edit:{name}");
    world.ok(["permit", "revoke", &same, "--session", "asked"]);
    assert_eq!(listed()["grants"], json!([]));
    let twice = world.run(["permit", "revoke", &same, "--session", "asked"]);
    assert_eq!(twice.status.code(), Some(64));
    let mut again = message(&world, "m1", "/root/kid", "again", true);
    again.attendance = Attendance::Detached;
    runtime().block_on(async {
        let session = SessionId::parse("asked").unwrap();
        client(&world).await.unwrap().send(&session, &again).await.unwrap();
    });
    let request =
        until("a request", || listed()["permissions"].as_array().unwrap().first().cloned());
    assert_eq!(request["grant"], json!({ "edit": name }));
    world.ok(["permit", "deny", &request["id"].to_string(), "--session", "asked"]);
    assert!(!beside.exists());
}

#[test]
fn what_is_gits_own_is_written_by_exact_leave_only() {
    let world = world();
    repository(&world);
    let before = fs::read_to_string(world.work().join(".git/config")).unwrap();
    let said = made(
        &world,
        "git",
        &[
            call("write", json!({ "path": ".git/config", "content": "x" })),
            call("read", json!({ "path": ".git/config" })),
            call("write", json!({ "path": ".gitignore", "content": "x" })),
        ],
    );
    assert!(answer(&said, "a").contains("changed with the git program"), "{said}");
    assert!(answer(&said, "b").contains("[core]"), "{said}");
    assert!(answer(&said, "c").contains("wrote .gitignore"), "{said}");
    assert_eq!(fs::read_to_string(world.work().join(".git/config")).unwrap(), before);
}

#[test]
fn agents_62_under_the_plan_ceiling_nothing_is_written() {
    let world = world();
    world.write("a.txt", "one");
    let wanted = [
        call("write", json!({ "path": "a.txt", "content": "x" })),
        call("edit", json!({ "path": "a.txt", "old": "one", "new": "x" })),
        call("bash", json!({ "command": "touch ran" })),
        call("read", json!({ "path": "a.txt" })),
    ];
    let mut params = start(&world, "plan", &calls(&wanted), "go");
    (params.plan_ceiling, params.mode) = (true, Mode::FullAuto);
    let said = made_as(&world, params);
    for name in ["a", "b", "c"] {
        assert!(answer(&said, name).contains("the plan ceiling is on"), "{said}");
    }
    assert!(answer(&said, "d").contains("one"));
    assert_eq!(fs::read_to_string(world.work().join("a.txt")).unwrap(), "one");
    assert!(!world.work().join("ran").exists());
}

#[test]
fn a_person_sets_rules_for_a_session_and_takes_them_back_and_no_agent_does() {
    let world = world();
    let inside = format!("{STEAD} permit rule allow command: --session rules; echo status=$?");
    let said = made(&world, "rules", &[call("bash", json!({ "command": inside }))]);
    assert!(said.contains("status=64"), "{said}");
    let permit = |words: &[&str]| {
        let words = ["permit"].iter().chain(words).chain(&["--session", "rules"]);
        world.run(words.copied().collect::<Vec<_>>())
    };
    let listed = || world.json(["permit", "list", "--session", "rules"])["rules"].clone();
    assert_eq!(listed(), json!([]));
    assert!(permit(&["rule", "deny", "command:bash -c"]).status.success());
    assert!(permit(&["rule", "deny command:echo"]).status.success());
    assert!(permit(&["rule", "deny", "command:echo"]).status.success(), "again is no error");
    assert_eq!(listed().as_array().unwrap().len(), 2);
    for bad in ["deny", "never command:x", "deny x", "read-only command:x", "deny command:$X"] {
        assert_eq!(permit(&["rule", bad]).status.code(), Some(2), "{bad}");
    }
    let again = world.run(["run", "--session", "rules", "again"]);
    let again = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(again.contains("deny command:echo"), "{again}");
    assert!(permit(&["revoke", "deny", "command:echo"]).status.success());
    assert_eq!(permit(&["revoke", "deny", "command:echo"]).status.code(), Some(64));
    assert_eq!(listed(), json!([{ "effect": "deny", "pattern": "command:bash -c" }]));
}
