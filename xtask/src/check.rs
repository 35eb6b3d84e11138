//! `cargo xtask check`: all that must hold before a change lands.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::report::{Report, Result, counted};
use crate::{coverage, layers, references, rfc, suite, tool};

/// Sets of features that clippy looks at besides the default; add a line for another.
const FEATURES: &[&str] = &["stead/steps"];

type Run = Box<dyn Fn(&Path) -> Result<Report>>;

/// A step: its name and what it does.
struct Step {
    name: String,
    run: Run,
}

/// What came of a step.
struct Done {
    name: String,
    took: Duration,
    violations: usize,
    notes: Vec<String>,
}

fn step(name: &str, run: impl Fn(&Path) -> Result<Report> + 'static) -> Step {
    Step { name: name.to_owned(), run: Box::new(run) }
}

/// A step that is one call of cargo.
fn cargo(name: &str, arguments: Vec<&'static str>) -> Step {
    step(name, move |root| {
        let says = format!("cargo {}", arguments.join(" "));
        let mut report = Report::new("fine");
        report.extend(tool::succeed(tool::cargo(root, &arguments), &says)?);
        Ok(report)
    })
}

fn clippy(features: Option<&'static str>) -> Step {
    let mut arguments = vec!["clippy", "--quiet", "--workspace", "--all-targets"];
    if let Some(features) = features {
        arguments.extend(["--features", features]);
    }
    arguments.extend(["--", "-D", "warnings"]);
    let name = features.map_or("clippy".to_owned(), |features| format!("clippy ({features})"));
    cargo(&name, arguments)
}

/// The steps, the cheap ones first: what is wrong with a page shows before the long builds.
fn steps() -> Vec<Step> {
    let mut steps = vec![
        cargo("format", vec!["fmt", "--all", "--check"]),
        step("layers", layers::run),
        step("rfc", |root| rfc::run(root, false)),
        step("coverage", |root| coverage::run(root, false)),
        clippy(None),
    ];
    steps.extend(FEATURES.iter().map(|features| clippy(Some(features))));
    steps.push(step("references", |root| references::run(root, false)));
    steps.push(step("test", |root| suite::run(root, false)));
    steps
}

/// Runs every step, also behind one that failed, and sums up.
pub(crate) fn run(root: &Path) -> Report {
    let done: Vec<Done> = steps().iter().map(|step| run_step(root, step)).collect();

    println!("\nsummary");
    for it in &done {
        let outcome = match it.violations {
            0 => "ok".to_owned(),
            count => counted(count, "violation", "violations"),
        };
        println!("  {:<24}{:>8.1} s  {outcome}", it.name, it.took.as_secs_f64());
    }
    for it in done.iter().filter(|it| !it.notes.is_empty()) {
        println!("  {}: {} skipped here, listed above", it.name, it.notes.len());
    }
    let mut report = Report::new(format!("all {} steps are fine", done.len()));
    report
        .extend(done.iter().filter(|it| it.violations > 0).map(|it| format!("{} failed", it.name)));
    report
}

fn run_step(root: &Path, step: &Step) -> Done {
    println!("\n=== {}", step.name);
    let start = Instant::now();
    // A step that could not do its work is a failed step; the others still have something to say.
    let report = (step.run)(root).unwrap_or_else(|error| {
        let mut report = Report::default();
        report.fail(error.to_string());
        report
    });
    report.print(&step.name);
    let took = start.elapsed();
    println!("=== {} took {:.1} s", step.name, took.as_secs_f64());
    Done { name: step.name.clone(), took, violations: report.violations.len(), notes: report.notes }
}
