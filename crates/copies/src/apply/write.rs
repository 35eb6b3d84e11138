//! Writing a checked apply, in an order that can be led back or on from anywhere (2.8).

use std::path::PathBuf;

use rustix::io::Errno;
use stead_core::id::Digest;
use stead_core::step::{self, Moment};
use stead_files::{AtomicError, Lock, RelPath, RootFolder, Stat, Time, TreeError};
use stead_git::GitError;

use super::check::Apply;
use super::index_lock::IndexLock;
use super::look::{is_untouched, observe};
use super::plan::Planned;
use super::room::Reserve;
use super::settle::{Way, settle};
use super::stage::stage;
use super::swap::{is_astray, is_in_use, swap};
use crate::Home;
use crate::changes::{OPEN, State};
use crate::journal::{Header, Journal, JournalError, Rescue};

/// Why an apply that was begun was not ended.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The person changed affected paths meanwhile.
    #[error("{} changed while the apply was written", list(.0))]
    Edited(Vec<RelPath>),
    /// Somebody else writes the index, longer than an editor does.
    #[error("{} exists: somebody else writes the index", .0.display())]
    IndexLocked(PathBuf),
    /// `index.lock` was removed or replaced while stead held it.
    #[error("{} was taken away while the apply was written", .0.display())]
    IndexLockLost(PathBuf),
    /// The index, what is checked out or the folder itself changed between check and write.
    #[error("{0} changed since it was checked")]
    DestinationChanged(&'static str),
    /// The caller took it back, because another root of the same apply was not written.
    #[error("another root was not written")]
    Withdrawn,
    /// The contents of a file are missing or damaged in the home.
    #[error("the contents {0} are missing or damaged in the home")]
    Missing(Digest),
    /// The destination's file system refused.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The index could not be read.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The journal could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Cause {
    /// Whether it is the place's fault and is not to be offered again (case 73): judged by the
    /// system's error number.
    pub fn is_place(&self) -> bool {
        let errno = match self {
            Self::Tree(error) => error.errno(),
            Self::Journal(JournalError::Write(AtomicError::System { source, .. })) => {
                Errno::from_io_error(source)
            }
            _ => None,
        };
        let place = [Errno::ROFS, Errno::ACCESS, Errno::PERM, Errno::NOSPC, Errno::DQUOT];
        errno.is_some_and(|errno| place.contains(&errno))
    }

    /// The paths that somebody changed meanwhile, all of them.
    pub fn edited(&self) -> &[RelPath] {
        match self {
            Self::Edited(paths) => paths,
            _ => &[],
        }
    }
}

fn list(paths: &[RelPath]) -> String {
    let mut text: Vec<String> = paths.iter().take(5).map(ToString::to_string).collect();
    if let Some(more @ 1..) = paths.len().checked_sub(5) {
        text.push(format!("and {more} more"));
    }
    text.join(", ")
}

/// What writing came to.
#[derive(Debug)]
pub enum Outcome {
    /// Everything is written, verified and on the disk. The caller appends the outcome, then calls
    /// [`Written::clear`]; until then a crash leads back.
    Written(Written),
    /// Everything is as it was before, but for what the person changed meanwhile.
    RolledBack {
        /// Why.
        cause: Cause,
        /// What the person changed, which stayed.
        rescue: Rescue,
    },
    /// Going back failed. The journal and what waits beside the paths are kept.
    RecoveryNeeded {
        /// The journal.
        journal: PathBuf,
        /// Why it was to go back.
        cause: Cause,
        /// Why that failed.
        failed: Cause,
    },
}

/// An apply that is written and whose outcome is not recorded yet. It holds the root's lock and
/// `index.lock`.
#[derive(Debug)]
#[must_use = "its outcome is to be recorded, then it is to be cleared"]
pub struct Written {
    apply: Box<Apply>,
    /// None when there was nothing to write.
    journal: Option<Journal>,
}

/// What is left of an apply after it was cleared.
#[derive(Debug)]
pub struct Cleared {
    /// The root's lock, released when it is dropped.
    pub lock: Lock,
    /// What somebody wrote into a replaced file after it was replaced: kept in the home.
    pub rescue: Rescue,
}

impl Apply {
    /// Writes. Nothing at all happens when every path is as it is to be.
    pub fn write(mut self) -> Outcome {
        if self.plan.planned.is_empty() {
            return Outcome::Written(Written { apply: Box::new(self), journal: None });
        }
        let steps = self.plan.planned.iter().map(|planned| planned.step.clone()).collect();
        let journal = Journal::new(self.header.clone(), steps);
        // Whatever becomes of the disk while it is written, how it ended can be recorded.
        let reserve = match Reserve::hold(&self.home, &journal.header.root) {
            Ok(reserve) => reserve,
            Err(error) => {
                let (cause, rescue) = (error.into(), Rescue::default());
                return Outcome::RolledBack { cause, rescue };
            }
        };
        if let Err(error) = journal.write(&self.home) {
            // It may be there nevertheless, and then names things that are not.
            let _ = Journal::remove(&self.home, &journal.header.root);
            return Outcome::RolledBack { cause: error.into(), rescue: Rescue::default() };
        }
        let brought = self.bring();
        drop(reserve);
        match brought {
            Ok(()) => {
                let (apply, journal) = (Box::new(self), Some(journal));
                Outcome::Written(Written { apply, journal })
            }
            Err(cause) => self.back(&journal, cause),
        }
    }

    fn bring(&mut self) -> Result<(), Cause> {
        let lock = IndexLock::of(&self.header);
        if let Some(lock) = &lock {
            lock.prepare()?;
        }
        let root = &self.destination.root;
        let marks = stage(root, &self.home.blobs(), &self.plan.planned)?;
        sync(root)?;
        if let Some(lock) = &lock
            && !lock.take()?
        {
            return Err(Cause::IndexLocked(lock.path().to_owned()));
        }
        self.verify()?;
        hold(lock.as_ref())?;
        let began = Time::now();
        let mut exchanges = self.exchanges;
        let written = self.rename(&mut exchanges);
        self.exchanges = exchanges;
        written?;
        self.confirm(&marks, began)?;
        hold(lock.as_ref())?;
        sync(&self.destination.root)?;
        Ok(())
    }

    /// Every rename; what comes out must be what was to be replaced.
    fn rename(&self, exchanges: &mut bool) -> Result<(), Cause> {
        let planned = &self.plan.planned;
        for one in planned {
            self.open_up(one).map_err(|error| astray(one, error))?;
        }
        for one in planned.iter().rev() {
            self.take_away(one).map_err(|error| astray(one, error))?;
        }
        for one in planned {
            self.put(one, exchanges).map_err(|error| astray(one, error))?;
        }
        for one in planned.iter().rev() {
            self.close(one)?;
        }
        Ok(())
    }

    /// Lets itself into a closed folder whose own change is part of the apply. Whatever happens
    /// then, its permission bits are set last, by [`Apply::close`] or by recovery.
    fn open_up(&self, one: &Planned) -> Result<(), Cause> {
        if let Some(state) = one.step.old.as_ref().filter(|old| old.is_closed())
            && let Some(mode) = state.mode()
        {
            step::pass("copies.mode", Moment::Before);
            self.destination.root.set_mode(one.staged.target(), mode | OPEN)?;
            step::pass("copies.mode", Moment::After);
        }
        Ok(())
    }

    fn take_away(&self, one: &Planned) -> Result<(), Cause> {
        let (root, step) = (&self.destination.root, &one.step);
        let leaf = |state: &Option<State>| state.as_ref().is_some_and(State::is_leaf);
        let folder = |state: &Option<State>| state.as_ref().is_some_and(State::is_folder);
        if leaf(&step.old) && !leaf(&step.new) {
            root.set_aside(&one.staged)?;
            self.expect_old(one)?;
        } else if folder(&step.old) && !folder(&step.new) {
            root.remove_folder(one.staged.target())?;
        }
        Ok(())
    }

    fn put(&self, one: &Planned, exchanges: &mut bool) -> Result<(), Cause> {
        let (root, step) = (&self.destination.root, &one.step);
        match (&step.old, &step.new) {
            (Some(State::Folder { .. }), Some(State::Folder { .. })) | (_, None) => {}
            (_, Some(State::Folder { mode })) => {
                root.make_folder(one.staged.target(), mode | OPEN)?;
            }
            (Some(old), Some(_)) if old.is_leaf() && step.is_staged() => {
                swap(root, &one.staged, exchanges)?;
                self.expect_old(one)?;
            }
            (Some(old), Some(new)) if old.is_leaf() => {
                if let Some(mode) = new.mode() {
                    step::pass("copies.mode", Moment::Before);
                    root.set_mode(one.staged.target(), mode)?;
                    step::pass("copies.mode", Moment::After);
                }
            }
            (_, Some(_)) => root.place_new(&one.staged)?,
        }
        Ok(())
    }

    /// What waits beside a path now is what the base had there.
    fn expect_old(&self, one: &Planned) -> Result<(), Cause> {
        let found = observe(&self.destination.root, &one.step.beside)?;
        if found.map(|here| here.state) == one.step.old {
            Ok(())
        } else {
            Err(Cause::Edited(vec![one.step.path.clone()]))
        }
    }

    /// The permission bits of folders, once what is in them is done.
    fn close(&self, one: &Planned) -> Result<(), Cause> {
        let root = &self.destination.root;
        let Some(State::Folder { mode }) = &one.step.new else { return Ok(()) };
        if !one.step.old.as_ref().is_some_and(State::is_folder) && mode & OPEN == OPEN {
            return Ok(());
        }
        step::pass("copies.mode", Moment::Before);
        root.set_mode(one.staged.target(), *mode)?;
        step::pass("copies.mode", Moment::After);
        Ok(())
    }

    /// Leads back to the old tree.
    fn back(&self, journal: &Journal, cause: Cause) -> Outcome {
        let root = &self.destination.root;
        let rescue = rescue_folder(&self.home, &journal.header);
        let undone = settle(root, &journal.steps, Way::Back, &rescue, self.exchanges)
            .map_err(Cause::from)
            .and_then(|settled| match settled.failed {
                None => Ok(settled.rescue),
                Some(failed) => Err(failed.into()),
            })
            .and_then(|rescue| {
                IndexLock::of(&journal.header).map_or(Ok(()), |lock| lock.release())?;
                sync(root)?;
                Journal::remove(&self.home, &journal.header.root)?;
                Ok(rescue)
            });
        match undone {
            Ok(rescue) => Outcome::RolledBack { cause, rescue },
            Err(failed) => {
                let journal = crate::journal::path_of(&self.home, &journal.header.root);
                Outcome::RecoveryNeeded { journal, cause, failed }
            }
        }
    }
}

impl Written {
    /// The paths that were written, in their order.
    pub fn paths(&self) -> impl Iterator<Item = &RelPath> {
        self.apply.paths()
    }

    /// Folders that the task removed and that stay, because the person has something else in them.
    pub fn kept(&self) -> &[RelPath] {
        self.apply.kept()
    }

    /// Takes it back, as long as its outcome is not recorded: for several roots of which all are to
    /// be applied or none. Never [`Outcome::Written`].
    #[must_use]
    pub fn undo(self) -> Outcome {
        let cause = Cause::Withdrawn;
        match &self.journal {
            Some(journal) => self.apply.back(journal, cause),
            None => Outcome::RolledBack { cause, rescue: Rescue::default() },
        }
    }

    /// Removes what the apply still holds: `index.lock`, the old files, the journal. To be called
    /// when the outcome is recorded.
    ///
    /// # Errors
    /// Something could not be removed. The journal is still there, and [`recover`](crate::recover)
    /// goes on.
    pub fn clear(self) -> Result<Cleared, Cause> {
        let Self { apply, journal } = self;
        let Some(journal) = journal else {
            return Ok(Cleared { lock: apply.lock, rescue: Rescue::default() });
        };
        let rescue = rescue_folder(&apply.home, &journal.header);
        if let Some(lock) = IndexLock::of(&journal.header) {
            lock.release()?;
        }
        let kept = clear_beside(&apply, &rescue)?;
        // The journal must not be gone while an old file that it names comes back with the power.
        // One file system forgets names in the order in which they were removed; and that the
        // journal itself may come back does no harm, because its outcome is recorded.
        let device = Stat::of(&apply.home.applies()).map(|stat| stat.device).ok();
        if device != Some(apply.destination.root.stat().device) {
            sync(&apply.destination.root)?;
        }
        Journal::unlink(&apply.home, &journal.header.root)?;
        Ok(Cleared { lock: apply.lock, rescue: kept })
    }
}

/// Removes the old files and links; one that somebody wrote into since is kept.
fn clear_beside(apply: &Apply, rescue: &std::path::Path) -> Result<Rescue, Cause> {
    let root = &apply.destination.root;
    let mut odd = Vec::new();
    for one in &apply.plan.planned {
        let Some(seen) = one.seen.filter(|_| one.step.changes_name()) else { continue };
        if !one.step.old.as_ref().is_some_and(State::is_leaf) {
            continue;
        }
        match root.look(&one.step.beside) {
            Ok(Some(now)) if is_untouched(&seen, &now) => {
                step::pass("copies.unstage", Moment::Before);
                root.unstage(&one.staged)?;
                step::pass("copies.unstage", Moment::After);
            }
            _ => odd.push(one.step.clone()),
        }
    }
    let settled = settle(root, &odd, Way::Forward, rescue, apply.exchanges)?;
    settled.failed.map_or(Ok(settled.rescue), |failed| Err(failed.into()))
}

/// Where files are kept that are the person's and have no path.
pub(crate) fn rescue_folder(home: &Home, header: &Header) -> PathBuf {
    home.rescued().join(header.apply.as_str())
}

fn hold(lock: Option<&IndexLock>) -> Result<(), Cause> {
    match lock {
        Some(lock) if !lock.is_held()? => Err(Cause::IndexLockLost(lock.path().to_owned())),
        _ => Ok(()),
    }
}

fn sync(root: &RootFolder) -> Result<(), TreeError> {
    step::pass("copies.sync", Moment::Before);
    root.sync()?;
    step::pass("copies.sync", Moment::After);
    Ok(())
}

/// What the system says when a path is no longer as it was.
fn astray(one: &Planned, cause: Cause) -> Cause {
    match cause {
        Cause::Tree(error)
            if is_astray(&error) || is_in_use(&error) || matches!(error, TreeError::Exists(_)) =>
        {
            Cause::Edited(vec![one.step.path.clone()])
        }
        other => other,
    }
}
