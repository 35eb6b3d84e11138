//! One root becomes one slot's copy, and its base.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use stead_core::layout::Root;
use stead_files::{
    CloneOptions, Cloned, Digests, Listing, Manifest, Node, Obstacle, ObstacleKind, RelPath,
    RootFolder, Stat, TreeError, WalkOptions, Watch, clone, remove_tree_at,
};
use stead_git::index::EntryKind;
use stead_git::{Git, Index, Repository};

use super::survey::{GitSurvey, Survey, rel};
use super::{AdmittedSlot, git_directory, joined, slot_of};
use crate::base::{Base, IndexedFile};
use crate::error::{CopyError, failed};
use crate::home::Home;
use crate::keep::Keeper;
use crate::layout::{RootKind, Slot, checked_out};
use crate::note::{Note, NoteKind};
use crate::refusal::{MakeError, Obstruction};
use crate::rules::Rules;
use crate::scope::Scope;

/// How often a root is copied anew because its index changed meanwhile.
const ROUNDS: usize = 3;

/// What the making of one copy needs.
pub(super) struct Making<'a> {
    pub(super) home: &'a Home,
    pub(super) git: &'a Git,
    pub(super) root: &'a Root,
    /// Where the task's folder is made.
    pub(super) staged: &'a Path,
    /// Where it will be.
    pub(super) task: &'a Path,
    pub(super) watch: Watch<'a>,
}

/// A copy's Git directory that waits for the copy.
struct Made {
    /// The folder in which it stands.
    nursery: PathBuf,
    repository: Repository,
    /// How large the content is that each entry of the index names.
    sizes: Vec<Option<u64>>,
}

impl Made {
    /// Moves it into the copy, which has everything else, and gives it the index. The index in
    /// `found` becomes the copy's.
    fn put(
        &self,
        found: &mut GitSurvey,
        listing: &Listing,
        cloned: &Cloned,
        copy: &Path,
    ) -> Result<(), CopyError> {
        let to = copy.join(".git");
        let from = self.nursery.join(".git");
        fs::rename(&from, &to).map_err(failed("rename", &from))?;
        fs::remove_dir(&self.nursery).map_err(failed("remove", &self.nursery))?;
        git_directory::index(found, listing, cloned, copy)
    }
}

impl Making<'_> {
    pub(super) fn run(
        &self,
        mut survey: Survey,
        keeper: &mut Keeper,
    ) -> Result<(Slot, AdmittedSlot), MakeError> {
        let copy = self.staged.join(self.root.slot.as_str());
        for _ in 0..=ROUNDS {
            let listing = std::mem::take(&mut survey.listing);
            // What Git needs in the copy does not depend on its files, but for the index.
            let (cloned, made) = std::thread::scope(|scope| {
                let git = survey.git.as_ref();
                let made = scope.spawn(move || git.map(|found| self.git(found)).transpose());
                let cloned = self.clone(&survey, listing, &copy);
                (cloned, joined(made))
            });
            let (mut cloned, made) = (cloned?, made?);
            survey.listing = std::mem::take(&mut cloned.listing);
            if let (Some(found), Some(made)) = (&mut survey.git, &made) {
                made.put(found, &survey.listing, &cloned, &copy)?;
                if !found.is_current()? {
                    remove_tree_at(&copy)?;
                    survey = Survey::of(self.home, self.git, self.root, self.watch)?;
                    continue;
                }
            }
            if cloned.rounds > 0 {
                survey.judge_again()?;
            }
            let mut base = self.base(&survey, &mut cloned, &copy)?;
            let (mut kind, mut proved) = (RootKind::Plain, HashSet::new());
            if let (Some(found), Some(made)) = (&survey.git, made) {
                kind = kind_of(found, &made.repository);
                proved = self::proved(found, &base.manifest, made.sizes);
                base.commit = made.repository.head.commit();
                base.index = indexed(&found.index);
            }
            let base = self.keep(&base, &copy, &proved, keeper)?;
            return Ok(self.made(&survey, cloned, kind, base));
        }
        let why = Obstruction::Unstable(RelPath::parse(".git/index").into_iter().collect());
        Err(MakeError::refused(self.root.directory.as_path(), why))
    }

    /// Makes the copy's Git directory, for what is in the copy when that is whole.
    fn git(&self, found: &GitSurvey) -> Result<Made, MakeError> {
        let name = self.root.slot.as_str();
        // No slot has such a name.
        let nursery = self.staged.join(format!(".git-{name}"));
        let (repository, sizes) =
            git_directory::make(self, found, &nursery, &self.task.join(name))?;
        Ok(Made { nursery, repository, sizes })
    }

    fn clone(&self, survey: &Survey, listing: Listing, copy: &Path) -> Result<Cloned, MakeError> {
        let uncovered = survey.uncovered();
        let filter = |path: &RelPath, stat: &Stat| survey.taken.choose(path, stat);
        let wanted = |path: &RelPath, _: &Stat| !uncovered.holds(path);
        let options = CloneOptions {
            walk: WalkOptions {
                filter: Some(&filter),
                watch: self.watch,
                ..WalkOptions::default()
            },
            manifest: true,
            digests: Digests::Of(&wanted),
            ..CloneOptions::default()
        };
        let cloned = match clone(listing, copy, &options) {
            Ok(cloned) => cloned,
            Err(error) => return Err(self.collision(error, copy)),
        };
        let is_left = |obstacle: &&Obstacle| {
            matches!(obstacle.kind, ObstacleKind::Special(_)) && uncovered.holds(&obstacle.path)
        };
        let refused: Vec<Obstacle> =
            cloned.obstacles.iter().filter(|obstacle| !is_left(obstacle)).cloned().collect();
        if refused.is_empty() {
            Ok(cloned)
        } else {
            Err(self.refused(Obstruction::Unsupported(refused)))
        }
    }

    /// A new folder in which a name is taken: the file system takes two names for one.
    fn collision(&self, error: TreeError, copy: &Path) -> MakeError {
        if let TreeError::System { act: "create", path, source } = &error {
            let met = path.strip_prefix(copy).ok().and_then(rel);
            if let (std::io::ErrorKind::AlreadyExists, Some(met)) = (source.kind(), met) {
                return self.refused(Obstruction::Collision(vec![met]));
            }
        }
        error.into()
    }

    pub(super) fn refused(&self, why: Obstruction) -> MakeError {
        MakeError::refused(self.root.directory.as_path(), why)
    }

    /// The base without what Git adds. Its manifest is taken from `cloned`.
    fn base(&self, survey: &Survey, cloned: &mut Cloned, copy: &Path) -> Result<Base, MakeError> {
        let manifest = match cloned.manifest.take() {
            Some(manifest) => manifest,
            None => Manifest::new(stead_files::Time::now(), Vec::new())?,
        };
        let rules = match &survey.git {
            Some(found) => {
                let (folder, beside) = (RootFolder::open(copy)?, survey.uncovered());
                Rules::read(self.git, &found.repository, &survey.listing, &beside, &folder)?
            }
            None => Rules::default(),
        };
        Ok(Base {
            manifest,
            index: Vec::new(),
            ignored: survey.ignored.clone(),
            nested: survey.nested.clone(),
            left_out: survey.left_out.clone(),
            rules,
            commit: None,
        })
    }

    /// Keeps the contents that Git does not surely have, and the base itself.
    fn keep(
        &self,
        base: &Base,
        copy: &Path,
        proved: &HashSet<RelPath>,
        keeper: &mut Keeper,
    ) -> Result<stead_core::id::Digest, MakeError> {
        let uncovered: Scope = base.scope();
        let folder = RootFolder::open(copy)?;
        for entry in base.manifest.entries() {
            let Node::File { size, digest: Some(digest) } = &entry.node else { continue };
            if proved.contains(&entry.path) || uncovered.holds(&entry.path) {
                continue;
            }
            if self.watch.is_cancelled() {
                return Err(TreeError::Cancelled.into());
            }
            if !keeper.file(&folder, &entry.path, *size, digest)? {
                return Err(self.refused(Obstruction::Unstable(vec![entry.path.clone()])));
            }
        }
        Ok(keeper.bytes(&base.encode())?)
    }

    fn made(
        &self,
        survey: &Survey,
        cloned: Cloned,
        kind: RootKind,
        base: stead_core::id::Digest,
    ) -> (Slot, AdmittedSlot) {
        let mut notes = survey.notes.clone();
        notes.extend(Note::about(NoteKind::Attributes, cloned.attributes));
        notes.sort_by_key(|note| note.kind);
        let made = AdmittedSlot {
            slot: self.root.slot.clone(),
            totals: survey.listing.totals(),
            method: cloned.method,
            rounds: cloned.rounds,
            notes,
        };
        (slot_of(self.root, kind, base), made)
    }
}

fn kind_of(found: &GitSurvey, copy: &Repository) -> RootKind {
    let checkout = checked_out(&copy.head);
    RootKind::Git { common_directory: found.repository.common_directory.clone(), checkout }
}

fn indexed(index: &Index) -> Vec<IndexedFile> {
    let files = index.entries.iter().filter(|entry| entry.kind != EntryKind::Gitlink);
    files
        .map(|entry| IndexedFile {
            path: entry.path.clone(),
            mode: entry.kind.mode(),
            object: entry.id,
        })
        .collect()
}

/// Files whose bytes are surely those of an object: the index knows the file by its stat data, no
/// filter or encoding stands behind it, and the sizes agree, so no line end was converted either.
fn proved(found: &GitSurvey, manifest: &Manifest, sizes: Vec<Option<u64>>) -> HashSet<RelPath> {
    let mut proved = HashSet::new();
    let mut find = manifest.finder();
    for (entry, size) in found.index.entries.iter().zip(sizes) {
        let is_file = matches!(entry.kind, EntryKind::File | EntryKind::Executable);
        let is_settled = entry.stat != stead_git::index::Stat::default();
        if !is_file || !is_settled || found.converted.contains(&entry.path) {
            continue;
        }
        let Some(path) = rel(&entry.path) else { continue };
        let node = find(&path).map(|entry| &entry.node);
        if matches!((node, size), (Some(Node::File { size, .. }), Some(stored)) if *size == stored)
        {
            proved.insert(path);
        }
    }
    proved
}
