//! The one writer of a home.

use std::borrow::Borrow;
use std::fs::OpenOptions;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::mpsc;

use rusqlite::Connection;
use stead_files::{Lock, LockError};

use crate::append::{Append, Appended};
use crate::blob::{Blobs, sync_folder};
use crate::error::StoreError;
use crate::lease::{Lease, LeaseName};
use crate::migrate;
use crate::reader::{Reader, database};
use crate::sql::failed;
use crate::writer::Writer;

/// The store of a home, open for writing. One process at a time has it.
///
/// Dropping it finishes what was submitted and gives up the home.
pub struct Store {
    // In this order they are dropped: the last connection to close empties the write-ahead log,
    // and the lock must outlive them all.
    reader: Reader,
    pub(crate) writer: Writer,
    _lock: Lock,
}

impl Store {
    /// Opens the store of `home` for writing, making or migrating it if need be, and takes the
    /// kernel lock `stead.lock`.
    ///
    /// # Errors
    /// [`StoreError::Held`] when somebody writes the home, [`StoreError::Newer`] when a newer
    /// program wrote it, [`StoreError::Foreign`] when the database is not stead's: nothing is
    /// touched then. [`StoreError::Unwritable`] in a read-only home.
    pub fn open(home: &Path) -> Result<Self, StoreError> {
        let fresh = !home.exists();
        stead_files::private_dir(home)?;
        if fresh && let Some(parent) = home.parent() {
            sync_folder(parent)?;
        }
        let lock = take(home)?;
        let file = database(home);
        // A look that touches nothing comes first. Whatever else is wrong, the opening below says.
        if let Err(error @ (StoreError::Newer { .. } | StoreError::Foreign(_))) =
            Reader::visitor(home)
        {
            return Err(error);
        }
        stead_files::private_dir(&home.join("blobs"))?;
        let act = failed("open the store");
        keep_private(&file).map_err(|source| StoreError::Unwritable {
            home: home.to_owned(),
            source: source.into(),
        })?;
        let mut connection = Connection::open(&file).map_err(&act)?;
        connection
            .pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))
            .and_then(|()| connection.pragma_update(None, "synchronous", "full"))
            .map_err(&act)?;
        connection.set_prepared_statement_cache_capacity(64);
        migrate::migrate(&mut connection, &file)?;
        sync_folder(home)?;
        let writer = Writer::start(connection, Blobs::of(home))?;
        Ok(Self { reader: Reader::live(home), writer, _lock: lock })
    }

    /// Opens the store of `home` for reading only, whether or not somebody writes it. Nothing is
    /// locked and nothing is written, so a read-only home will do.
    ///
    /// # Errors
    /// [`StoreError::Absent`] when there is no store; [`StoreError::Newer`] and
    /// [`StoreError::Older`] when this program cannot read it as it is.
    pub fn open_reader(home: &Path) -> Result<Reader, StoreError> {
        Reader::visitor(home)
    }

    /// Reads beside the writer, from any thread. What was acknowledged is seen.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Stores a batch and blocks until it is durable.
    pub fn append(&self, append: impl Borrow<Append>) -> Result<Appended, StoreError> {
        let (answer, outcome) = mpsc::sync_channel(1);
        self.submit(append, move |result| {
            // The receiver waits just below.
            let _ = answer.send(result);
        });
        outcome.recv().unwrap_or(Err(StoreError::Closed))
    }

    /// Stores a batch and calls `done` with the outcome once it is durable or refused, on the
    /// writer's thread: `done` must neither block nor panic. This call does not wait for the disk.
    ///
    /// Batches are stored in the order in which they are submitted.
    pub fn submit(
        &self,
        append: impl Borrow<Append>,
        done: impl FnOnce(Result<Appended, StoreError>) + Send + 'static,
    ) {
        self.writer.submit(append.borrow(), Box::new(done));
    }

    /// Takes the lease `name`; `purpose` is one line for people.
    ///
    /// # Errors
    /// [`StoreError::LeaseHeld`] when somebody has it, in this process or another.
    pub fn lease(&self, name: &LeaseName, purpose: &str) -> Result<Lease, StoreError> {
        Lease::acquire(self.reader.home(), &self.writer, name, purpose)
    }
}

/// Makes the database readable by its owner only, before anything is in it; SQLite gives the files
/// beside it the same bits. One that an older program made is put right.
fn keep_private(file: &Path) -> std::io::Result<()> {
    let private = std::fs::Permissions::from_mode(0o600);
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let open = std::fs::metadata(file)?.permissions().mode() & 0o077 != 0;
            if open { std::fs::set_permissions(file, private) } else { Ok(()) }
        }
        Err(error) => Err(error),
    }
}

fn take(home: &Path) -> Result<Lock, StoreError> {
    let path = home.join("stead.lock");
    match Lock::try_exclusive(&path, "stead store") {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => {
            Err(StoreError::Held { home: home.to_owned(), holder: stead_files::holder(&path)? })
        }
        Err(LockError::System { source, .. }) if is_unwritable(&source) => {
            Err(StoreError::Unwritable { home: home.to_owned(), source: source.into() })
        }
        Err(error) => Err(error.into()),
    }
}

fn is_unwritable(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}
