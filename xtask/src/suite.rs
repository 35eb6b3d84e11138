//! `cargo xtask test`: all tests with one command, and what could not be tested here.

use std::path::Path;

use crate::report::{Report, Result};
use crate::tool;

/// The variable that names the file of skips. A test that cannot run on this machine appends
/// `test: reason` to it and passes.
const SKIPS: &str = "STEAD_SKIPS";

/// The crash walks kill the program at its steps, so the program that is tested has them.
const STEPS: &str = "--features=stead/steps";

/// Runs the tests; `fast` leaves out what builds and drives whole programs.
pub(crate) fn run(root: &Path, fast: bool) -> Result<Report> {
    let skips = tempfile::NamedTempFile::new()?;
    let mut report = Report::new("all tests passed");
    for arguments in calls(has_nextest(root), fast) {
        let mut command = tool::cargo(root, &arguments);
        command.env(SKIPS, skips.path());
        let says = format!("cargo {}", arguments.join(" "));
        report.extend(tool::succeed(command, &says)?);
    }
    report.notes = skipped(&std::fs::read_to_string(skips.path())?);
    if fast {
        report.notes.push("integration tests and doc tests: left out by --fast".into());
    }
    print_notes(&report.notes);
    Ok(report)
}

/// The calls of cargo. Tests run under cargo-nextest where it is installed, a process each; doc
/// tests are cargo's own business.
fn calls(nextest: bool, fast: bool) -> Vec<Vec<&'static str>> {
    let mut tests = if nextest {
        vec!["nextest", "run", "--workspace", STEPS, "--no-fail-fast", "--no-tests=pass"]
    } else {
        vec!["test", "--workspace", STEPS, "--no-fail-fast"]
    };
    tests.extend(["--lib", "--bins"]);
    if fast {
        return vec![tests];
    }
    tests.push("--tests");
    vec![tests, vec!["test", "--doc", "--workspace", STEPS, "--no-fail-fast"]]
}

fn has_nextest(root: &Path) -> bool {
    let output = tool::cargo(root, &["nextest", "--version"]).output();
    output.is_ok_and(|output| output.status.success())
}

/// The lines of the file of skips, each once, sorted: tests run in any order.
fn skipped(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    lines
}

/// Says loudly what nobody tested.
pub(crate) fn print_notes(notes: &[String]) {
    if notes.is_empty() {
        println!("\nNothing was skipped here.");
        return;
    }
    println!("\n==================== SKIPPED HERE: {} ====================", notes.len());
    for note in notes {
        println!("  {note}");
    }
    println!("==========================================================");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_are_told_once_and_in_order() {
        let text = "b: no bubblewrap\na: no tmux\n\nb: no bubblewrap\n";
        assert_eq!(skipped(text), ["a: no tmux", "b: no bubblewrap"]);
    }

    #[test]
    fn doc_tests_run_unless_fast() {
        for nextest in [true, false] {
            assert_eq!(calls(nextest, false).len(), 2);
            assert_eq!(calls(nextest, true).len(), 1);
            assert!(calls(nextest, false)[0].contains(&"--tests"));
            assert!(!calls(nextest, true)[0].contains(&"--tests"));
        }
    }
}
