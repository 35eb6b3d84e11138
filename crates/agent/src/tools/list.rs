//! `list`: a folder, sorted, without what Git ignores.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::WalkBuilder;
use serde_json::json;
use stead_core::refusal::{Refusal, RefusalKind};
use tokio_util::sync::CancellationToken;

use super::arguments::ListArguments;
use super::authority::{Found, Sight, display, failed};
use super::output::Output;

/// The most entries in one answer.
const MOST_ENTRIES: usize = 2000;
const USUAL_DEPTH: u64 = 2;

/// Walks a folder: hidden files are shown, for agents need `.github` and `.env.example`; `.git` and
/// what `.gitignore` names are not. No link is followed. Nothing but the tree itself is asked: a
/// person's global excludes would make two machines list differently. Folders that nobody gave
/// leave to read are named and not opened.
pub(super) fn walk(folder: &Path, sight: Arc<Sight>, closed: &Closed) -> WalkBuilder {
    let closed = closed.clone();
    let mut builder = WalkBuilder::new(folder);
    builder
        .hidden(false)
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .sort_by_file_name(std::cmp::Ord::cmp)
        .filter_entry(move |entry| {
            if entry.depth() == 0 {
                return true;
            }
            if entry.file_name() == ".git" || closed.holds(entry.path()) {
                return false;
            }
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            if is_folder && !sight.may_read(entry.path()) {
                closed.add(entry.path());
            }
            true
        });
    builder
}

/// The folders of a walk that were not opened.
#[derive(Debug, Clone, Default)]
pub(super) struct Closed(Arc<Mutex<HashSet<PathBuf>>>);

impl Closed {
    fn add(&self, folder: &Path) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned());
    }

    fn holds(&self, path: &Path) -> bool {
        let closed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        path.parent().is_some_and(|folder| closed.contains(folder))
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Looks that there is something to go through.
pub(super) fn check_there(found: &Found) -> Result<(), Refusal> {
    std::fs::metadata(&found.real).map_err(|error| failed("list", &found.shown, &error))?;
    Ok(())
}

/// Lists a folder to the depth that was asked for.
pub(crate) fn list(
    sight: Arc<Sight>,
    found: &Found,
    arguments: &ListArguments,
    cancel: &CancellationToken,
) -> Result<Output, Refusal> {
    check_there(found)?;
    if !found.real.is_dir() {
        return Err(Refusal::new(
            RefusalKind::InvalidArgument,
            format!("{} is not a folder", found.shown),
        )
        .hint("read shows a file"));
    }
    let depth = usize::try_from(arguments.depth.unwrap_or(USUAL_DEPTH)).unwrap_or(usize::MAX);
    let mut lines = Vec::new();
    let (mut strange, mut unread, mut more) = (0, 0, false);
    let closed = Closed::default();
    for entry in walk(&found.real, sight, &closed).max_depth(Some(depth)).build() {
        if cancel.is_cancelled() {
            break;
        }
        let Ok(entry) = entry else {
            unread += 1;
            continue;
        };
        if entry.depth() == 0 {
            continue;
        }
        if lines.len() == MOST_ENTRIES {
            more = true;
            break;
        }
        let below = entry.path().strip_prefix(&found.real).unwrap_or(entry.path());
        strange += usize::from(below.to_str().is_none());
        let mut line = display(below);
        match entry.file_type() {
            Some(kind) if kind.is_dir() => line.push('/'),
            Some(kind) if kind.is_symlink() => {
                if let Ok(target) = entry.path().read_link() {
                    line = format!("{line} -> {}", display(&target));
                }
            }
            Some(kind) if kind.is_file() => {}
            _ => line.push_str(" (neither file nor folder)"),
        }
        lines.push(line);
    }
    let mut notes = Vec::new();
    if more {
        notes.push(format!("only the first {MOST_ENTRIES} entries; list a folder below it"));
    }
    if strange > 0 {
        notes.push(format!("{strange} names are not UTF-8 and stand in quotes, escaped"));
    }
    if unread > 0 {
        notes.push(format!("{unread} folders could not be read"));
    }
    if closed.count() > 0 {
        notes.push(format!("{} folders need leave of their own to be read", closed.count()));
    }
    if lines.is_empty() {
        notes.push(format!("nothing to show in {}", found.shown));
    }
    let structured = json!({ "path": found.shown, "entries": lines.len(), "more": more });
    if !notes.is_empty() {
        lines.push(format!("[stead: {}]", notes.join("; ")));
    }
    Ok(Output::new(lines.join("\n"), structured))
}

#[cfg(test)]
pub(super) mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    use stead_core::layout::Access;
    use stead_core::permission::{Mode, Terms};

    use super::*;
    use crate::tools::authority::Authority;

    /// Terms without a rule.
    pub(crate) fn everything() -> Terms {
        Terms { mode: Mode::FullAuto, plan_ceiling: false, grants: vec![], rules: vec![] }
    }

    #[test]
    fn a_listing_is_sorted_bounded_and_never_breaks_on_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [".git", "src/deep/er", "target"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at(".gitignore"), "target\n*.log\n").unwrap();
        for name in ["b", "a.log", "src/z.rs", "two\nlines", "target/x", "src/deep/er/f"] {
            fs::write(at(name), "").unwrap();
        }
        fs::write(folder.path().join(OsStr::from_bytes(b"caf\xe9")), "").unwrap();
        symlink("/etc", at("out")).unwrap();
        let root = std::iter::once((folder.path(), Access::Read));
        let authority = Authority::new(folder.path(), root, None);
        let call = |path: Option<&str>, depth| {
            let arguments = ListArguments { path: path.map(Into::into), depth };
            let found = authority.reading(path.unwrap_or("."))?;
            let terms = everything();
            let sight = Arc::new(Sight { authority: Arc::new(authority.clone()), terms });
            list(sight, &found, &arguments, &CancellationToken::new())
        };
        assert_eq!(
            call(None, None).unwrap().text,
            [
                ".gitignore",
                "b",
                r#""caf\xE9""#,
                "out -> /etc",
                "src/",
                "src/deep/",
                "src/z.rs",
                r#""two\nlines""#,
                "[stead: 1 names are not UTF-8 and stand in quotes, escaped]",
            ]
            .join("\n")
        );
        assert_eq!(call(Some("src"), Some(1)).unwrap().text, "deep/\nz.rs");
        assert!(call(Some("b"), None).unwrap_err().line.contains("not a folder"));
        assert!(call(Some("none"), None).is_err());
        for number in 0..2100 {
            fs::write(at(&format!("src/deep/{number}")), "").unwrap();
        }
        assert!(call(Some("src"), None).unwrap().text.contains("only the first 2000 entries"));
    }
}
