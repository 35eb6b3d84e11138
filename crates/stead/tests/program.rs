//! What the program does without an engine: help, refusals, paths, completions, doctor.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "helpers of tests, which clippy does not know as such"
)]

mod common;

use std::process::Output;

use common::world;
use stead_testkit::World;

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

fn is_untouched(world: &World) -> bool {
    !world.home().exists() && std::fs::read_dir(world.folder().join("run")).unwrap().count() == 0
}

#[test]
fn stead_alone_says_how_to_begin_in_five_lines() {
    let world = world();
    let output = world.run::<&str>([]);
    let (out, errors) = texts(&output);
    assert!(output.status.success());
    assert_eq!((out.lines().count(), errors.as_str()), (5, ""));
    let names = ["demo", "run", "doctor", "guide", "help"];
    for (line, name) in out.lines().zip(names) {
        assert!(line.starts_with(name), "{out}");
    }
    for named in ["stead run --agent playbook:", "stead task review", "docs/guide.md"] {
        assert!(out.contains(named), "{out}");
    }
    assert!(is_untouched(&world));
}

#[test]
fn verbs_that_need_no_engine_start_none_and_write_nothing() {
    let world = world();
    for arguments in [
        &["--help"][..],
        &["help", "run"],
        &["demo", "--help"],
        &["--version"],
        &["paths"],
        &["completions", "bash"],
        &["doctor"],
        &["reference", "commands"],
        &["reference", "tools"],
        &["serve", "--stop"],
    ] {
        world.ok(arguments);
        assert!(is_untouched(&world), "{arguments:?}");
    }
    let paths = world.json(["paths"]);
    assert_eq!(paths["version"], 1);
    assert_eq!(paths["paths"][0]["path"], world.home().to_str().unwrap());
    let doctor = world.json(["doctor"]);
    assert_eq!((&doctor["version"], &doctor["sound"]), (&1.into(), &true.into()));
    assert!(is_untouched(&world));
}

#[test]
fn a_fresh_machine_is_well_and_told_what_to_do_first() {
    let world = world();
    let text = world.ok(["doctor"]);
    assert!(
        text.contains("all is well") && text.contains("first: stead demo, or stead run"),
        "{text}"
    );
}

#[test]
fn a_run_without_an_agent_says_what_it_looked_for_and_what_works() {
    let mut world = world();
    let bin = world.folder().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink("/bin/true", bin.join("codex")).unwrap();
    world.set("PATH", bin);
    let output = world.run(["run", "--in-place", "fix it"]);
    let (out, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(out, "");
    assert!(errors.contains("codex") && errors.contains("not supported yet"), "{errors}");
    assert!(errors.contains("not installed      claude, opencode, pi, gemini"), "{errors}");
    assert!(errors.contains("config.toml"), "{errors}");
    assert!(errors.contains("hint:") && errors.contains("playbook:FILE"), "{errors}");
    assert!(is_untouched(&world));
}

#[test]
fn arguments_that_cannot_be_used_are_named_before_anything_starts() {
    let world = world();
    world.write("p.toml", "");
    let refused = |arguments: &[&str], status: i32, named: &str| {
        let output = world.run(arguments);
        let (out, errors) = texts(&output);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {errors}");
        assert!(errors.contains(named), "{arguments:?}: {errors}");
        assert_eq!(out, "", "{arguments:?}");
        assert!(is_untouched(&world), "{arguments:?}");
    };
    let playbook = "playbook:p.toml";
    refused(&["no-such-verb"], 2, "no-such-verb");
    refused(&["run", "--in-place", "--agent", "claude", "go"], 2, "claude");
    refused(&["run", "--in-place", "--agent", "playbook:no.toml", "go"], 2, "no.toml");
    refused(&["run", "--in-place", "--agent", "playbook:/dev/zero", "go"], 2, "more than");
    refused(&["run", "--in-place", "--agent", playbook, "  "], 2, "empty");
    let bad_root = ["run", "--in-place", "--agent", playbook, "--root", "no:read", "go"];
    refused(&bad_root, 2, "the root no");
    refused(&["run", "--label", "not a label", "go"], 2, "label");
    refused(&["log", "/nobody"], 2, "/root");
    let mut world = world;
    world.set("STEAD_HOME", "relative");
    let output = world.run(["tree"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(texts(&output).1.contains("STEAD_HOME"));
}

#[test]
fn a_stopped_engine_holds_nothing_any_more() {
    let world = world();
    world.ok(["sessions"]);
    assert!(world.engine().is_some());
    world.ok(["serve", "--stop"]);
    let doctor = world.json(["doctor"]);
    let states =
        doctor["findings"].as_array().unwrap().iter().map(|f| f["state"].as_str().unwrap());
    assert!(states.into_iter().all(|state| state == "ok"), "{doctor}");
}

#[test]
fn the_playbook_that_help_shows_runs() {
    let world = world();
    let help = world.ok(["help", "run"]);
    let (_, playbook) = help.split_once("--agent playbook:FILE`:\n").unwrap();
    world.write("FILE", playbook);
    let run = ["run", "--in-place", "--mode", "full-auto", "--agent", "playbook:FILE", "what?"];
    assert_eq!(world.ok(run), "You asked: what?\nexit status 0\n\nFILE\n");
}

#[test]
fn completions_and_references_name_every_verb() {
    let world = world();
    let completions = world.ok(["completions", "bash"]);
    let commands = world.ok(["reference", "commands"]);
    for verb in ["run", "tree", "log", "send", "stop", "sessions", "task", "permit", "doctor"] {
        assert!(completions.contains(verb), "{verb}");
        assert!(commands.contains(&format!("## `stead {verb}`")), "{verb}");
    }
    let tools = world.ok(["reference", "tools"]);
    for tool in ["read", "bash", "agent", "send_message", "wait_agent", "task_write"] {
        assert!(tools.contains(&format!("## `{tool}`")), "{tool}");
    }
}
