//! What a spawn freezes: role, copied context, budget; and what `/root` is told of its team.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so by panicking"
)]

mod common;

use common::{client, follow, log, message, runtime, start, world};
use stead_core::id::{BodyRef, SessionId};
use stead_core::path::AgentPath;
use stead_core::refusal::RefusalKind;
use stead_engine::Client;
use stead_engine::api::{EventNotification, TreeResponse};
use stead_testkit::World;

/// A world with these settings.
fn with_settings(settings: &str) -> World {
    let world = world();
    let path = common::home(&world).settings();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, settings).unwrap();
    world
}

/// What a session came to: what its playbook said last, everything that was stored, and its tree.
struct Ran {
    said: String,
    stored: Vec<EventNotification>,
    tree: TreeResponse,
}

impl Ran {
    fn of(&self, kind: &str) -> Vec<&EventNotification> {
        self.stored.iter().filter(|e| e.kind == kind).collect()
    }
}

async fn play(world: &World, playbook: &str) -> (Client, SessionId, Ran) {
    let client = client(world).await.unwrap();
    let session = client.start(&start(world, "spawning", playbook, "go")).await.unwrap().session;
    let told = follow(&client, &session, 0).await;
    let said = told.last().unwrap().text.clone().unwrap_or_default();
    let stored = log(&client, &session).await.unwrap();
    let tree = client.tree(&session).await.unwrap();
    (client, session, Ran { said, stored, tree })
}

fn team(root: &str, child: &str) -> String {
    format!(
        "[[agent]]\npath = \"/root\"\n[[agent.turn]]\nstep = [\n{root}\n]\n\
         [[agent]]\npath = \"/root/**\"\n[[agent.turn]]\nstep = [\n{child}\n]\n"
    )
}

#[test]
fn a_leaf_role_delegates_to_nobody_and_stands_in_the_list_and_in_the_tree() {
    let world = with_settings("[roles.scout]\ndelegates = false\ntools = [\"list\"]\n");
    let root = r#"
  { call = { tool = "agent", as = "critic", with = { task_name = "critic", message = "look", role = "reviewer" } } },
  { wait = ["{{critic}}"], as = "first" },
  { call = { tool = "propose_task", as = "scout", with = { title = "scout", brief = "look", role = "scout" } } },
  { wait = ["/root/scout"], as = "second" },
  { call = { tool = "list_agents", as = "list" } },
  { say = "{{first}}\n{{second}}\n{{list}}" },"#;
    let child = r#"
  { call = { tool = "agent", as = "spawned", with = { task_name = "x", message = "y" } } },
  { call = { tool = "bash", as = "ran", with = { command = "echo ran" } } },
  { say = "{{spawned}} | {{ran}}" },"#;
    runtime().block_on(async {
        let (_, _, ran) = play(&world, &team(root, child)).await;
        let lines: Vec<&str> = ran.said.lines().collect();
        assert!(lines[0].contains("your role has no tool `agent`"), "{}", ran.said);
        assert!(ran.said.contains("\n\nran"), "a reviewer has bash: {}", ran.said);
        assert!(ran.said.contains("your role has no tool `bash`"), "{}", ran.said);
        assert!(ran.said.contains("/root/critic idle (reviewer)"), "{}", ran.said);
        let roles: Vec<_> = ran
            .tree
            .agents
            .iter()
            .map(|a| a.role.as_ref().map(stead_core::id::RoleName::as_str))
            .collect();
        assert_eq!(roles, [None, Some("reviewer"), Some("scout")]);
        assert!(world.ok(["tree", "--session", "spawning"]).contains("reviewer"));
    });
}

#[test]
fn agents_20_what_cannot_be_frozen_is_refused_and_takes_no_path() {
    let world = with_settings("[models.small]\nmodel = \"small-1\"\n");
    let tries = [
        r#"role = "no-such""#,
        r#"context = "03""#,
        r#"context = "summary""#,
        r#"model = "large""#,
        "budget = { tokens = 5 }",
    ];
    let calls: Vec<String> = tries
        .iter()
        .enumerate()
        .map(|(n, field)| {
            format!(
                r#"{{ call = {{ tool = "agent", as = "r{n}", with = {{ task_name = "x", message = "m", {field} }} }} }},"#
            )
        })
        .collect();
    let root = format!(
        r#"{}
  {{ call = {{ tool = "agent", as = "good", with = {{ task_name = "x", message = "m", model = "small", effort = "low" }} }} }},
  {{ wait = ["{{{{good}}}}"] }},
  {{ say = "{{{{r0}}}}\n{{{{r1}}}}\n{{{{r2}}}}\n{{{{r3}}}}\n{{{{r4}}}}\n{{{{good}}}}" }},"#,
        calls.join("\n")
    );
    runtime().block_on(async {
        let (_, _, ran) = play(&world, &team(&root, r#"{ say = "done" },"#)).await;
        for part in [
            "there is no role no-such",
            "is not a context",
            "`summary` is not built",
            "there is no model large",
            "tokens cannot be capped",
        ] {
            assert!(ran.said.contains(part), "{part}: {}", ran.said);
        }
        assert!(ran.said.ends_with("/root/x"), "no path was taken: {}", ran.said);
        let reserved = ran.of("agent-reserved");
        assert_eq!(reserved.len(), 2);
        let profile = stored_body(&world, &reserved[1].body["profile"]);
        assert_eq!(
            profile,
            serde_json::json!({ "delegates": true, "model": "small", "effort": "low" })
        );
    });
}

/// A stored body, read from the world's store.
fn stored_body(world: &World, reference: &serde_json::Value) -> serde_json::Value {
    let body: BodyRef = serde_json::from_value(reference.clone()).unwrap();
    let reader = stead_store::Store::open_reader(&world.home()).unwrap();
    serde_json::from_slice(&reader.body(&body.digest).unwrap().unwrap()).unwrap()
}

#[test]
fn a_copied_context_is_the_conversation_as_it_was_without_the_call_that_spawns() {
    let world = world();
    let root = r#"
  { say = "The word is plum.", call = { tool = "bash", with = { command = "true" } } },
  { say = "Now you.", call = { tool = "agent", as = "all", with = { task_name = "all", message = "m", context = "all" } } },
  { call = { tool = "propose_task", as = "last", with = { title = "last", brief = "m", context = "1" } } },
  { call = { tool = "agent", as = "none", with = { task_name = "none", message = "m", context = "none" } } },
  { wait = ["{{all}}", "/root/last", "{{none}}"] },
  { say = "The word is pear." },"#;
    let child = r#"
  { call = { tool = "bash", with = { command = "true" } } },
  { say = "done" },"#;
    runtime().block_on(async {
        let (_, _, ran) = play(&world, &team(root, child)).await;
        let reserved = ran.of("agent-reserved");
        let seed = |path: &str| {
            let event = reserved.iter().find(|e| e.body["path"] == path).unwrap();
            event.body.get("seed").map(|seed| stored_body(&world, seed).to_string())
        };
        let all = seed("/root/all").unwrap();
        assert!(all.contains("plum") && all.contains("Now you."), "{all}");
        assert!(!all.contains("task_name") && !all.contains("pear"), "{all}");
        assert!(seed("/root/last").unwrap().contains("plum"), "one turn: all that there is");
        assert_eq!(seed("/root/none"), None);
        // A playbook numbers its calls by the turns in its conversation: the copied one counts.
        let calls = |path: &str| {
            let said = ran.stored.iter().find(|e| {
                e.kind == "said" && e.conversation.as_ref().is_some_and(|p| p.as_str() == path)
            });
            said.unwrap().body["calls"][0].as_str().unwrap().to_owned()
        };
        assert!(calls("/root/all").starts_with("t2-"), "{}", calls("/root/all"));
        assert!(calls("/root/none").starts_with("t1-"), "{}", calls("/root/none"));
    });
}

#[test]
fn a_turn_over_its_budget_goes_no_further_and_says_why() {
    let world = world();
    let usage = "usage = { input = 6, output = 1 }";
    let root = format!(
        r#"
  {{ call = {{ tool = "agent", as = "a", with = {{ task_name = "a", message = "m", budget = {{ tokens = 10 }} }} }}, {usage} }},
  {{ wait = ["{{{{a}}}}"], as = "spent", {usage} }},
  {{ call = {{ tool = "agent", as = "b", with = {{ task_name = "b", message = "m", budget = {{ wall_seconds = 1 }} }} }}, {usage} }},
  {{ wait = ["{{{{b}}}}"], as = "late", {usage} }},
  {{ say = "{{{{spent}}}}\n{{{{late}}}}", {usage} }},"#
    );
    let child = format!(
        r#"
  {{ call = {{ tool = "bash", with = {{ command = "sleep 1.1; echo {{{{path}}}} >> ran" }} }}, {usage} }},
  {{ call = {{ tool = "bash", with = {{ command = "echo {{{{path}}}} >> ran" }} }}, {usage} }},
  {{ call = {{ tool = "bash", with = {{ command = "echo {{{{path}}}} never >> ran" }} }}, {usage} }},
  {{ say = "done", {usage} }},"#
    );
    runtime().block_on(async {
        let (_, _, ran) = play(&world, &team(&root, &child)).await;
        assert!(
            ran.said.contains("[errored: the budget of /root/a with all below it is used up: 14 of 10 tokens are used]"),
            "{}", ran.said
        );
        assert!(ran.said.contains("the budget of /root/b with all below it is used up: 1 of 1 seconds of work"), "{}", ran.said);
        let lines = std::fs::read_to_string(world.work().join("ran")).unwrap();
        assert_eq!(lines.matches("/root/a").count(), 2, "{lines}");
        assert_eq!(lines.matches("/root/b").count(), 1, "{lines}");
        let a = ran.of("turn-settled")[0];
        assert_eq!((a.body["path"].as_str(), a.body["outcome"].as_str()), (Some("/root/a"), Some("errored")));
    });
}

#[test]
fn caps_of_the_settings_hold_for_the_session_and_for_each_agent() {
    let world = with_settings("[sessions]\nbudget = { turns = 4 }\nagent_budget = { turns = 1 }\n");
    let root = r#"
  { call = { tool = "agent", as = "a", with = { task_name = "a", message = "m" } } },
  { wait = ["{{a}}"] },
  { say = "{{a}}" },"#;
    runtime().block_on(async {
        let (client, session, ran) = play(&world, &team(root, r#"{ say = "done" },"#)).await;
        assert_eq!(ran.said, "/root/a");
        let again = message(&world, "again", "/root/a", "m", true);
        let refusal = client.send(&session, &again).await.unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::OverBudget, "{refusal}");
        assert!(refusal.line.contains("/root/a alone is used up: 1 of 1 turns"), "{refusal}");
        // Two of four turns began. The third is /root's again and spawns the fourth, the last.
        let tip = client.tree(&session).await.unwrap().tip;
        client.send(&session, &message(&world, "third", "/root", "go", true)).await.unwrap();
        follow(&client, &session, tip).await;
        let fifth = message(&world, "fifth", "/root", "go", true);
        let refusal = client.send(&session, &fifth).await.unwrap_err();
        assert!(
            refusal.line.contains("/root with all below it is used up: 4 of 4 turns"),
            "{refusal}"
        );
    });
}

#[test]
fn agents_68_the_reminder_names_the_owner_and_returns_only_after_its_interval() {
    let world = world();
    let playbook = r#"
[[agent]]
path = "/root"
[[agent.turn]]
when = "go"
step = [
  { call = { tool = "agent", as = "a", with = { task_name = "a", message = "m" } } },
  { wait = ["{{a}}"] },
  { say = "begun" },
]
[[agent.turn]]
step = [{ say = "yes" }]
[[agent]]
path = "/root/a"
[[agent.turn]]
step = [
  { call = { tool = "task_write", with = { tasks = [{ subject = "mend the parser" }] } } },
  { fail = "the model is gone" },
]
"#;
    runtime().block_on(async {
        let (client, session, _) = play(&world, playbook).await;
        let mut reminded = Vec::new();
        for turn in 1..=17 {
            let tip = client.tree(&session).await.unwrap().tip;
            let next = message(&world, &format!("turn-{turn}"), "/root", "next", true);
            client.send(&session, &next).await.unwrap();
            let told = follow(&client, &session, tip).await;
            let notes = told.iter().filter(|e| e.kind == "heard" && e.body["sort"] == "NOTE");
            reminded.extend(notes.map(|note| (turn, note.text.clone().unwrap())));
        }
        let turns: Vec<i32> = reminded.iter().map(|(turn, _)| *turn).collect();
        assert_eq!(turns, [8, 16], "{reminded:?}");
        assert!(reminded[0].1.contains("mend the parser (/root/a)"), "{reminded:?}");
    });
}

#[test]
fn agents_34_a_peers_wake_brings_the_result_to_the_spawn_parent_only() {
    let world = world();
    let playbook = r#"
[[agent]]
path = "/root"
[[agent.turn]]
step = [
  { call = { tool = "agent", as = "child", with = { task_name = "child", message = "first" } } },
  { wait = ["{{child}}"] },
  { call = { tool = "agent", as = "peer", with = { task_name = "peer", message = "m" } } },
  { wait = ["{{child}}", "{{peer}}"], as = "heard" },
  { say = "{{heard}}" },
]
[[agent]]
path = "/root/child"
[[agent.turn]]
step = [{ say = "child done" }]
[[agent]]
path = "/root/peer"
[[agent.turn]]
step = [
  { call = { tool = "send_message", as = "sent", with = { target = "/root/child", message = "second", wake = true } } },
  { call = { tool = "wait_agent", as = "why", with = { timeout_ms = 10000 } } },
  { say = "peer: {{why}}; {{sent}}" },
]
"#;
    runtime().block_on(async {
        let (_, _, ran) = play(&world, playbook).await;
        assert!(ran.said.contains("peer: timeout"), "{}", ran.said);
        assert!(ran.said.contains("its RESULT goes to /root"), "{}", ran.said);
        let results: Vec<_> = ran
            .of("mail-stored")
            .into_iter()
            .filter(|e| e.body["kind"] == "RESULT")
            .map(|e| (e.body["from"]["agent"].clone(), e.body["to"].clone()))
            .collect();
        let to_root = |from: &str| (from.into(), "/root".into());
        let child = to_root("/root/child");
        assert_eq!(results, [child.clone(), child, to_root("/root/peer")]);
        assert_eq!(AgentPath::parse("/root/peer").unwrap(), ran.tree.agents[2].path);
    });
}
