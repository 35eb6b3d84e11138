//! `cargo xtask field`: the program at work on real projects, in private copies, as a person would
//! use it.
//!
//! No part of `check`: one of them comes from a registry. What was done is looked at afterwards by
//! this command itself, file by file; agents are not asked whether they were good.

mod copies;
mod package;
mod repair;
mod tree;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::bench::programs::{self, Programs};
use crate::bench::world::World;
use crate::report::{Report, Result, counted};
use crate::suite;

/// What `cargo xtask field` accepts: how the program is built, and the names of what is done.
pub(crate) const OPTIONS: &[&str] = &["--quick", "repair", "package"];

/// The variable that names the file of skips.
const SKIPS: &str = "STEAD_SKIPS";

/// What came of one piece of work.
enum Done {
    /// What was seen, and what was wrong with it.
    Looked {
        /// One sentence.
        says: String,
        /// What is not as it should be.
        violations: Vec<String>,
    },
    /// It cannot be done here, because.
    Skipped(String),
}

/// A piece of work: its name, what it is, how it is done.
type Work = (&'static str, &'static str, fn(&Field<'_>) -> Result<Done>);

const WORKS: &[Work] = &[
    ("repair", "four agents repair a service and a library", repair::run),
    ("package", "four agents change a package of 5,326 files", package::run),
];

/// What a piece of work has to go on.
struct Field<'a> {
    root: &'a Path,
    programs: &'a Programs,
    folder: &'a Path,
}

impl Field<'_> {
    fn world(&self) -> Result<World> {
        World::new(self.folder, &self.programs.stead())
    }
}

/// Does all of it, or what `options` name.
pub(crate) fn run(root: &Path, options: &[String]) -> Result<Report> {
    let has = |option: &str| options.iter().any(|given| given == option);
    let programs = programs::build(root, has("--quick"), &[])?;
    let named = WORKS.iter().any(|(name, ..)| has(name));
    let mut report = Report::default();
    let mut count = 0;
    for (name, what, work) in WORKS.iter().filter(|(name, ..)| !named || has(name)) {
        println!("\n=== {name}: {what}");
        let folder = tempfile::Builder::new().prefix("sf-").tempdir()?;
        let field = Field { root, programs: &programs, folder: folder.path() };
        match work(&field) {
            Ok(Done::Looked { says, violations }) => {
                count += 1;
                println!("{says}");
                report.extend(violations.iter().map(|violation| format!("{name}: {violation}")));
            }
            Ok(Done::Skipped(why)) => report.notes.push(format!("field {name}: {why}")),
            Err(error) => report.fail(format!("{name}: {error}")),
        }
    }
    tell_skips(&report.notes)?;
    report.clean =
        format!("{} done and looked at", counted(count, "piece of work", "pieces of work"));
    Ok(report)
}

/// Says what was not done: on the terminal, and in the file that collects skips.
fn tell_skips(notes: &[String]) -> Result<()> {
    suite::print_notes(notes);
    if let Some(path) = std::env::var_os(SKIPS) {
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        for note in notes {
            writeln!(file, "{note}")?;
        }
    }
    Ok(())
}

/// Lets agents work with a playbook of `examples/` in a private copy of `directory`, and of `read`,
/// which they may only read; what `stead run` printed, and how long it took.
fn play(
    field: &Field<'_>,
    world: &World,
    directory: &Path,
    playbook: &str,
    message: &str,
    read: Option<&Path>,
) -> Result<(String, Duration)> {
    let agent = format!("playbook:{}", field.root.join(playbook).display());
    let root = format!("{}:write", directory.display());
    let mut run = vec!["run", "--mode", "full-auto", "--agent", &agent, "--root", &root];
    let read = read.map(|folder| format!("{}:read", folder.display()));
    run.extend(read.iter().flat_map(|read| ["--root", read]));
    run.push(message);
    let began = Instant::now();
    let printed = world.ok(directory, run)?;
    Ok((printed, began.elapsed()))
}

/// What a session left behind is as it should be: so many agents that all completed, all tasks
/// done, a sound home.
fn look_at_session(world: &World, directory: &Path, agents: usize) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let tree: serde_json::Value = serde_json::from_str(&world.ok(directory, ["tree", "--json"])?)?;
    let listed = tree.get("agents").and_then(serde_json::Value::as_array);
    let listed = listed.ok_or("the tree names no agents")?;
    if listed.len() != agents {
        found.push(format!("{} agents instead of {agents}", listed.len()));
    }
    let is = |agent: &serde_json::Value, key: &str, value: &str| {
        agent.get(key).and_then(serde_json::Value::as_str) == Some(value)
    };
    for agent in listed {
        if !is(agent, "outcome", "completed") || !is(agent, "activity", "idle") {
            found.push(format!("an agent has not completed: {agent}"));
        }
    }
    let tasks = world.ok(directory, ["task", "list", "--json"])?;
    let tasks: serde_json::Value = serde_json::from_str(&tasks)?;
    let tasks = tasks.get("tasks").and_then(serde_json::Value::as_array);
    let tasks = tasks.ok_or("the list names no tasks")?;
    // Task 1 is /root's own, and goes on with the session.
    let first =
        |task: &&serde_json::Value| task.get("id").and_then(serde_json::Value::as_u64) == Some(1);
    let tasks: Vec<_> = tasks.iter().filter(|task| !first(task)).collect();
    if tasks.len() != 3 {
        found.push(format!("{} tasks of agents instead of 3", tasks.len()));
    }
    let open = tasks.iter().filter(|task| !is(task, "status", "completed"));
    found.extend(open.map(|task| format!("a task is not completed: {task}")));
    world.ok(directory, ["doctor"])?;
    Ok(found)
}

/// A program of the machine in the world's environment; what it printed on both streams.
fn output(world: &World, directory: &Path, words: &[&str]) -> Result<(bool, String)> {
    let (program, arguments) = words.split_first().ok_or("no program")?;
    let output = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(world.variables())
        .current_dir(directory)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

/// The same, but it must succeed.
fn ok(world: &World, directory: &Path, words: &[&str]) -> Result<String> {
    match output(world, directory, words)? {
        (true, text) => Ok(text),
        (false, text) => Err(format!("`{}` failed:\n{text}", words.join(" ")).into()),
    }
}
