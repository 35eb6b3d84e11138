//! Whether a root may be copied at all, by where and what it is. Nothing is read of its contents.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use stead_core::delegated::MOST_ROOTS;
use stead_core::env;
use stead_core::layout::{Root, RootIdentity};
use stead_files::{FileIdentity, Kind, Stat};
use stead_git::{Git, GitEntry, GitError, Index, Repository};

use super::Request;
use crate::error::{CopyError, failed};
use crate::home::Home;
use crate::layout::Layout;
use crate::refusal::{MakeError, Obstruction};

/// The layout as a whole: its form, and that no two roots overlap.
pub(super) fn check_layout(home: &Home, request: &Request) -> Result<(), MakeError> {
    let task = home.task(&request.session, request.task);
    let refuse = |why| Err(MakeError::refused(&task, why));
    if !(1..=MOST_ROOTS).contains(&request.roots.len()) {
        return refuse(Obstruction::RootCount(request.roots.len()));
    }
    for (at, root) in request.roots.iter().enumerate() {
        for other in request.roots.iter().take(at) {
            if root.slot.as_str().eq_ignore_ascii_case(other.slot.as_str()) {
                return refuse(Obstruction::SlotTwice(root.slot.clone()));
            }
            let (one, two) = (&root.directory, &other.directory);
            if one.is_within(two) || two.is_within(one) || is_same(root, other) {
                let why = Obstruction::Overlap(two.as_path().to_owned());
                return Err(MakeError::refused(one.as_path(), why));
            }
        }
    }
    if !request.roots.iter().any(|root| root.slot == request.primary) {
        return refuse(Obstruction::NoPrimary(request.primary.clone()));
    }
    if std::fs::symlink_metadata(&task).is_ok() {
        return refuse(Obstruction::TaskExists);
    }
    Ok(())
}

/// Whether two paths lead to one folder, as through a bind mount.
fn is_same(one: &Root, two: &Root) -> bool {
    let of = |root: &Root| FileIdentity::of(root.directory.as_path()).ok();
    of(one).zip(of(two)).is_some_and(|(one, two)| one.is_same(&two, true))
}

/// One root, with the home's real path: that it is the folder that was selected, canonical, and no
/// place of stead's or the person's whole home.
pub(super) fn check_place(
    home: &Home,
    git: &Git,
    directory: &Path,
    identity: RootIdentity,
) -> Result<(), MakeError> {
    let refuse = |why| Err(MakeError::refused(directory, why));
    let real = match directory.canonicalize() {
        Ok(real) => real,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return refuse(Obstruction::Missing);
        }
        Err(error) => return Err(CopyError::system("examine", directory, error).into()),
    };
    if real != directory {
        return refuse(Obstruction::Linked(real));
    }
    if Stat::of(directory).map_err(failed("examine", directory))?.kind != Kind::Folder {
        return refuse(Obstruction::NotAFolder);
    }
    let found = FileIdentity::of(directory).map_err(failed("examine", directory))?;
    let birth = found.birth.map(|birth| (birth.secs, birth.nanos));
    let births_agree = match (birth, identity.birth) {
        (Some(now), Some(then)) => now == then,
        _ => true,
    };
    if found.inode != identity.inode || !births_agree {
        return refuse(Obstruction::Changed);
    }
    let own = home.path();
    if directory.starts_with(own) {
        if let Some(original) = original_of(directory) {
            return refuse(Obstruction::InsideCopy(original));
        }
        return refuse(Obstruction::HoldsHome(own.to_owned()));
    }
    let person = git.environment().get(OsStr::new(env::HOME)).map(PathBuf::from);
    let person = person.and_then(|person| person.canonicalize().ok());
    if let Some(person) = person.filter(|person| person.starts_with(directory)) {
        return refuse(Obstruction::PersonHome(person));
    }
    if own.starts_with(directory) {
        return refuse(Obstruction::HoldsHome(own.to_owned()));
    }
    match original_of(directory) {
        Some(original) => refuse(Obstruction::InsideCopy(original)),
        None => Ok(()),
    }
}

/// What the private copy that holds `directory` was made of; none when none does.
fn original_of(directory: &Path) -> Option<PathBuf> {
    for copy in directory.ancestors() {
        let task = copy.parent()?;
        // A file of that name that is not ours says nothing about the folder beside it.
        let Ok(Some(layout)) = Layout::load_from(task) else { continue };
        let slot = layout.slots.iter().find(|slot| {
            copy.file_name().is_some_and(|name| name == OsStr::new(slot.slot.as_str()))
        });
        if let Some(slot) = slot {
            return Some(slot.source.as_path().to_owned());
        }
    }
    None
}

/// The repository whose top level the folder is; none for a plain folder.
pub(super) fn repository(git: &Git, directory: &Path) -> Result<Option<Repository>, MakeError> {
    let refuse = |why| Err(MakeError::refused(directory, why));
    let found = match Repository::discover(git, directory) {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(None),
        Err(GitError::InsideGitDirectory(_)) => return refuse(Obstruction::InsideGitDirectory),
        Err(GitError::Unusable { said, .. }) => return refuse(Obstruction::Unusable(said)),
        Err(error) => return Err(error.into()),
    };
    let has_entry = GitEntry::of(directory)?.is_some();
    let Some(top_level) = &found.top_level else {
        if directory == found.git_directory || has_entry {
            let trees = found.worktrees.iter().filter(|tree| tree.head.is_some());
            return refuse(Obstruction::Bare(trees.map(|tree| tree.path.clone()).collect()));
        }
        return if directory.starts_with(&found.git_directory) {
            refuse(Obstruction::InsideGitDirectory)
        } else {
            Ok(None)
        };
    };
    if top_level == directory {
        return Ok(Some(found));
    }
    if has_entry {
        return refuse(Obstruction::WorkTreeElsewhere(top_level.clone()));
    }
    let Ok(below) = directory.strip_prefix(top_level) else { return Ok(None) };
    let index = Index::of(&found)?;
    if index.entries.iter().any(|entry| entry.path.starts_with(below)) {
        return refuse(Obstruction::InsideRepository(top_level.clone()));
    }
    Ok(None)
}
