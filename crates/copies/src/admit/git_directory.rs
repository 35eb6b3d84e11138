//! The Git directory of a copy: by a list of what it has, never by what the source's has.
//!
//! It has HEAD, the carried refs, the settings (mapped), the index (with the copy's own stat
//! data), where the history is cut off, `info/` files that decide what Git says of the work tree,
//! and the hooks. Its objects are the depot's. It has no stash, no reflogs, no marks of
//! operations, no worktrees, no locks.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use stead_core::step::{self, Moment};
use stead_files::{
    Choice, CloneOptions, Cloned, Listing, Manifest, Obstacle, ObstacleKind, RelPath, Seen, Stat,
    WalkOptions, clone, walk,
};
use stead_git::index::EntryKind;
use stead_git::index::{Pair, Stat as IndexStat};
use stead_git::{GitError, Index, ObjectId, Repository, Target};

use super::copy::Making;
use super::survey::{GitSurvey, rel};
use crate::depot::Depot;
use crate::error::{CopyError, failed};
use crate::refusal::{MakeError, Obstruction};

/// Files of `info/` that decide what Git says of a work tree: the first two are of the repository,
/// the last is of the one work tree.
const INFO: [&str; 2] = ["exclude", "attributes"];
const SPARSE: &str = "sparse-checkout";

/// Makes `.git` in the new folder `nursery`, for a copy that will be at `place`: all but the index.
/// Fills the depot that it borrows from, and checks that nothing it needs is missing. Also says how
/// large the content is that each entry of the index names. Passes the steps `copies.depot` and
/// `copies.git`.
pub(super) fn make(
    making: &Making<'_>,
    found: &GitSurvey,
    nursery: &Path,
    place: &Path,
) -> Result<(Repository, Vec<Option<u64>>), MakeError> {
    let depot = Depot::of(making.home, &making.root.id);
    depot.fill(&found.repository, making.watch)?;
    step::pass("copies.git", Moment::Before);
    let to = nursery.join(".git");
    for folder in ["", "objects/info", "objects/pack", "info"] {
        let path = to.join(folder);
        fs::create_dir_all(&path).map_err(failed("create", &path))?;
    }
    write(&to.join("objects/info/alternates"), &alternates(&depot.objects()))?;
    let source = &found.repository;
    source.write_config(&to, place)?;
    source.write_refs(&to)?;
    for name in INFO {
        carry(&source.common_directory.join("info").join(name), &to.join("info").join(name))?;
    }
    carry(&source.git_directory.join("info").join(SPARSE), &to.join("info").join(SPARSE))?;
    carry(&source.common_directory.join("shallow"), &to.join("shallow"))?;
    carry_folder(making, &source.common_directory.join("hooks"), &to.join("hooks"))?;
    if let Some(modules) = &found.modules {
        carry_folder(making, modules, &to.join("modules"))?;
    }
    let made = Repository::discover(making.git, nursery)?;
    let Some(made) = made.filter(|made| made.top_level.as_deref() == Some(nursery)) else {
        let said = "the copy's Git directory is not taken for one".to_owned();
        return Err(making.refused(Obstruction::Unusable(said)));
    };
    let mut needed = look(&made, &found.index)?;
    if !needed.missing.is_empty() {
        // What was written after the depot was filled, or moved while it was.
        depot.fill(&found.repository, making.watch)?;
        needed = look(&made, &found.index)?;
        if !needed.missing.is_empty() {
            return Err(making.refused(Obstruction::NoObjects(needed.missing)));
        }
    }
    step::pass("copies.git", Moment::After);
    Ok((made, needed.sizes))
}

/// Writes the index of the `copy`, if its source has one. The index in `found` becomes the copy's.
pub(super) fn index(
    found: &mut GitSurvey,
    listing: &Listing,
    cloned: &Cloned,
    copy: &Path,
) -> Result<(), CopyError> {
    let path = &found.repository.index_file;
    if !path.exists() {
        return Ok(());
    }
    settle(&mut found.index, listing, cloned, copy);
    let encoded = found.index.encode();
    let encoded = encoded.map_err(|source| GitError::Index { path: path.clone(), source })?;
    write(&copy.join(".git/index"), &encoded)
}

/// What a look for the objects that the copy needs has found.
struct Needed {
    missing: Vec<ObjectId>,
    /// Of each entry's content; none for what is no content of a file.
    sizes: Vec<Option<u64>>,
}

/// The copy needs every content that its index names, the tips of its refs, and the commit of HEAD
/// with its tree.
fn look(copy: &Repository, index: &Index) -> Result<Needed, GitError> {
    let ids: Vec<ObjectId> = index.entries.iter().map(|entry| entry.id).collect();
    let sizes = copy.blob_sizes(&ids)?;
    let (mut missing, mut there) = (Vec::new(), HashSet::new());
    for (entry, size) in index.entries.iter().zip(&sizes) {
        if size.is_some() {
            there.insert(entry.id);
        } else if entry.kind != EntryKind::Gitlink && !entry.is_intended {
            missing.push(entry.id);
        }
    }
    let mut needed: Vec<ObjectId> = Vec::new();
    for found in copy.carried_refs()? {
        if let Target::Object(id) = found.target {
            needed.push(id);
        }
    }
    if let Some(commit) = copy.head.commit() {
        needed.push(commit);
        match copy.tree(commit) {
            Ok(tree) => {
                let contents = tree.iter().filter(|entry| entry.kind != EntryKind::Gitlink);
                needed.extend(contents.map(|entry| entry.id).filter(|id| !there.contains(id)));
            }
            // A tree that is not there is no answer; then the commit itself is named.
            Err(GitError::Failed { .. }) => return Ok(Needed { missing: vec![commit], sizes }),
            Err(error) => return Err(error),
        }
    }
    needed.sort_unstable();
    needed.dedup();
    missing.extend(copy.missing_objects(needed)?);
    missing.sort_unstable();
    missing.dedup();
    Ok(Needed { missing, sizes })
}

/// Gives every entry the copy's stat data where the source's prove that the file is unchanged.
fn settle(index: &mut Index, listing: &Listing, cloned: &Cloned, copy: &Path) {
    let mut find = cloned.manifest.as_ref().map(Manifest::finder);
    index.settle(|path| {
        let at = rel(path)?;
        let source = listing.get(&at)?.stat;
        let made = find.as_mut().and_then(|find| find(&at)?.seen);
        let copy = match made.filter(|_| (source.uid, source.gid) == cloned.owner) {
            Some(Seen { device, inode, modified, changed }) => {
                IndexStat::from(&Stat { device, inode, modified, changed, ..source })
            }
            None => IndexStat::from(&fs::symlink_metadata(copy.join(path)).ok()?),
        };
        Some(Pair { source: IndexStat::from(&source), copy })
    });
}

/// One line; in quotes where the bytes could be taken for something else than a path.
fn alternates(objects: &Path) -> Vec<u8> {
    let bytes = objects.as_os_str().as_bytes();
    let mut line = Vec::with_capacity(bytes.len() + 3);
    if bytes.contains(&b'\n') {
        line.push(b'"');
        for byte in bytes {
            match byte {
                b'\n' => line.extend_from_slice(b"\\n"),
                b'"' | b'\\' => line.extend_from_slice(&[b'\\', *byte]),
                other => line.push(*other),
            }
        }
        line.push(b'"');
    } else {
        line.extend_from_slice(bytes);
    }
    line.push(b'\n');
    line
}

/// Copies one file with its bits, if it is there.
fn carry(from: &Path, to: &Path) -> Result<(), CopyError> {
    match fs::copy(from, to) {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(())
        }
        Err(error) => Err(CopyError::system("copy", from, error)),
    }
}

/// Copies a folder of the Git directory, if it is there; locks and what is no file stay behind. A
/// relative link in its place is made again as it is; for an absolute one what it leads to is
/// copied, because writing through it would reach the original.
fn carry_folder(making: &Making<'_>, from: &Path, to: &Path) -> Result<(), MakeError> {
    let mut from = from.to_owned();
    match fs::symlink_metadata(&from) {
        Ok(found) if found.is_symlink() => {
            let target = fs::read_link(&from).map_err(failed("read", &from))?;
            if target.is_relative() {
                return Ok(std::os::unix::fs::symlink(target, to).map_err(failed("create", to))?);
            }
            match from.canonicalize() {
                Ok(real) if real.is_dir() => from = real,
                _ => return Ok(()),
            }
        }
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(CopyError::system("examine", &from, error).into()),
    }
    let filter = |path: &RelPath, _: &Stat| {
        let name = Path::new(OsStr::from_bytes(path.name()));
        if name.extension() == Some(OsStr::new("lock")) { Choice::LeaveOut } else { Choice::Take }
    };
    let options =
        WalkOptions { filter: Some(&filter), watch: making.watch, ..WalkOptions::default() };
    let listing = walk(&from, &options)?;
    let cloned = clone(listing, to, &CloneOptions { walk: options, ..CloneOptions::default() })?;
    let is_file = |obstacle: &Obstacle| !matches!(obstacle.kind, ObstacleKind::Special(_));
    let refused: Vec<Obstacle> = cloned.obstacles.into_iter().filter(is_file).collect();
    if refused.is_empty() {
        Ok(())
    } else {
        Err(MakeError::refused(&from, Obstruction::Unsupported(refused)))
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), CopyError> {
    fs::write(path, bytes).map_err(failed("write", path))
}
