//! Freezing a copy: an immutable, durable capture of what a review covers.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use stead_core::id::{Digest, SlotName};
use stead_files::{
    CaptureOptions, Captured, Choice, Digests, Entry, Kind, Listing, Manifest, Node, Obstacle,
    RelPath, RootFolder, Stat, Time, TreeError, WalkOptions, Watch, capture, compare, walk,
};
use stead_git::{Git, Repository};

use crate::base::Base;
use crate::error::CopyError;
use crate::flush::flush;
use crate::home::Home;
use crate::keep::Keeper;
use crate::layout::Layout;
use crate::refusal::{MakeError, Obstruction};
use crate::scope::Scope;
use crate::snapshot::Snapshot;

/// How often a copy that changes meanwhile is captured again.
const ROUNDS: usize = 3;

/// Freezes one slot's copy against `base`: admission's, or the one after the last apply.
///
/// Only files that changed by what the system says of them are read. What is covered is judged by
/// the base's ignore rules, whatever the copy's have become. When this returns, the manifest and
/// the contents of every file that differs from the base survive a power cut. Nothing in the copy
/// is changed, and no program of its repository runs. Passes the step `copies.keep`.
///
/// # Errors
/// [`MakeError::Refused`] when the copy is gone, keeps changing, or holds among covered files what
/// no apply could bring: special files, hard links, files of others.
pub fn freeze(
    home: &Home,
    git: &Git,
    layout: &Layout,
    slot: &SlotName,
    base: &Digest,
    watch: Watch<'_>,
) -> Result<Snapshot, MakeError> {
    if layout.slot(slot).is_none() {
        let slots = layout.slots.iter().map(|slot| slot.slot.clone()).collect();
        return Err(CopyError::UnknownSlot { slot: slot.clone(), slots }.into());
    }
    // What a snapshot leaves to the base must be as durable as the snapshot is.
    flush(home, &layout.session, layout.task)?;
    let copy = home.copy(&layout.session, layout.task, slot);
    if !copy.is_dir() {
        return Err(MakeError::refused(&copy, Obstruction::Missing));
    }
    let base = Base::load(home, base)?;
    let freezing = Freezing { home, git, copy: &copy, base: &base, watch };
    for _ in 0..=ROUNDS {
        if let Some(snapshot) = freezing.once()? {
            return Ok(snapshot);
        }
    }
    Err(MakeError::refused(&copy, Obstruction::Unstable(Vec::new())))
}

/// What a look at a copy says of what is covered.
struct Judged {
    uncovered: Scope,
    /// Folders that hold something of the base and became repositories.
    repositories: Vec<RelPath>,
    /// Every new path that was looked at.
    looked_at: HashSet<RelPath>,
}

struct Freezing<'a> {
    home: &'a Home,
    git: &'a Git,
    copy: &'a Path,
    base: &'a Base,
    watch: Watch<'a>,
}

impl Freezing<'_> {
    /// One try; none when the copy changed meanwhile.
    fn once(&self) -> Result<Option<Snapshot>, MakeError> {
        let walk_options =
            WalkOptions { filter: Some(&choose), watch: self.watch, ..WalkOptions::default() };
        let listing = walk(self.copy, &walk_options)?;
        let Judged { uncovered, repositories, looked_at: judged } = self.judge(&listing)?;
        self.refuse_obstacles(&listing, &uncovered)?;
        let wanted = |path: &RelPath, _: &Stat| !uncovered.holds(path);
        let options = CaptureOptions { walk: walk_options, digests: Digests::Of(&wanted) };
        let captured = match capture(self.copy, Some(&self.base.manifest), &options) {
            Ok(captured) => captured,
            Err(TreeError::Unstable(paths)) => {
                return Err(MakeError::refused(self.copy, Obstruction::Unstable(paths)));
            }
            Err(error) => return Err(error.into()),
        };
        let is_new = |entry: &Entry| {
            !uncovered.holds(&entry.path)
                && !judged.contains(&entry.path)
                && self.base.manifest.get(&entry.path).is_none()
        };
        if captured.manifest.entries().iter().any(is_new) {
            return Ok(None);
        }
        let manifest = covered(&captured, &uncovered, self.base.held_by(&repositories))?;
        let mut keeper = Keeper::new(self.home);
        if !self.keep(&manifest, &mut keeper)? {
            return Ok(None);
        }
        let digest = keeper.bytes(&manifest.encode())?;
        keeper.settle()?;
        let beside = self.beside(&captured, &uncovered);
        let commits = self.commits();
        Ok(Some(Snapshot { digest, manifest, beside, repositories, commits }))
    }

    /// What is not covered: as the base has it, and of what is new in the copy what the base's
    /// rules ignore and what is a repository of its own.
    fn judge(&self, listing: &Listing) -> Result<Judged, CopyError> {
        let known = self.base.scope();
        let nested = listing.folders().iter().filter(|folder| {
            let is_repository = folder.entries.iter().any(|found| *found.name == *b".git");
            is_repository && !folder.path.is_root() && !known.holds(&folder.path)
        });
        let nested = Scope::new(nested.map(|folder| folder.path.clone()));
        let held = nested.tops().iter().filter(|path| !self.base.manifest.within(path).is_empty());
        let repositories = held.cloned().collect();
        let known = known.with(nested.tops().iter().cloned());
        let new: Vec<(RelPath, bool)> = listing
            .entries()
            .filter(|(path, _)| !known.holds(path) && self.base.manifest.get(path).is_none())
            .map(|(path, found)| (path, found.stat.kind == Kind::Folder))
            .collect();
        let looked_at = new.iter().map(|(path, _)| path.clone()).collect();
        let (folders, files): (Vec<_>, Vec<_>) = new.into_iter().partition(|(_, folder)| *folder);
        let rules = &self.base.rules;
        // Folders first: what is in an ignored one needs no judgement of its own.
        let known = known.with(rules.ignored(self.home, self.git, &folders)?);
        let files: Vec<_> = files.into_iter().filter(|(path, _)| !known.holds(path)).collect();
        let uncovered = known.with(rules.ignored(self.home, self.git, &files)?);
        Ok(Judged { uncovered, repositories, looked_at })
    }

    fn refuse_obstacles(&self, listing: &Listing, uncovered: &Scope) -> Result<(), MakeError> {
        let mut refused: Vec<Obstacle> = listing.obstacles(&|path| !uncovered.holds(path));
        refused.retain(|obstacle| !uncovered.holds(&obstacle.path));
        if refused.is_empty() {
            Ok(())
        } else {
            Err(MakeError::refused(self.copy, Obstruction::Unsupported(refused)))
        }
    }

    /// Keeps the contents of files that differ from the base; whether they are still those.
    fn keep(&self, manifest: &Manifest, keeper: &mut Keeper) -> Result<bool, MakeError> {
        let folder = RootFolder::open(self.copy)?;
        for entry in manifest.entries() {
            let Node::File { size, digest: Some(digest) } = &entry.node else { continue };
            let is_kept = self.base.manifest.get(&entry.path).is_some_and(|before| {
                matches!(&before.node, Node::File { digest: Some(other), .. } if other == digest)
            });
            if is_kept {
                continue;
            }
            if self.watch.is_cancelled() {
                return Err(TreeError::Cancelled.into());
            }
            if !keeper.file(&folder, &entry.path, *size, digest)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What changed where no review looks, by the topmost path that is not covered.
    fn beside(&self, captured: &Captured, uncovered: &Scope) -> Vec<(RelPath, u64)> {
        let mut counted: BTreeMap<RelPath, u64> = BTreeMap::new();
        for change in compare(&self.base.manifest, &captured.manifest) {
            if let Some(top) = uncovered.top(change.path) {
                *counted.entry(top.clone()).or_default() += 1;
            }
        }
        counted.into_iter().collect()
    }

    /// What the copy's HEAD has over the base's; none where its repository cannot be asked, as
    /// when the agent broke it. That is no reason to lose its files.
    fn commits(&self) -> Option<u64> {
        let found = Repository::discover(self.git, self.copy).ok()??;
        if found.top_level != self.copy.canonicalize().ok() {
            return None;
        }
        match found.head.commit() {
            Some(commit) if Some(commit) == self.base.commit => Some(0),
            Some(commit) => found.count_commits(self.base.commit, commit).ok(),
            None => Some(0),
        }
    }
}

/// A copy's own Git directory is never reviewed, whoever made it.
fn choose(path: &RelPath, _: &Stat) -> Choice {
    if path.as_bytes() == b".git" { Choice::LeaveOut } else { Choice::Take }
}

/// The covered part, without what the system saw: two equal trees have one encoding. What is `held`
/// by folders that became repositories is in it as the base has it.
fn covered<'a>(
    captured: &'a Captured,
    uncovered: &Scope,
    held: impl Iterator<Item = &'a Entry>,
) -> Result<Manifest, CopyError> {
    let entries = captured.manifest.entries().iter();
    let entries = entries.filter(|entry| !uncovered.holds(&entry.path)).chain(held);
    let mut entries: Vec<Entry> =
        entries.map(|entry| Entry { seen: None, ..entry.clone() }).collect();
    entries.sort_by(|one, two| one.path.cmp(&two.path));
    Ok(Manifest::new(Time { secs: 0, nanos: 0 }, entries)?)
}
