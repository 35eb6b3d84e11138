//! A release build from nothing.

use std::time::Instant;

use super::machine::{children_seconds, cores};
use super::row::{Goal, Row};
use super::stats::{micros, shown};
use super::{Bench, Outcome, Stage};
use crate::report::Result;
use crate::tool;

pub(super) const BENCH: Bench = Bench {
    name: "build",
    heading: "a release build",
    method: "`cargo fetch` first; then `cargo build --release` of the program into an empty target \
             folder with two jobs, once. The processor time of everything that the build starts is \
             told beside it, because it hardly depends on what else the machine does.",
    usual: false,
    run,
};

/// The jobs, and so the most cores that the build keeps busy.
const JOBS: &str = "2";

fn run(stage: &Stage<'_>) -> Result<Outcome> {
    let fetch = tool::cargo(stage.root, &["fetch", "--locked"]);
    if let Some(violation) = tool::succeed(fetch, "cargo fetch")? {
        return Err(violation.into());
    }
    let target = tempfile::Builder::new().prefix("stead-build-").tempdir()?;
    let arguments = ["build", "--release", "--locked", "--package", "stead", "--jobs", JOBS];
    let mut build = tool::cargo(stage.root, &arguments);
    build.env("CARGO_TARGET_DIR", target.path());
    let before = children_seconds();
    let began = Instant::now();
    if let Some(violation) = tool::succeed(build, "cargo build --release")? {
        return Err(violation.into());
    }
    let took = began.elapsed();
    let processor = before.zip(children_seconds()).map(|(before, after)| after - before);
    let mut rows = vec![Row::new("wall time", shown(micros(took))).within(
        took.as_secs_f64(),
        Goal::AtMost(180.0),
        " s",
    )];
    let mut notes = Vec::new();
    if let Some(seconds) = processor {
        rows.push(Row::new("processor time", format!("{seconds:.1} s")));
        notes.push(format!(
            "The limit is the processor time over two cores: {:.1} s. The last steps, which link \
             and optimise the whole program, keep one core busy.",
            seconds / 2.0
        ));
    }
    if cores() != 2 {
        notes.push(format!("This machine has {} cores, of which two jobs use two.", cores()));
    }
    Ok(Outcome { rows, notes })
}
