//! Removing bodies that no event refers to.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{Connection, params};
use stead_core::id::Digest;

use crate::check::digests_in;
use crate::error::StoreError;
use crate::sql::{Number, failed};
use crate::store::Store;

const ACT: &str = "collect garbage";

/// How to sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// Only list what would be removed.
    List,
    /// Remove it.
    Remove,
}

/// A body that no event refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Garbage {
    /// Its digest; `None` for a temporary file that a killed process left.
    pub digest: Option<Digest>,
    /// Its file; `None` for a row of the database.
    pub path: Option<PathBuf>,
    /// Its length in bytes.
    pub bytes: u64,
}

impl Store {
    /// Removes, or lists, the bodies that no event of any session refers to: rows, and files older
    /// than `age`. `keep` speaks for whoever else keeps files by digest in the home. Appends wait
    /// while the events since the start of the call are looked through, not while all are.
    pub fn collect(
        &self,
        sweep: Sweep,
        age: Duration,
        keep: impl Fn(&Digest) -> bool,
    ) -> Result<Vec<Garbage>, StoreError> {
        let (mut referred, seen) = self.reader().with(|connection| {
            let mut referred = HashSet::new();
            let seen = referred_after(connection, 0, &mut referred)?;
            Ok((referred, seen))
        })?;
        let files = self.reader().blobs().candidates(age, keep)?.into_iter();
        let mut files: Vec<_> = files
            .map(|file| Garbage { digest: file.digest, path: Some(file.path), bytes: file.bytes })
            .collect();
        // On the writer's thread nothing can begin to refer to a body while it is removed.
        self.writer.call(move |connection, _| {
            referred_after(connection, seen, &mut referred)?;
            files.retain(|file| file.digest.is_none_or(|digest| !referred.contains(&digest)));
            let mut garbage = rows(connection, &referred)?;
            if sweep == Sweep::Remove {
                let transaction = connection.transaction().map_err(failed(ACT))?;
                for row in garbage.iter().filter_map(|row| row.digest) {
                    transaction
                        .execute("DELETE FROM bodies WHERE digest = ?1", params![row.as_bytes()])
                        .map_err(failed(ACT))?;
                }
                transaction.commit().map_err(failed(ACT))?;
                for path in files.iter().filter_map(|file| file.path.as_ref()) {
                    match fs::remove_file(path) {
                        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                            return Err(StoreError::system("remove", path, error));
                        }
                        _ => {}
                    }
                }
            }
            garbage.append(&mut files);
            Ok(garbage)
        })
    }
}

/// Adds what the events after row `after` refer to; gives the last row.
fn referred_after(
    connection: &Connection,
    after: i64,
    referred: &mut HashSet<Digest>,
) -> Result<i64, StoreError> {
    let mut statement = connection
        .prepare("SELECT key, body FROM events WHERE key > ?1 ORDER BY key")
        .map_err(failed(ACT))?;
    let mut rows = statement.query([after]).map_err(failed(ACT))?;
    let mut last = after;
    // An event that cannot be read ends the sweep: what it refers to is not known.
    while let Some(row) = rows.next().map_err(failed(ACT))? {
        last = row.get(0).map_err(failed(ACT))?;
        let body: String = row.get(1).map_err(failed(ACT))?;
        referred.extend(digests_in(&body));
    }
    Ok(last)
}

fn rows(connection: &Connection, referred: &HashSet<Digest>) -> Result<Vec<Garbage>, StoreError> {
    let mut statement =
        connection.prepare("SELECT digest, length(bytes) FROM bodies").map_err(failed(ACT))?;
    let rows = statement
        .query_map([], |row| Ok((row.get::<_, [u8; 32]>(0)?, row.get::<_, Number>(1)?.0)))
        .map_err(failed(ACT))?;
    let mut garbage = Vec::new();
    for row in rows {
        let (digest, bytes) = row.map_err(failed(ACT))?;
        let digest = Digest::from_bytes(digest);
        if !referred.contains(&digest) {
            garbage.push(Garbage { digest: Some(digest), path: None, bytes });
        }
    }
    Ok(garbage)
}
