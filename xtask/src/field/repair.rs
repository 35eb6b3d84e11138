//! A Cargo workspace of a service and a library on the standard library alone, with red tests.

use std::path::Path;

use super::copies::{Untouched, bring_over};
use super::tree::{changed, copy, files, unexpected};
use super::{Done, Field, look_at_session, output, play};
use crate::bench::world::World;
use crate::report::Result;

const PROJECT: &str = "examples/repair/project";
const PLAYBOOK: &str = "examples/repair/playbook.toml";
const MESSAGE: &str = "Make the tests pass.";

/// What is to be repaired; everything else stays.
const REPAIRED: &[&str] = &["spans/src/parse.rs", "spans/src/show.rs", "timerd/src/lib.rs"];

/// How many tests the project has, and how many of them are red at first.
const TESTS: usize = 8;
const RED: usize = 7;

pub(super) fn run(field: &Field<'_>) -> Result<Done> {
    let world = field.world()?;
    let project = field.folder.join("project");
    copy(&field.root.join(PROJECT), &project)?;
    let untouched = Untouched::committed(&world, &project)?;
    let before = files(&project)?;
    let mut violations = Vec::new();
    // Tests are run in a second copy of the project: a build would be in the way of the comparison.
    let aside = field.folder.join("aside");
    copy(&project, &aside)?;
    let red = test(&world, &aside)?;
    if red != (Tests { passed: TESTS - RED, failed: RED }) {
        violations.push(format!("before: {red:?}, and {RED} of {TESTS} should have failed"));
    }

    let (printed, took) = play(field, &world, &project, PLAYBOOK, MESSAGE, None)?;
    violations.extend(bring_over(&world, &project, &untouched, REPAIRED)?);

    let green = test(&world, &project)?;
    if green != (Tests { passed: TESTS, failed: 0 }) {
        violations.push(format!("after: {green:?}, and all {TESTS} should have passed"));
    }
    let after = files(&project)?;
    violations.extend(unexpected(&changed(&before, &after), REPAIRED));
    for path in REPAIRED.iter().map(Path::new) {
        if tests_of(before.get(path)) != tests_of(after.get(path)) {
            violations.push(format!("the tests in {} were changed", path.display()));
        }
    }
    if !printed.contains("All tests pass") {
        violations.push(format!("the result does not say that all tests pass:\n{printed}"));
    }
    violations.extend(look_at_session(&world, &project, 4)?);
    let says = format!(
        "{RED} of {TESTS} tests were red; four agents repaired {} files in a private copy in {:.1} s, \
         cargo's builds among that; until the apply every byte of the original and of its .git was \
         as before, after it only those files differ, and all {} tests pass.",
        REPAIRED.len(),
        took.as_secs_f64(),
        green.passed
    );
    Ok(Done::Looked { says, violations })
}

/// The tests in a file: what stands below its `#[cfg(test)]`.
fn tests_of(content: Option<&Vec<u8>>) -> Option<String> {
    let text = String::from_utf8_lossy(content?).into_owned();
    text.split_once("#[cfg(test)]").map(|(_, tests)| tests.to_owned())
}

/// How many tests passed and failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tests {
    passed: usize,
    failed: usize,
}

fn test(world: &World, project: &Path) -> Result<Tests> {
    let words = ["cargo", "test", "--offline", "--workspace", "--no-fail-fast"];
    let (green, text) = output(world, project, &words)?;
    let tests = counted(&text);
    if tests.passed + tests.failed == 0 || green != (tests.failed == 0) {
        return Err(format!("cargo test says nothing of tests:\n{text}").into());
    }
    Ok(tests)
}

/// Counts the lines that tell of one test.
fn counted(text: &str) -> Tests {
    let count = |end: &str| {
        text.lines().filter(|line| line.starts_with("test ") && line.ends_with(end)).count()
    };
    Tests { passed: count("... ok"), failed: count("... FAILED") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_and_summaries_are_not() {
        let text = "test a ... ok\ntest b::c ... FAILED\ntest d ... ok\n\n\
                    test result: FAILED. 2 passed; 1 failed\n";
        assert_eq!(counted(text), Tests { passed: 2, failed: 1 });
    }

    #[test]
    fn the_project_has_the_tests_that_are_counted_on() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PROJECT);
        let files = files(&root).unwrap();
        let tests = files.values().map(|content| {
            String::from_utf8_lossy(content).lines().filter(|line| line.trim() == "#[test]").count()
        });
        assert_eq!(tests.sum::<usize>(), TESTS);
        for path in REPAIRED.iter().map(Path::new) {
            assert!(tests_of(files.get(path)).is_some(), "{}", path.display());
        }
    }
}
