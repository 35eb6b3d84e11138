//! Connections that only read.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::blob::Blobs;
use crate::error::StoreError;
use crate::migrate;
use crate::sql::failed;

/// How many idle connections a live reader keeps.
const KEPT: usize = 8;

/// How often a visitor starts over because a writer came or went under it.
const TRIES: usize = 20;

/// How long a read waits for a writer that opens or closes the database.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads a home's log, from any number of threads. It never writes.
pub struct Reader {
    home: PathBuf,
    file: PathBuf,
    pub(crate) blobs: Blobs,
    way: Way,
}

enum Way {
    /// Beside the writer in this process: connections are kept.
    Live(Mutex<Vec<Connection>>),
    /// A guest in the home, which may be read-only or written by another process.
    Visitor,
}

/// The length of SQLite's write-ahead log before anything is written ahead. A writer that was
/// killed just then leaves it so, and SQLite itself cannot read that without writing.
const LOG_HEADER: u64 = 32;

/// What shows whether anybody wrote the database file between two looks.
#[derive(PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
    /// Whether anything is written ahead of it.
    log: bool,
}

impl Reader {
    pub(crate) fn live(home: &Path) -> Self {
        Self::new(home, Way::Live(Mutex::default()))
    }

    /// A reader for anybody, with or without a writer. Nothing is written, not even SQLite's own
    /// files beside the database when there is no writer; so it works in a read-only home.
    pub(crate) fn visitor(home: &Path) -> Result<Self, StoreError> {
        let reader = Self::new(home, Way::Visitor);
        match reader.with(|connection| migrate::version(connection, &reader.file))? {
            0 => Err(StoreError::Absent(home.to_owned())),
            found if found < migrate::KNOWN => Err(StoreError::Older { path: reader.file, found }),
            _ => Ok(reader),
        }
    }

    fn new(home: &Path, way: Way) -> Self {
        Self { home: home.to_owned(), file: database(home), blobs: Blobs::of(home), way }
    }

    /// The home that is read.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The home's files by digest.
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Runs `read` on a connection, in one read transaction: it sees one state of the store.
    pub(crate) fn with<T>(
        &self,
        read: impl Fn(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match &self.way {
            Way::Live(idle) => {
                let kept = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let connection = match kept {
                    Some(connection) => connection,
                    None => connect(&self.file, "mode=ro")?,
                };
                let outcome = in_transaction(&connection, &read);
                let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.len() < KEPT {
                    idle.push(connection);
                }
                outcome
            }
            Way::Visitor => self.visit(&read),
        }
    }

    /// Without a writer nothing is written ahead; then the file is read as it is, which needs no
    /// locks and no files beside it, and holds if nobody wrote it meanwhile.
    fn visit<T>(
        &self,
        read: &impl Fn(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        for _ in 0..TRIES {
            let before = self.stamp()?;
            let options = match (before.log, beside(&self.file, "-shm").exists()) {
                (false, _) => "mode=ro&immutable=1",
                (true, true) => "mode=ro&readonly_shm=1",
                (true, false) => "mode=ro",
            };
            let outcome = connect(&self.file, options).and_then(|open| in_transaction(&open, read));
            let after = self.stamp()?;
            // With a log, SQLite's own locks keep the read whole; it can only fail because the
            // last writer removed the log just as it was opened.
            let holds = if before.log { outcome.is_ok() || after.log } else { after == before };
            if holds {
                return outcome;
            }
        }
        Err(StoreError::Database {
            act: "read the store",
            reason: "it is opened and closed all the time".to_owned(),
        })
    }

    fn stamp(&self) -> Result<Stamp, StoreError> {
        let found = match fs::metadata(&self.file) {
            // A pipe would hold the one up that opens it.
            Ok(found) if !found.is_file() => return Err(StoreError::Foreign(self.file.clone())),
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(StoreError::Absent(self.home.clone()));
            }
            Err(error) => return Err(StoreError::system("examine", &self.file, error)),
        };
        Ok(Stamp {
            inode: found.ino(),
            bytes: found.len(),
            changed: (found.mtime(), found.mtime_nsec()),
            log: fs::metadata(beside(&self.file, "-wal")).is_ok_and(|log| log.len() > LOG_HEADER),
        })
    }
}

/// The database of a home.
pub(crate) fn database(home: &Path) -> PathBuf {
    home.join("stead.db")
}

fn in_transaction<T>(
    connection: &Connection,
    read: &impl Fn(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let transaction = connection.unchecked_transaction().map_err(failed("read the store"))?;
    // Dropping it ends it; there is nothing to commit.
    read(&transaction)
}

fn connect(file: &Path, options: &str) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(address(file, options), flags)
        .map_err(failed("open the store for reading"))?;
    connection.busy_timeout(PATIENCE).map_err(failed("open the store for reading"))?;
    Ok(connection)
}

/// The URI of a file whose name may hold any bytes.
fn address(file: &Path, options: &str) -> String {
    let mut uri = String::from("file://");
    for byte in file.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            // Writing to a string does not fail.
            byte => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri.push('?');
    uri.push_str(options);
    uri
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(OsStr::new(suffix));
    PathBuf::from(name)
}
