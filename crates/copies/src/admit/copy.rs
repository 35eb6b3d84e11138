//! One root becomes one slot's copy, and its base.

use std::collections::HashSet;
use std::path::Path;

use stead_core::layout::Root;
use stead_files::{
    CloneOptions, Cloned, Digests, Kind, Manifest, Node, Obstacle, ObstacleKind, RelPath,
    RootFolder, Stat, TreeError, WalkOptions, Watch, clone, remove_tree_at,
};
use stead_git::index::{Entry, EntryKind};
use stead_git::{Git, Index, Repository};

use super::survey::{GitSurvey, Survey, rel};
use super::{AdmittedSlot, git_directory, joined, slot_of};
use crate::base::{Base, IndexedFile};
use crate::depot::Depot;
use crate::error::CopyError;
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

impl Making<'_> {
    pub(super) fn run(
        &self,
        mut survey: Survey,
        keeper: &mut Keeper,
    ) -> Result<(Slot, AdmittedSlot), MakeError> {
        let name = self.root.slot.as_str();
        let (copy, place) = (self.staged.join(name), self.task.join(name));
        for _ in 0..=ROUNDS {
            // The objects are the source's too, so they are taken beside the copying.
            let (cloned, sizes) = std::thread::scope(|scope| {
                let git = survey.git.as_ref();
                let taken = scope.spawn(move || git.map(|found| self.objects(found)).transpose());
                let cloned = self.clone(&survey, &copy);
                (cloned, joined(taken))
            });
            let (cloned, sizes) = (cloned?, sizes?);
            keeper.begin_flush(cloned.bytes);
            let made = match &mut survey.git {
                None => None,
                Some(found) => {
                    let made = git_directory::make(self, found, &cloned, &copy, &place)?;
                    if !found.is_current()? {
                        remove_tree_at(&copy)?;
                        survey = Survey::of(self.home, self.git, self.root, self.watch)?;
                        continue;
                    }
                    Some(made)
                }
            };
            if cloned.rounds > 0 {
                survey.judge_again()?;
            }
            let mut base = self.base(&survey, &cloned, &copy)?;
            let (mut kind, mut proved) = (RootKind::Plain, HashSet::new());
            if let (Some(found), Some(made)) = (&survey.git, made) {
                kind = kind_of(found, &made);
                proved = self::proved(found, &cloned, sizes.unwrap_or_default());
                base.commit = made.head.commit();
                base.index = indexed(&found.index);
            }
            let base = self.keep(&base, &copy, &proved, keeper)?;
            return Ok(self.made(&survey, cloned, kind, base));
        }
        let why = Obstruction::Unstable(RelPath::parse(".git/index").into_iter().collect());
        Err(MakeError::refused(self.root.directory.as_path(), why))
    }

    /// Fills the depot, and says how large the content is that each entry of [`plain`] names.
    fn objects(&self, found: &GitSurvey) -> Result<Vec<Option<u64>>, CopyError> {
        Depot::of(self.home, &self.root.id).fill(&found.repository, self.watch)?;
        let ids: Vec<_> = plain(&found.index).map(|entry| entry.id).collect();
        Ok(found.repository.blob_sizes(&ids)?)
    }

    fn clone(&self, survey: &Survey, copy: &Path) -> Result<Cloned, MakeError> {
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
            early_sync: true,
            ..CloneOptions::default()
        };
        let cloned = match clone(survey.listing.clone(), copy, &options) {
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

    fn base(&self, survey: &Survey, cloned: &Cloned, copy: &Path) -> Result<Base, MakeError> {
        let manifest = match &cloned.manifest {
            Some(manifest) => manifest.clone(),
            None => Manifest::new(stead_files::Time::now(), Vec::new())?,
        };
        let rules = match &survey.git {
            Some(found) => {
                let (folder, beside) = (RootFolder::open(copy)?, survey.uncovered());
                Rules::read(self.git, &found.repository, &cloned.listing, &beside, &folder)?
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
            totals: cloned.listing.totals(),
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

/// The entries of files; none of them comes or goes while a copy is made from one index.
fn plain(index: &Index) -> impl Iterator<Item = &Entry> {
    let is_file = |kind| matches!(kind, EntryKind::File | EntryKind::Executable);
    index.entries.iter().filter(move |entry| is_file(entry.kind))
}

/// Files whose bytes are surely those of an object: the index knows the file by its stat data, no
/// filter or encoding stands behind it, and the sizes agree, so no line end was converted either.
fn proved(found: &GitSurvey, cloned: &Cloned, sizes: Vec<Option<u64>>) -> HashSet<RelPath> {
    let mut proved = HashSet::new();
    let manifest = cloned.manifest.as_ref();
    for (entry, size) in plain(&found.index).zip(sizes) {
        let is_settled = entry.stat != stead_git::index::Stat::default();
        if !is_settled || found.converted.contains(&entry.path) {
            continue;
        }
        let Some(path) = rel(&entry.path) else { continue };
        let node = manifest.and_then(|manifest| manifest.get(&path)).map(|entry| &entry.node);
        if matches!((node, size), (Some(Node::File { size, .. }), Some(stored)) if *size == stored)
        {
            proved.insert(path);
        }
    }
    proved
}

/// What the walk saw of files, by path: to compare with an index.
pub(super) fn stats(cloned: &Cloned, index: &Index) -> std::collections::HashMap<RelPath, Stat> {
    let wanted: HashSet<RelPath> =
        index.entries.iter().filter_map(|entry| rel(&entry.path)).collect();
    let seen = cloned.listing.entries().filter(|(path, found)| {
        matches!(found.stat.kind, Kind::File | Kind::Link) && wanted.contains(path)
    });
    seen.map(|(path, found)| (path, found.stat)).collect()
}
