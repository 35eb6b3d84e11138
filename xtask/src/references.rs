//! `cargo xtask references`: pages that the program writes about itself.

use std::path::Path;

use crate::report::{Report, Result, counted};
use crate::{tool, workspace};

/// A page and the arguments that make the program print it.
struct Reference {
    page: &'static str,
    arguments: &'static [&'static str],
}

/// A page is compared from the day it exists; `--write` makes the first one. Add lines here.
const REFERENCES: &[Reference] = &[
    Reference { page: "docs/commands.md", arguments: &["reference", "commands"] },
    Reference { page: "docs/tools.md", arguments: &["reference", "tools"] },
];

/// Compares every page that exists with what the program prints; with `write`, writes all of them.
pub(crate) fn run(root: &Path, write: bool) -> Result<Report> {
    let mut report = Report::new("");
    let mut count = 0;
    for reference in REFERENCES {
        let path = root.join(reference.page);
        if !write && !path.exists() {
            continue;
        }
        count += 1;
        match generated(root, reference) {
            Err(error) => report.fail(format!("{}: {error}", reference.page)),
            Ok(page) if write => {
                workspace::write_if_changed(&path, &page)?;
            }
            Ok(page) if workspace::read(&path)? == page => {}
            Ok(_) => report
                .fail(format!("{} is stale; run `cargo xtask references --write`", reference.page)),
        }
    }
    report.clean = format!("{} up to date", counted(count, "page", "pages"));
    Ok(report)
}

fn generated(root: &Path, reference: &Reference) -> Result<String> {
    let mut arguments = vec!["run", "--quiet", "--package", "stead", "--"];
    arguments.extend(reference.arguments);
    tool::printed(
        tool::cargo(root, &arguments),
        &format!("stead {}", reference.arguments.join(" ")),
    )
}
