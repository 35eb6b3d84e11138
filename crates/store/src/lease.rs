//! Leases: who may act for something, such as a session.
//!
//! A lease is held by the kernel lock on `leases/<name>.lock` and by nothing else, so it ends with
//! its holder, however that one dies. The row in the database counts the holders (the *fence*) and
//! keeps the last one's name for people.

use std::fmt;
use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension as _, params};
use serde::{Deserialize, Serialize};
use stead_files::Lock;

use crate::error::StoreError;
use crate::reader::Reader;
use crate::sql::{Number, failed};
use crate::writer::Writer;

const ACT: &str = "write down a lease";

/// The name of a lease: 1 to 128 letters, digits, `.`, `_` and `-`, beginning with a letter or a
/// digit, so that every session's id is one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LeaseName(String);

impl LeaseName {
    /// Parses the text.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let begins = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        if begins && text.len() <= 128 && text.bytes().all(good) {
            Ok(Self(text.to_owned()))
        } else {
            Err(StoreError::BadLeaseName(text.chars().take(80).collect()))
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who took a lease last, as the database knows it. Whether it is still held, only the lock says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseHolder {
    /// The process number.
    pub pid: u32,
    /// What it wanted the lease for, one line.
    pub purpose: String,
}

/// A lease that is held until it is dropped.
#[derive(Debug)]
pub struct Lease {
    name: LeaseName,
    fence: u64,
    _lock: Lock,
}

impl Lease {
    /// What is held.
    pub fn name(&self) -> &LeaseName {
        &self.name
    }

    /// The how-manieth holder this is, from 1; later holders have greater numbers.
    pub fn fence(&self) -> u64 {
        self.fence
    }

    pub(crate) fn acquire(
        home: &Path,
        writer: &Writer,
        name: &LeaseName,
        purpose: &str,
    ) -> Result<Self, StoreError> {
        stead_files::private_dir(&home.join("leases"))?;
        let path = lock_path(home, name);
        let Some(lock) = Lock::try_exclusive(&path, purpose)? else {
            let holder = stead_files::holder(&path)?;
            return Err(StoreError::LeaseHeld { name: name.0.clone(), holder });
        };
        let holder = LeaseHolder { pid: std::process::id(), purpose: purpose.to_owned() };
        let holder = serde_json::to_string(&holder)
            .map_err(|e| StoreError::Database { act: ACT, reason: e.to_string() })?;
        let row = name.0.clone();
        let Number(fence) = writer.call(move |connection, _| {
            connection
                .query_row(
                    "INSERT INTO leases (name, fence, holder) VALUES (?1, 1, ?2)
                     ON CONFLICT (name) DO UPDATE SET fence = fence + 1, holder = excluded.holder
                     RETURNING fence",
                    params![row, holder],
                    |row| row.get(0),
                )
                .map_err(failed(ACT))
        })?;
        Ok(Self { name: name.clone(), fence, _lock: lock })
    }
}

fn lock_path(home: &Path, name: &LeaseName) -> PathBuf {
    home.join("leases").join(format!("{name}.lock"))
}

impl Reader {
    /// Who took the lease last, and its fence; `None` when nobody ever did.
    pub fn lease(&self, name: &LeaseName) -> Result<Option<(u64, LeaseHolder)>, StoreError> {
        let row: Option<(Number, String)> = self.with(|connection| {
            connection
                .prepare_cached("SELECT fence, holder FROM leases WHERE name = ?1")
                .and_then(|mut s| {
                    s.query_row([name.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()
                })
                .map_err(failed("read a lease"))
        })?;
        row.map(|(Number(fence), holder)| match serde_json::from_str(&holder) {
            Ok(holder) => Ok((fence, holder)),
            Err(e) => Err(StoreError::Database { act: "read a lease", reason: e.to_string() }),
        })
        .transpose()
    }
}
