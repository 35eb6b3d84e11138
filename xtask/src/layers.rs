//! `cargo xtask layers`: who may import whom, which dependencies are argued for, and that every
//! power has one door.

mod dependencies;
mod doors;
mod floors;
mod imports;

use std::path::Path;

use cargo_metadata::MetadataCommand;

use crate::report::{Report, Result, counted};
use crate::workspace;

/// Runs all three checks.
pub(crate) fn run(root: &Path) -> Result<Report> {
    let metadata =
        MetadataCommand::new().manifest_path(root.join("Cargo.toml")).no_deps().exec()?;
    let members = imports::members(&metadata);
    let manifest = workspace::read(&root.join("Cargo.toml"))?;
    let external = dependencies::external(&manifest)?;

    let mut report = Report::new("");
    report.extend(imports::violations(&members));
    report.extend(dependencies::undeclared(&members, &external));
    let page = workspace::read(&root.join(dependencies::PAGE))?;
    report.extend(dependencies::unargued(&page, &external));
    let mut files = 0;
    for member in &members {
        for file in doors::files(root, member)? {
            files += 1;
            report.extend(doors::violations(&file));
        }
    }
    report.clean = format!(
        "{} on their floors, {} argued for, {} use the doors",
        counted(members.len(), "crate", "crates"),
        counted(external.len(), "dependency", "dependencies"),
        counted(files, "file", "files"),
    );
    Ok(report)
}
