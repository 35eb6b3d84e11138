//! Where the logs end, as the writer's thread knows it.
//!
//! That thread is the only one to append, so what it stored last need not be asked of the database.
//! A session's tip is read from there when it is not known, which it is not after any failure.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, params};
use stead_core::event::Stream;
use stead_core::id::{Position, SessionId};

use crate::append::{ACT, stream_name};
use crate::error::StoreError;
use crate::sql::{Number, failed};

/// How many sessions are kept in mind; with one more, all are forgotten.
const MOST: usize = 64;

/// The tips of the sessions that were appended to lately.
#[derive(Default)]
pub(crate) struct Tips(HashMap<SessionId, Tip>);

/// Where one session's log ends.
pub(crate) struct Tip {
    /// The session's key.
    pub(crate) key: i64,
    /// The position of its last event.
    pub(crate) position: Position,
    /// Of the streams that were asked for: the key, and the number of the last event.
    streams: HashMap<Stream, (i64, u64)>,
}

impl Tips {
    /// The session's tip, which is no longer known here then.
    pub(crate) fn take(&mut self, session: &SessionId) -> Option<Tip> {
        self.0.remove(session)
    }

    pub(crate) fn put(&mut self, session: SessionId, tip: Tip) {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(session, tip);
    }

    /// Forgets everything.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

impl Tip {
    pub(crate) fn new(key: i64, position: Position) -> Self {
        Self { key, position, streams: HashMap::new() }
    }

    /// Counts one event more: the key of its stream, which is made if need be, and the event's
    /// number in it.
    pub(crate) fn count(
        &mut self,
        connection: &Connection,
        stream: &Stream,
    ) -> Result<(i64, u64), StoreError> {
        if let Some((key, seq)) = self.streams.get_mut(stream) {
            *seq = seq.saturating_add(1);
            return Ok((*key, *seq));
        }
        let (key, seq) = stored_stream(connection, self.key, stream)?;
        let counted = (key, seq.saturating_add(1));
        self.streams.insert(stream.clone(), counted);
        Ok(counted)
    }
}

/// The key of a stream and the number of its last event, making the stream if need be.
fn stored_stream(
    connection: &Connection,
    session: i64,
    stream: &Stream,
) -> Result<(i64, u64), StoreError> {
    let name = stream_name(stream);
    let known: Option<(i64, u64)> = connection
        .prepare_cached(
            "SELECT key, (SELECT ifnull(max(seq), 0) FROM events WHERE stream = streams.key)
             FROM streams WHERE session = ?1 AND agent = ?2",
        )
        .and_then(|mut statement| {
            statement
                .query_row(params![session, name], |row| {
                    Ok((row.get(0)?, row.get::<_, Number>(1)?.0))
                })
                .optional()
        })
        .map_err(failed(ACT))?;
    if let Some(known) = known {
        return Ok(known);
    }
    connection
        .prepare_cached("INSERT INTO streams (session, agent) VALUES (?1, ?2)")
        .and_then(|mut statement| statement.execute(params![session, name]))
        .map_err(failed(ACT))?;
    Ok((connection.last_insert_rowid(), 0))
}
