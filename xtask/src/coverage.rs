//! `cargo xtask coverage`: every case of the specifications, and what became of it.
//!
//! `docs/cases.toml` says each case in a line and, where no test can show it, why. Tests carry the
//! ids of the cases they show in their names. `docs/coverage.md` is generated from both.

mod case;
mod known;
mod names;
mod page;

use std::collections::BTreeMap;
use std::path::Path;

use case::{Case, Fate};
use names::Test;

use crate::report::{Report, Result, counted};
use crate::workspace;

const CASES: &str = "docs/cases.toml";
const PAGE: &str = "docs/coverage.md";

/// A case with the tests that show it.
pub(crate) struct Covered<'a> {
    case: &'a Case,
    tests: Vec<&'a Test>,
}

/// Checks the cases against the tests, and the page against both; with `write`, writes the page.
pub(crate) fn run(root: &Path, write: bool) -> Result<Report> {
    let cases = case::parse(&workspace::read(&root.join(CASES))?)
        .map_err(|error| format!("{CASES}: {error}"))?;
    let tests = names::tests(root)?;
    let mut report = Report::new("");
    report.extend(violations(&cases, &tests));

    let covered = covered(&cases, &tests);
    let shown = covered.iter().filter(|it| !it.tests.is_empty()).count();
    let path = root.join(PAGE);
    let said = if !report.is_clean() {
        // A page with holes would look like an answer.
        report.fail(format!("{PAGE} is neither written nor compared until the cases are right"));
        ""
    } else if write {
        let changed = workspace::write_if_changed(&path, &page::render(&covered))?;
        if changed { "regenerated" } else { "up to date" }
    } else {
        if !std::fs::read_to_string(&path).is_ok_and(|old| old == page::render(&covered)) {
            report.fail(format!("{PAGE} is missing or stale; run `cargo xtask coverage --write`"));
        }
        "up to date"
    };
    report.clean =
        format!("{}, {shown} shown by tests; {PAGE} {said}", counted(cases.len(), "case", "cases"));
    Ok(report)
}

/// The cases in the order of the specifications, each with its tests.
fn covered<'a>(cases: &'a [Case], tests: &'a [Test]) -> Vec<Covered<'a>> {
    let mut by_id: BTreeMap<&str, Vec<&Test>> = BTreeMap::new();
    for test in tests {
        for id in &test.ids {
            by_id.entry(id).or_default().push(test);
        }
    }
    let mut covered: Vec<Covered<'a>> = cases
        .iter()
        .map(|case| Covered {
            case,
            tests: by_id.get(case.id.as_str()).cloned().unwrap_or_default(),
        })
        .collect();
    let order: BTreeMap<String, usize> = known::ids().into_iter().zip(0..).collect();
    covered.sort_by_key(|it| order.get(&it.case.id).copied().unwrap_or(usize::MAX));
    covered
}

/// Everything that keeps the page from being an answer.
fn violations(cases: &[Case], tests: &[Test]) -> Vec<String> {
    let mut found = Vec::new();
    let known = known::ids();
    let mut listed: BTreeMap<&str, usize> = BTreeMap::new();
    for case in cases {
        *listed.entry(&case.id).or_default() += 1;
    }
    for (id, count) in &listed {
        if *count > 1 {
            found.push(format!("{CASES}: `{id}` is listed {count} times"));
        }
        if !known.iter().any(|known| known == id) {
            found.push(format!("{CASES}: `{id}` is no case of a specification"));
        }
    }
    for id in known.iter().filter(|id| !listed.contains_key(id.as_str())) {
        found.push(format!("{CASES}: `{id}` is missing"));
    }
    for test in tests {
        for id in test.ids.iter().filter(|id| !listed.contains_key(id.as_str())) {
            found.push(format!("{}: `{}` names the unknown case `{id}`", test.file, test.name));
        }
        for part in &test.unreadable {
            found.push(format!(
                "{}: `{}`: which cases does `{part}` name? Ids come first, joined by `_`, and words \
                 behind them start with a letter",
                test.file, test.name
            ));
        }
    }
    for it in covered(cases, tests) {
        let id = &it.case.id;
        match (it.case.fate(), it.tests.first()) {
            (Err(why), _) => found.push(format!("{CASES}: `{id}`: {why}")),
            (Ok(None), None) => found.push(format!(
                "{CASES}: `{id}` is shown by no test and has no `rule`, `cannot` or `later`"
            )),
            (Ok(Some(Fate::Later(_))), Some(test)) => found.push(format!(
                "{CASES}: `{id}` is shown by `{}` now; remove its `later` line",
                test.name
            )),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// All known cases as decided, but for those given as lines of their own.
    fn cases(own: &[(&str, &str)]) -> Vec<Case> {
        let mut text = String::new();
        for id in known::ids() {
            if !own.iter().any(|(own, _)| *own == id) {
                let _ = write!(text, "[[case]]\nid = \"{id}\"\nsays = \"s\"\nrule = \"r\"\n");
            }
        }
        for (id, lines) in own {
            let _ = write!(text, "[[case]]\nid = \"{id}\"\nsays = \"s\"\n{lines}\n");
        }
        case::parse(&text).unwrap()
    }

    fn found(own: &[(&str, &str)], source: &str) -> Vec<String> {
        violations(&cases(own), &names::of_file("crates/x/src/lib.rs", source))
    }

    fn only(found: &[String], expected: &str) {
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(expected), "{found:?}");
    }

    #[test]
    fn a_case_is_shown_decided_impossible_or_owed() {
        let own = [
            ("agents_1", ""),
            ("agents_2", "cannot = \"c\""),
            ("agents_3", "later = \"An issue\""),
            ("plans_33b", ""),
        ];
        let source = "#[test] fn agents_1_plans_33b_names() {}";
        assert_eq!(found(&own, source), Vec::<String>::new());
    }

    #[test]
    fn a_case_with_neither_is_found() {
        only(
            &found(&[("agents_4", "")], "#[test] fn agents_41() {}"),
            "`agents_4` is shown by no test",
        );
    }

    #[test]
    fn a_later_line_goes_when_the_test_comes() {
        let own = [("agents_4", "later = \"An issue\"")];
        only(&found(&own, "#[test] fn agents_4_now() {}"), "remove its `later` line");
    }

    #[test]
    fn ids_are_listed_once_and_known_on_both_sides() {
        let twice = [("agents_4", "rule = \"r\""), ("agents_4", "rule = \"r\"")];
        only(&found(&twice, ""), "listed 2 times");
        only(&found(&[("agents_87", "rule = \"r\"")], ""), "no case of a specification");
        only(&found(&[], "#[test] fn agents_87() {}"), "unknown case `agents_87`");
        only(&found(&[], "#[test] fn agents_4_2_names() {}"), "start with a letter");
    }

    #[test]
    fn a_gap_in_the_numbers_is_found() {
        let cases: Vec<Case> =
            cases(&[]).into_iter().filter(|case| case.id != "places_23").collect();
        only(&violations(&cases, &[]), "`places_23` is missing");
    }

    #[test]
    fn a_case_has_one_fate() {
        let own = [("agents_4", "rule = \"r\"\nlater = \"An issue\"")];
        only(&found(&own, ""), "at most one of");
    }
}
