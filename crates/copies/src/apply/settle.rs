//! Leading a tree that an apply left anywhere between the old and the new to one of the two.
//!
//! Every path is looked at and moved on by its own; what is neither old nor new is the person's and
//! stays. Doing it again changes nothing more, so it may be cut short too.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use stead_core::layout::AbsoluteDir;
use stead_core::step::{self, Moment};
use stead_files::{Kind, RelPath, RootFolder, Staged, TreeError};

use super::look::observe;
use super::swap::{back_beside, between, is_astray, is_in_use, is_there, staged, swap};
use crate::changes::{OPEN, State};
use crate::journal::{Rescue, Step};

/// Which of the two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The old one.
    Back,
    /// The new one.
    Forward,
}

/// One path on its way from one state to the other.
struct Move<'a> {
    step: &'a Step,
    from: Option<&'a State>,
    to: Option<&'a State>,
    staged: Staged,
}

impl Move<'_> {
    fn is_leaf(state: Option<&State>) -> bool {
        state.is_some_and(State::is_leaf)
    }

    fn is_folder(state: Option<&State>) -> bool {
        state.is_some_and(State::is_folder)
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Settled {
    /// What is the person's and stayed; empty when the tree is wholly the one asked for.
    pub(crate) rescue: Rescue,
    /// The first thing that the system refused. Then nothing was tidied up, and it can be tried
    /// again.
    pub(crate) failed: Option<TreeError>,
}

struct Settler<'a> {
    root: &'a RootFolder,
    way: Way,
    exchanges: bool,
    rescue: &'a Path,
    rescued: bool,
    left: BTreeSet<RelPath>,
    failed: Option<TreeError>,
}

/// Leads the tree `way`. What stead had beside a path that is the person's goes to the folder
/// `rescue`. Nothing is synced.
pub(crate) fn settle(
    root: &RootFolder,
    steps: &[Step],
    way: Way,
    rescue: &Path,
    exchanges: bool,
) -> Result<Settled, TreeError> {
    let mut moves = Vec::with_capacity(steps.len());
    for step in steps {
        let (from, to) = match way {
            Way::Forward => (step.old.as_ref(), step.new.as_ref()),
            Way::Back => (step.new.as_ref(), step.old.as_ref()),
        };
        moves.push(Move { step, from, to, staged: staged(root, step)? });
    }
    let mut settler = Settler {
        root,
        way,
        exchanges,
        rescue,
        rescued: false,
        left: BTreeSet::new(),
        failed: None,
    };
    settler.each(moves.iter(), Settler::open_up);
    settler.each(moves.iter(), Settler::rejoin);
    settler.each(moves.iter().rev(), Settler::take_away);
    settler.each(moves.iter(), Settler::bring);
    if settler.failed.is_none() {
        settler.each(moves.iter(), Settler::tidy);
    }
    // Last, because nothing can be tidied up in a folder that is closed again.
    settler.each(moves.iter().rev(), Settler::close);
    let folder = if settler.rescued { AbsoluteDir::new(rescue).ok() } else { None };
    let rescue = Rescue { paths: settler.left.into_iter().collect(), folder };
    Ok(Settled { rescue, failed: settler.failed })
}

impl Settler<'_> {
    /// Does one thing with every path; `false` says that the path is the person's.
    fn each<'m>(
        &mut self,
        moves: impl Iterator<Item = &'m Move<'m>>,
        act: impl Fn(&mut Self, &Move<'_>) -> Result<bool, TreeError>,
    ) {
        for one in moves {
            match act(self, one) {
                Ok(true) => {}
                Err(error) if !is_astray(&error) => {
                    self.failed.get_or_insert(error);
                }
                Ok(false) | Err(_) => {
                    self.left.insert(one.step.path.clone());
                }
            }
        }
    }

    fn here(&self, path: &RelPath) -> Result<Option<State>, TreeError> {
        match observe(self.root, path) {
            Ok(here) => Ok(here.map(|here| here.state)),
            Err(error) if is_astray(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lets itself into a folder that only the apply, or the person before it, closed.
    fn open_up(&mut self, one: &Move<'_>) -> Result<bool, TreeError> {
        let modes = [one.from, one.to]
            .map(|state| state.filter(|state| state.is_folder()).and_then(State::mode));
        let stat = match self.root.look(&one.step.path) {
            Ok(Some(stat)) => stat,
            Ok(None) => return Ok(true),
            Err(error) if is_astray(&error) => return Ok(true),
            Err(error) => return Err(error),
        };
        let closed = stat.kind == Kind::Folder && stat.mode & OPEN != OPEN;
        if closed && modes.contains(&Some(stat.mode)) {
            self.root.set_mode(one.staged.target(), stat.mode | OPEN)?;
        }
        Ok(true)
    }

    /// Ends an exchange that was made of three renames.
    fn rejoin(&mut self, one: &Move<'_>) -> Result<bool, TreeError> {
        if !(Move::is_leaf(one.from) && Move::is_leaf(one.to)) {
            return Ok(true);
        }
        let Some(old) = between(&one.staged) else { return Ok(true) };
        if !is_there(self.root, old.beside())? {
            return Ok(true);
        }
        if !is_there(self.root, &one.step.path)? {
            self.root.place_new(&old)?;
        } else if is_there(self.root, &one.step.beside)? {
            self.keep(&one.step.path, &old)?;
            return Ok(false);
        } else if let Some(back) = back_beside(&one.staged, &old) {
            self.root.place_new(&back)?;
        }
        Ok(true)
    }

    /// Files and links that are to go, and folders.
    fn take_away(&mut self, one: &Move<'_>) -> Result<bool, TreeError> {
        if Move::is_leaf(one.to) && !Move::is_folder(one.from) || one.from.is_none() {
            return Ok(true);
        }
        if Move::is_folder(one.from) && Move::is_folder(one.to) {
            return Ok(true);
        }
        let here = self.here(&one.step.path)?;
        let here = here.as_ref();
        if here.is_none() || here == one.to {
            return Ok(true);
        }
        if Move::is_folder(one.from) {
            return match here {
                Some(State::Folder { .. }) => match self.root.remove_folder(one.staged.target()) {
                    Ok(()) => Ok(true),
                    Err(error) if is_in_use(&error) => self.is_later(one),
                    Err(error) => Err(error),
                },
                _ => self.is_later(one),
            };
        }
        if Move::is_folder(one.to) && Move::is_folder(here) {
            return Ok(true);
        }
        if here != one.from {
            return self.is_later(one);
        }
        match self.root.set_aside(&one.staged) {
            Ok(()) => {}
            Err(TreeError::Exists(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
        if self.here(&one.step.beside)?.as_ref() == one.from {
            return Ok(true);
        }
        // Written in the last moment: theirs, so it goes back to its path.
        self.root.place_new(&one.staged)?;
        Ok(false)
    }

    /// Files, links and folders that are to come.
    fn bring(&mut self, one: &Move<'_>) -> Result<bool, TreeError> {
        match (one.from, one.to) {
            (_, None) | (Some(State::Folder { .. }), Some(State::Folder { .. })) => Ok(true),
            (_, Some(State::Folder { mode })) => self.bring_folder(one, *mode),
            (from, Some(to)) => {
                let here = self.here(&one.step.path)?;
                if here.as_ref() == Some(to) {
                    return Ok(true);
                }
                if Move::is_leaf(from) && here.as_ref() == from {
                    self.replace(one)
                } else if !Move::is_leaf(from) && here.is_none() {
                    self.place(one)
                } else {
                    self.is_later(one)
                }
            }
        }
    }

    fn bring_folder(&mut self, one: &Move<'_>, mode: u16) -> Result<bool, TreeError> {
        match self.here(&one.step.path)? {
            Some(State::Folder { .. }) => Ok(true),
            Some(_) => self.is_later(one),
            None => match self.root.make_folder(one.staged.target(), mode | OPEN) {
                Ok(()) => Ok(true),
                Err(TreeError::Exists(_)) => Ok(false),
                Err(error) => Err(error),
            },
        }
    }

    /// Something is at the path that neither side put there. On the way on, when what was to come no
    /// longer waits, the path had been done, and the person changed it later, as they may.
    fn is_later(&self, one: &Move<'_>) -> Result<bool, TreeError> {
        Ok(self.way == Way::Forward && self.here(&one.step.beside)?.as_ref() != one.to)
    }

    /// The target is as `from` has it.
    fn replace(&mut self, one: &Move<'_>) -> Result<bool, TreeError> {
        if !one.step.is_staged() {
            if let Some(mode) = one.to.and_then(State::mode) {
                step::pass("copies.mode", Moment::Before);
                self.root.set_mode(one.staged.target(), mode)?;
                step::pass("copies.mode", Moment::After);
            }
            return Ok(true);
        }
        let waiting = self.here(&one.step.beside)?;
        // On the way back whatever waits there was at the path before: the old file, or the old
        // file with what the person wrote into it.
        let brings = waiting.as_ref() == one.to;
        if waiting.is_none() || (!brings && self.way == Way::Forward) {
            return Ok(false);
        }
        swap(self.root, &one.staged, &mut self.exchanges)?;
        if self.here(&one.step.beside)?.as_ref() == one.from {
            return Ok(brings);
        }
        swap(self.root, &one.staged, &mut self.exchanges)?;
        Ok(false)
    }

    /// Nothing is at the target.
    fn place(&mut self, one: &Move<'_>) -> Result<bool, TreeError> {
        let waiting = self.here(&one.step.beside)?;
        let brings = waiting.as_ref() == one.to;
        if waiting.is_none() || (!brings && self.way == Way::Forward) {
            return self.is_later(one);
        }
        match self.root.place_new(&one.staged) {
            Ok(()) => Ok(brings),
            Err(TreeError::Exists(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The permission bits of folders, once what is in them is done.
    fn close(&mut self, one: &Move<'_>) -> Result<bool, TreeError> {
        let Some(State::Folder { mode: to }) = one.to else { return Ok(true) };
        let Some(stat) = self.root.look(&one.step.path)? else { return Ok(false) };
        if stat.kind != Kind::Folder {
            return Ok(false);
        }
        if stat.mode == *to {
            return Ok(true);
        }
        let from = match one.from {
            Some(State::Folder { mode }) => *mode,
            _ => *to,
        };
        if ![from, from | OPEN, to | OPEN].contains(&stat.mode) {
            return Ok(false);
        }
        step::pass("copies.mode", Moment::Before);
        self.root.set_mode(one.staged.target(), *to)?;
        step::pass("copies.mode", Moment::After);
        Ok(true)
    }

    /// Removes what waited beside the path, and keeps what is not surely stead's.
    fn tidy(&mut self, one: &Move<'_>) -> Result<bool, TreeError> {
        let beside = &one.step.beside;
        let Some(waiting) = self.here(beside)? else { return Ok(true) };
        let waiting = Some(&waiting);
        let is_new = waiting == one.step.new.as_ref();
        let is_known = is_new || waiting == one.step.old.as_ref();
        let is_left = self.left.contains(&one.step.path);
        // A new file that was cut short while it was written, before anything was renamed.
        let is_torn = !is_known && self.way == Way::Back && one.step.is_staged();
        if is_left && !is_new || !is_known && !is_torn {
            self.keep(&one.step.path, &one.staged)?;
            return Ok(is_known);
        }
        self.root.unstage(&one.staged)?;
        Ok(true)
    }

    /// Copies what waits beside a path into the rescue folder, durably, and removes it.
    fn keep(&mut self, path: &RelPath, staged: &Staged) -> Result<(), TreeError> {
        let to = free(self.rescue.join(path.as_os_str()));
        let fail = |act, path: &Path| {
            let path = path.to_owned();
            move |source| TreeError::System { act, path, source }
        };
        let folder = to.parent().unwrap_or(self.rescue);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(fail("create", folder))?;
        match self.root.open_file(staged.beside()) {
            Ok((mut from, _)) => {
                let new = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to);
                new.and_then(|mut new| {
                    std::io::copy(&mut from, &mut new)?;
                    new.sync_all()
                })
                .map_err(fail("write", &to))?;
            }
            Err(TreeError::NotBeneath(_)) => {
                let text = self.root.read_link(staged.beside())?;
                let text = std::os::unix::ffi::OsStringExt::from_vec(text);
                let text: std::ffi::OsString = text;
                symlink(text, &to).map_err(fail("write", &to))?;
            }
            Err(error) => return Err(error),
        }
        fs::File::open(folder)
            .and_then(|opened| opened.sync_all())
            .map_err(fail("sync", folder))?;
        self.rescued = true;
        self.root.unstage(staged)?;
        Ok(())
    }
}

/// The path, or the first that is free with a number behind it.
fn free(path: PathBuf) -> PathBuf {
    let taken = |path: &Path| path.symlink_metadata().is_ok();
    if !taken(&path) {
        return path;
    }
    let numbered = |number: u32| {
        let mut name = path.clone().into_os_string();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    (2..=u32::MAX).map(numbered).find(|path| !taken(path)).unwrap_or(path)
}
