//! What a copy's Git directory holds that no review shows and no apply brings.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use stead_core::id::SlotName;
use stead_files::{Found, Kind, Node, RelPath, WalkOptions, walk};
use stead_git::index::{Entry, EntryKind};
use stead_git::{Git, Index, ObjectId, Repository};

use crate::base::Base;
use crate::error::{CopyError, failed};
use crate::home::Home;
use crate::keep::digest_of;
use crate::layout::{LAYOUT_FILE, Layout, RootKind};

/// What only a copy's Git directory holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unapplied {
    /// Its Git directory was made in it, or cannot be asked.
    GitDirectory,
    /// Commits, whatever names them: a branch, a tag, the stash, a log of references or nothing.
    Commits,
    /// Something that Git would go on with.
    InProgress,
    /// Its Git directory has work trees elsewhere.
    WorkTrees,
    /// The repository of a submodule was written in.
    Submodules,
    /// The index has something else than the base and HEAD have; the first such path.
    Staged(PathBuf),
}

impl fmt::Display for Unapplied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GitDirectory => f.write_str("its Git directory is not the one that stead made"),
            Self::Commits => f.write_str("commits or a stash were made in it"),
            Self::InProgress => f.write_str("a Git command is in progress in it"),
            Self::WorkTrees => f.write_str("its Git directory has other work trees"),
            Self::Submodules => f.write_str("the repository of a submodule was written in"),
            Self::Staged(path) => write!(f, "{} is staged otherwise than applied", path.display()),
        }
    }
}

/// What the Git directory of a slot's copy holds that an apply never brings, so that the copy is
/// not to be removed unasked. When in doubt, something. What differs among its files is for
/// [`freeze`](crate::freeze), whose snapshot has both what is covered and what is beside it.
///
/// # Errors
/// The system's, or Git's.
pub fn unapplied(
    home: &Home,
    git: &Git,
    layout: &Layout,
    slot: &SlotName,
    base: &Base,
) -> Result<Option<Unapplied>, CopyError> {
    let copy = home.copy(&layout.session, layout.task, slot);
    // Git says real paths only.
    let copy = copy.canonicalize().map_err(failed("examine", &copy))?;
    let directory = copy.join(".git");
    if layout.slot(slot).is_none_or(|slot| slot.kind == RootKind::Plain) {
        let is_there = fs::symlink_metadata(&directory).is_ok();
        return Ok(is_there.then_some(Unapplied::GitDirectory));
    }
    let found = Repository::discover(git, &copy)?;
    let Some(repository) = found.filter(|found| found.git_directory == directory) else {
        return Ok(Some(Unapplied::GitDirectory));
    };
    if !repository.operations()?.is_empty() {
        return Ok(Some(Unapplied::InProgress));
    }
    if has_names(&directory.join("worktrees"))? {
        return Ok(Some(Unapplied::WorkTrees));
    }
    if has_history(&repository)? {
        return Ok(Some(Unapplied::Commits));
    }
    let layout = home.task(&layout.session, layout.task).join(LAYOUT_FILE);
    if is_newer(&directory.join("modules"), &layout)? {
        return Ok(Some(Unapplied::Submodules));
    }
    Ok(staged(&repository, base)?.map(Unapplied::Staged))
}

/// Whether the repository itself, not the depot that it borrows from, has any object but contents
/// of files. A pack may have anything.
fn has_history(repository: &Repository) -> Result<bool, CopyError> {
    let objects = repository.common_directory.join("objects");
    if has_names(&objects.join("pack"))? {
        return Ok(true);
    }
    let mut loose: Vec<ObjectId> = Vec::new();
    for fan in names(&objects)?.iter().filter(|name| name.len() == 2) {
        let fan = Path::new(fan);
        for rest in names(&objects.join(fan))? {
            let whole = [fan.as_os_str().as_bytes(), rest.as_bytes()].concat();
            loose.extend(ObjectId::from_hex(&whole));
        }
    }
    Ok(repository.blob_sizes(&loose)?.iter().any(Option::is_none))
}

/// Whether a file in `folder` was changed after the layout file was written, the last thing that
/// admission writes. An index alone says nothing: Git refreshes it when it is asked, and what is
/// staged is among the objects.
fn is_newer(folder: &Path, layout: &Path) -> Result<bool, CopyError> {
    if !folder.is_dir() {
        return Ok(false);
    }
    let written = stead_files::Stat::of(layout).map_err(failed("examine", layout))?.modified;
    let listing = walk(folder, &WalkOptions::default())?;
    let is_later = |found: &Found| {
        found.stat.kind != Kind::Folder && *found.name != *b"index" && found.stat.changed > written
    };
    Ok(listing.folders().iter().flat_map(|folder| &folder.entries).any(is_later))
}

/// The first path that the index has otherwise than the base's index, the base itself and HEAD.
fn staged(repository: &Repository, base: &Base) -> Result<Option<PathBuf>, CopyError> {
    let index = Index::of(repository)?;
    let before: HashMap<&Path, (u32, ObjectId)> =
        base.index.iter().map(|file| (file.path.as_path(), (file.mode, file.object))).collect();
    let is_as_before = |entry: &Entry| {
        entry.kind == EntryKind::Gitlink
            || before.get(entry.path.as_path()) == Some(&(entry.kind.mode(), entry.id))
    };
    if let Some(path) = index.unmerged().next() {
        return Ok(Some(path.to_owned()));
    }
    let mut other: Vec<&Entry> = index.entries.iter().filter(|e| !is_as_before(e)).collect();
    if let Some(commit) = repository.head.commit().filter(|_| !other.is_empty()) {
        let tree = repository.tree(commit)?;
        let head: HashMap<&Path, (EntryKind, ObjectId)> =
            tree.iter().map(|entry| (entry.path.as_path(), (entry.kind, entry.id))).collect();
        other.retain(|entry| head.get(entry.path.as_path()) != Some(&(entry.kind, entry.id)));
    }
    // Of an intended one only the path is staged.
    other.retain(|entry| !entry.is_intended);
    let ids: Vec<ObjectId> = other.iter().map(|entry| entry.id).collect();
    let mut with_bytes = other.into_iter().zip(repository.blobs(&ids)?);
    let is_more = |(entry, bytes): &(&Entry, Option<Vec<u8>>)| {
        !bytes.as_ref().is_some_and(|bytes| is_of(base, entry, bytes))
    };
    Ok(with_bytes.find(is_more).map(|(entry, _)| entry.path.clone()))
}

/// Whether the base has what an entry of the index stands for.
fn is_of(base: &Base, entry: &Entry, bytes: &[u8]) -> bool {
    let path = RelPath::parse(entry.path.as_os_str().as_bytes()).ok();
    let Some(found) = path.and_then(|path| base.manifest.get(&path)) else { return false };
    match (&found.node, entry.kind) {
        (Node::File { digest, .. }, EntryKind::File | EntryKind::Executable) => {
            let is_executable = found.mode & 0o100 != 0;
            *digest == Some(digest_of(bytes))
                && is_executable == (entry.kind == EntryKind::Executable)
        }
        (Node::Link(target), EntryKind::Link) => **target == *bytes,
        _ => false,
    }
}

fn has_names(folder: &Path) -> Result<bool, CopyError> {
    Ok(!names(folder)?.is_empty())
}

fn names(folder: &Path) -> Result<Vec<OsString>, CopyError> {
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CopyError::system("list", folder, error)),
    };
    listed.map(|entry| Ok(entry.map_err(failed("list", folder))?.file_name())).collect()
}
