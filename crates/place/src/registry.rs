//! The registry of places: which folder holds which ports and which scratch folder.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};
use stead_core::layout::AbsoluteDir;
use stead_files::{FileIdentity, private_dir, replace};

use crate::error::{ExecError, HostError};
use crate::host::{Host, now, this_process};
use crate::ports::Block;
use crate::sockets;

/// The version of the registry's form.
const VERSION: u32 = 1;

/// What a place holds on this host from its first run to its release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Never given again: `p1`, `p2`, ….
    pub id: String,
    /// The place's folder when it was adopted.
    pub directory: AbsoluteDir,
    /// What that folder was, apart from its path.
    pub folder: FileIdentity,
    /// The boot in which it was adopted.
    pub boot: String,
    /// Its ports.
    pub ports: Block,
    /// Its scratch folder.
    pub scratch: AbsoluteDir,
    /// What that folder is: a release removes no other one.
    pub scratch_folder: FileIdentity,
    /// When it was adopted, in milliseconds after 1970.
    pub adopted: u64,
    /// Why a release left it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<String>,
}

/// Whether a hold's folder is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// It is the very folder.
    There,
    /// Nothing is at its path.
    Gone,
    /// Another folder is at its path.
    Replaced,
}

impl Hold {
    /// Whether its folder is still there.
    pub fn presence(&self) -> Presence {
        match FileIdentity::of(self.directory.as_path()) {
            Ok(found) if self.is(&found) => Presence::There,
            Ok(_) => Presence::Replaced,
            Err(_) => Presence::Gone,
        }
    }

    fn is(&self, found: &FileIdentity) -> bool {
        let same_boot = this_process().is_ok_and(|me| me.boot_id == self.boot);
        self.folder.is_same(found, same_boot)
    }
}

/// A place with what its adoption found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopted {
    /// What it holds.
    pub hold: Hold,
    /// Whether it holds it since now.
    pub is_new: bool,
    /// Holds of other folders that were at its path before.
    pub stale: Vec<Hold>,
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Registry {
    version: u32,
    next: u64,
    holds: Vec<Hold>,
}

impl Host {
    /// What a folder holds, which it is given if it holds nothing yet. Makes its scratch folder
    /// anew when somebody removed it. Writes nothing inside the folder.
    ///
    /// # Errors
    /// [`ExecError::NoPorts`], [`ExecError::Host`].
    pub fn adopt(&self, directory: &AbsoluteDir) -> Result<Adopted, ExecError> {
        self.prepare()?;
        let path = directory.as_path();
        let folder = FileIdentity::of(path).map_err(HostError::system("examine", path))?;
        // Files are replaced whole, so that most runs need no lock to find their place.
        if let Some(found) = find(&self.holds()?, directory, &folder)
            && is_scratch_there(&found.hold)
        {
            return Ok(found);
        }
        let lock = self.lock_registry("adopt a place")?;
        let mut registry = self.read_registry()?;
        if let Some(mut found) = find(&registry.holds, directory, &folder) {
            // Made by another run meanwhile, or its scratch folder was removed.
            if !is_scratch_there(&found.hold) {
                found.hold.scratch_folder = make_scratch(found.hold.scratch.as_path())?;
                registry.put(found.hold.clone());
                self.write_registry(&registry)?;
            }
            return Ok(found);
        }
        let taken: BTreeSet<Block> = registry.holds.iter().map(|hold| hold.ports).collect();
        let mut free = self.ports().free(self.seed()?, &taken);
        let Some(ports) = free.find(|block| sockets::is_free(*block)) else {
            drop(lock);
            return Err(ExecError::NoPorts(self.list()?));
        };
        let id = format!("p{}", registry.next);
        let scratch = self.scratch(&id)?;
        let hold = Hold {
            scratch_folder: make_scratch(&scratch)?,
            scratch: AbsoluteDir::new(&scratch)
                .map_err(|error| unreadable(&scratch, error.to_string()))?,
            id,
            directory: directory.clone(),
            folder,
            boot: this_process()?.boot_id,
            ports,
            adopted: now(),
            held_back: None,
        };
        let stale = stale(&registry.holds, directory);
        registry.next = registry.next.saturating_add(1);
        registry.holds.push(hold.clone());
        self.write_registry(&registry)?;
        Ok(Adopted { hold, is_new: true, stale })
    }

    /// Every hold on this host, the oldest first.
    pub(crate) fn holds(&self) -> Result<Vec<Hold>, HostError> {
        Ok(self.read_registry()?.holds)
    }

    /// Writes that a release left the hold here, and why.
    pub(crate) fn hold_back(&self, id: &str, why: &str) -> Result<(), HostError> {
        let _lock = self.lock_registry("hold a place back")?;
        let mut registry = self.read_registry()?;
        for hold in registry.holds.iter_mut().filter(|hold| hold.id == id) {
            hold.held_back = Some(why.to_owned());
        }
        self.write_registry(&registry)
    }

    /// Removes the hold: its ports may go to others.
    pub(crate) fn forget(&self, id: &str) -> Result<(), HostError> {
        let _lock = self.lock_registry("forget a place")?;
        let mut registry = self.read_registry()?;
        registry.holds.retain(|hold| hold.id != id);
        self.write_registry(&registry)
    }

    fn read_registry(&self) -> Result<Registry, HostError> {
        let path = self.registry();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Registry { version: VERSION, next: 1, holds: Vec::new() });
            }
            Err(error) => return Err(HostError::system("read", &path)(error)),
        };
        // The version is looked at first: a newer form may have anything else in it.
        let version = serde_json::from_slice::<Version>(&bytes)
            .map_err(|error| unreadable(&path, error.to_string()))?
            .version;
        if version > VERSION {
            let why = format!("it is of version {version}, of a newer program");
            return Err(unreadable(&path, why));
        }
        serde_json::from_slice(&bytes).map_err(|error| unreadable(&path, error.to_string()))
    }

    fn write_registry(&self, registry: &Registry) -> Result<(), HostError> {
        let path = self.registry();
        let bytes = serde_json::to_vec_pretty(registry)
            .map_err(|error| unreadable(&path, error.to_string()))?;
        Ok(replace(&path, &bytes, Some(0o600))?)
    }
}

impl Registry {
    fn put(&mut self, hold: Hold) {
        self.holds.retain(|other| other.id != hold.id);
        self.holds.push(hold);
    }
}

fn unreadable(path: &Path, why: String) -> HostError {
    HostError::Unreadable { path: path.to_owned(), why }
}

fn find(holds: &[Hold], directory: &AbsoluteDir, folder: &FileIdentity) -> Option<Adopted> {
    let mut same_path = holds.iter().filter(|hold| hold.directory == *directory);
    let hold = same_path.find(|hold| hold.is(folder))?.clone();
    let mut stale = stale(holds, directory);
    stale.retain(|other| other.id != hold.id);
    Some(Adopted { hold, is_new: false, stale })
}

fn stale(holds: &[Hold], directory: &AbsoluteDir) -> Vec<Hold> {
    holds.iter().filter(|hold| hold.directory == *directory).cloned().collect()
}

fn is_scratch_there(hold: &Hold) -> bool {
    let found = FileIdentity::of(hold.scratch.as_path());
    found.is_ok_and(|found| hold.scratch_folder.is_same(&found, false))
}

fn make_scratch(path: &Path) -> Result<FileIdentity, HostError> {
    private_dir(path)?;
    FileIdentity::of(path).map_err(HostError::system("examine", path))
}
