//! The work trees that are registered with a repository.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use stead_files::FileIdentity;

use crate::error::GitError;
use crate::git::{Git, unreadable};
use crate::head::Head;
use crate::object::ObjectId;

/// A registered work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Its folder, as Git has it written down: perhaps not canonical, perhaps gone. Of the first
    /// one of a submodule, or of a repository whose Git directory was put elsewhere, Git says the
    /// Git directory.
    pub path: PathBuf,
    /// What it has checked out; none for a bare repository itself.
    pub head: Option<Head>,
    /// Whether it is locked against being pruned.
    pub locked: bool,
    /// Whether its folder is gone, so that `git worktree prune` would forget it.
    pub prunable: bool,
}

impl Worktree {
    /// Whether its folder is the one at `path`, by identity.
    pub fn is_at(&self, path: &Path) -> bool {
        let identity = |path: &Path| FileIdentity::of(&path.canonicalize().ok()?).ok();
        identity(&self.path)
            .zip(identity(path))
            .is_some_and(|(mine, theirs)| mine.is_same(&theirs, true))
    }
}

/// All of them, the main one (or the bare repository) first. One process.
pub(crate) fn list(git: &Git, directory: &Path) -> Result<Vec<Worktree>, GitError> {
    let answer = git.ask(directory, "worktree", &["worktree", "list", "--porcelain", "-z"])?;
    parse(&answer).ok_or_else(|| unreadable("worktree", directory))
}

/// Lines with a zero byte behind each; an empty one ends a work tree.
fn parse(answer: &[u8]) -> Option<Vec<Worktree>> {
    let mut found: Vec<Worktree> = Vec::new();
    let mut commit = None;
    for line in answer.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let mut words = line.splitn(2, |byte| *byte == b' ');
        let word = words.next().unwrap_or_default();
        let rest = words.next().unwrap_or_default();
        if word == b"worktree" {
            let path = PathBuf::from(OsStr::from_bytes(rest));
            found.push(Worktree { path, head: None, locked: false, prunable: false });
            commit = None;
            continue;
        }
        let current = found.last_mut()?;
        match word {
            b"HEAD" => commit = Some(ObjectId::from_hex(rest)?).filter(|id| !id.is_null()),
            b"branch" => {
                let name = OsStr::from_bytes(rest).to_owned();
                current.head = Some(Head::Branch { name, commit });
            }
            b"detached" => current.head = commit.map(Head::Detached),
            b"locked" => current.locked = true,
            b"prunable" => current.prunable = true,
            _ => {}
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attribute_is_read() {
        let id = "1234567890123456789012345678901234567890";
        let none = "0".repeat(40);
        let answer = format!(
            "worktree /p/.bare\0bare\0\0\
             worktree /p/a b\nc\0HEAD {id}\0branch refs/heads/a b\0locked why\0\0\
             worktree /p/d\0HEAD {id}\0detached\0prunable gone\0\0\
             worktree /p/e\0HEAD {none}\0branch refs/heads/new\0\0"
        );
        let found = parse(answer.as_bytes()).unwrap();
        let id = ObjectId::from_hex(id.as_bytes());
        let heads: Vec<_> = found.iter().map(|tree| tree.head.clone()).collect();
        let branch = |name: &str, commit| Some(Head::Branch { name: name.into(), commit });
        let expected = [
            None,
            branch("refs/heads/a b", id),
            id.map(Head::Detached),
            branch("refs/heads/new", None),
        ];
        assert_eq!(heads, expected);
        assert_eq!(found[1].path, Path::new("/p/a b\nc"));
        let flags: Vec<_> = found.iter().map(|tree| (tree.locked, tree.prunable)).collect();
        assert_eq!(flags, [(false, false), (true, false), (false, true), (false, false)]);
        assert_eq!(parse(b"HEAD x\0"), None);
    }
}
