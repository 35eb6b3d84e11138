//! The memory of an engine that nobody asks anything.

use std::fs;
use std::thread;
use std::time::Duration;

use super::row::{Goal, Row};
use super::world::{DONE, World};
use super::{Bench, Outcome, Stage};
use crate::report::Result;

pub(super) const BENCH: Bench = Bench {
    name: "idle",
    heading: "the idle engine",
    method: "An engine plays a session of four agents and is left alone. After 60 s its `VmRSS` is \
             read, and that of the small process which starts its commands.",
    usual: true,
    run,
};

const PLAYBOOK: &str = r#"
[[agent]]
path = "/root"
[[agent.turn]]
step = [
  { call = [
    { tool = "agent", with = { task_name = "one", message = "Look around." } },
    { tool = "agent", with = { task_name = "two", message = "Look around." } },
    { tool = "agent", with = { task_name = "three", message = "Look around." } },
  ] },
  { wait = 3 },
  { call = { tool = "bash", with = { command = "touch PLAYED" } } },
  { say = "done" },
]
[[agent]]
path = "/root/*"
[[agent.turn]]
step = [
  { call = { tool = "list" } },
  { call = { tool = "bash", with = { command = "ls" } } },
  { say = "Nothing." },
]
"#;

fn run(stage: &Stage<'_>) -> Result<Outcome> {
    let world = World::new(stage.disk.folder(), &stage.programs.stead())?;
    world.play(&PLAYBOOK.replace("PLAYED", DONE), Duration::from_mins(1))?;
    let engine = world.engine()?;
    thread::sleep(Duration::from_secs(if stage.quick { 3 } else { 60 }));
    let status = fs::read_to_string(format!("/proc/{engine}/status"))?;
    let resident = megabytes(&status, "VmRSS").ok_or("the engine's memory cannot be read")?;
    let shown = |megabytes: f64| format!("{megabytes:.1} MB");
    let mut rows =
        vec![Row::new("the engine", shown(resident)).within(resident, Goal::AtMost(20.0), " MB")];
    let part = |name| megabytes(&status, name).unwrap_or_default();
    rows.push(Row::new("of it what it holds itself", shown(part("RssAnon"))));
    // A program in a tmpfs counts as shared memory.
    let file = part("RssFile") + part("RssShmem");
    rows.push(Row::new("of it files, the program's own above all", shown(file)));
    let threads = format!("/proc/{engine}/task/{engine}/children");
    for child in fs::read_to_string(threads)?.split_whitespace() {
        let status = fs::read_to_string(format!("/proc/{child}/status"))?;
        if let Some(resident) = megabytes(&status, "VmRSS") {
            rows.push(Row::new("its spawner", shown(resident)));
        }
    }
    let limit = "Pages of the program's own file are shared by all its processes, and the system \
                 may drop them; a program that holds nothing itself would still have those that it \
                 used last. They are the limit."
        .to_owned();
    Ok(Outcome { rows, notes: vec![limit] })
}

/// A line of `/proc/PID/status`, in megabytes of 1,000,000 bytes.
fn megabytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kibibytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024.0 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_by_its_whole_name() {
        let status = "VmRSSX:\t1 kB\nVmRSS:\t   19531 kB\nRssAnon:\t 100 kB\n";
        assert_eq!(format!("{:.2}", megabytes(status, "VmRSS").unwrap()), "20.00");
        assert_eq!(megabytes(status, "RssFile"), None);
    }
}
