//! The `.git` entry of a folder: what makes it a work tree, and where that leads.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::error::GitError;

/// More than any path has: a `.git` file is one line.
const LONGEST: u64 = 16 << 10;

/// What is called `.git` in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitEntry {
    /// A folder: the repository itself.
    Folder,
    /// A file or a symbolic link that names the Git directory: of a linked worktree, a submodule,
    /// or one that was put elsewhere. Absolute; canonical where it exists.
    Elsewhere(PathBuf),
    /// A file that names none, or something that is neither file, folder nor link.
    Odd,
}

impl GitEntry {
    /// Looks at `folder`; none where it has no such entry. Runs nothing.
    ///
    /// For the walk of a tree: nested repositories, initialised submodules, and `.git` files that
    /// lead out of the tree are all found this way, ignored or not.
    ///
    /// # Errors
    /// [`GitError::File`].
    pub fn of(folder: &Path) -> Result<Option<Self>, GitError> {
        let path = folder.join(".git");
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(GitError::file("examine", &path)(error)),
        };
        if found.is_dir() {
            return Ok(Some(Self::Folder));
        }
        if found.is_symlink() {
            let target = fs::read_link(&path).map_err(GitError::file("read", &path))?;
            return Ok(Some(Self::Elsewhere(settled(folder.join(target)))));
        }
        if !found.is_file() || found.len() > LONGEST {
            return Ok(Some(Self::Odd));
        }
        let text = fs::read(&path).map_err(GitError::file("read", &path))?;
        let target = text.strip_prefix(b"gitdir: ").map(trimmed).filter(|name| !name.is_empty());
        Ok(Some(target.map_or(Self::Odd, |name| {
            Self::Elsewhere(settled(folder.join(OsStr::from_bytes(name))))
        })))
    }
}

fn trimmed(mut line: &[u8]) -> &[u8] {
    while let Some((b'\n' | b'\r', rest)) = line.split_last() {
        line = rest;
    }
    line
}

/// Canonical as far as it exists.
fn settled(path: PathBuf) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(&path)).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_entry_is_told_apart() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let look = || GitEntry::of(&base).unwrap();
        let entry = base.join(".git");
        assert_eq!(look(), None);
        assert_eq!(GitEntry::of(&base.join("missing")).unwrap(), None);
        fs::write(&entry, "gitdir: ./somewhere/../bare\n").unwrap();
        assert_eq!(look(), Some(GitEntry::Elsewhere(base.join("somewhere/../bare"))));
        fs::create_dir(base.join("bare")).unwrap();
        fs::create_dir(base.join("somewhere")).unwrap();
        assert_eq!(look(), Some(GitEntry::Elsewhere(base.join("bare"))));
        fs::write(&entry, "gitdir: /abs \r\n\n").unwrap();
        assert_eq!(look(), Some(GitEntry::Elsewhere("/abs ".into())));
        for odd in ["", "gitdir: \n", "hello"] {
            fs::write(&entry, odd).unwrap();
            assert_eq!(look(), Some(GitEntry::Odd));
        }
        fs::remove_file(&entry).unwrap();
        std::os::unix::fs::symlink("bare", &entry).unwrap();
        assert_eq!(look(), Some(GitEntry::Elsewhere(base.join("bare"))));
        fs::remove_file(&entry).unwrap();
        fs::create_dir(&entry).unwrap();
        assert_eq!(look(), Some(GitEntry::Folder));
    }
}
