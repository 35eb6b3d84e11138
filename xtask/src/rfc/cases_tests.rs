//! The hard cases of the format, one test each, over real folders.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::look;

const PROPOSED: &str = "# RFC: A thing\n\nStatus: proposed\n\n## Problem\n\n## Proposal\n\n\
    ## Alternatives considered\n\n## Acceptance criteria\n\n## Risks\n";
const IMPLEMENTED: &str = "# RFC: A thing\n\nStatus: implemented\n\n## Problem\n\n## Decision\n\n\
    ## Alternatives considered\n\n## Consequences\n";
const REJECTED: &str = "# RFC: A thing\n\nStatus: rejected — nobody needs it\n\n## Problem\n\n\
    ## Proposal\n\n## Alternatives considered\n";
const COMMENT: &str = "<!-- rfc-format: alternatives-not-recorded (pre-format RFC) -->";

/// A folder of records with the given files.
fn records(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        put(folder.path(), path, text);
    }
    folder
}

fn put(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// What is wrong with one record, the index being generated first where that is possible.
fn wrong(path: &str, text: &str) -> Vec<String> {
    let folder = records(&[(path, text)]);
    look(folder.path(), true).unwrap();
    look(folder.path(), false).unwrap().violations
}

/// Exactly one violation, which says this.
fn says(path: &str, text: &str, expected: &str) {
    let found = wrong(path, text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(path) && found[0].contains(expected), "{found:?}");
}

const PROPOSED_AT: &str = "proposed/feature/2026-11-30-a-thing.md";
const IMPLEMENTED_AT: &str = "implemented/feature/2026-11-30-a-thing.md";
const REJECTED_AT: &str = "rejected/feature/2026-11-30-a-thing.md";

#[test]
fn records_that_follow_the_format_are_counted() {
    let files = [(PROPOSED_AT, PROPOSED), (IMPLEMENTED_AT, IMPLEMENTED), (REJECTED_AT, REJECTED)];
    let folder = records(&files);
    assert!(look(folder.path(), true).unwrap().clean.contains("regenerated"));
    let report = look(folder.path(), false).unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert!(report.clean.starts_with("3 records"), "{}", report.clean);
}

#[test]
fn rfc_87_the_status_must_be_the_folders() {
    says(PROPOSED_AT, &PROPOSED.replace("Status: proposed", "Status: implemented"), "line 3");
    says(IMPLEMENTED_AT, &IMPLEMENTED.replace("implemented", "implemented (2026-11-30)"), "line 3");
}

#[test]
fn rfc_88_a_rejection_needs_an_em_dash_and_a_reason() {
    let rejected = |status: &str| REJECTED.replace("Status: rejected — nobody needs it", status);
    assert!(wrong(REJECTED_AT, REJECTED).is_empty());
    for status in [
        "Status: rejected",
        "Status: rejected — ",
        "Status: rejected —",
        "Status: rejected - nobody needs it",
        "Status: rejected – nobody needs it",
        "Status: rejected — nobody needs it (2026-11-30)",
        "Status: rejected — since 2026-11-30",
    ] {
        says(REJECTED_AT, &rejected(status), "line 3");
    }
}

#[test]
fn rfc_89_an_implemented_record_has_no_plan() {
    let with = |heading: &str| format!("{IMPLEMENTED}\n## {heading}\n");
    for heading in ["Plan B", "plan", "Proposal", "MIGRATION PLAN", "Acceptance criteria (old)"] {
        says(IMPLEMENTED_AT, &with(heading), "work to come");
    }
    for heading in ["Planning", "Proposals seen", "The plan"] {
        assert!(wrong(IMPLEMENTED_AT, &with(heading)).is_empty(), "{heading}");
    }
    assert!(wrong(IMPLEMENTED_AT, &format!("{IMPLEMENTED}\n### Plan\n")).is_empty());
}

#[test]
fn rfc_90_a_second_status_line_only_inside_a_fence() {
    let fenced = |fence: &str| format!("{PROPOSED}\n{fence}\nStatus: proposed\n{fence}\n");
    assert!(wrong(PROPOSED_AT, &fenced("```")).is_empty());
    for fence in ["", "~~~", " ```"] {
        says(PROPOSED_AT, &fenced(fence), "second line");
    }
}

#[test]
fn rfc_91_only_old_records_leave_out_their_alternatives() {
    let old = "implemented/feature/2026-07-04-a-thing.md";
    let day = "implemented/feature/2026-07-05-a-thing.md";
    let without = IMPLEMENTED.replace("## Alternatives considered", COMMENT);
    assert!(wrong(old, &without).is_empty());
    says(day, &without, "only records from before");
    says(old, &format!("{IMPLEMENTED}\n{COMMENT}\n"), "both");
    says(old, &without.replace("(pre-format RFC)", ""), "is missing");
    assert_eq!(wrong(day, &format!("{IMPLEMENTED}\n{COMMENT}\n")).len(), 2);
}

#[test]
fn rfc_92_one_space_makes_the_index_stale() {
    let folder = records(&[(PROPOSED_AT, PROPOSED)]);
    look(folder.path(), true).unwrap();
    assert!(look(folder.path(), false).unwrap().is_clean());

    let index = folder.path().join("INDEX.md");
    let page = fs::read_to_string(&index).unwrap();
    for edited in [format!("{page} "), page.replacen("| ", "|  ", 1)] {
        fs::write(&index, edited).unwrap();
        assert!(look(folder.path(), false).unwrap().violations[0].contains("stale"));
    }
    fs::remove_file(&index).unwrap();
    assert!(!look(folder.path(), false).unwrap().is_clean());
    assert!(look(folder.path(), true).unwrap().is_clean());
    assert_eq!(fs::read_to_string(&index).unwrap(), page);
}

#[test]
fn rfc_93_the_readme_holds_no_index_rows() {
    let folder = records(&[(PROPOSED_AT, PROPOSED)]);
    look(folder.path(), true).unwrap();
    let found = |text: &str| {
        put(folder.path(), "README.md", text);
        look(folder.path(), false).unwrap().violations
    };
    for row in [
        "| [A thing](proposed/feature/x.md) | 2026-11-30 |",
        "|[A thing](./implemented/feature/x.md)|",
        "[A thing](<rejected/feature/x y.md>) | 2026-11-30",
    ] {
        assert_eq!(found(row).len(), 1, "{row}");
    }
    for fine in [
        "See [a thing](proposed/feature/x.md).",
        "| `proposed` | [A thing](proposed/feature/x.md) |",
        "| [Index](INDEX.md) | all of them |",
        "```\n| [A thing](proposed/feature/x.md) | 2026-11-30 |\n```",
    ] {
        assert!(found(fine).is_empty(), "{fine}");
    }
}

#[test]
fn rfc_94_records_lie_in_a_lifecycle_and_a_class() {
    let structure = |path: &str| {
        let folder = records(&[(path, IMPLEMENTED)]);
        let found = look(folder.path(), true).unwrap().violations;
        (found, folder.path().join("INDEX.md").exists())
    };
    for path in [
        "implemented/2026-11-30-x.md",
        "implemented/x.md",
        "2026-11-30-x.md",
        "accepted/feature/2026-11-30-x.md",
        "implemented/refactor/2026-11-30-x.md",
        "implemented/feature/deep/2026-11-30-x.md",
        "implemented/feature/x.md",
        "implemented/feature/2026-11-30-x.txt",
        "implemented/feature/AGENTS.md",
    ] {
        let (found, written) = structure(path);
        assert_eq!(found.len(), 2, "{path}: {found:?}");
        assert!(!written, "an index of a tree that is wrong: {path}");
    }
    for path in [
        "implemented/AGENTS.md",
        "proposed/CLAUDE.md",
        "implemented/feature/2026-11-30-x.zh.md",
        "README.md",
    ] {
        let (found, written) = structure(path);
        assert!(found.is_empty() && written, "{path}: {found:?}");
    }
}

#[test]
fn rfc_95_the_header_is_compared_exactly() {
    let found = wrong(PROPOSED_AT, &PROPOSED.replace('\n', "\r\n"));
    for line in ["line 1:", "line 2:", "line 3:", "line 4:"] {
        assert!(found.iter().any(|violation| violation.contains(line)), "{line} {found:?}");
    }
    let found = wrong(PROPOSED_AT, &format!("\u{feff}{PROPOSED}"));
    assert!(found[0].contains("line 1:"), "{found:?}");
    assert!(
        wrong(PROPOSED_AT, &PROPOSED.replace("# RFC: A thing", "# RFC:  "))[0].contains("line 1:")
    );
}

#[test]
fn the_sections_of_each_lifecycle_are_asked_for() {
    for (path, text, names) in [
        (PROPOSED_AT, PROPOSED, &["Proposal", "Acceptance criteria", "Risks"][..]),
        (IMPLEMENTED_AT, IMPLEMENTED, &["Decision", "Consequences"][..]),
        (REJECTED_AT, REJECTED, &["Proposal"][..]),
    ] {
        for name in names.iter().chain(&["Alternatives considered"]) {
            says(
                path,
                &text.replace(&format!("## {name}\n"), ""),
                &format!("`## {name}` is missing"),
            );
        }
        says(path, &text.replace("## Problem\n", "## Context\n"), "first section");
    }
}

#[test]
fn the_retired_mark_may_not_come_back() {
    let text = format!("{PROPOSED}\n<!-- XXX: legacy ADR/RFC body format -->\n");
    says(PROPOSED_AT, &text, "retired");
}
