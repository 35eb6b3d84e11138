//! The trash: copies that a person discarded, kept for a while with a record of what they were.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stead_core::id::{RootId, SessionId, SlotName, TaskId, Timestamp};
use stead_core::layout::AbsoluteDir;
use stead_core::step::{self, Moment};
use stead_files::{private_dir, remove_tree_at};

use crate::error::{CopyError, failed};
use crate::flush::{Reached, reached};
use crate::home::Home;
use crate::keep::sync;
use crate::layout::Layout;

/// The record in each entry of the trash, and what it is about beside it.
const RECORD: &str = "record.json";
const KEPT: &str = "kept";

const VERSION: u32 = 1;

/// One entry of the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trashed {
    /// The entry's folder in the trash.
    pub folder: PathBuf,
    /// What it was.
    pub record: TrashRecord,
}

/// What something in the trash was, and when it came there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashRecord {
    /// The form of this file.
    pub version: u32,
    /// The session whose copies these are.
    pub session: SessionId,
    /// The task.
    pub task: TaskId,
    /// The slot; none for the task's whole folder.
    pub slot: Option<SlotName>,
    /// When it was discarded.
    pub at: Timestamp,
    /// What it was copied from.
    pub sources: Vec<AbsoluteDir>,
    /// The roots whose depots its Git directories borrow from.
    pub roots: Vec<RootId>,
}

impl Trashed {
    /// The copy, or the task's folder, as it was.
    pub fn kept(&self) -> PathBuf {
        self.folder.join(KEPT)
    }
}

/// Moves one slot's copy, or with `slot` none the task's whole folder, to the trash: whole, at once
/// and durably, commits and all. None when there is nothing, as when it was removed by hand.
/// Nothing follows a link. Passes the steps `files.create` and `files.trash`.
///
/// # Errors
/// [`CopyError::UnknownSlot`]; [`CopyError::Layout`] when the folder has no readable layout file:
/// what is not recorded as stead's is not moved. One that was cut off may have lost it.
pub fn discard(
    home: &Home,
    session: &SessionId,
    task: TaskId,
    slot: Option<&SlotName>,
    at: Timestamp,
) -> Result<Option<Trashed>, CopyError> {
    let folder = home.task(session, task);
    let missing = || {
        let reason = "it is missing, so the folder is not known to be stead's".to_owned();
        CopyError::Layout { path: folder.clone(), reason }
    };
    let layout = match Layout::load_from(&folder) {
        Ok(None) if !is_there(&folder)? => return Ok(None),
        Ok(None) => Err(missing()),
        Ok(Some(layout)) => Ok(layout),
        Err(error) => Err(error),
    };
    let slots = match (&layout, slot) {
        (Ok(layout), None) => layout.slots.iter().collect(),
        (Ok(layout), Some(name)) => {
            vec![layout.slot(name).ok_or_else(|| CopyError::UnknownSlot {
                slot: name.clone(),
                slots: layout.slots.iter().map(|slot| slot.slot.clone()).collect(),
            })?]
        }
        // That it is stead's is known by the mark, which is older.
        (Err(CopyError::Layout { .. }), _) if reached(&folder)? == Reached::Nothing => Vec::new(),
        (Err(_), _) => return layout.map(|_| None),
    };
    let path = slot.map_or_else(|| folder.clone(), |name| home.copy(session, task, name));
    if !is_there(&path)? {
        return Ok(None);
    }
    let record = TrashRecord {
        version: VERSION,
        session: session.clone(),
        task,
        slot: slot.cloned(),
        at,
        sources: slots.iter().map(|slot| slot.source.clone()).collect(),
        roots: slots.iter().map(|slot| slot.root.clone()).collect(),
    };
    let trashed = Trashed { folder: new_entry(home, &record)?, record };
    if let Err(error) = stead_files::trash(&path, &trashed.folder, KEPT.as_ref()) {
        // An entry about nothing would be counted; the error matters more than what is left of it.
        if matches!(is_there(&trashed.kept()), Ok(false)) {
            let _ = fs::remove_file(trashed.folder.join(RECORD));
            let _ = fs::remove_dir(&trashed.folder);
        }
        return Err(error.into());
    }
    // A session without tasks needs no folder; one that has more keeps it.
    if let (None, Some(session)) = (slot, path.parent()) {
        let _ = fs::remove_dir(session);
    }
    Ok(Some(trashed))
}

/// A new entry with its record, still without what it is about.
fn new_entry(home: &Home, record: &TrashRecord) -> Result<PathBuf, CopyError> {
    private_dir(&home.trash())?;
    let slot = record.slot.as_ref().map_or_else(String::new, |slot| format!("-{slot}"));
    let name = format!("{}-{}{slot}-{}", record.session, record.task, record.at.0);
    let mut number = 1;
    let folder = loop {
        let folder = home.trash().join(format!("{name}-{number}"));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => break folder,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(CopyError::system("create", &folder, error)),
        }
    };
    let path = folder.join(RECORD);
    let text = serde_json::to_vec_pretty(record)
        .map_err(|error| CopyError::Record { path: path.clone(), reason: error.to_string() })?;
    stead_files::create_new(&path, &text)
        .map_err(|error| CopyError::Record { path: path.clone(), reason: error.to_string() })?;
    sync(&home.trash())?;
    Ok(folder)
}

/// What is in the trash, by name. Folders without a record of stead's are not among them.
///
/// # Errors
/// The system's.
pub fn trashed(home: &Home) -> Result<Vec<Trashed>, CopyError> {
    let trash = home.trash();
    let listed = match fs::read_dir(&trash) {
        Ok(listed) => listed,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CopyError::system("list", &trash, error)),
    };
    let mut found = Vec::new();
    for entry in listed {
        let folder = entry.map_err(failed("list", &trash))?.path();
        let Ok(text) = stead_files::read_file(&folder.join(RECORD)) else { continue };
        let Ok(record) = serde_json::from_slice::<TrashRecord>(&text) else { continue };
        if record.version <= VERSION {
            found.push(Trashed { folder, record });
        }
    }
    found.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(found)
}

/// Moves what is in the trash back to where it was. Passes the step `files.trash`.
///
/// # Errors
/// The tree's, when something is there again; [`CopyError::Layout`] when a slot's task has no layout
/// any more: that is to be restored first. Then it stays in the trash.
pub fn restore(home: &Home, trashed: &Trashed) -> Result<PathBuf, CopyError> {
    let record = &trashed.record;
    let place = match &record.slot {
        Some(slot) => home.copy(&record.session, record.task, slot),
        None => home.task(&record.session, record.task),
    };
    let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else {
        return Ok(place);
    };
    if record.slot.is_some() && Layout::load_from(folder)?.is_none() {
        let reason = "it is missing: restore the task first".to_owned();
        return Err(CopyError::Layout { path: folder.to_owned(), reason });
    }
    private_dir(folder)?;
    stead_files::trash(&trashed.kept(), folder, name)?;
    remove_tree_at(&trashed.folder)?;
    Ok(place)
}

/// Removes what came into the trash before `before`, and gives it. Nothing follows a link, and
/// nothing without a record is touched. Passes the step `copies.empty`.
///
/// # Errors
/// The first thing that could not be removed; its record stays until all of it is gone.
pub fn empty_trash(home: &Home, before: Timestamp) -> Result<Vec<Trashed>, CopyError> {
    let mut removed = Vec::new();
    for entry in trashed(home)? {
        if entry.record.at < before {
            step::pass("copies.empty", Moment::Before);
            remove_tree_at(&entry.kept())?;
            remove_tree_at(&entry.folder)?;
            step::pass("copies.empty", Moment::After);
            removed.push(entry);
        }
    }
    Ok(removed)
}

fn is_there(path: &Path) -> Result<bool, CopyError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(CopyError::system("examine", path, error)),
    }
}
