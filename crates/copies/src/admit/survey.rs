//! What is in a root: what will be covered by reviews, what is carried beside, what is left out,
//! and what is in the way. Everything is looked at before the first byte is copied.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use stead_core::layout::{Access, Root};
use stead_files::{
    Choice, FileIdentity, Kind, LeftOut, Listing, Obstacle, ObstacleKind, RelPath, Stat, Time,
    WalkOptions, Watch, walk,
};
use stead_git::index::EntryKind;
use stead_git::{Git, GitError, Ignored, Index, IndexError, Repository};

use super::{joined, links, place};
use crate::error::{CopyError, failed};
use crate::home::Home;
use crate::note::{Note, NoteKind};
use crate::refusal::{MakeError, Obstruction};
use crate::scope::Scope;

/// What is in a root.
pub(super) struct Survey {
    pub(super) listing: Listing,
    pub(super) git: Option<GitSurvey>,
    pub(super) taken: Taken,
    /// By the ignore rules, by the topmost.
    pub(super) ignored: Vec<RelPath>,
    /// Repositories below the root, and submodules.
    pub(super) nested: Vec<RelPath>,
    pub(super) left_out: Vec<RelPath>,
    pub(super) notes: Vec<Note>,
}

/// What Git says of a root.
pub(super) struct GitSurvey {
    pub(super) repository: Repository,
    pub(super) index: Index,
    /// Tracked files that a filter or an encoding stands behind.
    pub(super) converted: BTreeSet<PathBuf>,
    /// The folder with the Git directories of submodules, where the copy needs it.
    pub(super) modules: Option<PathBuf>,
    /// The index file as it was before it was read; none where there is none.
    index_state: Option<(FileIdentity, Stat)>,
}

/// What Git answers without knowing what a walk found.
struct Answers {
    ignored: Vec<Ignored>,
    converted: BTreeSet<PathBuf>,
}

/// What a copy takes of its root; the same for every walk.
#[derive(Default)]
pub(super) struct Taken {
    /// The root's own Git directory is made anew.
    is_git: bool,
    /// Registered work trees inside the root.
    trees: Scope,
}

impl Taken {
    pub(super) fn choose(&self, path: &RelPath, _: &Stat) -> Choice {
        if (self.is_git && path.as_bytes() == b".git") || self.trees.holds(path) {
            Choice::LeaveOut
        } else {
            Choice::Take
        }
    }
}

impl Survey {
    /// Looks at one root. Up to ten processes for a repository.
    pub(super) fn of(
        home: &Home,
        git: &Git,
        root: &Root,
        watch: Watch<'_>,
    ) -> Result<Self, MakeError> {
        let directory = root.directory.as_path();
        let git_survey = match place::repository(git, directory)? {
            Some(repository) => Some(GitSurvey::of(home, root, repository)?),
            None => None,
        };
        let trees: Vec<RelPath> = match &git_survey {
            Some(found) => trees_inside(&found.repository, directory),
            None => Vec::new(),
        };
        let taken = Taken { is_git: git_survey.is_some(), trees: Scope::new(trees.clone()) };
        let filter = |path: &RelPath, stat: &Stat| taken.choose(path, stat);
        let options = WalkOptions { filter: Some(&filter), watch, ..WalkOptions::default() };
        let began = Time::now();
        let (answers, listing) = std::thread::scope(|scope| {
            let git = git_survey.as_ref();
            let asked = scope.spawn(move || git.map(GitSurvey::ask).transpose());
            let listing = walk(directory, &options);
            (joined(asked), listing)
        });
        let (mut answers, listing) = (answers?, listing?);
        if changed_since(&listing, began) {
            // What came after Git had passed is in the listing, and nobody has judged it.
            answers = git_survey.as_ref().map(GitSurvey::ask).transpose()?;
        }
        let mut survey = Self {
            listing,
            git: git_survey,
            taken,
            ignored: Vec::new(),
            nested: Vec::new(),
            left_out: trees,
            notes: Vec::new(),
        };
        if let Some(answers) = answers {
            survey.take(answers)?;
        }
        survey.find_nested(directory)?;
        survey.refuse_obstacles(directory)?;
        survey.note();
        Ok(survey)
    }

    /// What is never eligible.
    pub(super) fn uncovered(&self) -> Scope {
        Scope::new(self.ignored.iter().chain(&self.nested).chain(&self.left_out).cloned())
    }

    /// Asks for the ignore rules' answers again: files came or went while the root was copied.
    pub(super) fn judge_again(&mut self) -> Result<(), MakeError> {
        // What was ignored and went stays ignored should it come back.
        if let Some(answers) = self.git.as_ref().map(GitSurvey::ask).transpose()? {
            self.take(answers)?;
        }
        self.ignored.sort();
        self.ignored.dedup();
        Ok(())
    }

    fn take(&mut self, answers: Answers) -> Result<(), MakeError> {
        let Some(found) = &mut self.git else { return Ok(()) };
        let Answers { ignored, converted } = answers;
        self.ignored.extend(ignored.iter().filter_map(|ignored| rel(&ignored.path)));
        // Git lists no special files, so their names are judged by themselves.
        let ignored = Scope::new(self.ignored.iter().cloned());
        let specials: Vec<RelPath> = self
            .listing
            .entries()
            .filter(|(path, found)| {
                matches!(found.stat.kind, Kind::Special(_)) && !ignored.holds(path)
            })
            .map(|(path, _)| path)
            .collect();
        let asked = specials.iter().map(|path| Path::new(path.as_os_str()));
        let judged = found.repository.ignored_among(asked)?;
        self.ignored.extend(judged.iter().filter_map(|path| rel(path)));
        found.converted = converted;
        Ok(())
    }

    /// Every `.git` below the root makes its folder a repository of its own; so does a gitlink.
    fn find_nested(&mut self, directory: &Path) -> Result<(), MakeError> {
        let mut outside = Vec::new();
        let mut modules = false;
        for folder in self.listing.folders() {
            let has_entry = folder.entries.iter().any(|found| *found.name == *b".git");
            if !has_entry || folder.path.is_root() {
                continue;
            }
            let repository = self.git.as_ref().map(|found| &found.repository);
            match links::of(directory, &folder.path, repository)? {
                links::Leads::Inside => {}
                links::Leads::ToModules => modules = true,
                links::Leads::Outside => outside.push(folder.path.clone()),
            }
            self.nested.push(folder.path.clone());
        }
        if !outside.is_empty() {
            return Err(MakeError::refused(directory, Obstruction::LeadsOutside(outside)));
        }
        let initialised: BTreeSet<RelPath> = self.nested.iter().cloned().collect();
        if let Some(found) = &mut self.git {
            let links: Vec<RelPath> =
                found.index.gitlinks().filter_map(|entry| rel(&entry.path)).collect();
            let empty = links.iter().filter(|path| !initialised.contains(path)).cloned();
            self.notes.extend(Note::about(NoteKind::NotInitialised, empty));
            self.nested.extend(links);
            found.modules = modules.then(|| found.repository.git_directory.join("modules"));
        }
        self.nested.sort();
        self.nested.dedup();
        // Those among ignored files are not reviewed anyway: dependencies often have some.
        let ignored = Scope::new(self.ignored.iter().cloned());
        let named = initialised.into_iter().filter(|path| !ignored.holds(path));
        self.notes.extend(Note::about(NoteKind::Nested, named));
        Ok(())
    }

    fn refuse_obstacles(&mut self, directory: &Path) -> Result<(), MakeError> {
        let uncovered = self.uncovered();
        let obstacles = self.listing.obstacles(&|path| !uncovered.holds(path));
        let (left, refused): (Vec<Obstacle>, Vec<Obstacle>) =
            obstacles.into_iter().partition(|obstacle| {
                matches!(obstacle.kind, ObstacleKind::Special(_)) && uncovered.holds(&obstacle.path)
            });
        if !refused.is_empty() {
            return Err(MakeError::refused(directory, Obstruction::Unsupported(refused)));
        }
        let left: Vec<RelPath> = left.into_iter().map(|obstacle| obstacle.path).collect();
        self.notes.extend(Note::about(NoteKind::Special, left.iter().cloned()));
        self.left_out.extend(left);
        let mounts = self.listing.left_out().iter();
        let mounts: Vec<RelPath> = mounts
            .filter(|(_, why)| **why == LeftOut::OtherDevice)
            .map(|(path, _)| path.clone())
            .collect();
        self.notes.extend(Note::about(NoteKind::OtherDevice, mounts.iter().cloned()));
        self.left_out.extend(mounts);
        self.left_out.sort();
        Ok(())
    }

    fn note(&mut self) {
        let mut notes = Vec::new();
        let listing = &self.listing;
        let trees = self.listing.left_out().keys().filter(|path| self.taken.trees.holds(path));
        notes.extend(Note::about(NoteKind::WorkTree, trees.cloned()));
        notes.extend(Note::about(NoteKind::AbsoluteLink, absolute_links(listing)));
        notes.extend(Note::about(NoteKind::Database, databases(listing)));
        let several = listing.hard_links().into_iter().flat_map(|link| link.paths);
        notes.extend(Note::about(NoteKind::HardLinks, several));
        if let Some(found) = &self.git {
            let repository = &found.repository;
            let filtered = found.converted.iter().filter_map(|path| rel(path));
            notes.extend(Note::about(NoteKind::Filtered, filtered));
            let borrows =
                repository.object_folders().is_ok_and(|folders| !folders.borrowed.is_empty());
            let keeps_large = repository.common_directory.join("lfs").is_dir();
            let is_linked = repository.kind == stead_git::Kind::Linked;
            notes.extend(Note::whole(NoteKind::Sparse, repository.is_sparse()));
            notes.extend(Note::whole(NoteKind::Shallow, repository.is_shallow));
            notes.extend(Note::whole(NoteKind::Borrows, borrows));
            notes.extend(Note::whole(NoteKind::LinkedWorkTree, is_linked));
            notes.extend(Note::whole(NoteKind::LargeFiles, keeps_large));
        }
        self.notes.extend(notes);
    }
}

impl GitSurvey {
    fn of(home: &Home, root: &Root, repository: Repository) -> Result<Self, MakeError> {
        let refuse = |why| Err(MakeError::refused(root.directory.as_path(), why));
        if repository.is_partial()? {
            return refuse(Obstruction::Partial);
        }
        let operations = repository.operations()?;
        if !operations.is_empty() {
            return refuse(Obstruction::InProgress(operations));
        }
        if root.access == Access::Write {
            let folder = repository.index_file.parent().unwrap_or(&repository.git_directory);
            let device = |path: &Path| {
                Stat::of(path).map(|stat| stat.device).map_err(failed("examine", path))
            };
            if device(folder)? != device(home.path())? {
                let (index, home) = (folder.to_owned(), home.path().to_owned());
                return refuse(Obstruction::OtherDevice { index, home });
            }
        }
        let index_state = state(&repository.index_file)?;
        let index = match Index::of(&repository) {
            Ok(index) => index,
            Err(GitError::Index { source, .. }) => {
                return refuse(Obstruction::Index(said(&source)));
            }
            Err(error) => return Err(error.into()),
        };
        let unmerged: Vec<RelPath> = index.unmerged().filter_map(rel).collect();
        if !unmerged.is_empty() {
            return refuse(Obstruction::Unmerged(unmerged));
        }
        let converted = BTreeSet::new();
        Ok(Self { repository, index, converted, modules: None, index_state })
    }

    /// Two processes.
    fn ask(&self) -> Result<Answers, GitError> {
        let files = self.index.entries.iter().filter(|entry| {
            entry.stage == 0 && matches!(entry.kind, EntryKind::File | EntryKind::Executable)
        });
        let (ignored, converted) = std::thread::scope(|scope| {
            let ignored = scope.spawn(|| self.repository.ignored());
            let paths = files.map(|entry| entry.path.as_path());
            let converted = self.repository.converted_among(paths);
            (joined(ignored), converted)
        });
        Ok(Answers { ignored: ignored?, converted: converted? })
    }

    /// Whether the index file is the one that was read.
    pub(super) fn is_current(&self) -> Result<bool, CopyError> {
        Ok(state(&self.repository.index_file)? == self.index_state)
    }
}

fn said(error: &IndexError) -> String {
    match error {
        IndexError::Split => format!("{error}; git update-index --no-split-index makes it whole"),
        IndexError::Sparse => {
            format!("{error}; git sparse-checkout reapply --no-sparse-index makes it whole")
        }
        _ => error.to_string(),
    }
}

fn state(file: &Path) -> Result<Option<(FileIdentity, Stat)>, CopyError> {
    let found = FileIdentity::of(file).and_then(|identity| Ok((identity, Stat::of(file)?)));
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CopyError::system("examine", file, error)),
    }
}

/// The registered work trees of the repository that lie inside the root, gone ones aside.
fn trees_inside(repository: &Repository, directory: &Path) -> Vec<RelPath> {
    let real = repository.worktrees.iter().filter_map(|tree| tree.path.canonicalize().ok());
    real.filter_map(|path| rel(path.strip_prefix(directory).ok()?)).collect()
}

/// Whether anything in the tree may have changed at `began` or later.
fn changed_since(listing: &Listing, began: Time) -> bool {
    let is_new = |stat: &Stat| stat.changed.is_racy(began);
    listing.folders().iter().any(|folder| {
        is_new(&folder.stat) || folder.entries.iter().any(|found| is_new(&found.stat))
    })
}

/// Links whose literal target is the root or in it.
fn absolute_links(listing: &Listing) -> Vec<RelPath> {
    let root = listing.root();
    let leads_back =
        |target: &[u8]| Path::new(std::ffi::OsStr::from_bytes(target)).starts_with(root);
    let links =
        listing.entries().filter(|(_, found)| found.target.as_deref().is_some_and(leads_back));
    links.map(|(path, _)| path).collect()
}

/// Databases of SQLite whose log of changes is beside them and not empty.
fn databases(listing: &Listing) -> Vec<RelPath> {
    let mut databases = Vec::new();
    for folder in listing.folders() {
        for found in &folder.entries {
            let Some(base) = found.name.strip_suffix(b"-wal") else { continue };
            let is_there = folder.entries.binary_search_by(|other| (*other.name).cmp(base)).is_ok();
            if is_there && found.stat.kind == Kind::File && found.stat.size > 0 {
                databases.extend(folder.path.join(base));
            }
        }
    }
    databases
}

/// A path as Git says it, as a path below the root.
pub(super) fn rel(path: &Path) -> Option<RelPath> {
    RelPath::parse(path.as_os_str().as_bytes()).ok()
}
