//! One append: a batch of events over the streams of one session, stored whole or not at all.

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};
use stead_core::event::{Envelope, StoredEvent, Stream};
use stead_core::id::{Position, RequestId, SessionId, Timestamp};

use crate::blob::Body;
use crate::error::StoreError;
use crate::request;
use crate::sql::{Number, failed};
use crate::tip::{Tip, Tips};

pub(crate) const ACT: &str = "append to the log";

const INSERT: &str = "INSERT INTO events
         (session, position, stream, seq, at, request, scope, kind, version, body, last)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

/// A batch of events to store in one transaction.
#[derive(Debug, Clone)]
pub struct Append {
    /// The root session. With `expect` 0 it is created, and its id claimed.
    pub session: SessionId,
    /// The last position of the session that the caller knows; 0 creates it.
    pub expect: Position,
    /// The events: positions go on from `expect` without a gap, and within each stream `seq` goes
    /// on from what is stored.
    pub events: Vec<Envelope>,
    /// The bodies that the events refer to and that may not be stored yet.
    pub bodies: Vec<Body>,
    /// Ids of new agents, which no agent or session of the store may have had before.
    pub claims: Vec<SessionId>,
}

/// A stored append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The position of its first event.
    pub first: Position,
    /// The position of its last event, which is a stable one.
    pub last: Position,
}

/// An append whose events are encoded, so that the writer thread only writes.
pub(crate) struct Encoded {
    session: SessionId,
    expect: Position,
    last: Position,
    events: Vec<Row>,
    claims: Vec<SessionId>,
    pub(crate) bodies: Vec<Body>,
}

/// An event as the table has it.
struct Row {
    stream: Stream,
    seq: u64,
    position: Position,
    at: Timestamp,
    request: Option<RequestId>,
    stored: StoredEvent,
}

impl Encoded {
    pub(crate) fn new(append: &Append) -> Result<Self, StoreError> {
        let Append { session, expect, events, bodies, claims } = append;
        let malformed = |position, reason: &str| StoreError::Malformed {
            session: session.clone(),
            position,
            reason: reason.to_owned(),
        };
        if events.is_empty() {
            return Err(malformed(*expect, "it has no events"));
        }
        let mut rows = Vec::with_capacity(events.len());
        let mut last = *expect;
        for envelope in events {
            let position =
                last.checked_add(1).ok_or_else(|| malformed(last, "no number is left"))?;
            last = position;
            if envelope.position != position {
                let reason = format!("its number is {}", envelope.position);
                return Err(malformed(position, &reason));
            }
            let stored =
                envelope.event.encode().map_err(|e| malformed(position, &e.to_string()))?;
            let Envelope { stream, seq, position, at, request, event: _ } = envelope;
            rows.push(Row {
                stream: stream.clone(),
                seq: *seq,
                position: *position,
                at: *at,
                request: request.clone(),
                stored,
            });
        }
        Ok(Self {
            session: session.clone(),
            expect: *expect,
            last,
            events: rows,
            claims: claims.clone(),
            bodies: bodies.clone(),
        })
    }

    /// About how many bytes it adds to the transaction.
    pub(crate) fn weight(&self) -> usize {
        let events: usize = self.events.iter().map(|row| row.stored.body.len() + 200).sum();
        let bodies: usize =
            self.bodies.iter().filter(|b| b.is_inline()).map(|b| b.bytes().len()).sum();
        events + bodies
    }

    /// Writes it into the open transaction. The caller rolls back what an error leaves behind, and
    /// forgets all tips when the transaction is not committed.
    pub(crate) fn write(
        &self,
        connection: &Connection,
        tips: &mut Tips,
    ) -> Result<Appended, StoreError> {
        // It is put back only when all went well: after an error the database is asked again.
        let mut tip = match tips.take(&self.session) {
            Some(tip) => self.check_tip(tip)?,
            None => self.stored_tip(connection)?,
        };
        for id in &self.claims {
            claim(connection, id, tip.key)?;
        }
        let mut insert = connection.prepare_cached(INSERT).map_err(failed(ACT))?;
        for row in &self.events {
            self.insert(connection, &mut insert, &mut tip, row)?;
        }
        for body in self.bodies.iter().filter(|body| body.is_inline()) {
            let mut statement = connection
                .prepare_cached("INSERT OR IGNORE INTO bodies (digest, bytes) VALUES (?1, ?2)")
                .map_err(failed(ACT))?;
            statement
                .execute(params![body.digest().as_bytes(), body.bytes()])
                .map_err(failed(ACT))?;
        }
        tip.position = self.last;
        tips.put(self.session.clone(), tip);
        Ok(Appended { first: self.expect.saturating_add(1), last: self.last })
    }

    fn insert(
        &self,
        connection: &Connection,
        insert: &mut CachedStatement<'_>,
        tip: &mut Tip,
        row: &Row,
    ) -> Result<(), StoreError> {
        let (stream, seq) = tip.count(connection, &row.stream)?;
        if row.seq != seq {
            return Err(StoreError::Malformed {
                session: self.session.clone(),
                position: row.position,
                reason: format!("its number in its stream is {}, not {}", row.seq, seq),
            });
        }
        let session = tip.key;
        if let Some(id) = &row.request
            && let Some(position) = request::position(connection, session, id)?
        {
            return Err(StoreError::RequestTaken {
                session: self.session.clone(),
                request: id.clone(),
                position,
            });
        }
        insert
            .execute(params![
                session,
                Number(row.position),
                stream,
                Number(row.seq),
                row.at.0,
                row.request.as_ref().map(RequestId::as_str),
                row.stored.scope,
                row.stored.kind,
                row.stored.version,
                row.stored.body,
                row.position == self.last,
            ])
            .map(|_| ())
            .map_err(failed(ACT))
    }

    /// The tip, after a check that the session stands where the caller thinks.
    fn check_tip(&self, tip: Tip) -> Result<Tip, StoreError> {
        if self.expect == 0 {
            Err(StoreError::SessionExists(self.session.clone()))
        } else if tip.position == self.expect {
            Ok(tip)
        } else {
            Err(StoreError::Conflict {
                session: self.session.clone(),
                expected: self.expect,
                found: tip.position,
            })
        }
    }

    /// The same from the database, where a session may have to be made.
    fn stored_tip(&self, connection: &Connection) -> Result<Tip, StoreError> {
        let known: Option<(i64, u64)> = connection
            .prepare_cached(
                "SELECT key, (SELECT ifnull(max(position), 0) FROM events WHERE session = sessions.key)
                 FROM sessions WHERE id = ?1",
            )
            .and_then(|mut statement| {
                statement
                    .query_row([self.session.as_str()], |row| {
                        Ok((row.get(0)?, row.get::<_, Number>(1)?.0))
                    })
                    .optional()
            })
            .map_err(failed(ACT))?;
        match known {
            Some((key, position)) => self.check_tip(Tip::new(key, position)),
            None if self.expect == 0 => Ok(Tip::new(self.create(connection)?, 0)),
            None => Err(StoreError::UnknownSession(self.session.clone())),
        }
    }

    fn create(&self, connection: &Connection) -> Result<i64, StoreError> {
        connection
            .execute("INSERT INTO sessions (id) VALUES (?1)", [self.session.as_str()])
            .map_err(failed(ACT))?;
        let key = connection.last_insert_rowid();
        claim(connection, &self.session, key)?;
        Ok(key)
    }
}

fn claim(connection: &Connection, id: &SessionId, session: i64) -> Result<(), StoreError> {
    let inserted = connection
        .prepare_cached("INSERT OR IGNORE INTO agents (id, session) VALUES (?1, ?2)")
        .and_then(|mut statement| statement.execute(params![id.as_str(), session]))
        .map_err(failed(ACT))?;
    if inserted == 0 { Err(StoreError::IdTaken(id.clone())) } else { Ok(()) }
}

/// The name of a stream in its session; no agent's id is empty.
pub(crate) fn stream_name(stream: &Stream) -> &str {
    match stream {
        Stream::Control => "",
        Stream::Conversation(agent) => agent.as_str(),
    }
}
