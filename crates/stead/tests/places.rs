//! `stead exec`, `stead release` and `stead places` as a person and a script meet them. The rules
//! behind them are tested in stead-place.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests, which clippy does not know as such"
)]

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};

use common::{STEAD, world};
use stead_testkit::{World, until};

fn texts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Runs a script. Every test's world begins at the same port, so that one may see the listeners of
/// another, which is said and changes nothing.
fn sh(world: &World, script: &str) -> (i32, String, String) {
    let (code, out, errors) = texts(&world.run(["exec", "--", "sh", "-c", script]));
    let own = errors.lines().filter(|line| !line.contains("is not of this place"));
    (code, out, own.flat_map(|line| [line, "\n"]).collect())
}

/// Starts a run in a place of its own that goes on until the world's file `end` is there.
fn begin(world: &World, name: &str) -> Child {
    let place = world.folder().join(name);
    fs::create_dir(&place).unwrap();
    let began = world.folder().join(format!("{name}.began"));
    let end = world.folder().join("end");
    let script = format!(
        "touch '{}'; while [ ! -e '{}' ]; do sleep 0.01; done",
        began.display(),
        end.display()
    );
    let child = world
        .command(["exec", "--worktree", place.to_str().unwrap(), "--", "sh", "-c", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("the run begins", || began.exists().then_some(()));
    child
}

#[test]
fn places_54_a_run_what_it_leaves_and_its_release() {
    let world = world();
    fs::create_dir(world.work().join("sub")).unwrap();
    let (code, out, errors) =
        sh(&world, "echo $STEAD_PORT; pwd; echo told >&2; sleep 600 & exit 3");
    assert_eq!((code, errors.as_str()), (3, "told\n"));
    assert!(out.ends_with(&format!("{}\n", world.work().display())), "{out}");
    let port: u64 = out.lines().next().unwrap().parse().unwrap();

    let places = until("the shell's child is the program that it shall be", || {
        let places = world.json(["places"]);
        (places["places"][0]["left"][0]["name"] == "sleep").then_some(places)
    });
    let place = &places["places"][0];
    assert_eq!((&places["version"], place["first_port"].as_u64()), (&1.into(), Some(port)));
    assert_eq!(place["last_run"]["ended"], "failed with 3");
    let text = world.ok(["places"]);
    assert!(text.contains("idle") && text.contains("left sleep"), "{text}");

    let text = world.ok(["release"]);
    assert!(text.contains("ended 1 process") && text.contains("are free"), "{text}");
    assert_eq!(world.ok(["release"]), "nothing to release\n");
    assert_eq!(world.json(["release"])["released"], serde_json::json!([]));
    assert_eq!(world.json(["places"])["places"], serde_json::json!([]));
    assert!(!world.home().exists(), "no engine, no home");
}

#[test]
fn a_command_that_cannot_be_executed_has_the_statuses_of_a_shell() {
    let world = world();
    world.write("plain", "no program");
    for (command, status) in [("nosuch", 127), ("./plain", 126), ("./none", 127)] {
        let (code, out, errors) = texts(&world.run(["exec", "--", command]));
        assert_eq!((code, out.as_str()), (status, ""), "{command}: {errors}");
        assert!(errors.contains(command) && errors.contains("hint: "), "{errors}");
    }
    let (code, ..) = texts(&world.run(["exec", "--worktree", "/nonexistent", "--", "true"]));
    assert_eq!(code, 71);
    let (code, _, errors) =
        texts(&world.run(["exec", "--time-limit", "100ms", "--", "sleep", "9"]));
    assert_eq!((code, errors.ends_with("stead: ended after 100 ms\n")), (124, true));
    assert_eq!(texts(&world.run(["exec", "true"])).0, 2);
    world.ok(["release"]);
}

#[test]
fn places_12_at_the_bound_no_wait_is_refused_with_72_and_a_waiter_says_who_holds_the_room() {
    let world = world();
    let cores = std::thread::available_parallelism().unwrap().get();
    let bound = (cores / 4).max(2);
    let runs: Vec<Child> = (0..bound).map(|number| begin(&world, &format!("w{number}"))).collect();
    let (code, _, errors) = texts(&world.run(["exec", "--no-wait", "--", "true"]));
    assert_eq!(code, 72);
    for number in 0..bound {
        assert!(errors.contains(&format!("/w{number} (process ")), "{errors}");
    }
    assert!(errors.contains("hint: "), "{errors}");
    let (code, _, errors) = texts(&world.run(["exec", "--wait-limit", "200ms", "--", "true"]));
    assert_eq!(code, 73);
    assert!(errors.starts_with("stead: waiting for room\n  held by "), "{errors}");
    fs::write(world.folder().join("end"), "").unwrap();
    for run in runs {
        assert!(run.wait_with_output().unwrap().status.success());
    }
    assert_eq!(sh(&world, "exit 0").0, 0);
    for place in world.json(["places"])["places"].as_array().unwrap() {
        world.ok(["release", "--place", place["id"].as_str().unwrap()]);
    }
}

#[test]
fn places_22_a_run_inside_a_run_is_part_of_it_and_cannot_release_it() {
    let world = world();
    let script = format!("'{STEAD}' exec -- sh -c 'echo $STEAD_RUN'; '{STEAD}' release; echo $?");
    let (code, out, errors) = sh(&world, &script);
    assert_eq!((code, out.as_str()), (0, "p1.1\n64\n"), "{errors}");
    assert!(errors.contains("part of a run"), "{errors}");
    world.ok(["release"]);
}

#[test]
fn places_55_a_run_that_is_released_says_so() {
    let world = world();
    let run = begin(&world, "w");
    let place = world.folder().join("w");
    let text = world.ok(["release", "--worktree", place.to_str().unwrap()]);
    assert!(text.contains("ended 1 run"), "{text}");
    let (code, _, errors) = texts(&run.wait_with_output().unwrap());
    assert_eq!((code, errors.as_str()), (143, "stead: the run was ended by a release\n"));
}

#[test]
fn a_folder_that_was_removed_under_the_shell_is_said() {
    let world = world();
    let script = format!("mkdir d; cd d; rmdir ../d; '{STEAD}' exec -- true");
    let (code, _, errors) = texts(
        &std::process::Command::new("sh")
            .args(["-c", &script])
            .current_dir(world.work())
            .env_clear()
            .envs(world.variables())
            .output()
            .unwrap(),
    );
    assert_eq!(code, 71, "{errors}");
    assert!(errors.contains("the current folder cannot be used"), "{errors}");
}

#[test]
fn a_place_that_nobody_knows_is_refused() {
    let world = world();
    let (code, out, errors) = texts(&world.run(["release", "--place", "nosuch"]));
    assert_eq!((code, out.as_str()), (64, ""), "{errors}");
    assert!(errors.contains("nosuch") && errors.contains("stead places"), "{errors}");
}

#[test]
fn places_61_a_gone_folder_is_released_by_the_path_that_led_to_it() {
    let world = world();
    let place = world.folder().join("gone");
    fs::create_dir(&place).unwrap();
    let command =
        |script| ["exec", "--worktree", place.to_str().unwrap(), "--", "sh", "-c", script];
    assert!(world.run(command("sleep 600 & true")).status.success());
    fs::remove_dir(&place).unwrap();
    assert!(world.ok(["places"]).contains("gone"));
    let text = world.ok(["release", "--worktree", place.to_str().unwrap()]);
    assert!(text.contains(": ended ") && text.contains("are free"), "{text}");
}

#[test]
fn places_58_a_release_that_is_not_complete_has_the_status_76() {
    let world = world();
    let (_, out, _) = sh(&world, "echo $STEAD_PORT");
    let port: u16 = out.trim().parse().unwrap();
    let stranger = std::net::TcpListener::bind(("127.0.0.1", port + 1)).unwrap();
    let (code, out, errors) = texts(&world.run(["release"]));
    assert_eq!(code, 76);
    assert!(out.contains(&format!("on port {} still listens", port + 1)), "{out}");
    assert!(errors.contains("hint: "), "{errors}");
    let (_, _, errors) = texts(&world.run(["exec", "--", "true"]));
    assert!(errors.contains("is not of this place"), "{errors}");
    drop(stranger);
    world.ok(["release"]);
}

#[test]
fn facts_that_cannot_be_used_are_refused_with_a_hint() {
    let world = world();
    let state: PathBuf = world.folder().join("state/stead");
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("host"), "").unwrap();
    let (code, _, errors) = sh(&world, "true");
    assert_eq!(code, 77);
    assert!(errors.contains("not a folder") && errors.contains("hint: "), "{errors}");
}

/// Whenever a starter or a release is killed: nothing of a run lives that no record leads to, no
/// room is lost, and the next command works.
#[test]
fn a_kill_at_any_moment_loses_no_room_and_leaves_no_process() {
    let world = world();
    let host = world.folder().join("state/stead/host");
    let alive = || {
        let wanted = format!("STEAD_SCRATCH={}", host.display());
        let of = |entry: fs::DirEntry| fs::read(entry.path().join("environ"));
        let has = |text: Vec<u8>| {
            text.split(|byte| *byte == 0).any(|pair| pair.starts_with(wanted.as_bytes()))
        };
        fs::read_dir("/proc").unwrap().flatten().any(|entry| of(entry).is_ok_and(has))
    };
    for round in 0..30 {
        let mut child = world
            .command(["exec", "--", "sh", "-c", "sleep 600 & sleep 600"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_micros(700 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        until("nothing of it lives", || (!alive()).then_some(()));
        let (code, out, errors) = sh(&world, "sleep 600 > /dev/null 2>&1 & echo $STEAD_PORT");
        assert_eq!((code, errors.as_str()), (0, ""), "{out}");
        let mut release = world.command(["release"]).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_micros(500 * round));
        release.kill().unwrap();
        release.wait().unwrap();
        world.ok(["release"]);
        assert!(!alive());
        assert_eq!(world.json(["places"])["places"], serde_json::json!([]));
    }
}

/// Whoever reads the output stops: the run ends and the status says why.
#[test]
fn a_reader_that_goes_away_ends_the_run() {
    let world = world();
    let script = format!("'{STEAD}' exec -- yes | head -1; echo ${{PIPESTATUS[0]}}");
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .env_clear()
        .envs(world.variables())
        .current_dir(world.work())
        .output()
        .unwrap();
    assert_eq!(texts(&output).1, "y\n141\n");
    world.ok(["release"]);
}

#[test]
fn the_bound_is_the_persons_and_what_cannot_be_is_named() {
    let world = world();
    let settings = world.folder().join("config/stead/config.toml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    for (text, said) in
        [("[runs]\nbound = 2\nreserved = 2\n", "[runs] reserved"), ("[runs]\nbuond = 2\n", "bound")]
    {
        fs::write(&settings, text).unwrap();
        let (code, _, errors) = sh(&world, "true");
        assert_eq!(code, 77, "{errors}");
        assert!(errors.contains(said), "{errors}");
    }
    fs::write(&settings, "[runs]\nbound = 1\n").unwrap();
    let run = begin(&world, "w");
    let other = world.folder().join("other");
    fs::create_dir(&other).unwrap();
    let command = ["exec", "--no-wait", "--worktree", other.to_str().unwrap(), "--", "true"];
    assert_eq!(world.run(command).status.code(), Some(72));
    let place = world.folder().join("w");
    world.ok(["release", "--worktree", place.to_str().unwrap()]);
    drop(run.wait_with_output().unwrap());
}

const SLEEPER: &str = r#"
[[agent]]
path = "/root"

[[agent.turn]]
when = "go on"
step = [{ call = { tool = "exec", as = "seen", with = { command = "echo again" } } }, { say = "{{seen}}" }]

[[agent.turn]]
step = [
  { call = { tool = "exec", with = { command = "sleep 34.0101 &" } } },
  { call = { tool = "exec", with = { command = "sleep 34.0202 & touch began; sleep 34.0303" } } },
  { say = "slept" },
]
"#;

fn is_running(word: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
    })
}

#[test]
fn the_run_of_an_engine_that_died_is_ended_and_what_an_earlier_one_left_is_not() {
    let world = world();
    world.write("sleeper.toml", SLEEPER);
    let run = ["run", "--in-place", "--detach", "--mode", "full-auto", "--agent"];
    world.ok(run.into_iter().chain(["playbook:sleeper.toml", "sleep"]));
    until("the second run began", || world.work().join("began").exists().then_some(()));
    let engine = rustix::process::Pid::from_raw(world.engine().unwrap().try_into().unwrap());
    rustix::process::kill_process(engine.unwrap(), rustix::process::Signal::KILL).unwrap();
    let tree = until("a new engine settles the turn", || {
        let tree = world.json(["tree"]);
        (tree["agents"][0]["activity"] == "idle").then_some(tree)
    });
    assert_eq!(tree["agents"][0]["outcome"], "interrupted");
    assert!(!is_running("34.0202") && !is_running("34.0303"));
    assert!(is_running("34.0101"));
    // The agent goes on in the same place, with what it left.
    let session = tree["session"].as_str().unwrap();
    let text = world.ok(["run", "--session", session, "go on"]);
    assert!(text.contains("left running in your place, until release: sleep ("), "{text}");
    assert!(text.trim_end().ends_with("again"), "{text}");
    assert!(world.ok(["release"]).contains("ended 1 process"));
    assert!(!is_running("34.0101"));
}
