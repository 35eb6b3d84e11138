//! `cargo xtask bench`: how fast the program is, against what people know.
//!
//! Every ratio is measured in one run: both sides take turns (A B A B …) on the same machine, and
//! the median of the rounds' ratios is told, so that a load which comes and goes weighs on both.

mod apply;
mod bash;
mod build;
mod copy;
mod disk;
mod events;
mod exec;
mod idle;
mod machine;
mod page;
pub(crate) mod programs;
mod row;
mod spawn;
mod start;
mod stats;
mod timing;
mod tree;
pub(crate) mod world;

use std::path::Path;

use disk::Disk;
use machine::Load;
use programs::Programs;
use row::Row;

use crate::report::{Report, Result, counted};

/// What `cargo xtask bench` accepts: what is written, how long it takes, and the benches' names.
pub(crate) const OPTIONS: &[&str] = &[
    "--write", "--quick", "start", "events", "spawn", "bash", "exec", "copy", "apply", "idle",
    "build",
];

/// One bench: a name, what the page says about it, and how it is done.
struct Bench {
    /// The word on the command line.
    name: &'static str,
    /// The heading on the page.
    heading: &'static str,
    /// How it is measured, for the page.
    method: &'static str,
    /// Whether it runs when nothing is named.
    usual: bool,
    run: fn(&Stage<'_>) -> Result<Outcome>,
}

const BENCHES: &[Bench] = &[
    start::BENCH,
    events::BENCH,
    spawn::BENCH,
    bash::BENCH,
    exec::BENCH,
    copy::BENCH,
    apply::BENCH,
    idle::BENCH,
    build::BENCH,
];

/// What a bench works with.
struct Stage<'a> {
    root: &'a Path,
    programs: &'a Programs,
    disk: &'a Disk,
    /// Whether this is a trial: few rounds, an unoptimised program; nothing that can be compared.
    quick: bool,
}

impl Stage<'_> {
    /// How many rounds: `whole`, or a few when it is a trial.
    fn rounds(&self, whole: usize) -> usize {
        if self.quick { whole.min(3) } else { whole }
    }
}

/// What a bench found.
struct Outcome {
    rows: Vec<Row>,
    /// Sentences below the table: the physical limit, and what else has to be known.
    notes: Vec<String>,
}

/// Runs the benches that `options` name, or the usual ones.
pub(crate) fn run(root: &Path, options: &[String]) -> Result<Report> {
    let has = |option: &str| options.iter().any(|given| given == option);
    let (write, quick) = (has("--write"), has("--quick"));
    if write && quick {
        return Err("what --quick measures is not written down".into());
    }
    let named = BENCHES.iter().any(|bench| has(bench.name));
    let chosen: Vec<&Bench> =
        BENCHES.iter().filter(|bench| if named { has(bench.name) } else { bench.usual }).collect();
    let programs = programs::build(root, quick, programs::BENCHES)?;
    let disk = Disk::new()?;
    println!("{}\n{}", machine::describe(), disk.says());
    if quick {
        println!("\nTRIAL: few rounds and an unoptimised program; the figures mean nothing.");
    }
    let stage = Stage { root, programs: &programs, disk: &disk, quick };
    let mut report = Report::new(format!("{} done", counted(chosen.len(), "bench", "benches")));
    for bench in chosen {
        println!("\n=== {}: {}", bench.name, bench.heading);
        let load = Load::begin();
        // One that cannot be done is told; the others still have something to say.
        let outcome = match (bench.run)(&stage) {
            Ok(outcome) => outcome,
            Err(error) => {
                report.fail(format!("{}: {error}", bench.name));
                continue;
            }
        };
        let load = load.end();
        print!("{}", row::table(&outcome.rows));
        for note in outcome.notes.iter().chain([&load]) {
            println!("  {note}");
        }
        if !quick {
            let missed = outcome.rows.iter().filter(|row| row.missed());
            report.extend(missed.map(|row| format!("{}: {}", bench.name, row.line())));
        }
        if write {
            page::write(root, bench, &outcome, &load, disk.says())?;
        }
    }
    Ok(report)
}
