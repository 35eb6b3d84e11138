//! What an apply will do, path by path, and whether every path lets it (P8–P12).

use std::collections::{HashMap, HashSet};

use rustix::fs::{Access, AtFlags, accessat};
use stead_core::id::RequestId;
use stead_files::{RelPath, RootFolder, Space, Staged, Stat, Target, TreeError};
use stead_git::{Index, Repository};

use super::conflict::{Clash, Conflict, Stand, stand};
use super::entries::{Entries, Indexed};
use super::look::{Extended, Here, extended, observe, system};
use super::names::{folds_names, names_in, same_names};
use super::refused::ApplyRefused;
use super::room::needed;
use super::swap::is_there;
use crate::bars::Bar;
use crate::changes::{Change, State};
use crate::journal::Step;
use crate::{Base, Home};

/// One path that will be written.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) step: Step,
    pub(crate) staged: Staged,
    /// What the system said of it when it was compared with the base; none when nothing is there.
    pub(crate) seen: Option<Stat>,
    /// What the index had there.
    pub(crate) indexed: Indexed,
    /// Owner and group that the new file must be given.
    pub(crate) owner: Option<(u32, u32)>,
    /// Extended attributes that the new file must be given.
    pub(crate) extended: Extended,
}

/// All that will be written, and what will not.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// In the order of paths.
    pub(crate) planned: Vec<Planned>,
    /// Folders that the task removed and that stay, because something else is in them.
    pub(crate) kept: Vec<RelPath>,
}

/// Room that is left for the folders, and for the person.
const SPARE: u64 = 1 << 20;

/// What planning looks at.
pub(crate) struct Planner<'a> {
    pub(crate) root: &'a RootFolder,
    pub(crate) home: &'a Home,
    pub(crate) changes: &'a [Change],
    pub(crate) apply: &'a RequestId,
}

impl Planner<'_> {
    /// Compares every affected path with the base; `index` is that of a Git root.
    ///
    /// # Errors
    /// Every conflict at once, or the first thing that cannot be done.
    pub(crate) fn plan(
        &self,
        base: &Base,
        index: Option<(&Repository, &Index)>,
    ) -> Result<Plan, ApplyRefused> {
        let mut entries = index.map(|(repository, index)| Entries::new(repository, index, base));
        let by_path: HashMap<&RelPath, &Change> =
            self.changes.iter().map(|change| (&change.path, change)).collect();
        let mut ready: Vec<(&Change, Option<Here>, Indexed)> = Vec::new();
        let mut conflicts = Vec::new();
        let mut nested = HashMap::new();
        for change in self.changes {
            if self.is_nested(&change.path, &mut nested)? {
                conflicts.push(Conflict { path: change.path.clone(), clash: Clash::Ancestor });
                continue;
            }
            let (stand, here) = self.compare(change, &by_path)?;
            let clash = match stand {
                Stand::Equal => continue,
                Stand::Clash(clash) => Some(clash),
                Stand::Ready => index_clash(self.root, entries.as_mut(), change)?,
            };
            if let Some(clash) = clash {
                conflicts.push(Conflict { path: change.path.clone(), clash });
            } else {
                let indexed = entries.as_ref().and_then(|all| all.at(&change.path));
                ready.push((change, here, indexed));
            }
        }
        let kept = self.emptied(&mut ready, &mut conflicts)?;
        let added = ready.iter().filter(|(change, ..)| change.before.is_none());
        conflicts.extend(self.colliding(added.map(|(change, ..)| &change.path))?);
        if !conflicts.is_empty() {
            conflicts.sort_by(|one, two| one.path.cmp(&two.path));
            return Err(ApplyRefused::Conflicts(conflicts));
        }
        let plan = Plan { planned: self.place(ready)?, kept };
        self.allowed(&plan)?;
        Ok(plan)
    }

    fn compare(
        &self,
        change: &Change,
        by_path: &HashMap<&RelPath, &Change>,
    ) -> Result<(Stand, Option<Here>), ApplyRefused> {
        let path = &change.path;
        let here = match observe(self.root, path) {
            Ok(here) => here,
            // What is to go is not there; and below a file that is to become a folder there is
            // nothing yet.
            Err(TreeError::NotBeneath(_))
                if change.after.is_none() || is_below_a_leaf(path, by_path) =>
            {
                None
            }
            Err(TreeError::NotBeneath(_)) => return Ok((Stand::Clash(Clash::Ancestor), None)),
            Err(error) => return Err(error.into()),
        };
        let mut found = stand(change, here.as_ref().map(|here| &here.state));
        if found == Stand::Ready && change.before.is_none() && !self.has_parent(path, by_path)? {
            found = Stand::Clash(Clash::Ancestor);
        }
        let is_new = change.before.is_none() && here.is_some();
        if matches!(found, Stand::Clash(_)) && is_new && !self.is_listed(path)? {
            found = Stand::Clash(Clash::SameName);
        }
        Ok((found, here))
    }

    /// Whether a folder on the way has become a repository of its own; `known` are the folders that
    /// were looked at.
    fn is_nested(
        &self,
        path: &RelPath,
        known: &mut HashMap<RelPath, bool>,
    ) -> Result<bool, TreeError> {
        let Some(folder) = path.parent().filter(|folder| !folder.is_root()) else {
            return Ok(false);
        };
        if let Some(found) = known.get(&folder) {
            return Ok(*found);
        }
        let is_repository = match folder.join(".git") {
            Ok(entry) => is_there(self.root, &entry)?,
            Err(_) => false,
        };
        let found = is_repository || self.is_nested(&folder, known)?;
        known.insert(folder, found);
        Ok(found)
    }

    /// Whether the folder that a new path needs is there or comes with the apply.
    fn has_parent(
        &self,
        path: &RelPath,
        by_path: &HashMap<&RelPath, &Change>,
    ) -> Result<bool, TreeError> {
        let Some(parent) = path.parent().filter(|parent| !parent.is_root()) else {
            return Ok(true);
        };
        if let Some(change) = by_path.get(&parent) {
            return Ok(change.after.as_ref().is_some_and(State::is_folder));
        }
        let found = self.root.look(&parent)?;
        Ok(found.is_some_and(|stat| stat.kind == stead_files::Kind::Folder))
    }

    /// Whether its folder lists the very name; a file system that takes names for each other finds
    /// something at a path that no folder lists (P10).
    fn is_listed(&self, path: &RelPath) -> Result<bool, TreeError> {
        let parent = path.parent().unwrap_or_else(RelPath::root);
        Ok(names_in(self.root, &parent)?.iter().any(|name| &**name == path.name()))
    }

    /// Takes out the removals of folders that hold something which stays, and gives their paths.
    /// Where such a folder is to become something else, that is a conflict.
    fn emptied(
        &self,
        ready: &mut Vec<(&Change, Option<Here>, Indexed)>,
        conflicts: &mut Vec<Conflict>,
    ) -> Result<Vec<RelPath>, ApplyRefused> {
        let mut going: HashSet<&RelPath> =
            ready.iter().filter(|(c, ..)| c.after.is_none()).map(|(c, ..)| &c.path).collect();
        let mut kept = Vec::new();
        for (change, ..) in ready.iter().rev() {
            let was_folder = change.before.as_ref().is_some_and(State::is_folder);
            if !was_folder || change.after.as_ref().is_some_and(State::is_folder) {
                continue;
            }
            let mut stays = false;
            for name in names_in(self.root, &change.path)? {
                let inside = change.path.join(&*name).ok();
                stays |= inside.is_none_or(|inside| !going.contains(&inside));
            }
            match (stays, &change.after) {
                (false, _) => {}
                (true, None) => {
                    going.remove(&change.path);
                    kept.push(change.path.clone());
                }
                (true, Some(_)) => {
                    let path = change.path.clone();
                    conflicts.push(Conflict { path, clash: Clash::Ancestor });
                }
            }
        }
        kept.sort();
        ready.retain(|(change, ..)| kept.binary_search(&change.path).is_err());
        Ok(kept)
    }

    /// Names among the new ones that the destination's file system takes for one another.
    fn colliding<'p>(
        &self,
        added: impl Iterator<Item = &'p RelPath>,
    ) -> Result<Vec<Conflict>, TreeError> {
        let same = same_names(added);
        if same.is_empty() || !folds_names(self.root)? {
            return Ok(Vec::new());
        }
        Ok(same.into_iter().map(|path| Conflict { path, clash: Clash::SameName }).collect())
    }

    /// Gives every path the place beside it: in the nearest folder above that is there and open
    /// before, after and all the while.
    fn place(
        &self,
        ready: Vec<(&Change, Option<Here>, Indexed)>,
    ) -> Result<Vec<Planned>, ApplyRefused> {
        let is_folder = |state: &Option<State>| state.as_ref().is_some_and(State::is_folder);
        let is_closed = |state: &Option<State>| state.as_ref().is_some_and(State::is_closed);
        let passing: HashSet<RelPath> = ready
            .iter()
            .filter(|(change, ..)| {
                let (before, after) = (&change.before, &change.after);
                is_folder(before) != is_folder(after) || is_closed(before) || is_closed(after)
            })
            .map(|(change, ..)| change.path.clone())
            .collect();
        let mut planned = Vec::with_capacity(ready.len());
        for (number, (change, here, indexed)) in ready.into_iter().enumerate() {
            let path = &change.path;
            let mut folder = path.parent().unwrap_or_else(RelPath::root);
            while passing.contains(&folder) {
                folder = folder.parent().unwrap_or_else(RelPath::root);
            }
            let barred = |_| ApplyRefused::Barred { path: path.clone(), bar: Bar::GitName };
            let target = Target::new(path.clone()).map_err(barred)?;
            let staged =
                Staged::planned(target, &folder, self.apply.as_str(), number).map_err(barred)?;
            let step = Step {
                path: path.clone(),
                old: change.before.clone(),
                new: change.after.clone(),
                beside: staged.beside().clone(),
            };
            let (owner, extended) = match &here {
                Some(here) => self.attributes(&step, here)?,
                None => (None, Vec::new()),
            };
            let seen = here.map(|here| here.stat);
            planned.push(Planned { step, staged, seen, indexed, owner, extended });
        }
        Ok(planned)
    }

    /// What a new file must have of the one it replaces; refuses what cannot be carried over (P11).
    fn attributes(
        &self,
        step: &Step,
        here: &Here,
    ) -> Result<(Option<(u32, u32)>, Extended), ApplyRefused> {
        let refuse = |what| ApplyRefused::Unsupported { path: step.path.clone(), what };
        let stat = &here.stat;
        if stat.flagged {
            return Err(refuse("it is immutable or append-only"));
        }
        if stat.mounted {
            return Err(refuse("something is mounted there"));
        }
        let me = rustix::process::geteuid();
        let changes_mode = !step.is_staged() && step.new.is_some();
        if changes_mode && !me.is_root() && stat.uid != me.as_raw() {
            return Err(refuse("it belongs to another user"));
        }
        let replaced = here.state.is_leaf() && step.new.as_ref().is_some_and(State::is_leaf);
        if !replaced {
            return Ok((None, Vec::new()));
        }
        if stat.links > 1 {
            return Err(refuse("it has other names (hard links)"));
        }
        let kept = match here.state {
            State::File { .. } => extended(self.root, &step.path)?.map_err(refuse)?,
            _ => Vec::new(),
        };
        if !step.is_staged() {
            return Ok((None, kept));
        }
        if me.is_root() || stat.uid == me.as_raw() && self.may_give(step, stat.gid)? {
            Ok((Some((stat.uid, stat.gid)), kept))
        } else {
            Err(refuse("it belongs to another user or group"))
        }
    }

    /// Whether a file of one's own may have this group: one of one's groups, or what the folder
    /// gives to all that is made in it.
    fn may_give(&self, step: &Step, group: u32) -> Result<bool, TreeError> {
        let mine = rustix::process::getegid().as_raw();
        let mut others = rustix::process::getgroups().unwrap_or_default().into_iter();
        if group == mine || others.any(|other| other.as_raw() == group) {
            return Ok(true);
        }
        let folder = step.beside.parent().unwrap_or_else(RelPath::root);
        Ok(self.root.look(&folder)?.is_some_and(|stat| stat.gid == group))
    }

    /// Whether the place has room and lets names be changed (P12): told by the system's error
    /// numbers, and without writing.
    fn allowed(&self, plan: &Plan) -> Result<(), ApplyRefused> {
        let mut folders: HashSet<RelPath> = HashSet::new();
        // A new folder is open, and a closed one that the apply changes is opened for it.
        let comes_open = |path: &RelPath| {
            let at = plan.planned.binary_search_by(|planned| planned.step.path.cmp(path));
            let found = at.ok().and_then(|at| plan.planned.get(at));
            found.is_some_and(|planned| match &planned.step.old {
                Some(old) if old.is_folder() => old.is_closed() && is_own(planned.seen.as_ref()),
                _ => true,
            })
        };
        for planned in &plan.planned {
            let step = &planned.step;
            if let (true, Some(State::File { size, digest, .. })) = (step.is_staged(), &step.new) {
                let blob = self.home.blobs().path(digest);
                if !blob.metadata().is_ok_and(|found| found.len() == *size) {
                    return Err(ApplyRefused::Missing(*digest));
                }
            }
            if !step.changes_name() {
                continue;
            }
            folders.extend(planned.staged.beside().parent());
            folders.extend(step.path.parent().filter(|parent| !comes_open(parent)));
        }
        let mut folders: Vec<RelPath> = folders.into_iter().collect();
        folders.sort();
        for folder in folders {
            let open = self.root.folder(&folder).map_err(ApplyRefused::Place)?;
            accessat(&open, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).map_err(
                |errno| ApplyRefused::Place(system("write in", self.root, &folder, errno)),
            )?;
        }
        let (needed, space) = (needed(&plan.planned), Space::of(self.root.path())?);
        if needed > 0 && space.free < needed.saturating_add(SPARE) {
            let path = self.root.path().to_owned();
            return Err(ApplyRefused::NoSpace { path, needed, free: space.free });
        }
        Ok(())
    }
}

/// Whether its permission bits may be changed.
fn is_own(seen: Option<&Stat>) -> bool {
    let me = rustix::process::geteuid();
    me.is_root() || seen.is_some_and(|stat| stat.uid == me.as_raw())
}

/// Whether the base has a file or link where a folder on the way is to be.
fn is_below_a_leaf(path: &RelPath, by_path: &HashMap<&RelPath, &Change>) -> bool {
    let mut above = path.parent();
    while let Some(folder) = above.filter(|folder| !folder.is_root()) {
        let change = by_path.get(&folder);
        if change.is_some_and(|change| change.before.as_ref().is_some_and(State::is_leaf)) {
            return true;
        }
        above = folder.parent();
    }
    false
}

fn index_clash(
    root: &RootFolder,
    entries: Option<&mut Entries<'_>>,
    change: &Change,
) -> Result<Option<Clash>, ApplyRefused> {
    let leaf = |state: &Option<State>| state.as_ref().is_some_and(State::is_leaf);
    match entries {
        Some(entries) if leaf(&change.before) || leaf(&change.after) => {
            entries.clash(root, &change.path, change.before.as_ref())
        }
        _ => Ok(None),
    }
}
