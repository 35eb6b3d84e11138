//! The registered working roots of a home: which folder each id means.
//!
//! A folder is known by its canonical path, inode and birth time, never by its name or its Git
//! remotes (seed 3). One engine serves a home, so one process writes the file.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use stead_core::id::RootId;
use stead_core::layout::{AbsoluteDir, RootIdentity};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_files::replace;

use crate::api::{RootState, RootView};
use crate::home::Home;
use crate::roots;

/// The form of the file.
const VERSION: u32 = 1;

/// The registry of one home.
#[derive(Debug)]
pub(crate) struct Registry {
    file: PathBuf,
    /// One change at a time.
    changing: Mutex<()>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    version: u32,
    roots: Vec<Registered>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Registered {
    id: RootId,
    directory: AbsoluteDir,
    identity: RootIdentity,
}

impl Registry {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, changing: Mutex::new(()) }
    }

    /// The ids of these folders, in their order; those that were never seen are registered, all or
    /// none. Refuses a folder that is not what it was when it was registered.
    pub(crate) fn ids(
        &self,
        folders: &[(AbsoluteDir, RootIdentity)],
    ) -> Result<Vec<RootId>, Refusal> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stored = self.read()?;
        let known = stored.roots.len();
        let mut ids = Vec::with_capacity(folders.len());
        for (directory, identity) in folders {
            if let Some(id) = known_as(&stored.roots, directory, identity)? {
                ids.push(id);
                continue;
            }
            let (id, directory) = (new_id()?, directory.clone());
            stored.roots.push(Registered { id: id.clone(), directory, identity: *identity });
            ids.push(id);
        }
        if stored.roots.len() > known {
            self.write(&mut stored)?;
        }
        Ok(ids)
    }

    /// Where the root is that `uri` names, as an earlier admission registered it.
    pub(crate) fn resolve(&self, uri: &str) -> Result<AbsoluteDir, Refusal> {
        let found = self.read()?.roots.into_iter().find(|root| root.id.uri() == uri);
        found.map(|root| root.directory).ok_or_else(|| {
            let uri = stead_core::line::cut(uri, 80);
            Refusal::new(RefusalKind::NotFound, format!("no root was admitted as {uri:?}"))
                .hint("the root map names the URIs there are")
        })
    }

    /// Every registered root, and whether its folder is what it was.
    pub(crate) fn list(&self) -> Result<Vec<RootView>, Refusal> {
        Ok(self.read()?.roots.into_iter().map(view).collect())
    }

    /// The person says that `directory` is the root `id` from now on.
    pub(crate) fn rebind(&self, id: &RootId, directory: &Path) -> Result<RootView, Refusal> {
        let (directory, identity) = roots::look(directory)?;
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stored = self.read()?;
        if let Some(other) = stored.roots.iter().find(|r| r.directory == directory && r.id != *id) {
            return Err(Refusal::new(
                RefusalKind::AlreadyExists,
                format!("{} is root {} already", directory.as_path().display(), other.id),
            ));
        }
        let root = stored.roots.iter_mut().find(|root| root.id == *id).ok_or_else(|| {
            Refusal::new(RefusalKind::NotFound, format!("there is no root {id}"))
                .hint("`stead roots list` names them")
        })?;
        (root.directory, root.identity) = (directory, identity);
        let bound = view(root.clone());
        self.write(&mut stored)?;
        Ok(bound)
    }

    /// Forgets those roots for which `goes` holds; what was forgotten.
    pub(crate) fn forget(
        &self,
        goes: impl Fn(&RootView) -> bool,
    ) -> Result<Vec<RootView>, Refusal> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stored = self.read()?;
        let mut forgotten = Vec::new();
        stored.roots.retain(|root| {
            let shown = view(root.clone());
            let goes = goes(&shown);
            if goes {
                forgotten.push(shown);
            }
            !goes
        });
        if !forgotten.is_empty() {
            self.write(&mut stored)?;
        }
        Ok(forgotten)
    }

    /// What the folder of a root must be now.
    pub(crate) fn identity(
        &self,
        id: &RootId,
    ) -> Result<Option<(AbsoluteDir, RootIdentity)>, Refusal> {
        let found = self.read()?.roots.into_iter().find(|root| root.id == *id);
        Ok(found.map(|root| (root.directory, root.identity)))
    }

    fn read(&self) -> Result<Stored, Refusal> {
        let bytes = match stead_files::read_file(&self.file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Stored::default()),
            Err(error) => return Err(self.unusable(&error.to_string())),
        };
        let stored: Stored =
            serde_json::from_slice(&bytes).map_err(|e| self.unusable(&e.to_string()))?;
        if stored.version > VERSION {
            return Err(self.unusable("a newer stead wrote it"));
        }
        Ok(stored)
    }

    fn write(&self, stored: &mut Stored) -> Result<(), Refusal> {
        stored.version = VERSION;
        let bytes = serde_json::to_vec_pretty(stored).map_err(|e| self.unusable(&e.to_string()))?;
        replace(&self.file, &bytes, Some(0o600))
            .map_err(|e| Refusal::new(RefusalKind::Storage, e.to_string()))
    }

    fn unusable(&self, why: &str) -> Refusal {
        let line = format!("the registry of roots {} cannot be used: {why}", self.file.display());
        Refusal::new(RefusalKind::Unreadable, line).hint("`stead doctor` says what is damaged")
    }
}

/// The roots that are registered in a home, without its engine, and whether each folder is what it
/// was.
///
/// # Errors
/// The registry cannot be read.
pub fn registered_roots(home: &Home) -> Result<Vec<RootView>, Refusal> {
    Registry::new(home.roots()).list()
}

/// The id under which a folder is registered. A folder that changed under its path, or that was
/// moved, is refused: work on the old one must not reach the new one unseen.
fn known_as(
    roots: &[Registered],
    directory: &AbsoluteDir,
    identity: &RootIdentity,
) -> Result<Option<RootId>, Refusal> {
    let shown = directory.as_path().display();
    let refuse = |id: &RootId, line: String| {
        Err(Refusal::new(RefusalKind::Conflict, line).hint(format!(
            "if it is meant to be the same root: `stead roots rebind {id} {shown}`; else \
                 `stead gc` forgets the old one, when no copy of it is left"
        )))
    };
    if let Some(root) = roots.iter().find(|root| root.directory == *directory) {
        return if root.identity == *identity {
            Ok(Some(root.id.clone()))
        } else {
            refuse(&root.id, format!("{shown} is not the folder that was registered there"))
        };
    }
    // An inode without a birth time is given again too easily to say that a folder was moved.
    let moved = roots.iter().find(|root| {
        identity.birth.is_some()
            && root.identity == *identity
            && roots::look(root.directory.as_path()).is_err()
    });
    match moved {
        Some(root) => {
            let old = root.directory.as_path().display();
            refuse(&root.id, format!("{shown} was registered as {old}, where it is no more"))
        }
        None => Ok(None),
    }
}

fn view(root: Registered) -> RootView {
    let state = match roots::look(root.directory.as_path()) {
        Err(_) => RootState::Gone,
        Ok((directory, identity)) if directory == root.directory && identity == root.identity => {
            RootState::Same
        }
        Ok(_) => RootState::Changed,
    };
    RootView { uri: root.id.uri(), id: root.id, directory: root.directory, state }
}

fn new_id() -> Result<RootId, Refusal> {
    RootId::parse(&uuid::Uuid::now_v7().to_string())
        .map_err(|e| Refusal::new(RefusalKind::Failed, e.to_string()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Bench {
        folder: tempfile::TempDir,
        registry: Registry,
    }

    impl Bench {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let registry = Registry::new(folder.path().join("roots.json"));
            Self { folder, registry }
        }

        fn make(&self, name: &str) -> PathBuf {
            let path = self.folder.path().canonicalize().unwrap().join(name);
            fs::create_dir_all(&path).unwrap();
            path
        }

        fn id(&self, path: &Path) -> Result<RootId, Refusal> {
            self.registry.ids(&[roots::look(path).unwrap()]).map(|mut ids| ids.remove(0))
        }
    }

    #[test]
    fn copies_44_equal_names_are_two_roots_and_one_folder_is_always_the_same() {
        let bench = Bench::new();
        let (one, two) = (bench.make("a/app"), bench.make("b/app"));
        let first = bench.id(&one).unwrap();
        assert_ne!(first, bench.id(&two).unwrap());
        assert_eq!(first, bench.id(&one).unwrap());
        assert_eq!(bench.registry.list().unwrap().len(), 2);
        assert_eq!(bench.registry.resolve(&first.uri()).unwrap().as_path(), one);
        for unknown in ["", "/etc", "stead-root:../x", "stead-root:0"] {
            assert!(bench.registry.resolve(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn a_changed_or_moved_folder_is_refused_until_it_is_rebound() {
        let bench = Bench::new();
        let app = bench.make("app");
        let id = bench.id(&app).unwrap();
        let moved = bench.folder.path().canonicalize().unwrap().join("elsewhere");
        fs::rename(&app, &moved).unwrap();
        let refusal = bench.id(&moved).unwrap_err();
        assert!(refusal.hint.unwrap().contains(&format!("stead roots rebind {id} ")));
        // Another folder at the old path.
        bench.make("app");
        let refusal = bench.id(&app).unwrap_err();
        assert!(refusal.line.contains("is not the folder that was registered"), "{refusal:?}");
        assert_eq!(bench.registry.list().unwrap()[0].state, RootState::Changed);
        let bound = bench.registry.rebind(&id, &moved).unwrap();
        assert_eq!((bound.state, bound.directory.as_path()), (RootState::Same, moved.as_path()));
        assert_eq!(bench.id(&moved).unwrap(), id);
        assert_ne!(bench.id(&app).unwrap(), id);
    }

    #[test]
    fn a_damaged_or_newer_registry_is_refused_and_kept() {
        let bench = Bench::new();
        let app = bench.make("app");
        for text in ["", "{", "{\"version\":2,\"roots\":[]}", "{\"version\":1}"] {
            fs::write(&bench.registry.file, text).unwrap();
            assert_eq!(bench.id(&app).unwrap_err().kind, RefusalKind::Unreadable, "{text}");
            assert_eq!(fs::read_to_string(&bench.registry.file).unwrap(), text);
        }
    }
}
