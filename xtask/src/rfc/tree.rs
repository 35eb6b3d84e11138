//! Where records lie: `{lifecycle}/{class}/yyyy-mm-dd-topic.md`.

use std::fs::{self, FileType};
use std::path::Path;

use crate::report::Result;

/// The states of a record, in the order of the index.
pub(crate) const LIFECYCLES: &[&str] = &["proposed", "implemented", "rejected"];

/// The kinds of decisions, in the order of the index.
pub(crate) const CLASSES: &[&str] =
    &["feature", "bug-fix", "simplification", "architecture", "process", "testing"];

/// Instructions for agents, allowed beside the class folders.
const LOOSE: &[&str] = &["AGENTS.md", "CLAUDE.md"];

/// What may lie beside the lifecycle folders.
const FRONT: &[&str] = &["README.md", "INDEX.md", "AGENTS.md", "CLAUDE.md"];

/// A record by its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// One of [`LIFECYCLES`].
    pub(crate) lifecycle: &'static str,
    /// One of [`CLASSES`].
    pub(crate) class: &'static str,
    /// The date of the file name, when it was first proposed.
    pub(crate) date: String,
    /// The file's name.
    pub(crate) name: String,
    /// The path below the folder of the records.
    pub(crate) path: String,
}

/// The records that lie where they should, and all that does not.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Sorted by path.
    pub(crate) places: Vec<Place>,
    /// Wrong folders, depths and names.
    pub(crate) violations: Vec<String>,
}

/// Reads the tree of records.
pub(crate) fn read(folder: &Path) -> Result<Tree> {
    let mut tree = Tree::default();
    for entry in entries(folder)? {
        let Some(lifecycle) = known(LIFECYCLES, &entry.name).filter(|_| entry.kind.is_dir()) else {
            tree.violations.extend(at_front(&entry));
            continue;
        };
        for inner in entries(&folder.join(lifecycle))? {
            let path = format!("{lifecycle}/{}", inner.name);
            if !inner.kind.is_dir() {
                tree.violations.extend(at_lifecycle(&inner, &path));
                continue;
            }
            let Some(class) = known(CLASSES, &inner.name) else {
                let classes = CLASSES.join(", ");
                tree.violations.push(format!("{path}/: unknown class; the classes are {classes}"));
                continue;
            };
            for file in entries(&folder.join(&path))? {
                tree.file(lifecycle, class, file);
            }
        }
    }
    tree.places.sort();
    Ok(tree)
}

impl Tree {
    fn file(&mut self, lifecycle: &'static str, class: &'static str, entry: Entry) {
        let path = format!("{lifecycle}/{class}/{}", entry.name);
        if !entry.kind.is_file() {
            self.violations.push(format!("{path}: a record is a file right below its class"));
        } else if is_translation(&entry.name) {
            // Its original is what this check is about.
        } else if let Some(date) = date_of(&entry.name) {
            let date = date.to_owned();
            self.places.push(Place { lifecycle, class, date, name: entry.name, path });
        } else {
            self.violations.push(format!("{path}: a record is named yyyy-mm-dd-topic.md"));
        }
    }
}

/// What lies right below the folder of the records and is no lifecycle.
fn at_front(entry: &Entry) -> Option<String> {
    if entry.kind.is_dir() {
        let known = LIFECYCLES.join(", ");
        return Some(format!("{}/: unknown folder; the lifecycles are {known}", entry.name));
    }
    let fine = FRONT.contains(&entry.name.as_str()) || is_translation(&entry.name);
    (!fine).then(|| format!("{}: wrong depth; a record lies in lifecycle/class/", entry.name))
}

/// A file right below a lifecycle.
fn at_lifecycle(entry: &Entry, path: &str) -> Option<String> {
    let fine = LOOSE.contains(&entry.name.as_str()) || is_translation(&entry.name);
    (!fine).then(|| format!("{path}: wrong depth; a record lies in lifecycle/class/"))
}

/// Translations are another check's business.
fn is_translation(name: &str) -> bool {
    name.ends_with(".zh.md")
}

fn known(list: &[&'static str], name: &str) -> Option<&'static str> {
    list.iter().find(|known| **known == name).copied()
}

struct Entry {
    name: String,
    kind: FileType,
}

fn entries(folder: &Path) -> Result<Vec<Entry>> {
    let listing = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut entries = Vec::new();
    for entry in listing {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        entries.push(Entry { name, kind: entry.file_type()? });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// The date that a record's name starts with, when a topic and the ending follow.
fn date_of(name: &str) -> Option<&str> {
    let (date, topic) = name.split_at_checked(10)?;
    let topic = topic.strip_prefix('-')?.strip_suffix(".md")?;
    (!topic.trim().is_empty() && is_date(date)).then_some(date)
}

/// A day of the calendar written `yyyy-mm-dd`.
fn is_date(text: &str) -> bool {
    let digits = |text: &str, count| {
        let fine = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
        fine.then(|| text.parse::<u32>().ok()).flatten()
    };
    let mut parts = text.split('-');
    let (Some(year), Some(month), Some(day), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2))
    else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_start_with_a_day_and_have_a_topic() {
        assert_eq!(date_of("2026-11-30-floors.md"), Some("2026-11-30"));
        for wrong in [
            "floors.md",
            "2026-11-30.md",
            "2026-11-30-.md",
            "2026-11-31-x.md",
            "2026-02-29-x.md",
            "2026-1-01-x.md",
            "2026-11-30-x.txt",
            "2026-11-3é-x.md",
        ] {
            assert_eq!(date_of(wrong), None, "{wrong}");
        }
        assert_eq!(date_of("2028-02-29-x.md"), Some("2028-02-29"));
    }
}
