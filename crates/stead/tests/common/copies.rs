//! What tests of private copies share.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use stead_testkit::World;

/// A playbook in which `/root` runs its message as a command line, every turn.
pub(crate) const RUNS: &str = r#"
[[agent]]
path = "/root"
[[agent.turn]]
step = [
  { call = { tool = "bash", as = "out", with = { command = "{{message}}" } } },
  { say = "{{out}}" },
]
"#;

/// Git, with an identity of its own and nobody's settings.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", folder.parent().unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A repository with two files and a commit in the world's work folder.
pub(crate) fn repository(world: &World) -> PathBuf {
    let work = world.work();
    world.write("a.txt", "one\n");
    world.write("sub/b.txt", "two\n");
    world.write(".gitignore", "target/\n");
    git(&work, &["init", "-q"]);
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-qm", "first"]);
    work
}

/// Every path below `folder` with kind, mode, times and content: what must not change. Times of
/// object files are left out: a depot links them, and Git in a copy may touch one that it has
/// (`docs/security.md`).
pub(crate) fn picture(folder: &Path) -> String {
    let listed = Command::new("find")
        .arg(folder)
        .args(["-path", "*/.git/objects/*", "-printf", "%P %y %m %s\n"])
        .args(["-o", "-printf", "%P %y %m %s %T@ %l\n"])
        .output()
        .unwrap();
    let sums = Command::new("find")
        .arg(folder)
        .args(["-type", "f", "-exec", "sha256sum", "{}", "+"])
        .output()
        .unwrap();
    let mut lines: Vec<String> = [listed.stdout, sums.stdout]
        .iter()
        .flat_map(|bytes| {
            String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    lines.sort();
    lines.join("\n")
}

/// A run in private copies to its end: what `/root` said.
pub(crate) fn run(world: &World, playbook: &str, message: &str) -> String {
    fs::write(world.folder().join("p.toml"), playbook).unwrap();
    let playbook = format!("playbook:{}", world.folder().join("p.toml").display());
    world.ok(["run", "--mode", "full-auto", "--agent", &playbook, message])
}

/// The private copy of a task's first slot.
pub(crate) fn copy_of(world: &World, task: &str) -> PathBuf {
    let shown: Value = world.json(["task", "show", task]);
    PathBuf::from(shown["delegated"]["slots"][0]["copy"].as_str().unwrap())
}
