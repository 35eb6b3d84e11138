//! What differs between two manifests.

use std::cmp::Ordering;

use crate::manifest::{Entry, Manifest, Node};
use crate::path::RelPath;

/// How a path differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It is another kind of thing: a file became a link, a folder a file, ….
    Kind,
    /// It is the same kind of thing, and one of these is true.
    Altered {
        /// A file's content.
        bytes: bool,
        /// The permission bits.
        mode: bool,
        /// A symbolic link's target.
        target: bool,
    },
}

/// One path that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    /// The path.
    pub path: &'a RelPath,
    /// How.
    pub difference: Difference,
    /// What it was.
    pub before: Option<&'a Entry>,
    /// What it is.
    pub after: Option<&'a Entry>,
}

/// What differs between `base` and `now`, in the order of paths; nothing else is changed.
///
/// Times are no difference. A file without a digest on both sides counts as changed unless size
/// and [`Entry::seen`] agree. What either side withholds is not compared: it exists, and nobody
/// here knows its content.
pub fn compare<'a>(base: &'a Manifest, now: &'a Manifest) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    let (mut old, mut new) = (base.entries().iter().peekable(), now.entries().iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return changes,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(before), Some(after)) => before.path.cmp(&after.path),
        };
        let before = if order.is_le() { old.next() } else { None };
        let after = if order.is_ge() { new.next() } else { None };
        let difference = match (before, after) {
            (Some(before), Some(after)) => differ(before, after),
            (Some(gone), None) => not_withheld(gone).then_some(Difference::Removed),
            (None, Some(come)) => not_withheld(come).then_some(Difference::Added),
            (None, None) => None,
        };
        if let (Some(difference), Some(either)) = (difference, after.or(before)) {
            changes.push(Change { path: &either.path, difference, before, after });
        }
    }
}

fn not_withheld(entry: &Entry) -> bool {
    !matches!(entry.node, Node::Withheld { .. })
}

fn differ(before: &Entry, after: &Entry) -> Option<Difference> {
    let mode = before.mode != after.mode;
    let (bytes, target) = match (&before.node, &after.node) {
        (Node::Withheld { .. }, _) | (_, Node::Withheld { .. }) => return None,
        (Node::File { size: a, digest: c }, Node::File { size: b, digest: d }) => {
            let same = match (c, d) {
                (Some(c), Some(d)) => c == d,
                _ => before.seen.zip(after.seen).is_some_and(|(a, b)| a.is_same(&b)),
            };
            (a != b || !same, false)
        }
        (Node::Link(a), Node::Link(b)) => (false, a != b),
        (Node::Folder, Node::Folder) => (false, false),
        (Node::Special(a), Node::Special(b)) if a == b => (false, false),
        _ => return Some(Difference::Kind),
    };
    (bytes || mode || target).then_some(Difference::Altered { bytes, mode, target })
}
