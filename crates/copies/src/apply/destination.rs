//! The original that an apply writes: the very folder, with the very checkout (P5–P7).

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Instant;

use stead_core::layout::{AbsoluteDir, RootIdentity};
use stead_files::{FileIdentity, RootFolder, Stat, TreeError};
use stead_git::{Git, GitEntry, Repository};

use super::index_lock::{EDITOR, NAP};
use super::refused::ApplyRefused;
use crate::layout::{Checkout, RootKind, Slot, checked_out};
use crate::{Home, Review};

/// An open destination.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) root: RootFolder,
    pub(crate) repository: Option<Repository>,
}

impl Destination {
    /// Opens the admitted root, and holds it to what the review recorded.
    pub(crate) fn open(
        home: &Home,
        git: &Git,
        slot: &Slot,
        review: &Review,
    ) -> Result<Self, ApplyRefused> {
        let root = open_admitted(slot.source.as_path(), &slot.identity)?;
        let repository = repository(git, slot)?;
        if let Some(repository) = &repository {
            one_device(home, repository)?;
        }
        let now = repository.as_ref().map(|repository| checked_out(&repository.head));
        if now != review.checkout {
            return Err(ApplyRefused::CheckoutChanged { reviewed: review.checkout.clone(), now });
        }
        if let Some(repository) = &repository {
            if let Some(operation) = repository.operations()?.first() {
                let path = root.path().to_owned();
                return Err(ApplyRefused::InProgress { operation: *operation, path });
            }
            wait_for_editor(repository)?;
        }
        Ok(Self { root, repository })
    }

    /// The folder of the index; none for a plain folder.
    pub(crate) fn index_folder(&self) -> Option<AbsoluteDir> {
        self.repository.as_ref().and_then(|found| AbsoluteDir::new(index_folder(found)).ok())
    }

    /// What is checked out as far as files tell, to see cheaply that it did not change: nothing in
    /// a plain folder.
    pub(crate) fn head_file(&self) -> Vec<u8> {
        let Some(repository) = &self.repository else { return Vec::new() };
        let read = |path: PathBuf| std::fs::read(path).unwrap_or_default();
        let mut bytes = read(repository.git_directory.join("HEAD"));
        bytes.extend(read(repository.common_directory.join("reftable/tables.list")));
        bytes
    }
}

/// What the original of a slot has checked out now; none for a plain folder. For the review, which
/// records it (P7).
///
/// # Errors
/// [`ApplyRefused::DestinationChanged`] and Git's.
pub fn checkout(git: &Git, slot: &Slot) -> Result<Option<Checkout>, ApplyRefused> {
    open_admitted(slot.source.as_path(), &slot.identity)?;
    Ok(repository(git, slot)?.map(|found| checked_out(&found.head)))
}

/// Opens the folder if it is the admitted one and no link leads to it (P5).
pub(crate) fn open_admitted(
    path: &Path,
    identity: &RootIdentity,
) -> Result<RootFolder, ApplyRefused> {
    let changed = |why| ApplyRefused::DestinationChanged { path: path.to_owned(), why };
    match path.canonicalize() {
        Ok(found) if found == path => {}
        Ok(_) => return Err(changed("a symbolic link is on its way")),
        Err(_) => return Err(changed("it is not there")),
    }
    let root = RootFolder::open(path).map_err(|error| match error {
        TreeError::NotTheFolder(_) => changed("it is no folder"),
        other => ApplyRefused::Tree(other),
    })?;
    let found = FileIdentity::of_open(&root).map_err(|source| {
        ApplyRefused::Tree(TreeError::System { act: "examine", path: path.to_owned(), source })
    })?;
    let birth = found.birth.map(|birth| (birth.secs, birth.nanos));
    let same_birth = birth.is_none() || identity.birth.is_none() || birth == identity.birth;
    if found.inode == identity.inode && same_birth {
        Ok(root)
    } else {
        Err(changed("another folder is at its path"))
    }
}

/// The repository of the root, if it is the admitted one; also one that a plain folder has become.
fn repository(git: &Git, slot: &Slot) -> Result<Option<Repository>, ApplyRefused> {
    let path = slot.source.as_path();
    let changed = |why| ApplyRefused::DestinationChanged { path: path.to_owned(), why };
    match &slot.kind {
        RootKind::Plain if GitEntry::of(path)?.is_none() => Ok(None),
        RootKind::Plain => Ok(Repository::discover(git, path)?),
        RootKind::Git { common_directory, .. } => {
            let found = Repository::discover(git, path)?
                .filter(|found| found.top_level.as_deref() == Some(path))
                .ok_or_else(|| changed("it is no longer the top of a work tree"))?;
            if found.common_directory == *common_directory {
                Ok(Some(found))
            } else {
                Err(changed("its repository is another one"))
            }
        }
    }
}

/// The home and the index are on one disk (P6).
fn one_device(home: &Home, repository: &Repository) -> Result<(), ApplyRefused> {
    let index = index_folder(repository);
    let device = |path: &Path| {
        Stat::of(path).map(|stat| stat.device).map_err(|source| {
            ApplyRefused::Tree(TreeError::System { act: "examine", path: path.to_owned(), source })
        })
    };
    if device(home.path())? == device(&index)? {
        Ok(())
    } else {
        Err(ApplyRefused::OtherDevice { home: home.path().to_owned(), index })
    }
}

pub(crate) fn index_folder(repository: &Repository) -> PathBuf {
    repository.index_file.parent().unwrap_or(&repository.git_directory).to_owned()
}

/// Waits for whoever holds the index as long as an editor does.
fn wait_for_editor(repository: &Repository) -> Result<(), ApplyRefused> {
    let began = Instant::now();
    while repository.is_index_locked()? {
        if began.elapsed() >= EDITOR {
            return Err(ApplyRefused::IndexLocked(repository.index_lock()));
        }
        sleep(NAP);
    }
    Ok(())
}
