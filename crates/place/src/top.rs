//! Which folder is the place of a directory: the top of its worktree, or the directory itself.

use std::io;
use std::path::{Path, PathBuf};

use stead_core::layout::AbsoluteDir;

/// Why a directory has no place.
#[derive(Debug, thiserror::Error)]
pub enum NoPlace {
    /// It is gone, or no directory that can be entered.
    #[error("{} cannot be a place: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It is a Git directory, in which nobody works.
    #[error("{} is inside a Git directory, not a worktree", .0.display())]
    GitDirectory(PathBuf),
    /// Its path cannot be stored.
    #[error("{} cannot be a place: its path is not absolute", .0.display())]
    Path(PathBuf),
}

/// The place of a directory: canonical, so that links lead to the same one.
pub fn top_of(directory: &Path) -> Result<AbsoluteDir, NoPlace> {
    let failed = |source| NoPlace::Directory { path: directory.to_owned(), source };
    let canonical = directory.canonicalize().map_err(failed)?;
    if !canonical.is_dir() {
        return Err(failed(io::ErrorKind::NotADirectory.into()));
    }
    let mut top = canonical.as_path();
    for folder in canonical.ancestors() {
        if is_git_directory(folder) {
            return Err(NoPlace::GitDirectory(canonical));
        }
        if folder.join(".git").symlink_metadata().is_ok() {
            top = folder;
            break;
        }
    }
    AbsoluteDir::new(top).map_err(|_| NoPlace::Path(canonical))
}

/// What Git itself looks for.
fn is_git_directory(folder: &Path) -> bool {
    folder.join("HEAD").symlink_metadata().is_ok()
        && folder.join("objects").is_dir()
        && folder.join("refs").is_dir()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_worktree_is_one_place_and_a_plain_folder_is_itself() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let top = |path: PathBuf| top_of(&path).unwrap().as_path().to_owned();
        fs::create_dir_all(base.join("tree/sub/deep")).unwrap();
        assert_eq!(top(base.join("tree/sub")), base.join("tree/sub"));
        fs::write(base.join("tree/.git"), "gitdir: elsewhere").unwrap();
        assert_eq!(top(base.join("tree/sub/deep")), base.join("tree"));
        std::os::unix::fs::symlink(base.join("tree/sub"), base.join("link")).unwrap();
        assert_eq!(top(base.join("link")), base.join("tree"));
        assert!(matches!(top_of(&base.join("tree/.git")), Err(NoPlace::Directory { .. })));
        assert!(matches!(top_of(&base.join("none")), Err(NoPlace::Directory { .. })));
    }

    #[test]
    fn a_git_directory_is_no_place() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["objects/pack", "refs"] {
            fs::create_dir_all(folder.path().join("bare").join(name)).unwrap();
        }
        fs::write(folder.path().join("bare/HEAD"), "").unwrap();
        for inside in ["bare", "bare/objects/pack"] {
            let found = top_of(&folder.path().join(inside));
            assert!(matches!(found, Err(NoPlace::GitDirectory(_))), "{inside}");
        }
    }
}
