//! The database's shape, step by step.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::error::StoreError;
use crate::sql::failed;

/// Each step brings the database from the version of its index to the next.
const STEPS: [&str; 1] = [FIRST];

/// The newest version that this program knows.
pub(crate) const KNOWN: i64 = 1;

/// Events have a rowid of their own, so that the appends of all sessions go to the same few pages
/// at the end of the table and a group commit writes little; the two indexes carry the order.
/// `agent` of a stream is '' for the control stream. `last` marks the end of a batch.
/// The index `turns` serves [`crate::Reader::unfinished`], whose condition it repeats; with `IN`
/// each insert would make a table of the list.
const FIRST: &str = "
    CREATE TABLE sessions (
        key INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE
    ) STRICT;
    CREATE TABLE agents (
        id TEXT PRIMARY KEY,
        session INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE streams (
        key INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        agent TEXT NOT NULL,
        UNIQUE (session, agent)
    ) STRICT;
    CREATE TABLE events (
        key INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        position INTEGER NOT NULL,
        stream INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        at INTEGER NOT NULL,
        request TEXT,
        scope TEXT NOT NULL,
        kind TEXT NOT NULL,
        version INTEGER NOT NULL,
        body TEXT NOT NULL,
        last INTEGER NOT NULL,
        UNIQUE (session, position),
        UNIQUE (stream, seq)
    ) STRICT;
    CREATE UNIQUE INDEX requests ON events (session, request) WHERE request IS NOT NULL;
    CREATE INDEX turns ON events (session, kind)
        WHERE kind = 'turn-started' OR kind = 'turn-settled' OR kind = 'agent-reserved'
           OR kind = 'agent-published' OR kind = 'agent-refused';
    CREATE TABLE bodies (
        key INTEGER PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE,
        bytes BLOB NOT NULL
    ) STRICT;
    CREATE TABLE leases (
        name TEXT PRIMARY KEY,
        fence INTEGER NOT NULL,
        holder TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// The version of the database, if this program may use it: 0 for an empty one.
pub(crate) fn version(connection: &Connection, path: &Path) -> Result<i64, StoreError> {
    let read = failed("read the version of the store");
    let found: i64 =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(&read)?;
    if found > KNOWN {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: KNOWN });
    }
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))
        .map_err(&read)?;
    if found < 0 || (found == 0 && tables > 0) {
        return Err(StoreError::Foreign(path.to_owned()));
    }
    Ok(found)
}

/// Brings the database to the newest version, in one transaction.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let act = failed("migrate the store");
    let migration =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&act)?;
    let found = version(&migration, path)?;
    let done = usize::try_from(found).unwrap_or(usize::MAX);
    for step in STEPS.iter().skip(done) {
        migration.execute_batch(step).map_err(&act)?;
    }
    if found < KNOWN {
        migration.pragma_update(None, "user_version", KNOWN).map_err(&act)?;
    }
    migration.commit().map_err(&act)
}
