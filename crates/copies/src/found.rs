//! What copies left in a home: for doctor, for the collection of garbage, and for depots that
//! nothing names any more.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use stead_core::id::{Digest, RootId, SessionId, SlotName, TaskId};
use stead_core::step::{self, Moment};
use stead_files::{Lock, Manifest, Node, WalkOptions, Watch, remove_tree_at, walk};

use crate::base::Base;
use crate::depot::Depot;
use crate::error::{CopyError, failed};
use crate::flush::{Reached, UNFLUSHED, reached};
use crate::home::Home;
use crate::journal::{lock_of, path_of};
use crate::layout::{LAYOUT_FILE, Layout};
use crate::staging::{StagedFolder, staged};
use crate::trash::{Trashed, trashed};

/// What is in a home.
#[derive(Debug)]
pub struct Found {
    /// Tasks with copies.
    pub tasks: Vec<FoundTask>,
    /// Depots.
    pub depots: Vec<FoundDepot>,
    /// What is being made, or was left behind half made.
    pub staging: Vec<StagedFolder>,
    /// The trash, with the bytes that each entry takes on the disk.
    pub trash: Vec<(Trashed, u64)>,
}

/// A task's folder.
#[derive(Debug)]
pub struct FoundTask {
    /// Its session.
    pub session: SessionId,
    /// Its number.
    pub task: TaskId,
    /// Its layout; an error where the file is missing or cannot be read as one.
    pub layout: Result<Layout, CopyError>,
    /// Slots whose copies are not there.
    pub missing: Vec<SlotName>,
    /// Whether the machine stopped before the disk had them.
    pub is_cut_off: bool,
}

/// A root's depot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDepot {
    /// The root.
    pub root: RootId,
    /// Bytes on the disk; many may be the source's own, by hard links.
    pub bytes: u64,
    /// Layouts and entries of the trash that name it.
    pub named_by: usize,
}

/// Looks through the home. Sizes are taken of depots and the trash, not of copies.
///
/// # Errors
/// The system's. What cannot be read as what it should be is no error but a finding.
pub fn found(home: &Home) -> Result<Found, CopyError> {
    let tasks = tasks(home)?;
    let named = named(home, &tasks)?;
    let mut depots = Vec::new();
    for name in names(&home.depots())? {
        let Ok(root) = RootId::parse(&name) else { continue };
        let bytes = size(&home.depot(&root))?;
        let named_by = named.get(&root).copied().unwrap_or_default();
        depots.push(FoundDepot { root, bytes, named_by });
    }
    let mut trash = Vec::new();
    for entry in trashed(home)? {
        let bytes = size(&entry.folder)?;
        trash.push((entry, bytes));
    }
    Ok(Found { tasks, depots, staging: staged(home)?, trash })
}

/// Every task with copies.
///
/// # Errors
/// The system's.
pub fn tasks(home: &Home) -> Result<Vec<FoundTask>, CopyError> {
    let mut found = Vec::new();
    for session in names(&home.copies())? {
        let Ok(session) = SessionId::parse(&session) else { continue };
        for task in names(&home.copies().join(session.as_str()))? {
            let Ok(task) = task.parse().map(TaskId) else { continue };
            let folder = home.task(&session, task);
            let layout = Layout::load_from(&folder).and_then(|layout| {
                layout.ok_or_else(|| CopyError::Layout {
                    path: folder.clone(),
                    reason: "it is missing".to_owned(),
                })
            });
            let slots = layout.iter().flat_map(|layout| &layout.slots);
            let missing = slots.filter(|slot| !folder.join(slot.slot.as_str()).is_dir());
            let missing = missing.map(|slot| slot.slot.clone()).collect();
            let is_cut_off = reached(&folder)? == Reached::Nothing;
            found.push(FoundTask { session: session.clone(), task, layout, missing, is_cut_off });
        }
    }
    Ok(found)
}

/// How often each root is named by a layout or the trash.
fn named(home: &Home, tasks: &[FoundTask]) -> Result<BTreeMap<RootId, usize>, CopyError> {
    let mut named: BTreeMap<RootId, usize> = BTreeMap::new();
    let layouts = tasks.iter().filter_map(|task| task.layout.as_ref().ok());
    let of_copies = layouts.flat_map(|layout| layout.slots.iter().map(|slot| slot.root.clone()));
    let of_trash = trashed(home)?.into_iter().flat_map(|entry| entry.record.roots);
    for root in of_copies.chain(of_trash) {
        *named.entry(root).or_default() += 1;
    }
    Ok(named)
}

/// Removes what is left of a task's folder when all its copies are gone for good: none is there and
/// none is in the trash; whether it did. A folder that holds anything but files of stead's stays.
///
/// # Errors
/// As [`withdraw`](crate::withdraw)'s.
pub fn forget_layout(home: &Home, session: &SessionId, task: TaskId) -> Result<bool, CopyError> {
    let folder = home.task(session, task);
    let holds = match fs::read_dir(&folder) {
        Ok(listed) => listed.map(|entry| entry.map(|entry| entry.file_name())),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(CopyError::system("list", &folder, error)),
    };
    let holds = holds.collect::<Result<Vec<_>, _>>().map_err(failed("list", &folder))?;
    let is_kept = trashed(home)?
        .iter()
        .any(|entry| entry.record.session == *session && entry.record.task == task);
    let is_empty = holds.iter().all(|name| name == LAYOUT_FILE || name == UNFLUSHED);
    if is_kept || !is_empty {
        return Ok(false);
    }
    crate::withdraw(home, session, task)
}

/// Removes a root's depot if nothing needs it; whether it did. `reviewed` are the roots that an
/// open review or a base in the log names.
///
/// Copies without a readable layout, and copies that are being made or were left half made, may be
/// of any root: while there are any, no depot goes. So do the files of an apply. Passes the step
/// `copies.forget`.
///
/// # Errors
/// The system's.
pub fn forget_depot(
    home: &Home,
    root: &RootId,
    reviewed: &BTreeSet<RootId>,
) -> Result<bool, CopyError> {
    let depot = home.depot(root);
    if !depot.is_dir() {
        return Ok(false);
    }
    let _lock = Depot::of(home, root).lock("forget the depot", Watch::default())?;
    let tasks = tasks(home)?;
    let is_unknown = tasks.iter().any(|task| task.layout.is_err());
    let is_named = named(home, &tasks)?.contains_key(root) || reviewed.contains(root);
    if is_unknown || is_named || is_applied(home, root)? || !staged(home)?.is_empty() {
        return Ok(false);
    }
    step::pass("copies.forget", Moment::Before);
    remove_tree_at(&depot)?;
    step::pass("copies.forget", Moment::After);
    Ok(true)
}

/// Whether an apply to the root is under way or was cut short. The file of its lock alone says
/// nothing: it stays for ever.
fn is_applied(home: &Home, root: &RootId) -> Result<bool, CopyError> {
    let lock = lock_of(home, root);
    if path_of(home, root).symlink_metadata().is_ok() {
        return Ok(true);
    }
    Ok(lock.exists() && Lock::try_exclusive(&lock, "forget the depot")?.is_none())
}

/// Blobs that must not be collected: the bases of all layouts, also of those in the trash, what
/// `named` names (bases and snapshots in the log), and the contents that all these refer to.
///
/// # Errors
/// A base or manifest that is gone or damaged is passed over, so that one loss does not keep
/// everything else from being collected; only the system's errors are errors.
pub fn live_blobs(
    home: &Home,
    named: impl IntoIterator<Item = Digest>,
) -> Result<BTreeSet<Digest>, CopyError> {
    let mut live = BTreeSet::new();
    let layouts = tasks(home)?.into_iter().filter_map(|task| task.layout.ok());
    let kept = trashed(home)?
        .into_iter()
        .filter_map(|entry| Layout::load_from(&entry.kept()).ok().flatten());
    let bases = layouts.chain(kept).flat_map(|layout| layout.slots.into_iter().map(|s| s.base));
    for digest in bases.chain(named).collect::<BTreeSet<_>>() {
        live.insert(digest);
        let Ok(Some(bytes)) = home.blobs().get(&digest) else { continue };
        let manifest = Base::decode(&bytes).map(|base| base.manifest).ok();
        let Some(manifest) = manifest.or_else(|| Manifest::decode(&bytes).ok()) else { continue };
        live.extend(manifest.entries().iter().filter_map(|entry| match &entry.node {
            Node::File { digest, .. } => *digest,
            _ => None,
        }));
    }
    Ok(live)
}

fn size(folder: &Path) -> Result<u64, CopyError> {
    Ok(walk(folder, &WalkOptions::default())?.totals().stored)
}

/// The names in a folder that are text, in order; none where there is no folder.
fn names(folder: &Path) -> Result<Vec<String>, CopyError> {
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CopyError::system("list", folder, error)),
    };
    let mut found = Vec::new();
    for entry in listed {
        let entry: PathBuf = entry.map_err(failed("list", folder))?.path();
        found.extend(entry.file_name().and_then(|name| name.to_str()).map(ToOwned::to_owned));
    }
    found.sort();
    Ok(found)
}
