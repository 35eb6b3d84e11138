//! A command in a worktree as a place, against the shell by itself.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::row::Row;
use super::start::{plain, process};
use super::stats::{middle, ratio, shown};
use super::world::World;
use super::{Bench, Outcome, Stage};
use crate::report::Result;

pub(super) const BENCH: Bench = Bench {
    name: "exec",
    heading: "a run in a place",
    method: "Whole processes, from the call to the end, output to `/dev/null`, one after another: \
             `stead exec -- true` in a folder that is a place already, `sh -c true`, `stead paths`, \
             `true`, 200 rounds. The kernel counts every process and thread of the machine; the \
             least count of the rounds is the one without anybody else's.",
    usual: true,
    run,
};

/// One program's times, and the least that it started.
#[derive(Default)]
struct Side {
    times: Vec<f64>,
    least: Option<u64>,
}

impl Side {
    fn round(&mut self, command: Command, counts: bool) -> Result<()> {
        let before = started()?;
        let time = process(command)?;
        let count = started()?.saturating_sub(before);
        if counts {
            self.times.push(time);
            self.least = Some(self.least.map_or(count, |least| least.min(count)));
        }
        Ok(())
    }

    fn time(&self, what: &str) -> Result<String> {
        Ok(shown(middle(what, &self.times)?))
    }
}

fn run(stage: &Stage<'_>) -> Result<Outcome> {
    let world = World::new(stage.disk.folder(), &stage.programs.stead())?;
    let place = world.work();
    let (mut exec, mut sh) = (Side::default(), Side::default());
    let (mut start, mut least) = (Side::default(), Side::default());
    for round in 0..stage.rounds(200) + 5 {
        // The first ones make the place and fill the page cache.
        let counts = round >= 5;
        exec.round(world.command(&place, ["exec", "--", "true"]), counts)?;
        sh.round(plain("sh", &["-c", "true"]), counts)?;
        start.round(world.command(Path::new("/"), ["paths"]), counts)?;
        least.round(plain("true", &[]), counts)?;
    }
    // What the place holds goes with it; a place that is not released is no reason to fail.
    let _ = world.command(&place, ["release"]).output();
    let rows = vec![
        Row::new("`stead exec -- true`", exec.time("exec")?)
            .ratio(ratio("exec", &exec.times, &sh.times)?, "`sh -c true`"),
        Row::new("processes and threads it starts", told(exec.least)),
        Row::new("`sh -c true`", sh.time("sh")?),
        Row::new("processes and threads it starts", told(sh.least)),
        Row::new("`stead paths`", start.time("stead paths")?)
            .ratio(ratio("stead paths", &start.times, &sh.times)?, "`sh -c true`"),
        Row::new("`true`", least.time("true")?),
    ];
    let limit = "The limit is the start of the program and of the command: a run is `stead`, a \
                 keeper that outlives it, and the command, one after the other.";
    Ok(Outcome { rows, notes: vec![limit.to_owned()] })
}

fn told(count: Option<u64>) -> String {
    count.map_or_else(String::new, |count| count.to_string())
}

/// How many processes and threads the machine has started since it began.
fn started() -> Result<u64> {
    let text = fs::read_to_string("/proc/stat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("processes "));
    Ok(line.ok_or("/proc/stat does not count processes")?.parse()?)
}
