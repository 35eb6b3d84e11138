//! What the project takes from others: declared once, argued for once.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::Member;
use crate::report::Result;

/// The page with one line a dependency.
pub(crate) const PAGE: &str = "docs/dependencies.md";

/// The packages of `[workspace.dependencies]` that are not ours.
pub(crate) fn external(manifest: &str) -> Result<BTreeSet<String>> {
    let manifest: toml::Table = manifest.parse()?;
    let table = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies"))
        .and_then(toml::Value::as_table)
        .ok_or("Cargo.toml has no [workspace.dependencies]")?;
    let outside = table.iter().filter(|(_, entry)| entry.get("path").is_none());
    Ok(outside
        .map(|(name, entry)| entry.get("package").and_then(toml::Value::as_str).unwrap_or(name))
        .map(str::to_owned)
        .collect())
}

/// Dependencies that a crate declares past the workspace's list.
pub(crate) fn undeclared(members: &[Member], external: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for member in members {
        for import in member.imports.iter().filter(|import| !import.ours) {
            if !external.contains(&import.name) {
                found.push(format!(
                    "{} depends on {}, which is not in [workspace.dependencies]",
                    member.name, import.name
                ));
            }
        }
    }
    found
}

/// Dependencies without a line on the page, lines without a dependency, lines that say nothing.
pub(crate) fn unargued(page: &str, external: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, arguments) in page.lines().filter_map(row) {
        *lines.entry(name).or_default() += 1;
        if arguments.iter().any(|cell| cell.is_empty()) {
            found.push(format!("{PAGE}: the line of `{name}` has an empty cell"));
        }
    }
    for (name, count) in &lines {
        if !external.contains(*name) {
            found.push(format!("{PAGE}: `{name}` is not in [workspace.dependencies]"));
        }
        if *count > 1 {
            found.push(format!("{PAGE}: `{name}` has {count} lines"));
        }
    }
    for name in external.iter().filter(|name| !lines.contains_key(name.as_str())) {
        found.push(format!("{PAGE}: no line says why `{name}` is taken"));
    }
    found
}

/// A table row whose first cell is a package's name in backticks, with its other cells.
fn row(line: &str) -> Option<(&str, Vec<&str>)> {
    let inside = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let mut cells = inside.split('|').map(str::trim);
    let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
    Some((name, cells.collect()))
}

#[cfg(test)]
mod tests {
    use super::super::imports::Import;
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn only_what_others_wrote_is_external() {
        let manifest = "[workspace.dependencies]\n\
            stead-core = { path = \"crates/core\" }\nserde = \"1\"\nnew = { package = \"old\", version = \"1\" }\n";
        assert_eq!(external(manifest).unwrap(), names(&["old", "serde"]));
        assert!(external("[workspace]\n").is_err());
    }

    #[test]
    fn a_dependency_needs_a_line_and_a_line_a_dependency() {
        let page = "| Crate | Why |\n|---|---|\n| `serde` | reads |\n| `gone` | was nice |\n";
        let found = unargued(page, &names(&["serde", "toml"]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("`gone`") && found[1].contains("`toml`"), "{found:?}");
    }

    #[test]
    fn a_line_that_says_nothing_or_stands_twice_is_found() {
        let page = "| `serde` | |\n| `serde` | reads |\n";
        assert_eq!(unargued(page, &names(&["serde"])).len(), 2);
    }

    #[test]
    fn a_crate_declares_nothing_past_the_workspace() {
        let import = |name: &str, ours| Import { name: name.into(), ours, for_tests: true };
        let member = Member {
            name: "stead".into(),
            folder: "/house".into(),
            imports: vec![
                import("serde", false),
                import("stead-core", true),
                import("rand", false),
            ],
        };
        let found = undeclared(&[member], &names(&["serde"]));
        assert_eq!(found, ["stead depends on rand, which is not in [workspace.dependencies]"]);
    }
}
