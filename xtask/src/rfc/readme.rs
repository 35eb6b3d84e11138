//! The curated front door holds no index of its own.

use super::markdown::prose;
use super::tree::LIFECYCLES;

/// Table rows whose first cell links into one of the lifecycle folders.
pub(crate) fn index_rows(text: &str) -> Vec<String> {
    prose(text)
        .filter(|(_, line)| is_index_row(line))
        .map(|(number, _)| {
            format!(
                "README.md: line {number} is a row of an index; records are listed in INDEX.md only"
            )
        })
        .collect()
}

fn is_index_row(line: &str) -> bool {
    let line = line.trim();
    let Some((cell, _)) = line.strip_prefix('|').unwrap_or(line).split_once('|') else {
        return false;
    };
    let Some((_, target)) = cell.trim().strip_prefix('[').and_then(|link| link.split_once("]("))
    else {
        return false;
    };
    let target = target.trim_start().trim_start_matches('<').trim_start_matches("./");
    LIFECYCLES
        .iter()
        .any(|folder| target.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
}
