//! The files of a folder, before and after.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::report::Result;

/// Folders that builds and Git make for themselves.
const LEFT_OUT: &[&str] = &[".git", "target"];

/// Every file below a folder with what is in it: a link's target, if it is one.
pub(super) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Reads a folder, but for what builds and Git make.
pub(super) fn files(folder: &Path) -> Result<Files> {
    read(folder, LEFT_OUT)
}

/// Reads a folder with all that is in it.
pub(super) fn everything(folder: &Path) -> Result<Files> {
    read(folder, &[])
}

fn read(folder: &Path, left_out: &[&str]) -> Result<Files> {
    let mut found = Files::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() {
                if !left_out.iter().any(|name| entry.file_name() == *name) {
                    open.push(path);
                }
                continue;
            }
            let content = if kind.is_symlink() {
                fs::read_link(&path)?.as_os_str().as_bytes().to_vec()
            } else {
                fs::read(&path)?
            };
            found.insert(path.strip_prefix(folder)?.to_owned(), content);
        }
    }
    Ok(found)
}

/// Copies a folder's files to where nothing is yet.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    for (path, content) in files(from)? {
        let path = to.join(path);
        fs::create_dir_all(path.parent().ok_or("a file without a folder")?)?;
        fs::write(path, content)?;
    }
    Ok(())
}

/// Every path that differs, or is there only once.
pub(super) fn changed(before: &Files, after: &Files) -> BTreeSet<PathBuf> {
    let paths = before.keys().chain(after.keys());
    paths.filter(|path| before.get(*path) != after.get(*path)).cloned().collect()
}

/// What of `changed` was not expected, and what was expected and is not there.
pub(super) fn unexpected(changed: &BTreeSet<PathBuf>, expected: &[&str]) -> Vec<String> {
    let expected: BTreeSet<PathBuf> = expected.iter().map(PathBuf::from).collect();
    let more = changed.difference(&expected).map(|p| format!("{} was changed", p.display()));
    let less = expected.difference(changed).map(|p| format!("{} was not changed", p.display()));
    more.chain(less).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_seen_and_builds_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for path in ["a", "b/c", "gone"] {
            write(path, "1");
        }
        let before = files(folder.path()).unwrap();
        write("b/c", "2");
        write("new", "");
        write("target/debug/x", "");
        fs::remove_file(folder.path().join("gone")).unwrap();
        let changed = changed(&before, &files(folder.path()).unwrap());
        assert_eq!(unexpected(&changed, &["b/c", "gone", "new"]), [""; 0]);
        assert_eq!(
            unexpected(&changed, &["a", "b/c", "gone"]),
            ["new was changed", "a was not changed"]
        );
    }

    #[test]
    fn a_copy_has_the_same_files() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("a")).unwrap();
        fs::write(from.path().join("a/b"), "1").unwrap();
        copy(from.path(), to.path()).unwrap();
        assert_eq!(files(from.path()).unwrap(), files(to.path()).unwrap());
    }
}
