//! The private copy of a large repository, against `cp -a`.

use std::fs;
use std::path::Path;
use std::process::Output;

use super::apply::settle;
use super::row::{Goal, Row};
use super::start::{plain, process};
use super::stats::{middle, ratio, shown, timed};
use super::tree::{Shape, empty, make};
use super::{Bench, Outcome, Stage};
use crate::report::Result;

pub(super) const BENCH: Bench = Bench {
    name: "copy",
    heading: "a private copy",
    method: "A repository of 15,000 tracked files, beside them 30,000 ignored ones in \
             `node_modules` and 5,000 in `target`, about 0.9 GB. A copy is timed from the request \
             to the admitted layout, through the library: the looking, the copying, the looking \
             again, Git's directory, and the rename that publishes it. Then its flush, which goes \
             on while the agent begins, is timed alone. Five rounds: `cp -a`, then \
             `sync --file-system`; another beside what the first made; a first copy into a new \
             home, which fills its depot, and is held to the first `cp -a`; a second one beside \
             it, held to the second. What was made is written back, and removed, between them, and \
             everything is in memory before the first.",
    usual: true,
    run,
};

/// What the rounds have measured.
#[derive(Default)]
struct Times {
    cp: Vec<f64>,
    /// With the first one still there.
    cp_again: Vec<f64>,
    synced: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    flushes: Vec<f64>,
    empty: Vec<f64>,
}

fn run(stage: &Stage<'_>) -> Result<Outcome> {
    let folder = tempfile::Builder::new().prefix("c-").tempdir_in(stage.disk.folder())?;
    let source = folder.path().join("source");
    let shape = if stage.quick { Shape::small() } else { Shape::whole() };
    let files = make(&source, &shape)?;
    let mut times = Times::default();
    for round in 0..=stage.rounds(5) {
        let mut measured = Times::default();
        self::round(stage, folder.path(), &source, &mut measured)?;
        // The first one fills the caches.
        if round > 0 {
            times.cp.extend(measured.cp);
            times.cp_again.extend(measured.cp_again);
            times.synced.extend(measured.synced);
            times.first.extend(measured.first);
            times.second.extend(measured.second);
            times.flushes.extend(measured.flushes);
            times.empty.extend(measured.empty);
        }
    }
    outcome(&times, files)
}

fn round(stage: &Stage<'_>, folder: &Path, source: &Path, times: &mut Times) -> Result<()> {
    let (copy, home) = (folder.join("cp"), folder.join("home"));
    settle(folder)?;
    let mut cp = plain("cp", &["-a"]);
    cp.arg(source).arg(&copy);
    let took = process(cp)?;
    let (flush, ()) = timed(|| settle(folder))?;
    times.cp.push(took);
    times.synced.push(took + flush);
    let beside = folder.join("cp-again");
    let mut cp = plain("cp", &["-a"]);
    cp.arg(source).arg(&beside);
    times.cp_again.push(process(cp)?);
    settle(folder)?;
    fs::remove_dir_all(&copy)?;
    fs::remove_dir_all(&beside)?;
    settle(folder)?;
    let (took, ()) = timed(|| empty(source, &copy))?;
    times.empty.push(took);
    fs::remove_dir_all(&copy)?;
    for (task, times, flushes) in
        [("1", &mut times.first, Some(&mut times.flushes)), ("2", &mut times.second, None)]
    {
        settle(folder)?;
        let mut command = plain(&stage.programs.example("admit").to_string_lossy(), &[]);
        let output = command.args([home.as_os_str(), source.as_os_str()]).arg(task).output()?;
        times.push(figure(&output, "micros")?);
        if let Some(flushes) = flushes {
            flushes.push(figure(&output, "flush")?);
        }
    }
    fs::remove_dir_all(&home)?;
    Ok(())
}

fn outcome(times: &Times, files: usize) -> Result<Outcome> {
    let (cp, synced) = (middle("cp", &times.cp)?, middle("cp", &times.synced)?);
    let row = |what: &str, peers: &[f64], copies: &[f64]| -> Result<Row> {
        Ok(Row::new(what, shown(middle(what, copies)?)).held_to(
            ratio(what, peers, copies)?,
            "as fast as `cp -a`",
            Goal::AtLeast(1.5),
        ))
    };
    let rows = vec![
        row("first copy", &times.cp, &times.first)?,
        row("second copy", &times.cp_again, &times.second)?,
        Row::new("the flush of the first", shown(middle("a flush", &times.flushes)?)),
        Row::new("`cp -a`", shown(cp)),
        Row::new("a second `cp -a`", shown(middle("cp", &times.cp_again)?)),
        Row::new("`cp -a` and a flush", shown(synced)),
        Row::new("the folders and empty files", shown(middle("empty files", &times.empty)?)),
    ];
    let notes = vec![
        "The limit is what the file system needs to make the folders and files without anything \
         in them, here by one thread. Neither a copy nor `cp -a` waits for the disk; a copy that a \
         power cut takes before its flush is done is known to be cut off and never used."
            .to_owned(),
        format!("{files} files; the Git directory is copied by `cp -a` and made anew by a copy."),
    ];
    Ok(Outcome { rows, notes })
}

/// The figure that follows `name` in what an example printed.
pub(super) fn figure(output: &Output, name: &str) -> Result<f64> {
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("it ended with {}: {}", output.status, said.trim()).into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut words = text.split_whitespace();
    let value = words.find(|word| *word == name).and_then(|_| words.next());
    Ok(value.ok_or_else(|| format!("it printed no {name}"))?.parse()?)
}
