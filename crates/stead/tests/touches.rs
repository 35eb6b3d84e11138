//! The page `docs/what-stead-touches.md` against the program: a whole journey in a world, every
//! path that is ever there compared with the page's table, and every row of it with the paths.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so by panicking"
)]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::copies::RUNS;
use common::world;
use stead_testkit::World;

const PAGE: &str = include_str!("../../../docs/what-stead-touches.md");

/// Rows that this journey need not meet, and why.
const RARE: &[(&str, &str)] = &[
    ("home/stead.db-wal", "it may be emptied before anybody looks"),
    ("home/stead.db-shm", "the same"),
    ("home/copies/.staging/<process>-<n>/…", "there for a moment"),
    ("home/copies/.staging/<process>-<n>.lock", "there for a moment"),
    ("home/applies/<root>.journal", "there for a moment"),
    ("home/applies/<root>.reserve", "there for a moment"),
    ("home/applies/rescue/…", "made when a file is changed while an apply writes it"),
    ("home/log/engine.log.1", "made when the log is large"),
    ("home/log/engine.log", "made when an engine that a command started has something to say"),
    ("host/runs/…", "there while a command runs"),
    ("host/line/…", "made when commands wait for room"),
    ("host/releasing/…", "there while a release is at work"),
    ("host/aside/…", "made when a record cannot be read"),
    ("stead-demo-<12 hex digits>/…", "made by `stead demo`, whose own tests look at it"),
    ("host/scratch/<agent>/stead.sock", "there while a turn runs"),
    ("runtime/<digits>.sock", "there while an engine runs"),
    (".stead-new-<process>-<n>", "there for a moment"),
    ("index.lock", "there while an apply writes"),
];

/// One row of the page.
struct Row {
    /// The pattern, its base first; a name alone is one anywhere.
    pattern: String,
    /// Whether stead never removes it by itself.
    stays: bool,
}

/// The rows of the table under the heading *What stead creates*.
fn rows() -> Vec<Row> {
    let table = PAGE.split("## What stead creates").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    let mut rows = Vec::new();
    for line in table.lines().filter(|line| line.starts_with("| *") || line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [paths, _, goes] = cells[..] else { panic!("three cells: {line}") };
        for path in paths.split(", ") {
            let pattern = path.replace(['*', '`'], "");
            rows.push(Row { pattern, stays: goes.starts_with("never") });
        }
    }
    assert!(rows.len() > 30, "the table was not found");
    rows
}

/// Whether a path, its base first, is of a pattern: `<…>` stands for a name or a part of one, `/…`
/// at the end for everything below.
fn is_of(pattern: &str, path: &str) -> bool {
    if !pattern.contains('/') {
        return path.rsplit('/').next().is_some_and(|name| is_name(pattern, name));
    }
    let names: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    let mut wanted: Vec<&str> = pattern.trim_end_matches('/').split('/').collect();
    let below = wanted.last() == Some(&"…");
    if below {
        wanted.pop();
    }
    let fits = if below { names.len() >= wanted.len() } else { names.len() == wanted.len() };
    fits && wanted.iter().zip(&names).all(|(wanted, name)| is_name(wanted, name))
}

fn is_name(pattern: &str, name: &str) -> bool {
    let Some((before, rest)) = pattern.split_once('<') else { return pattern == name };
    let (_, after) = rest.split_once('>').unwrap();
    let Some(name) = name.strip_prefix(before) else { return false };
    (1..=name.len()).any(|end| name.get(end..).is_some_and(|rest| is_name(after, rest)))
}

#[test]
fn patterns_are_matched_by_names() {
    assert!(is_of("home/<a>-<n>.lock", "home/12-3.lock"));
    assert!(!is_of("home/<a>.lock", "home/x/y.lock"));
    assert!(is_of("home/a/…", "home/a") && is_of("home/a/…", "home/a/b/c"));
    assert!(is_of("home/", "home") && !is_of("home/", "home/x"));
    assert!(is_of(".stead-new-<p>-<n>", "work/x/.stead-new-1-2"));
}

/// Where the bases of the page are in a world; and what is none of stead's.
fn named(world: &World, path: &Path) -> Option<String> {
    let folder = world.folder();
    let bases = [
        ("home", folder.join("home")),
        ("settings", folder.join("config/stead")),
        ("host", folder.join("state/stead/host")),
        ("runtime", folder.join("run/stead")),
        ("work", folder.join("work")),
        ("user", folder.join("user")),
    ];
    let found = bases.iter().find_map(|(name, base)| {
        let rest = path.strip_prefix(base).ok()?.to_string_lossy().into_owned();
        Some(if rest.is_empty() { (*name).to_owned() } else { format!("{name}/{rest}") })
    });
    let on_the_way = bases.iter().any(|(_, base)| base.starts_with(path));
    match found {
        None if on_the_way || path == folder.join("p.toml") => None,
        None => Some(path.strip_prefix(folder).unwrap().to_string_lossy().into_owned()),
        found => found,
    }
}

/// All paths of the world now.
fn listed(world: &World) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let mut folders: Vec<PathBuf> = vec![world.folder().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
            paths.extend(named(world, &entry.path()));
        }
    }
    paths
}

/// What was ever there, and what was there and went.
#[derive(Default)]
struct Seen {
    ever: BTreeSet<String>,
    now: BTreeSet<String>,
    went: BTreeSet<String>,
}

impl Seen {
    fn look(&mut self, world: &World) {
        let now = listed(world);
        self.went.extend(self.now.difference(&now).cloned());
        self.ever.extend(now.iter().cloned());
        self.now = now;
    }
}

fn git(folder: &Path, arguments: &[&str]) {
    let done = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=n", "-c", "user.email=e@x"])
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", folder)
        .status();
    assert!(done.unwrap().success(), "git {arguments:?}");
}

/// Run, exec, review, apply, discard, collect, ask.
fn journey(world: &World, mut after: impl FnMut()) {
    let playbook = format!("playbook:{}", world.folder().join("p.toml").display());
    let long = format!("seq 60000; : {}", "x".repeat(70_000));
    let change = "echo more >> a.txt; mkdir -p new; echo n > new/file; rm sub/b.txt; seq 60000";
    let run = ["run", "--mode", "full-auto", "--agent", &playbook];
    let mut step = |arguments: &[&str]| {
        world.ok(arguments);
        after();
    };
    step(&[&run[..], &[change]].concat());
    step(&["exec", "--", "sh", "-c", "echo checked > $TMPDIR/x"]);
    step(&["places"]);
    step(&["task", "review", "1"]);
    step(&["task", "apply", "1"]);
    step(&["task", "discard", "1"]);
    step(&[&run[..], &["--in-place", &long]].concat());
    step(&["release"]);
    step(&["gc", "--copies"]);
    step(&["doctor"]);
    step(&["paths"]);
    step(&["serve", "--stop"]);
}

#[test]
fn field_cln_every_path_is_on_the_page_and_every_row_is_met() {
    let world = world();
    fs::write(world.folder().join("p.toml"), RUNS).unwrap();
    world.write("a.txt", "one\n");
    world.write("sub/b.txt", "two\n");
    world.write("large", &"large\n".repeat(20_000));
    git(&world.work(), &["init", "-q"]);
    git(&world.work(), &["add", "-A"]);
    git(&world.work(), &["commit", "-qm", "first"]);
    let before = listed(&world);
    let seen = Mutex::new(Seen::default());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // What is there for a moment is seen by looking all the time; what stays, after each step.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                seen.lock().unwrap().look(&world);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        journey(&world, || seen.lock().unwrap().look(&world));
        done.store(true, Ordering::Relaxed);
    });
    let seen = seen.into_inner().unwrap();
    let rows = rows();
    // What the apply brought, which its review listed.
    let applied = ["work/new", "work/new/file"];
    let strange: Vec<&String> = seen
        .ever
        .iter()
        .filter(|path| !before.contains(*path) && !applied.contains(&path.as_str()))
        .filter(|path| !rows.iter().any(|row| is_of(&row.pattern, path)))
        .collect();
    assert!(strange.is_empty(), "not on the page: {strange:#?}");
    let is_rare = |row: &Row| RARE.iter().any(|(pattern, _)| *pattern == row.pattern);
    let unmet: Vec<&str> = rows
        .iter()
        .filter(|row| !is_rare(row) && !seen.ever.iter().any(|path| is_of(&row.pattern, path)))
        .map(|row| row.pattern.as_str())
        .collect();
    assert!(unmet.is_empty(), "on the page, and nowhere: {unmet:#?}");
    for (pattern, why) in RARE {
        assert!(rows.iter().any(|row| row.pattern == *pattern), "{pattern} ({why}) is no row");
    }
    let lost: Vec<&String> = seen
        .went
        .iter()
        .filter(|path| !seen.now.contains(*path))
        .filter(|path| rows.iter().any(|row| row.stays && is_of(&row.pattern, path)))
        .filter(|path| !rows.iter().any(|row| !row.stays && is_of(&row.pattern, path)))
        .collect();
    assert!(lost.is_empty(), "the page says that these stay: {lost:#?}");
    // In the person's folders only what the review listed came and went.
    let gone: Vec<&String> = before.difference(&seen.now).collect();
    assert_eq!(gone, ["work/sub/b.txt"]);
}
