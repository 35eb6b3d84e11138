//! The live tree, seen on a terminal. `script` gives the terminal.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "helpers of tests, which clippy does not know as such"
)]

mod common;

use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use common::{STEAD, world};
use stead_testkit::{World, skip, until, within};

const SCRIPT: &str = "/usr/bin/script";

const TEAM: &str = r#"
[[agent]]
path = "/root"

[[agent.turn]]
step = [
  { call = { tool = "agent", as = "a", with = { task_name = "helper", message = "Help." } } },
  { wait = ["{{a}}"], as = "report" },
  { say = "It said: {{report}}" },
]

[[agent]]
path = "/root/helper"

[[agent.turn]]
step = [
  { call = { tool = "bash", as = "out", with = { command = "printf '\\033]0;x\\007\\033[2J'; echo helped" } } },
  { say = "{{out}}" },
]
"#;

/// A terminal of 100 columns and 30 lines, and the program on it.
struct Terminal {
    child: Child,
    screen: Arc<Mutex<vt100::Parser>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Terminal {
    fn new(world: &World, command: &str) -> Self {
        let shell = format!("stty cols 100 rows 30; exec {STEAD} {command}");
        let mut child = std::process::Command::new(SCRIPT)
            .args(["-qfec", &shell, "/dev/null"])
            .env_clear()
            .envs(world.variables())
            .env("TERM", "xterm-256color")
            .current_dir(world.work())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let size = |n| NonZero::new(n).unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(size(30), size(100), 1000)));
        let (mut output, seen) = (child.stdout.take().unwrap(), screen.clone());
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                seen.lock().unwrap().process(&bytes[..count]);
            }
        });
        Self { child, screen, reader: Some(reader) }
    }

    fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    fn shows(&self, wanted: &str) {
        self.shows_all(&[wanted]);
    }

    /// Waits until all of it is on the screen at once.
    fn shows_all(&self, wanted: &[&str]) {
        until(&wanted.join(" and "), || {
            let text = self.text();
            wanted.iter().all(|part| text.contains(part)).then_some(())
        });
    }

    fn press(&mut self, keys: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(keys.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// Waits for the program's end; gives its status and the last screen.
    fn end(mut self) -> (Option<i32>, String, bool) {
        let status = until("the program ends", || self.child.try_wait().unwrap());
        self.reader.take().unwrap().join().unwrap();
        let hidden = self.screen.lock().unwrap().screen().hide_cursor();
        (status.code(), self.text(), hidden)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

fn is_possible() -> bool {
    let possible = Path::new(SCRIPT).exists();
    if !possible {
        skip("the live tree", "there is no /usr/bin/script to make a terminal");
    }
    possible
}

#[test]
fn keys_answer_what_agents_ask_and_the_terminal_is_left_as_it_was() {
    if !is_possible() {
        return;
    }
    let world = world();
    world.write("team.toml", TEAM);
    let mut terminal = Terminal::new(&world, "run --in-place --agent playbook:team.toml go");
    // The helper may ask before /root waits, and a picture may be seen half drawn.
    terminal.shows_all(&[
        "a allow once · s allow for the session · d deny",
        "? /root/helper asks: run printf",
        "◌ /root",
        "at work · Ctrl-C leaves, twice stops",
    ]);
    // A key before anybody can have read the question does not answer it.
    std::thread::sleep(std::time::Duration::from_millis(800));
    terminal.press("a");
    let (status, text, hidden) = terminal.end();
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("is allowed once"), "{text}");
    assert!(text.contains("It said: exit status 0"), "{text}");
    assert!(!text.contains("Ctrl-C leaves"), "the tree is gone: {text}");
    assert!(!hidden, "the cursor is back");
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn ctrl_c_leaves_and_says_how_to_go_on() {
    if !is_possible() {
        return;
    }
    let world = world();
    world.write("team.toml", TEAM);
    let mut terminal = Terminal::new(&world, "run --in-place --agent playbook:team.toml go");
    terminal.shows("asks: run");
    terminal.press("\u{3}");
    terminal.shows("Ctrl-C again now stops the agents instead");
    let (status, text, hidden) = terminal.end();
    assert_eq!(status, Some(130), "{text}");
    assert!(text.contains("the agents go on without you"), "{text}");
    assert!(text.contains("stead permit list"), "{text}");
    assert!(!hidden);
    // What was asked still waits.
    let waiting = world.json(["permit", "list"]);
    assert_eq!(waiting["permissions"].as_array().unwrap().len(), 1);
}

#[test]
fn a_person_says_yes_to_the_demo_or_leaves_it() {
    if !is_possible() {
        return;
    }
    for (key, status) in [("y", 0), ("\u{3}", 130)] {
        let mut world = world();
        let temporary = world.folder().join("tmp");
        std::fs::create_dir(&temporary).unwrap();
        world.set("TMPDIR", temporary.clone());
        let mut terminal = Terminal::new(&world, "demo");
        terminal.shows("at work · Ctrl-C ends it all");
        let asks = "Apply exactly this to your project? [y/n]";
        within(std::time::Duration::from_mins(5), asks, || {
            terminal.text().contains(asks).then_some(())
        });
        terminal.press(key);
        let (ended, text, hidden) = terminal.end();
        assert_eq!(ended, Some(status), "{text}");
        assert_eq!(text.contains("All of it really happened."), status == 0, "{text}");
        assert!(!hidden);
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "{text}");
    }
}
