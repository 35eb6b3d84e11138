//! A root's depot: its object files, linked or copied once, that its copies borrow from.
//!
//! So no copy shares an inode with its source, and no collection of garbage in the source takes
//! anything from a copy. The depot is a bare repository without refs: Git itself can be asked what
//! is in it, but never collects there, because nobody runs it to.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stead_core::id::RootId;
use stead_core::step::{self, Moment};
use stead_files::{Lock, TreeError, Watch, private_dir, remove_tree_at};
use stead_git::{Git, ObjectFormat, Repository};

use crate::error::{CopyError, failed};
use crate::home::Home;
use crate::keep::sync_file_system;

/// How often the source's object files are listed again because a repack moved them meanwhile.
const ROUNDS: usize = 10;

/// How long another filling is waited for, and how often a cancel is looked for meanwhile.
const PATIENCE: Duration = Duration::from_mins(10);
const NAP: Duration = Duration::from_millis(200);

/// Where copied object files wait, beside the objects, until the disk has them: a name that a power
/// cut left on half a file would be taken for the whole one ever after.
const INCOMING: &str = "incoming";

/// The depot of one root, whether it is there or not.
pub(crate) struct Depot {
    folder: PathBuf,
    lock: PathBuf,
}

impl Depot {
    pub(crate) fn of(home: &Home, root: &RootId) -> Self {
        let lock = home.depots().join(format!(".{root}.lock"));
        Self { folder: home.depot(root), lock }
    }

    /// The folder of the objects, which `info/alternates` names.
    pub(crate) fn objects(&self) -> PathBuf {
        self.folder.join("objects")
    }

    /// The depot as a repository to be asked; none where there is none.
    pub(crate) fn repository(&self, git: &Git) -> Result<Option<Repository>, CopyError> {
        if self.objects().is_dir() {
            Ok(Repository::discover(git, &self.folder)?)
        } else {
            Ok(None)
        }
    }

    /// Takes the depot's lock, waiting for whoever fills it now.
    pub(crate) fn lock(&self, purpose: &str, watch: Watch<'_>) -> Result<Lock, CopyError> {
        private_dir(self.folder.parent().unwrap_or(&self.folder))?;
        let mut waited = Duration::ZERO;
        loop {
            if watch.is_cancelled() {
                return Err(TreeError::Cancelled.into());
            }
            if let Some(lock) = Lock::exclusive_within(&self.lock, purpose, NAP)? {
                return Ok(lock);
            }
            waited += NAP;
            if waited >= PATIENCE {
                let holder = stead_files::holder(&self.lock)?.map(|holder| holder.to_string());
                let holder = holder.unwrap_or_else(|| "another process".to_owned());
                return Err(CopyError::Busy { path: self.lock.clone(), holder });
            }
        }
    }

    /// Adds every object file of `source` and of those it borrows from that is not here yet.
    /// Durable once the home's file system is synced. Passes the step `copies.depot`.
    pub(crate) fn fill(&self, source: &Repository, watch: Watch<'_>) -> Result<(), CopyError> {
        let _lock = self.lock("fill the depot", watch)?;
        self.prepare(source.object_format)?;
        step::pass("copies.depot", Moment::Before);
        let incoming = self.folder.join(INCOMING);
        remove_tree_at(&incoming)?;
        let folders = source.object_folders()?;
        for folder in std::iter::once(&folders.own).chain(&folders.borrowed) {
            self.fill_from(folder, watch)?;
        }
        remove_tree_at(&incoming)?;
        step::pass("copies.depot", Moment::After);
        Ok(())
    }

    fn prepare(&self, format: ObjectFormat) -> Result<(), CopyError> {
        private_dir(&self.folder)?;
        for folder in ["objects/pack", "objects/info", "refs"] {
            let path = self.folder.join(folder);
            fs::create_dir_all(&path).map_err(failed("create", &path))?;
        }
        let config = match format {
            ObjectFormat::Sha1 => "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
            ObjectFormat::Sha256 => {
                "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n"
            }
        };
        for (name, text) in [("config", config), ("HEAD", "ref: refs/heads/none\n")] {
            let path = self.folder.join(name);
            // One that a power cut left half written is written again.
            if fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
                fs::write(&path, text).map_err(failed("write", &path))?;
            }
        }
        Ok(())
    }

    /// Loose objects first, then packs: what a repack moves from one to the other is then seen in
    /// at least one place. What vanishes meanwhile is looked for again.
    fn fill_from(&self, folder: &Path, watch: Watch<'_>) -> Result<(), CopyError> {
        for _ in 0..ROUNDS {
            let mut is_whole = true;
            let mut copied = Vec::new();
            for (bucket, object) in loose(folder)? {
                let from = folder.join(&bucket).join(&object);
                is_whole &= self.take(&from, &bucket, &object, &mut copied)?;
                if watch.is_cancelled() {
                    return Err(TreeError::Cancelled.into());
                }
            }
            for pack in packs(folder)? {
                is_whole &= self.take_pack(&folder.join("pack"), &pack, &mut copied)?;
            }
            self.place(copied)?;
            if is_whole {
                return Ok(());
            }
        }
        // The check of what a copy needs says what is missing, if anything is.
        Ok(())
    }

    /// A pack counts as here when its index is, which comes last; a pack of the same name whose
    /// index is not here may be of other bytes than the source's and goes.
    fn take_pack(
        &self,
        from: &Path,
        name: &str,
        copied: &mut Vec<Incoming>,
    ) -> Result<bool, CopyError> {
        let here = self.objects().join("pack");
        if here.join(format!("{name}.idx")).exists() {
            return Ok(true);
        }
        for ending in ["pack", "rev"] {
            let half = here.join(format!("{name}.{ending}"));
            match fs::remove_file(&half) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(CopyError::system("remove", &half, error)),
            }
        }
        let mut take = |ending: &str| {
            let file = format!("{name}.{ending}");
            self.take(&from.join(&file), "pack", &file, copied)
        };
        if !take("pack")? {
            return Ok(false);
        }
        // Not every pack has a reverse index, and Git does without.
        take("rev")?;
        take("idx")
    }

    /// Links or copies one file; whether it was there to be taken.
    fn take(
        &self,
        from: &Path,
        bucket: &str,
        name: &str,
        copied: &mut Vec<Incoming>,
    ) -> Result<bool, CopyError> {
        let folder = self.objects().join(bucket);
        let to = folder.join(name);
        let mut linked = fs::hard_link(from, &to);
        if linked.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            fs::create_dir_all(&folder).map_err(failed("create", &folder))?;
            linked = fs::hard_link(from, &to);
        }
        match linked {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            // Another device, a file system without links, a file that may not be linked.
            Err(_) => {}
        }
        let incoming = self.folder.join(INCOMING);
        fs::create_dir_all(&incoming).map_err(failed("create", &incoming))?;
        let at = incoming.join(copied.len().to_string());
        match fs::copy(from, &at) {
            Ok(_) => copied.push(Incoming { at, to }),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(CopyError::system("copy", from, error)),
        }
        Ok(true)
    }

    /// Gives copied files their names, in the order in which they came, once the disk has them.
    fn place(&self, copied: Vec<Incoming>) -> Result<(), CopyError> {
        if copied.is_empty() {
            return Ok(());
        }
        sync_file_system(&self.folder)?;
        copied
            .iter()
            .try_for_each(|Incoming { at, to }| fs::rename(at, to).map_err(failed("rename to", to)))
    }
}

/// A copied object file and where it belongs.
struct Incoming {
    at: PathBuf,
    to: PathBuf,
}

/// Loose objects: the folder of two digits and the name of the rest.
fn loose(folder: &Path) -> Result<Vec<(String, String)>, CopyError> {
    let mut found = Vec::new();
    for bucket in names(folder)?.into_iter().filter(|name| name.len() == 2 && is_hex(name)) {
        for object in names(&folder.join(&bucket))? {
            if matches!(object.len(), 38 | 62) && is_hex(&object) {
                found.push((bucket.clone(), object));
            }
        }
    }
    Ok(found)
}

/// The names of whole packs, without endings.
fn packs(folder: &Path) -> Result<BTreeSet<String>, CopyError> {
    let names = names(&folder.join("pack"))?;
    Ok(names.iter().filter_map(|name| name.strip_suffix(".idx")).map(ToOwned::to_owned).collect())
}

/// The names in a folder that are text, as all of Git's are; none where there is no folder.
fn names(folder: &Path) -> Result<Vec<String>, CopyError> {
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(CopyError::system("list", folder, error)),
    };
    let mut found = Vec::new();
    for entry in listed {
        let entry = entry.map_err(failed("list", folder))?;
        found.extend(entry.file_name().into_string());
    }
    Ok(found)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
