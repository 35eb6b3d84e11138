//! Why a layout was not admitted or a copy not frozen: what a person can do something about.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use stead_core::id::SlotName;
use stead_files::{Obstacle, ObstacleKind, RelPath};
use stead_git::{ObjectId, Operation};

use crate::error::CopyError;

/// As many paths as a refusal names.
const NAMED: usize = 20;

/// What is in the way. Nothing was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstruction {
    /// A layout has 1 to 64 roots.
    RootCount(usize),
    /// Two slots differ in case at most.
    SlotTwice(SlotName),
    /// The primary is no slot of the layout.
    NoPrimary(SlotName),
    /// The task has copies already.
    TaskExists,
    /// Nothing is there.
    Missing,
    /// Something other than a folder is there.
    NotAFolder,
    /// It is reached through a symbolic link; the real path.
    Linked(PathBuf),
    /// Another folder is there than the one that was selected.
    Changed,
    /// The root and stead's home overlap.
    HoldsHome(PathBuf),
    /// The root is the person's home folder, or holds it.
    PersonHome(PathBuf),
    /// The root is in a private copy.
    InsideCopy(PathBuf),
    /// Two roots overlap, or are one folder.
    Overlap(PathBuf),
    /// The root is a folder of a repository, and files in it are tracked there.
    InsideRepository(PathBuf),
    /// The root is in a Git directory.
    InsideGitDirectory,
    /// The repository has no work tree here; those it has.
    Bare(Vec<PathBuf>),
    /// The settings of the repository put its work tree elsewhere.
    WorkTreeElsewhere(PathBuf),
    /// Git cannot use the repository; what it says.
    Unusable(String),
    /// Objects may be on a server only.
    Partial,
    /// The index cannot be carried; what is wrong with it.
    Index(String),
    /// A person has begun something and not ended it.
    InProgress(Vec<Operation>),
    /// The index has conflicts.
    Unmerged(Vec<RelPath>),
    /// A `.git` file or link of a nested work tree leads out of the copy, or its settings do.
    LeadsOutside(Vec<RelPath>),
    /// What a copy cannot carry.
    Unsupported(Vec<Obstacle>),
    /// Names that are one on the home's file system.
    Collision(Vec<RelPath>),
    /// The home and the index are on different devices.
    OtherDevice {
        /// The folder of the index.
        index: PathBuf,
        /// The home.
        home: PathBuf,
    },
    /// There is too little room for the copies.
    NoRoom {
        /// Bytes that the copies may take.
        needed: u64,
        /// Bytes that are free.
        free: u64,
        /// The folders that are largest, and their bytes.
        largest: Vec<(RelPath, u64)>,
    },
    /// It kept changing while it was read.
    Unstable(Vec<RelPath>),
    /// Objects that the repository needs are not in it.
    NoObjects(Vec<ObjectId>),
}

/// A refusal: which root, and what is in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The original, or the copy that was to be frozen; the task's folder when it is about the
    /// layout as a whole.
    pub root: PathBuf,
    /// What is in the way.
    pub why: Obstruction,
}

/// Why copies were not made or not frozen. In every case nothing of them is left.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// Something is in the way that a person can do something about.
    #[error("{0}")]
    Refused(Box<Refused>),
    /// Something failed, or the work was cancelled.
    #[error(transparent)]
    Failed(#[from] CopyError),
}

impl MakeError {
    pub(crate) fn refused(root: &Path, why: Obstruction) -> Self {
        Self::Refused(Box::new(Refused { root: root.to_owned(), why }))
    }

    /// What to do about it, naming the command or field that helps.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Refused(refused) => refused.hint(),
            Self::Failed(_) => None,
        }
    }

    /// Whether the work was cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Failed(CopyError::Tree(stead_files::TreeError::Cancelled)))
    }
}

macro_rules! from {
    ($($error:ty),*) => {$(
        impl From<$error> for MakeError {
            fn from(error: $error) -> Self {
                Self::Failed(error.into())
            }
        }
    )*};
}
from!(
    stead_files::TreeError,
    stead_files::FolderError,
    stead_files::LockError,
    stead_files::ManifestError,
    stead_git::GitError,
    stead_store::StoreError
);

impl Refused {
    fn hint(&self) -> Option<String> {
        let root = self.root.display();
        Some(match &self.why {
            Obstruction::Linked(real) => format!("--root {}", real.display()),
            Obstruction::PersonHome(_) => "name one folder in it: --root DIR".to_owned(),
            Obstruction::InsideRepository(top)
            | Obstruction::WorkTreeElsewhere(top)
            | Obstruction::InsideCopy(top) => format!("--root {}", top.display()),
            Obstruction::Bare(trees) => match trees.as_slice() {
                [] => format!("make a work tree: git -C {root} worktree add DIR"),
                [first, ..] => format!("take a work tree of it: --root {}", first.display()),
            },
            Obstruction::Changed => "stead roots rebind".to_owned(),
            Obstruction::Partial => {
                format!("bring all objects: git -C {root} fetch --refetch --no-filter")
            }
            Obstruction::InProgress(operations) => {
                let command = operations.first().map_or("status", |first| first.command());
                format!("finish or abort it: git -C {root} {command} --abort")
            }
            Obstruction::Unmerged(_) => {
                format!("finish or abort what left the conflicts: git -C {root} status")
            }
            Obstruction::OtherDevice { .. } => {
                "set STEAD_HOME to a folder on the disk of the repository".to_owned()
            }
            Obstruction::NoObjects(_) => format!("git -C {root} fsck"),
            Obstruction::LeadsOutside(_) => "leave the folder out, or move it out".to_owned(),
            Obstruction::NoRoom { .. } => {
                "free some room, or name large folders that can be built again to be left out"
                    .to_owned()
            }
            Obstruction::Unstable(_) => "stop what writes there, and try again".to_owned(),
            Obstruction::Unsupported(obstacles) => {
                let help: BTreeSet<&str> =
                    obstacles.iter().map(|obstacle| help(&obstacle.kind)).collect();
                let help: Vec<&str> = help.into_iter().collect();
                format!("in {root}: {}", help.join("; "))
            }
            _ => return None,
        })
    }
}

/// What makes a path one that can be carried.
fn help(kind: &ObstacleKind) -> &'static str {
    match kind {
        ObstacleKind::Owner(_) => "make files of others your own (chown), or remove them",
        ObstacleKind::Acl => "remove access control lists (setfacl -b)",
        ObstacleKind::Flagged => "remove flags (chattr -i -a)",
        ObstacleKind::Attribute(_) => "remove attributes (setfattr -x)",
        ObstacleKind::Special(_) => "remove pipes, sockets and devices",
        ObstacleKind::Unreadable => "let yourself read it (chmod u+r)",
        ObstacleKind::HardLink { .. } => {
            "make each name a file of its own (copy it, and move the copy over it), or remove it"
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.root.display(), self.why)
    }
}

impl fmt::Display for Obstruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RootCount(count) => {
                write!(
                    f,
                    "a layout has 1 to {} roots, not {count}",
                    stead_core::delegated::MOST_ROOTS
                )
            }
            Self::SlotTwice(slot) => write!(f, "the slot {slot} is there twice"),
            Self::NoPrimary(slot) => write!(f, "the primary {slot} is no slot of the layout"),
            Self::TaskExists => f.write_str("the task has its copies already"),
            Self::Missing => f.write_str("there is no such folder"),
            Self::NotAFolder => f.write_str("is not a folder"),
            Self::Linked(real) => {
                write!(f, "is reached through a symbolic link; it is {}", real.display())
            }
            Self::Changed => f.write_str("is another folder than the one that was selected"),
            Self::HoldsHome(home) => write!(f, "overlaps stead's own home {}", home.display()),
            Self::PersonHome(user) => {
                write!(f, "holds the home folder {}, which is never copied", user.display())
            }
            Self::InsideCopy(original) => {
                write!(f, "is in a private copy of {}", original.display())
            }
            Self::Overlap(other) => write!(f, "overlaps {}", other.display()),
            Self::InsideRepository(top) => {
                write!(f, "is a part of the repository at {}", top.display())
            }
            Self::InsideGitDirectory => f.write_str("is in a Git directory"),
            Self::Bare(_) => f.write_str("is a bare repository"),
            Self::WorkTreeElsewhere(top) => {
                write!(f, "is a repository whose work tree is {}", top.display())
            }
            Self::Unusable(said) => write!(f, "Git cannot use the repository: {said}"),
            Self::Partial => f.write_str("is a partial clone: some objects are on a server only"),
            Self::Index(reason) => write!(f, "the index cannot be carried: {reason}"),
            Self::InProgress(operations) => {
                write!(f, "in progress: {}", list(operations, |operation| operation.command()))
            }
            Self::Unmerged(paths) => {
                write!(f, "conflicts in {}", list(paths, |path| path))
            }
            Self::LeadsOutside(paths) => {
                write!(f, "work trees that lead out of the folder: {}", list(paths, |path| path))
            }
            Self::Unsupported(obstacles) => {
                let one = |obstacle: &Obstacle| format!("{} {}", obstacle.path, obstacle.kind);
                write!(f, "cannot be carried: {}", list(obstacles, one))
            }
            Self::Collision(paths) => {
                let disk = "names that are one on the disk of stead's home";
                write!(f, "{disk}: {}", list(paths, |path| path))
            }
            Self::OtherDevice { index, home } => write!(
                f,
                "the index in {} and stead's home {} are on different disks, so nothing could be \
                 applied",
                index.display(),
                home.display()
            ),
            Self::NoRoom { needed, free, largest } => {
                write!(
                    f,
                    "the copies may take {needed} bytes of {free} that are free, and a tenth of the \
                     disk, at least 2 GiB, stays free"
                )?;
                let one = |(path, bytes): &(RelPath, u64)| format!("{path} {bytes}");
                if largest.is_empty() {
                    return Ok(());
                }
                write!(f, "; largest: {}", list(largest, one))
            }
            Self::Unstable(paths) => {
                write!(f, "keeps changing while it is read: {}", list(paths, |path| path))
            }
            Self::NoObjects(objects) => {
                write!(f, "objects are missing from the repository: {}", list(objects, |id| id))
            }
        }
    }
}

/// The first of many, and how many more there are.
fn list<'a, T, D: fmt::Display>(many: &'a [T], show: impl Fn(&'a T) -> D) -> String {
    let mut named: Vec<String> = many.iter().take(NAMED).map(|one| show(one).to_string()).collect();
    if let Some(more @ 1..) = many.len().checked_sub(NAMED) {
        named.push(format!("and {more} more"));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_twenty_paths_and_how_many_more() {
        let paths: Vec<RelPath> =
            (10..35).map(|n| RelPath::parse(format!("p{n}")).unwrap()).collect();
        let text = Obstruction::Collision(paths).to_string();
        assert!(text.contains("p29, and 5 more") && !text.contains("p30"), "{text}");
    }
}
