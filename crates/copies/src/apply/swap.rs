//! Exchanging a target and what is beside it, also where one rename cannot.

use rustix::io::Errno;
use stead_files::{RelPath, RootFolder, Staged, Target, TreeError};

use crate::journal::Step;

/// A target and the place beside it, as a journal has them.
///
/// # Errors
/// The path may not be written: the journal was not made by an apply.
pub(crate) fn staged(root: &RootFolder, step: &Step) -> Result<Staged, TreeError> {
    let target =
        Target::new(step.path.clone()).map_err(|_| TreeError::NotBeneath(root.full(&step.path)))?;
    Ok(Staged::at(target, step.beside.clone()))
}

/// Where a replaced file is for a moment, when two names cannot be exchanged.
pub(crate) fn between(staged: &Staged) -> Option<Staged> {
    let folder = staged.beside().parent()?;
    let name = [staged.beside().name(), b"-old"].concat();
    Some(Staged::at(staged.target().clone(), folder.join(name).ok()?))
}

/// From `between` to the place beside the target.
pub(crate) fn back_beside(staged: &Staged, between: &Staged) -> Option<Staged> {
    let target = Target::new(staged.beside().clone()).ok()?;
    Some(Staged::at(target, between.beside().clone()))
}

/// Exchanges the two: in one rename, or in three where `exchanges` is false or the file system
/// turns out not to know it.
pub(crate) fn swap(
    root: &RootFolder,
    staged: &Staged,
    exchanges: &mut bool,
) -> Result<(), TreeError> {
    if *exchanges {
        match root.exchange(staged) {
            Err(error)
                if matches!(
                    error.errno(),
                    Some(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
                ) =>
            {
                *exchanges = false;
            }
            done => return done,
        }
    }
    let odd = || TreeError::NotBeneath(root.full(staged.beside()));
    let old = between(staged).ok_or_else(odd)?;
    let back = back_beside(staged, &old).ok_or_else(odd)?;
    root.set_aside(&old)?;
    root.place_new(staged)?;
    root.place_new(&back)
}

/// Whether the folder above a path is not there, or something stands in its place: then the path
/// itself is not what an apply left.
pub(crate) fn is_astray(error: &TreeError) -> bool {
    matches!(error, TreeError::NotBeneath(_)) || error.errno() == Some(Errno::NOENT)
}

/// Something else is in a folder that was to go.
pub(crate) fn is_in_use(error: &TreeError) -> bool {
    matches!(error.errno(), Some(Errno::NOTEMPTY | Errno::EXIST))
}

/// Whether anything is at a path.
pub(crate) fn is_there(root: &RootFolder, path: &RelPath) -> Result<bool, TreeError> {
    match root.look(path) {
        Ok(found) => Ok(found.is_some()),
        Err(error) if is_astray(&error) => Ok(false),
        Err(error) => Err(error),
    }
}
