//! `cargo xtask rfc`: the decision records of `docs/rfc`, as its README defines them.

mod index;
mod markdown;
mod readme;
mod record;
mod tree;

#[cfg(test)]
mod cases_tests;

use std::path::Path;

use crate::report::{Report, Result, counted};
use crate::workspace;

/// The folder of the records, below the workspace's root.
const FOLDER: &str = "docs/rfc";

/// Checks every record; with `write`, generates the index first.
pub(crate) fn run(root: &Path, write: bool) -> Result<Report> {
    look(&root.join(FOLDER), write)
}

fn look(folder: &Path, write: bool) -> Result<Report> {
    let tree = tree::read(folder)?;
    let mut report = Report::new("");
    report.extend(tree.violations.iter().cloned());

    let mut rows = Vec::new();
    for place in &tree.places {
        let text = std::fs::read(folder.join(&place.path))?;
        match String::from_utf8(text) {
            Ok(text) => {
                let wrong = record::violations(place, &text)
                    .into_iter()
                    .chain(markdown::broken_links(folder, &place.path, &text));
                report.extend(wrong.map(|violation| format!("{}: {violation}", place.path)));
                let title = record::title(&text).map(str::to_owned);
                rows.push(index::Row { place, title });
            }
            Err(_) => report.fail(format!("{}: not UTF-8", place.path)),
        }
    }
    let readme = folder.join("README.md");
    if readme.exists() {
        report.extend(readme::index_rows(&workspace::read(&readme)?));
    }

    let said = match index::render(&rows) {
        Some(page) if tree.violations.is_empty() => index_state(folder, &page, write, &mut report)?,
        _ => {
            report
                .fail("INDEX.md is neither written nor compared until places and titles are right");
            ""
        }
    };
    report.clean = format!(
        "{} follow the format; INDEX.md {said}",
        counted(tree.places.len(), "record", "records")
    );
    Ok(report)
}

/// Writes the index or compares it, byte for byte.
fn index_state(
    folder: &Path,
    page: &str,
    write: bool,
    report: &mut Report,
) -> Result<&'static str> {
    let path = folder.join(index::NAME);
    if write {
        let changed = workspace::write_if_changed(&path, page)?;
        return Ok(if changed { "regenerated" } else { "up to date" });
    }
    if !std::fs::read_to_string(&path).is_ok_and(|old| old == page) {
        report.fail("INDEX.md is missing, stale or edited by hand; run `cargo xtask rfc --write`");
    }
    Ok("up to date")
}
