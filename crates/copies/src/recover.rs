//! Finishing an apply that was cut short: back to the old tree, or on to the new one.

use std::path::PathBuf;

use stead_core::id::RootId;
use stead_core::step::{self, Moment};
use stead_files::{Holder, Lock, LockError, RootFolder, TreeError, holder};

use crate::Home;
use crate::apply::{ApplyRefused, IndexLock, Reserve, Way, open_admitted, rescue_folder, settle};
use crate::journal::{Finished, Journal, JournalError, Rescue, lock_of};

/// What the log says of the apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It has the outcome *applied*: the new tree is the one that people were told of.
    Applied,
    /// It has no outcome: nothing was promised, so the old tree is.
    Nothing,
}

/// Why a journal was not finished. It is still there and can be tried again.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The apply is still being written, or somebody else finishes it.
    #[error("the root is being written{}", by(.0.as_ref()))]
    Busy(Option<Holder>),
    /// The folder is not the one that the apply wrote.
    #[error(transparent)]
    Destination(ApplyRefused),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The root's lock could not be tried.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The file system refused to lead a path back or on. Nothing was thrown away.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

fn by(holder: Option<&Holder>) -> String {
    holder.map(|holder| format!(" by {holder}")).unwrap_or_default()
}

/// Finishes the journal of a root, with or without the engine; none when there is no journal.
///
/// The root's lock is tried, never waited for. How it was finished is written into the journal, and
/// stays there until the engine has recorded it and calls [`forget`]; a journal that was finished
/// before is not finished again.
///
/// # Errors
/// [`RecoverError`].
pub fn recover(
    home: &Home,
    root: &RootId,
    recorded: Recorded,
) -> Result<Option<Finished>, RecoverError> {
    let path = lock_of(home, root);
    if !crate::journal::path_of(home, root).exists() {
        return Ok(None);
    }
    let Some(_lock) = Lock::try_exclusive(&path, "finish an apply")? else {
        return Err(RecoverError::Busy(holder(&path)?));
    };
    let Some(mut journal) = Journal::read(home, root)? else { return Ok(None) };
    // What a killed apply held of the disk is what finishing it may need.
    let _ = Reserve::release(home, root);
    if let Some(finished) = &journal.header.finished {
        return Ok(Some(finished.clone()));
    }
    let destination = open_admitted(journal.header.source.as_path(), &journal.header.identity)
        .map_err(RecoverError::Destination)?;
    let rescue = lead(home, &destination, &journal, recorded)?;
    let finished = match recorded {
        _ if !(rescue.paths.is_empty() && rescue.folder.is_none()) => Finished::Neither { rescue },
        Recorded::Applied => Finished::Forward,
        Recorded::Nothing => Finished::Back,
    };
    journal.finish(home, finished.clone())?;
    Ok(Some(finished))
}

fn lead(
    home: &Home,
    root: &RootFolder,
    journal: &Journal,
    recorded: Recorded,
) -> Result<Rescue, RecoverError> {
    let way = match recorded {
        Recorded::Applied => Way::Forward,
        Recorded::Nothing => Way::Back,
    };
    let folder = rescue_folder(home, &journal.header);
    let settled = settle(root, &journal.steps, way, &folder, true)?;
    if let Some(failed) = settled.failed {
        return Err(failed.into());
    }
    if let Some(lock) = IndexLock::of(&journal.header) {
        lock.release()?;
    }
    step::pass("copies.sync", Moment::Before);
    root.sync()?;
    step::pass("copies.sync", Moment::After);
    Ok(settled.rescue)
}

/// Removes a finished journal, once its outcome is recorded; one that left paths neither old nor new
/// is moved to [`kept_journal`]. One that is not finished stays.
///
/// # Errors
/// [`RecoverError`].
pub fn forget(home: &Home, root: &RootId) -> Result<(), RecoverError> {
    let path = lock_of(home, root);
    let Some(_lock) = Lock::try_exclusive(&path, "forget an apply")? else {
        return Err(RecoverError::Busy(holder(&path)?));
    };
    let Some(Journal { header, .. }) = Journal::read(home, root)? else { return Ok(()) };
    match &header.finished {
        None => Ok(()),
        Some(Finished::Neither { .. }) => Ok(Journal::set_aside(home, &header).map(|_| ())?),
        Some(Finished::Back | Finished::Forward) => Ok(Journal::remove(home, root)?),
    }
}

/// Gives up a journal that cannot be finished because its root is gone or is another folder, for a
/// person who gave its copy up: moves it to [`kept_journal`], and gives that place. One that can be
/// finished stays, and so does one that is finished.
///
/// # Errors
/// [`RecoverError`].
pub fn give_up(home: &Home, root: &RootId) -> Result<Option<PathBuf>, RecoverError> {
    let path = lock_of(home, root);
    let Some(_lock) = Lock::try_exclusive(&path, "give an apply up")? else {
        return Err(RecoverError::Busy(holder(&path)?));
    };
    let Some(Journal { header, .. }) = Journal::read(home, root)? else { return Ok(None) };
    if header.finished.is_some() {
        return Ok(None);
    }
    match open_admitted(header.source.as_path(), &header.identity) {
        Err(ApplyRefused::DestinationChanged { .. }) => {
            let _ = Reserve::release(home, root);
            Ok(Some(Journal::set_aside(home, &header)?))
        }
        Err(other) => Err(RecoverError::Destination(other)),
        Ok(_) => Ok(None),
    }
}
