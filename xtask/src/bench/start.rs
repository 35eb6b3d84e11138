//! The start of the program: a whole process that answers a question.

use std::path::Path;
use std::process::{Command, Stdio};

use super::row::{Goal, Row};
use super::stats::{middle, ratio, shown, timed};
use super::world::World;
use super::{Bench, Outcome, Stage};
use crate::report::Result;

pub(super) const BENCH: Bench = Bench {
    name: "start",
    heading: "the program's start",
    method: "Whole processes, from the call to the end, output to `/dev/null`, one after another: \
             `stead paths`, `git --version`, `true`, 400 rounds. `stead paths` reads its \
             environment and derives every folder; it neither starts nor asks an engine.",
    usual: true,
    run,
};

fn run(stage: &Stage<'_>) -> Result<Outcome> {
    let world = World::new(stage.disk.folder(), &stage.programs.stead())?;
    let (mut stead, mut git, mut least) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..stage.rounds(400) + 5 {
        let times = [
            process(world.command(Path::new("/"), ["paths"]))?,
            process(plain("git", &["--version"]))?,
            process(plain("true", &[]))?,
        ];
        // The first ones fill the page cache.
        if round >= 5 {
            let [one, two, three] = times;
            stead.push(one);
            git.push(two);
            least.push(three);
        }
    }
    let against_git = ratio("stead paths", &stead, &git)?;
    let against_least = ratio("stead paths", &stead, &least)?;
    let rows = vec![
        Row::new("`stead paths`", shown(middle("stead paths", &stead)?)).held_to(
            against_git,
            "`git --version`",
            Goal::AtMost(3.0),
        ),
        Row::new("`git --version`", shown(middle("git --version", &git)?)),
        Row::new("`true`", shown(middle("true", &least)?)),
    ];
    let limit = format!(
        "The limit is a process that does nothing: `stead paths` takes {against_least:.2} times as \
         long as `true`."
    );
    Ok(Outcome { rows, notes: vec![limit] })
}

/// A program in the environment of this one. Its start is a `posix_spawn`.
pub(super) fn plain(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// How many microseconds a process takes that must succeed.
pub(super) fn process(mut command: Command) -> Result<f64> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (time, status) = timed(|| command.status())?;
    if !status.success() {
        return Err(format!("{} ended with {status}", command.get_program().display()).into());
    }
    Ok(time)
}
