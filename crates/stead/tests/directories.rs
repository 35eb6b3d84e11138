//! Where agents work: chosen directories, worktrees and copies, looked at before every turn.
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
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use stead_core::id::SessionId;
use stead_engine::Client;
use stead_engine::api::EventNotification;
use stead_testkit::World;

use common::copies::{RUNS, copy_of, git, picture, repository, run};
use common::{client, follow, message, runtime, start, world};

/// A worktree of the repository in the world's work folder, beside it.
fn worktree(world: &World, name: &str) -> PathBuf {
    let there = world.folder().join(name);
    git(&world.work(), &["worktree", "add", "-q", &there.display().to_string()]);
    there
}

/// `/root` spawns an agent in `directory` and says its RESULT; an agent runs its message, and one
/// whose message begins with `deeper` spawns another that does.
fn team(directory: &str, assignment: &str) -> String {
    format!(
        r#"
[[agent]]
path = "/root"
[[agent.turn]]
when = "again"
step = [
  {{ call = {{ tool = "send_message", with = {{ target = "kid", message = "touch ran; pwd", wake = true }} }} }},
  {{ wait = ["kid"], as = "result" }},
  {{ say = "{{{{result}}}}" }},
]
[[agent.turn]]
step = [
  {{ call = {{ tool = "agent", as = "kid", with = {{ task_name = "kid", message = {assignment:?}, working_directory = {directory:?} }} }} }},
  {{ if = {{ result = "kid", failed = true }}, say = "refused: {{{{kid}}}}" }},
  {{ wait = ["{{{{kid}}}}"], as = "result" }},
  {{ say = "{{{{result}}}}" }},
]
[[agent]]
path = "/root/*"
[[agent.turn]]
when = "deeper"
step = [
  {{ call = [
    {{ tool = "bash", with = {{ command = "cd /" }} }},
    {{ tool = "agent", as = "below", with = {{ task_name = "below", message = "pwd; git rev-parse --show-toplevel" }} }},
    {{ tool = "agent", as = "sub", with = {{ task_name = "sub", message = "pwd", working_directory = "sub" }} }},
  ] }},
  {{ wait = ["{{{{below}}}}", "{{{{sub}}}}"], as = "results" }},
  {{ say = "{{{{results}}}}" }},
]
[[agent.turn]]
step = [
  {{ call = {{ tool = "bash", as = "out", with = {{ command = "{{{{message}}}}" }} }} }},
  {{ say = "{{{{out}}}}" }},
]
[[agent]]
path = "/root/kid/*"
[[agent.turn]]
step = [
  {{ call = {{ tool = "bash", as = "out", with = {{ command = "{{{{message}}}}" }} }} }},
  {{ say = "{{{{out}}}}" }},
]
"#
    )
}

/// The first turn of `/root` with this team: what it said.
async fn first(client: &Client, world: &World, name: &str, playbook: &str) -> (SessionId, String) {
    let session = client.start(&start(world, name, playbook, "go")).await.unwrap().session;
    let told = follow(client, &session, 0).await;
    (session, said(&told))
}

async fn again(client: &Client, world: &World, session: &SessionId, id: &str) -> String {
    let after = client.tree(session).await.unwrap().tip;
    client.send(session, &message(world, id, "/root", "again", true)).await.unwrap();
    said(&follow(client, session, after).await)
}

fn said(told: &[EventNotification]) -> String {
    let end = told.last().unwrap();
    assert_eq!(end.body["outcome"], "completed", "{end:?}");
    end.text.clone().unwrap()
}

#[test]
fn field_cwd_01_agents_49_an_agent_works_in_the_worktree_it_was_given_or_nowhere() {
    let world = world();
    repository(&world);
    let there = worktree(&world, "wt");
    let path = there.display().to_string();
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        let playbook = team(&path, "pwd; git rev-parse --show-toplevel");
        let (session, told) = first(&client, &world, "given", &playbook).await;
        assert_eq!(told.matches(&path).count(), 2, "{told}");
        assert!(again(&client, &world, &session, "m1").await.contains(&path));
        assert!(there.join("ran").exists());

        git(&world.work(), &["worktree", "remove", "--force", &path]);
        fs::create_dir(&there).unwrap();
        let told = again(&client, &world, &session, "m2").await;
        assert!(told.contains("errored") && told.contains("no worktree any more"), "{told}");
        for folder in [&there, &world.work()] {
            assert!(!folder.join("ran").exists(), "it ran in {}", folder.display());
        }
        let (session, told) = first(&client, &world, "now", &playbook).await;
        assert!(told.starts_with("refused: ") && told.contains("no worktree"), "{told}");
        let tree = client.tree(&session).await.unwrap();
        assert_eq!(tree.agents.len(), 1, "no path and no room is taken");
    });
}

#[test]
fn agents_48_agents_54_agents_55_a_directory_stays_and_is_inherited() {
    let world = world();
    repository(&world);
    let there = worktree(&world, "wt");
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        let playbook = team(&there.display().to_string(), "deeper");
        let (session, told) = first(&client, &world, "deep", &playbook).await;
        let lines: Vec<&str> = told.lines().filter(|line| line.starts_with('/')).collect();
        let (at, sub) = (there.display().to_string(), there.join("sub").display().to_string());
        assert_eq!(lines, [&*at, &*at, &*sub], "{told}");
        // Whoever inherited the directory inherited what is looked at before a turn.
        git(&world.work(), &["worktree", "remove", "--force", &at]);
        fs::create_dir_all(there.join("sub")).unwrap();
        for (number, target) in ["/root/kid/below", "/root/kid/sub"].iter().enumerate() {
            let wake = message(&world, &format!("w{number}"), target, "touch ran", true);
            client.send(&session, &wake).await.unwrap();
            let settled = loop {
                let tree = client.tree(&session).await.unwrap();
                let agent = tree.agents.iter().find(|a| a.path.to_string() == *target).unwrap();
                if agent.turns == 2 && agent.turn.is_none() {
                    break agent.clone();
                }
                tokio::task::yield_now().await;
            };
            assert!(settled.reason.unwrap().contains("worktree"), "{target}");
        }
        assert!(!there.join("ran").exists() && !there.join("sub/ran").exists());
    });
}

#[test]
fn agents_58_ten_agents_in_ten_worktrees_never_leave_their_own() {
    let world = world();
    repository(&world);
    let config = world.folder().join("config/stead/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(config, "[sessions]\ncapacity = 12\n").unwrap();
    let trees: Vec<PathBuf> = (0..10).map(|n| worktree(&world, &format!("wt{n}"))).collect();
    let mut spawns = String::new();
    for (number, tree) in trees.iter().enumerate() {
        let log = world.folder().join(format!("log{number}"));
        let _ = writeln!(
            spawns,
            "{{ tool = \"agent\", with = {{ task_name = \"a{number}\", message = {log:?}, \
             working_directory = {tree:?} }} }},"
        );
    }
    // A hundred commands each, ten of them in a call.
    let line = "for i in 0 1 2 3 4 5 6 7 8 9; do env pwd >> {{message}}; done; cd /";
    let call = format!("{{ tool = \"bash\", with = {{ command = \"{line}\" }} }},");
    let playbook = format!(
        r#"
[[agent]]
path = "/root"
[[agent.turn]]
step = [
  {{ call = [{spawns}] }},
  {{ wait = 10, as = "results" }},
  {{ say = "{{{{results}}}}" }},
]
[[agent]]
path = "/root/*"
[[agent.turn]]
step = [
  {{ call = [{}] }},
  {{ say = "done" }},
]
"#,
        call.repeat(10)
    );
    runtime().block_on(async {
        let client = client(&world).await.unwrap();
        first(&client, &world, "ten", &playbook).await;
    });
    for (number, tree) in trees.iter().enumerate() {
        let log = fs::read_to_string(world.folder().join(format!("log{number}"))).unwrap();
        let own = tree.display().to_string();
        assert_eq!(log.lines().filter(|line| **line == own).count(), 100, "{log}");
        assert_eq!(log.lines().count(), 100);
    }
}

#[test]
fn field_cwd_06_a_copy_without_its_git_directory_runs_nothing() {
    let world = world();
    let work = repository(&world);
    // What lies around the copies is a repository as well: Git would climb to it.
    run(&world, RUNS, "true");
    let copy = copy_of(&world, "1");
    git(&world.home(), &["init", "-q"]);
    let (before, session) = (picture(&work), session(&world));
    for broken in ["gone", "empty"] {
        let _ = fs::remove_dir_all(copy.join(".git"));
        if broken == "empty" {
            fs::create_dir(copy.join(".git")).unwrap();
        }
        let output = world.run(["run", "--session", &session, "echo x > n; git add -A"]);
        let told = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains("has lost its .git"), "{told}");
        assert!(!copy.join("n").exists(), "{broken}");
        assert_eq!(picture(&work), before);
        assert!(!world.home().join(".git/index").exists());
    }
}

fn session(world: &World) -> String {
    let listed = world.json(["sessions", "list"]);
    let sessions = listed.as_object().unwrap().values().find_map(|v| v.as_array()).unwrap();
    sessions[0]["session"].as_str().unwrap().to_owned()
}

/// `/root` reads, lists and writes with the file tools; `{original}` is where the root really is.
fn file_tools(original: &str) -> String {
    format!(
        r#"
[[agent]]
path = "/root"
[[agent.turn]]
step = [
  {{ call = [
    {{ tool = "search", as = "found", with = {{ pattern = "one" }} }},
    {{ tool = "write", as = "absolute", with = {{ path = "{original}/a.txt", content = "x" }} }},
    {{ tool = "read", as = "read", with = {{ path = "{original}/a.txt" }} }},
    {{ tool = "write", as = "own", with = {{ path = "a.txt", content = "mine" }} }},
    {{ tool = "bash", as = "shell", with = {{ command = "pwd; git status --porcelain" }} }},
  ] }},
  {{ say = "{{{{found}}}}\n{{{{absolute}}}}\n{{{{read}}}}\n{{{{own}}}}\n{{{{shell}}}}" }},
]
"#
    )
}

#[test]
fn field_cwd_02_paths_in_a_copy_are_the_copys_and_the_original_is_refused() {
    let world = world();
    let work = repository(&world);
    let link = world.folder().join("link");
    symlink(&work, &link).unwrap();
    let before = picture(&work);
    for original in [&work, &link] {
        fs::write(world.folder().join("p.toml"), file_tools(&original.display().to_string()))
            .unwrap();
        let playbook = format!("playbook:{}", world.folder().join("p.toml").display());
        let root = link.display().to_string();
        let told =
            world.ok(["run", "--mode", "full-auto", "--root", &root, "--agent", &playbook, "go"]);
        assert!(told.contains("a.txt:1:one") && told.contains("wrote a.txt"), "{told}");
        assert!(told.contains(" M a.txt"), "{told}");
        let original = work.display().to_string();
        assert_eq!(told.matches("is an original").count(), 2, "{told}");
        assert!(!told.lines().any(|line| line == original), "{told}");
        assert_eq!(picture(&work), before);
    }
}

#[test]
fn field_cwd_05_every_root_is_copied_and_a_change_is_told_under_its_own() {
    let world = world();
    let mut roots = Vec::new();
    for name in ["r1", "r2", "r3"] {
        let root = world.folder().join(name);
        fs::create_dir(&root).unwrap();
        fs::write(root.join("base.txt"), format!("{name}\n")).unwrap();
        git(&root, &["init", "-q"]);
        git(&root, &["add", "-A"]);
        git(&root, &["commit", "-qm", "first"]);
        roots.push(root);
    }
    let before: Vec<String> = roots.iter().map(|root| picture(root)).collect();
    let outside = roots[2].join("base.txt").display().to_string();
    let playbook = format!(
        r#"
[[agent]]
path = "/root"
[[agent.turn]]
step = [
  {{ call = [
    {{ tool = "edit", as = "edit", with = {{ path = "../r2/base.txt", old = "r2", new = "changed" }} }},
    {{ tool = "write", as = "outside", with = {{ path = "{outside}", content = "x" }} }},
  ] }},
  {{ say = "{{{{edit}}}}\n{{{{outside}}}}" }},
]
"#
    );
    fs::write(world.folder().join("p.toml"), playbook).unwrap();
    let playbook = format!("playbook:{}", world.folder().join("p.toml").display());
    let (r1, r2) = (roots[0].display().to_string(), roots[1].display().to_string());
    let told = world.ok([
        "run",
        "--mode",
        "full-auto",
        "--root",
        &r1,
        "--root",
        &r2,
        "--agent",
        &playbook,
        "go",
    ]);
    assert!(told.contains("outside the working roots"), "{told}");
    let session = session(&world);
    let reviewed = world.ok(["task", "review", "1", "r2", "--session", &session]);
    assert!(reviewed.contains("r2") && reviewed.contains("+changed"), "{reviewed}");
    let after: Vec<String> = roots.iter().map(|root| picture(root)).collect();
    assert_eq!(after, before);
    world.ok(["task", "apply", "1", "r2", "--session", &session]);
    assert_eq!(fs::read_to_string(roots[1].join("base.txt")).unwrap(), "changed\n");
    assert_eq!(picture(&roots[0]), before[0]);
}

#[test]
fn field_cwd_07_without_a_copy_there_is_no_agent_and_nothing_happens_in_the_original() {
    let world = world();
    let work = repository(&world);
    fs::write(work.join(".git/MERGE_HEAD"), git(&work, &["rev-parse", "HEAD"])).unwrap();
    fs::write(world.folder().join("p.toml"), RUNS).unwrap();
    let playbook = format!("playbook:{}", world.folder().join("p.toml").display());
    let before = picture(&work);
    let arguments = ["run", "--mode", "full-auto", "--agent", &playbook, "echo x > f"];
    let output = world.run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("merge"), "{errors}");
    assert_eq!(picture(&work), before);
}
