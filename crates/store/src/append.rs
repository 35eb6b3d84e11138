//! One append: a batch of events over the streams of one session, stored whole or not at all.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::{Connection, OptionalExtension as _, named_params, params};
use stead_core::event::{Envelope, StoredEvent, Stream};
use stead_core::id::{Position, SessionId};

use crate::blob::Body;
use crate::error::StoreError;
use crate::request;
use crate::sql::{Number, failed};

const ACT: &str = "append to the log";

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
    events: Vec<(Envelope, StoredEvent)>,
    claims: Vec<SessionId>,
    pub(crate) bodies: Vec<Body>,
}

impl Encoded {
    pub(crate) fn new(append: Append) -> Result<Self, StoreError> {
        let Append { session, expect, events, bodies, claims } = append;
        let malformed = |position, reason: &str| StoreError::Malformed {
            session: session.clone(),
            position,
            reason: reason.to_owned(),
        };
        if events.is_empty() {
            return Err(malformed(expect, "it has no events"));
        }
        let mut encoded = Vec::with_capacity(events.len());
        let mut last = expect;
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
            encoded.push((envelope, stored));
        }
        Ok(Self { session, expect, last, events: encoded, claims, bodies })
    }

    /// About how many bytes it adds to the transaction.
    pub(crate) fn weight(&self) -> usize {
        let events: usize = self.events.iter().map(|(_, stored)| stored.body.len() + 200).sum();
        let bodies: usize =
            self.bodies.iter().filter(|b| b.is_inline()).map(|b| b.bytes().len()).sum();
        events + bodies
    }

    /// Writes it into the open transaction. The caller rolls back what an error leaves behind.
    pub(crate) fn write(&self, connection: &Connection) -> Result<Appended, StoreError> {
        let session = self.session_key(connection)?;
        for id in &self.claims {
            claim(connection, id, session)?;
        }
        let mut streams: HashMap<&Stream, (i64, u64)> = HashMap::new();
        for (envelope, stored) in &self.events {
            let (stream, seq) = match streams.entry(&envelope.stream) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    new.insert(stream_key(connection, session, &envelope.stream)?)
                }
            };
            *seq = seq.saturating_add(1);
            if envelope.seq != *seq {
                return Err(StoreError::Malformed {
                    session: self.session.clone(),
                    position: envelope.position,
                    reason: format!("its number in its stream is {}, not {}", envelope.seq, seq),
                });
            }
            if let Some(id) = &envelope.request
                && let Some(position) = request::position(connection, session, id)?
            {
                return Err(StoreError::RequestTaken {
                    session: self.session.clone(),
                    request: id.clone(),
                    position,
                });
            }
            insert(connection, session, *stream, envelope, stored, envelope.position == self.last)?;
        }
        for body in self.bodies.iter().filter(|body| body.is_inline()) {
            let mut statement = connection
                .prepare_cached("INSERT OR IGNORE INTO bodies (digest, bytes) VALUES (?1, ?2)")
                .map_err(failed(ACT))?;
            statement
                .execute(params![body.digest().as_bytes(), body.bytes()])
                .map_err(failed(ACT))?;
        }
        Ok(Appended { first: self.expect.saturating_add(1), last: self.last })
    }

    /// The session's key, after a check that it stands where the caller thinks.
    fn session_key(&self, connection: &Connection) -> Result<i64, StoreError> {
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
            None if self.expect == 0 => self.create(connection),
            None => Err(StoreError::UnknownSession(self.session.clone())),
            Some(_) if self.expect == 0 => Err(StoreError::SessionExists(self.session.clone())),
            Some((key, tip)) if tip == self.expect => Ok(key),
            Some((_, found)) => Err(StoreError::Conflict {
                session: self.session.clone(),
                expected: self.expect,
                found,
            }),
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

/// The key of a stream and the number of its last event, making the stream if need be.
fn stream_key(
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

fn insert(
    connection: &Connection,
    session: i64,
    stream: i64,
    envelope: &Envelope,
    stored: &StoredEvent,
    last: bool,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO events
                 (session, position, stream, seq, at, request, scope, kind, version, body, last)
             VALUES
                 (:session, :position, :stream, :seq, :at, :request, :scope, :kind, :version,
                  :body, :last)",
        )
        .and_then(|mut statement| {
            statement.execute(named_params! {
                ":session": session,
                ":position": Number(envelope.position),
                ":stream": stream,
                ":seq": Number(envelope.seq),
                ":at": envelope.at.0,
                ":request": envelope.request.as_ref().map(stead_core::id::RequestId::as_str),
                ":scope": stored.scope,
                ":kind": stored.kind,
                ":version": stored.version,
                ":body": stored.body,
                ":last": last,
            })
        })
        .map(|_| ())
        .map_err(failed(ACT))
}
