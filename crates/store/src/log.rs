//! Reading the log.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use stead_core::event::{Envelope, Event, StoredEvent, Stream, Unreadable};
use stead_core::id::{Digest, Position, RequestId, SessionId, Timestamp};

use crate::append::stream_name;
use crate::blob::digest_of;
use crate::error::StoreError;
use crate::reader::Reader;
use crate::request;
use crate::sql::{Number, failed, is_damage};

const ACT: &str = "read the log";

/// An event as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The event in its place.
    pub envelope: Envelope,
    /// Whether it is the last of its append: a stable position, where a rewind may lead.
    pub last_of_batch: bool,
}

/// One line about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// Its id.
    pub id: SessionId,
    /// When its first event was decided.
    pub first_at: Timestamp,
    /// When its last event was decided.
    pub last_at: Timestamp,
    /// The position of its last event.
    pub tip: Position,
    /// Its first event, if this program can read it.
    pub first: Result<Event, Unreadable>,
}

/// Rows of events, up to the point where each is decoded.
const COLUMNS: &str = "SELECT e.position, e.seq, t.agent, e.at, e.request, e.scope, e.kind, \
     e.version, e.body, e.last FROM events e JOIN streams t ON t.key = e.stream";

impl Reader {
    /// The events of a session from position `from` on, at most `limit`, in order. Fewer only at
    /// the tip.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] or [`StoreError::NewerEvent`] at the first event that is missing or
    /// cannot be read; what is before it can be read with a smaller limit.
    pub fn read(
        &self,
        session: &SessionId,
        from: Position,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let from = from.max(1);
        self.with(|connection| {
            let key = session_key(connection, session)?;
            let sql = format!(
                "{COLUMNS} WHERE e.session = ?1 AND e.position >= ?2 ORDER BY e.position LIMIT ?3"
            );
            let place = Place { session, next: from, counts: Counts::Positions };
            collect(connection, &sql, key, place, limit)
        })
    }

    /// The events of one stream from number `from_seq` on, at most `limit`, in order.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn read_stream(
        &self,
        session: &SessionId,
        stream: &Stream,
        from_seq: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let from = from_seq.max(1);
        self.with(|connection| {
            let key = session_key(connection, session)?;
            let stream: Option<i64> = connection
                .prepare_cached("SELECT key FROM streams WHERE session = ?1 AND agent = ?2")
                .and_then(|mut s| {
                    s.query_row(params![key, stream_name(stream)], |row| row.get(0)).optional()
                })
                .map_err(failed(ACT))?;
            let Some(stream) = stream else { return Ok(Vec::new()) };
            let sql =
                format!("{COLUMNS} WHERE e.stream = ?1 AND e.seq >= ?2 ORDER BY e.seq LIMIT ?3");
            let place = Place { session, next: from, counts: Counts::Numbers };
            collect(connection, &sql, stream, place, limit)
        })
    }

    /// The position of a session's last event; `None` when there is no such session.
    pub fn tip(&self, session: &SessionId) -> Result<Option<Position>, StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached(
                    "SELECT (SELECT max(position) FROM events WHERE session = sessions.key)
                     FROM sessions WHERE id = ?1",
                )
                .and_then(|mut s| {
                    s.query_row([session.as_str()], |row| row.get::<_, Option<Number>>(0))
                        .optional()
                })
                .map(|found| found.map(|tip| tip.map_or(0, |tip| tip.0)))
                .map_err(failed(ACT))
        })
    }

    /// Every session, the one created last first. A damaged session is listed too.
    pub fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        self.with(|connection| {
            let mut statement = connection
                .prepare_cached(
                    "SELECT s.id, f.at, l.at, l.position, f.scope, f.kind, f.version, f.body
                     FROM sessions s
                     JOIN events l ON l.session = s.key AND l.position =
                         (SELECT max(position) FROM events WHERE session = s.key)
                     LEFT JOIN events f ON f.session = s.key AND f.position = 1
                     ORDER BY s.key DESC",
                )
                .map_err(failed(ACT))?;
            let mut rows = statement.query([]).map_err(failed(ACT))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next().map_err(failed(ACT))? {
                found.extend(summary(row).map_err(failed(ACT))?);
            }
            Ok(found)
        })
    }

    /// The root session that an agent id belongs, or once belonged, to.
    pub fn owner(&self, agent: &SessionId) -> Result<Option<SessionId>, StoreError> {
        let found: Option<String> = self.with(|connection| {
            connection
                .prepare_cached(
                    "SELECT s.id FROM agents a JOIN sessions s ON s.key = a.session
                     WHERE a.id = ?1",
                )
                .and_then(|mut s| s.query_row([agent.as_str()], |row| row.get(0)).optional())
                .map_err(failed(ACT))
        })?;
        Ok(found.and_then(|id| SessionId::parse(&id).ok()))
    }

    /// The position of the first event of a request; `None` when the session never stored it.
    /// Rewound events count: the effect may be gone, the request was answered.
    pub fn request(
        &self,
        session: &SessionId,
        request: &RequestId,
    ) -> Result<Option<Position>, StoreError> {
        self.with(|connection| {
            let key = session_key(connection, session)?;
            request::position(connection, key, request)
        })
    }

    /// Whether a position is the end of a batch, where a rewind or fork may lead.
    pub fn is_stable(&self, session: &SessionId, position: Position) -> Result<bool, StoreError> {
        self.with(|connection| {
            let key = session_key(connection, session)?;
            connection
                .prepare_cached("SELECT last FROM events WHERE session = ?1 AND position = ?2")
                .and_then(|mut s| {
                    s.query_row(params![key, Number(position)], |row| row.get(0)).optional()
                })
                .map(Option::unwrap_or_default)
                .map_err(failed(ACT))
        })
    }

    /// The bytes of a body; `None` when it is not stored.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the stored bytes are not those of the digest.
    pub fn body(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let row: Option<Vec<u8>> = self.with(|connection| {
            connection
                .prepare_cached("SELECT bytes FROM bodies WHERE digest = ?1")
                .and_then(|mut s| s.query_row([digest.as_bytes()], |row| row.get(0)).optional())
                .map_err(failed("read a body"))
        })?;
        match row {
            Some(bytes) if digest_of(&bytes) == *digest => Ok(Some(bytes)),
            Some(_) => Err(StoreError::Damaged(*digest)),
            None => self.blobs.get(digest),
        }
    }
}

/// `None` for an id that is none: `stead doctor` lists it.
fn summary(row: &Row<'_>) -> rusqlite::Result<Option<SessionSummary>> {
    let Ok(id) = SessionId::parse(&row.get::<_, String>(0)?) else { return Ok(None) };
    let last_at = row.get(2)?;
    let stored = stored(row, 4);
    let first = match stored {
        Ok(stored) => Event::decode(&stored),
        Err(error) => {
            Err(Unreadable::Damaged { kind: "first event".to_owned(), reason: error.to_string() })
        }
    };
    Ok(Some(SessionSummary {
        id,
        first_at: Timestamp(row.get::<_, Option<i64>>(1)?.unwrap_or(last_at)),
        last_at: Timestamp(last_at),
        tip: row.get::<_, Number>(3)?.0,
        first,
    }))
}

/// The four columns of a stored event, from column `first` on.
pub(crate) fn stored(row: &Row<'_>, first: usize) -> rusqlite::Result<StoredEvent> {
    Ok(StoredEvent {
        scope: row.get(first)?,
        kind: row.get(first + 1)?,
        version: row.get(first + 2)?,
        body: row.get(first + 3)?,
    })
}

fn session_key(connection: &Connection, session: &SessionId) -> Result<i64, StoreError> {
    connection
        .prepare_cached("SELECT key FROM sessions WHERE id = ?1")
        .and_then(|mut s| s.query_row([session.as_str()], |row| row.get(0)).optional())
        .map_err(failed(ACT))?
        .ok_or_else(|| StoreError::UnknownSession(session.clone()))
}

#[derive(Clone, Copy)]
enum Counts {
    Positions,
    Numbers,
}

/// Where a scan stands, so that a fault is named by its place.
struct Place<'a> {
    session: &'a SessionId,
    /// The position or number that must come next.
    next: u64,
    counts: Counts,
}

impl Place<'_> {
    fn corrupt(&self, position: Option<Position>, reason: String) -> StoreError {
        let (position, reason) = match (position, self.counts) {
            (Some(position), _) => (position, reason),
            (None, Counts::Positions) => (self.next, reason),
            (None, Counts::Numbers) => (0, format!("number {} of a stream: {reason}", self.next)),
        };
        StoreError::Corrupt { session: self.session.clone(), position, reason }
    }

    fn failed(&self, error: rusqlite::Error) -> StoreError {
        if is_damage(&error) { self.corrupt(None, error.to_string()) } else { failed(ACT)(error) }
    }
}

fn collect(
    connection: &Connection,
    sql: &str,
    key: i64,
    mut place: Place<'_>,
    limit: usize,
) -> Result<Vec<Record>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql).map_err(failed(ACT))?;
    let mut rows =
        statement.query(params![key, Number(place.next), limit]).map_err(|e| place.failed(e))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(|e| place.failed(e))? {
        let record = record(row, &place)?;
        place.next = place.next.saturating_add(1);
        found.push(record);
    }
    Ok(found)
}

fn record(row: &Row<'_>, place: &Place<'_>) -> Result<Record, StoreError> {
    let Number(position) = row.get(0).map_err(|e| place.failed(e))?;
    let Number(seq) = row.get(1).map_err(|e| place.failed(e))?;
    let expected = match place.counts {
        Counts::Positions => position,
        Counts::Numbers => seq,
    };
    if expected != place.next {
        return Err(place.corrupt(None, "the event is missing".to_owned()));
    }
    let damaged = |reason: String| place.corrupt(Some(position), reason);
    let sql = |error: rusqlite::Error| damaged(error.to_string());
    let agent: String = row.get(2).map_err(sql)?;
    let stream = match agent.as_str() {
        "" => Stream::Control,
        id => Stream::Conversation(SessionId::parse(id).map_err(|e| damaged(e.to_string()))?),
    };
    let request = match row.get::<_, Option<String>>(4).map_err(sql)? {
        Some(id) => Some(RequestId::parse(&id).map_err(|e| damaged(e.to_string()))?),
        None => None,
    };
    let event =
        Event::decode(&stored(row, 5).map_err(sql)?).map_err(|unreadable| match unreadable {
            Unreadable::Newer { kind, version } => {
                StoreError::NewerEvent { session: place.session.clone(), position, kind, version }
            }
            Unreadable::Damaged { .. } => damaged(unreadable.to_string()),
        })?;
    let at = Timestamp(row.get(3).map_err(sql)?);
    let envelope = Envelope { stream, seq, position, at, request, event };
    Ok(Record { envelope, last_of_batch: row.get(9).map_err(sql)? })
}
