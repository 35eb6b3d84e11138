//! The directory that a spawn asks for, and another look at it before every turn (A12).

use std::path::{Path, PathBuf};

use stead_copies::{Layout, RootKind};
use stead_core::event::Worktree;
use stead_core::layout::{AbsoluteDir, Root, RootIdentity};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_git::{Git, Repository};

use crate::roots::identity;

/// A directory that was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::session) struct Chosen {
    /// It, canonical.
    pub(in crate::session) directory: AbsoluteDir,
    /// The worktree that it is in, when it is in none of the folders that the spawner uses.
    pub(in crate::session) worktree: Option<Worktree>,
}

/// Judges a directory that a spawn asked for: absolute, or relative to the parent's; existing;
/// canonical; inside one of the folders that the parent uses, or inside a worktree that is
/// registered in the repository of one of them.
pub(super) fn judge(
    git: impl FnOnce() -> Result<Git, Refusal>,
    parent: Option<&AbsoluteDir>,
    roots: &[Root],
    chosen: &Path,
) -> Result<Chosen, Refusal> {
    let whole = match parent {
        Some(parent) => parent.as_path().join(chosen),
        None => PathBuf::from(chosen),
    };
    let canonical = whole
        .canonicalize()
        .map_err(|e| refuse(format!("the directory {} cannot be used: {e}", whole.display())))?;
    if !canonical.is_dir() {
        return Err(refuse(format!("{} is not a directory", canonical.display())));
    }
    let directory = AbsoluteDir::new(canonical).map_err(|e| refuse(e.to_string()))?;
    if roots.iter().any(|root| directory.is_within(&root.directory)) {
        return Ok(Chosen { directory, worktree: None });
    }
    match registered(&git()?, roots, &directory)? {
        Some(worktree) => Ok(Chosen { directory, worktree: Some(worktree) }),
        None => Err(refuse(format!(
            "the directory {} is in none of the caller's folders, and in no worktree that is \
             registered in one of their repositories",
            directory.as_path().display()
        ))),
    }
}

/// The worktree that `directory` is in, if the repository of one of the roots registers it (A12.4).
fn registered(
    git: &Git,
    roots: &[Root],
    directory: &AbsoluteDir,
) -> Result<Option<Worktree>, Refusal> {
    let unusable = |e: stead_git::GitError| {
        refuse(format!("the directory {} cannot be used: {e}", directory.as_path().display()))
    };
    let Some(there) = Repository::discover(git, directory.as_path()).map_err(unusable)? else {
        return Ok(None);
    };
    for root in roots {
        // A root that Git cannot answer for registers nothing.
        let Ok(Some(here)) = Repository::discover(git, root.directory.as_path()) else { continue };
        if here.registers(&there) {
            return described(&there).map(Some);
        }
    }
    Ok(None)
}

fn described(found: &Repository) -> Result<Worktree, Refusal> {
    let (top, common) = (found.top_level.clone().unwrap_or_default(), &found.common_directory);
    let look = |path: &Path| {
        let canonical = path.canonicalize()?;
        let identity = identity(&canonical)?;
        let canonical = AbsoluteDir::new(canonical).map_err(std::io::Error::other)?;
        Ok((canonical, identity))
    };
    let unusable = |path: &Path, e: std::io::Error| {
        refuse(format!("the worktree's {} cannot be used: {e}", path.display()))
    };
    let (top, identity) = look(&top).map_err(|e| unusable(&top, e))?;
    let (common, common_identity) = look(common).map_err(|e| unusable(common, e))?;
    Ok(Worktree { top, identity, common, common_identity })
}

/// Looks that a worktree outside the session's roots is still the one that was admitted, and
/// registered (A12.9, agents_49).
pub(in crate::session) fn still(
    git: &Git,
    admitted: &Worktree,
    directory: &AbsoluteDir,
) -> Result<(), Refusal> {
    let top = admitted.top.as_path().display();
    let gone = |why: &str| {
        Err(Refusal::new(RefusalKind::NotAllowed, format!("the worktree {top} {why}"))
            .hint("nothing was run, here or elsewhere; spawn an agent in a worktree that is there"))
    };
    let found = match Repository::discover(git, directory.as_path()) {
        Ok(Some(found)) => found,
        Ok(None) => return gone("is no worktree any more"),
        Err(error) => return gone(&format!("cannot be used: {error}")),
    };
    if found.top_level.as_deref() != Some(admitted.top.as_path()) {
        return gone("is not what Git finds there now");
    }
    let now = described(&found)?;
    let same = now.common == admitted.common
        && is_same(now.common_identity, admitted.common_identity)
        && is_same(now.identity, admitted.identity);
    if !same {
        return gone("is another one than was admitted");
    }
    if !found.worktrees.iter().any(|tree| !tree.prunable && tree.is_at(admitted.top.as_path())) {
        return gone("is not registered any more");
    }
    Ok(())
}

fn is_same(now: RootIdentity, then: RootIdentity) -> bool {
    let births = now.birth.is_none() || then.birth.is_none() || now.birth == then.birth;
    now.inode == then.inode && births
}

/// Looks that every copy of a work tree is still one of its own: in one that lost its `.git`, Git
/// would climb to whatever repository lies around it (field_cwd_06).
pub(in crate::session) fn still_own(
    git: &Git,
    layout: &Layout,
    roots: &[Root],
) -> Result<(), Refusal> {
    for slot in layout.slots.iter().filter(|slot| matches!(slot.kind, RootKind::Git { .. })) {
        let Some(root) = roots.iter().find(|root| root.slot == slot.slot) else { continue };
        let copy = root.directory.as_path();
        // One that was given up is not there; nothing can be run in it.
        if copy.symlink_metadata().is_err() {
            continue;
        }
        let top = Repository::top_level_of(git, copy).ok().flatten();
        if top.as_deref() != Some(copy) {
            let line = format!("the copy {} has lost its .git", copy.display());
            return Err(Refusal::new(RefusalKind::NotAllowed, line).hint(format!(
                "nothing was run; `stead task review {}` shows its files, `stead task discard {}` gives it up",
                layout.task, layout.task
            )));
        }
    }
    Ok(())
}

fn refuse(line: String) -> Refusal {
    Refusal::new(RefusalKind::InvalidArgument, line)
        .hint("leave `working_directory` out to work in the caller's directory")
}

#[cfg(test)]
mod tests;
