//! Bodies by digest: short ones are rows of the database, long ones are files beside it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use stead_core::id::{BodyRef, Digest};

use crate::error::StoreError;

/// Bodies up to this many bytes are stored in the transaction of the events that refer to them.
pub const INLINE_BYTES: usize = 64 * 1024;

/// Some bytes and their digest, which belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    digest: Digest,
    bytes: Arc<[u8]>,
}

impl Body {
    /// A body of these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self { digest: digest_of(&bytes), bytes: bytes.into() }
    }

    /// The BLAKE3 digest of the bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How an event refers to it.
    pub fn reference(&self) -> BodyRef {
        BodyRef { digest: self.digest, bytes: u64::try_from(self.bytes.len()).unwrap_or(u64::MAX) }
    }

    /// Whether it is stored as a row.
    pub(crate) fn is_inline(&self) -> bool {
        self.bytes.len() <= INLINE_BYTES
    }
}

pub(crate) fn digest_of(bytes: &[u8]) -> Digest {
    Digest::from_bytes(*blake3::hash(bytes).as_bytes())
}

/// The files of a home that are named by the digest of what is in them: `blobs/<2 hex>/<62 hex>`.
#[derive(Debug, Clone)]
pub struct Blobs {
    folder: PathBuf,
}

impl Blobs {
    /// The blobs of this home. Nothing is made or looked at yet.
    pub fn of(home: &Path) -> Self {
        Self { folder: home.join("blobs") }
    }

    /// Where the body with this digest is, if it is a file.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        let text = digest.to_string();
        let (first, rest) = text.split_at_checked(2).unwrap_or((&text, ""));
        self.folder.join(first).join(rest)
    }

    /// Stores the body as a file. When this returns it survives a power cut. A damaged file of
    /// that name is replaced.
    pub fn put(&self, body: &Body) -> Result<(), StoreError> {
        let path = self.path(&body.digest);
        let parent = path.parent().unwrap_or(&self.folder);
        if stead_files::read_file(&path).is_ok_and(|stored| *stored == *body.bytes) {
            // A process that was killed between the rename and the folder's sync may have left it.
            return sync_folder(parent);
        }
        if !parent.is_dir() {
            stead_files::private_dir(parent)?;
            sync_folder(&self.folder)?;
        }
        stead_files::replace(&path, &body.bytes, None)?;
        Ok(())
    }

    /// The bytes with this digest; `None` when there is no such file.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the file holds other bytes.
    pub fn get(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path(digest);
        match stead_files::read_file(&path) {
            Ok(bytes) if digest_of(&bytes) == *digest => Ok(Some(bytes)),
            Ok(_) => Err(StoreError::Damaged(*digest)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::system("read", path, error)),
        }
    }

    /// How long the file with this digest is; `None` when there is none.
    pub(crate) fn length(&self, digest: &Digest) -> Option<u64> {
        let found = self.path(digest).metadata().ok()?;
        found.is_file().then_some(found.len())
    }

    /// The files older than `age` that are bodies for which `keep` is false, or that a killed
    /// process left half written; not what stead never named so. Whether an event refers to them
    /// is for the caller.
    pub(crate) fn candidates(
        &self,
        age: Duration,
        keep: impl Fn(&Digest) -> bool,
    ) -> Result<Vec<Candidate>, StoreError> {
        let mut found = Vec::new();
        for parent in entries(&self.folder)? {
            if !parent.is_dir() {
                continue;
            }
            for path in entries(&parent)? {
                let digest = digest_at(&path);
                let left = path.file_name().is_some_and(stead_files::is_temporary);
                // What is gone meanwhile needs no one to remove it.
                let Ok(file) = path.metadata() else { continue };
                if digest.map_or(left, |digest| !keep(&digest)) && is_older(&file, age) {
                    found.push(Candidate { digest, path, bytes: file.len() });
                }
            }
        }
        Ok(found)
    }
}

/// A file that may be garbage.
pub(crate) struct Candidate {
    /// `None` for a half-written one.
    pub(crate) digest: Option<Digest>,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

fn is_older(file: &fs::Metadata, age: Duration) -> bool {
    // A time in the future says that a clock jumped; such a file is as good as new.
    file.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok()) >= Some(age)
}

fn digest_at(path: &Path) -> Option<Digest> {
    let rest = path.file_name()?.to_str()?;
    let first = path.parent()?.file_name()?.to_str()?;
    Digest::parse(&format!("{first}{rest}")).ok()
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let failed = |error| StoreError::system("list", folder, error);
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.map(|e| e.path()).map_err(failed)).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(error)),
    }
}

/// Makes the entries of a folder survive a power cut.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder)
        .and_then(|opened| opened.sync_all())
        .map_err(|error| StoreError::system("sync", folder, error))
}
