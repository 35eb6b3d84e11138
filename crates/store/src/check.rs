//! What `stead doctor` asks of the store.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use stead_core::event::Event;
use stead_core::id::{BodyRef, Digest, Position, SessionId};

use crate::error::StoreError;
use crate::log::stored;
use crate::reader::Reader;
use crate::sql::{Number, failed};

const ACT: &str = "check the store";

/// One fault of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// SQLite's own check found this.
    Database(String),
    /// An event is not there, although a later one is.
    Missing {
        /// The session's id, as stored.
        session: String,
        /// The first position that is missing.
        position: Position,
    },
    /// An event cannot be read.
    Unreadable {
        /// The session's id, as stored.
        session: String,
        /// Its position.
        position: Position,
        /// What is wrong.
        reason: String,
    },
    /// An event refers to a body that is not stored, or not with the length that it has.
    MissingBody {
        /// The session's id, as stored.
        session: String,
        /// The position of the event.
        position: Position,
        /// The body.
        body: BodyRef,
    },
    /// A file that nothing refers to. No fault: collecting removes it.
    Orphan {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        bytes: u64,
    },
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// How many sessions there are.
    pub sessions: u64,
    /// How many events there are.
    pub events: u64,
    /// What was found, in no particular order.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing is wrong; orphans are not.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| matches!(finding, Finding::Orphan { .. }))
    }
}

/// What the database says is wrong with itself.
fn damage(connection: &rusqlite::Connection) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare("PRAGMA quick_check").map_err(failed(ACT))?;
    let lines = statement
        .query_map([], |row| row.get::<_, String>(0))
        .and_then(Iterator::collect::<Result<Vec<_>, _>>);
    Ok(match lines {
        Ok(lines) => lines.into_iter().filter(|line| line != "ok").collect(),
        Err(error) => vec![error.to_string()],
    })
}

impl Reader {
    /// Whether the database file is damaged: a line for each fault. Reads all of its pages, and no
    /// event; for what events say there is [`check`](Self::check).
    pub fn damage(&self) -> Result<Vec<String>, StoreError> {
        self.with(damage)
    }

    /// Checks the whole store; reads every event, and of the bodies how long they are.
    ///
    /// Files by digest that are older than `age`, that no event refers to and for which `keep` is
    /// false are listed as orphans; `keep` speaks for whoever else keeps files there.
    pub fn check(
        &self,
        age: Duration,
        keep: impl Fn(&Digest) -> bool,
    ) -> Result<Report, StoreError> {
        let (mut report, referred) = self.with(|connection| {
            let mut report = Report::default();
            report.findings.extend(damage(connection)?.into_iter().map(Finding::Database));
            let rows: HashMap<[u8; 32], u64> = connection
                .prepare("SELECT digest, length(bytes) FROM bodies")
                .and_then(|mut s| {
                    s.query_map([], |row| Ok((row.get(0)?, row.get::<_, Number>(1)?.0)))?.collect()
                })
                .map_err(failed(ACT))?;
            let mut referred = HashSet::new();
            self.check_events(connection, &rows, &mut report, &mut referred)?;
            Ok((report, referred))
        })?;
        for file in self.blobs.candidates(age, keep)? {
            if file.digest.is_none_or(|digest| !referred.contains(&digest)) {
                report.findings.push(Finding::Orphan { path: file.path, bytes: file.bytes });
            }
        }
        Ok(report)
    }

    fn check_events(
        &self,
        connection: &rusqlite::Connection,
        rows: &HashMap<[u8; 32], u64>,
        report: &mut Report,
        referred: &mut HashSet<Digest>,
    ) -> Result<(), StoreError> {
        let mut sessions =
            connection.prepare("SELECT key, id FROM sessions ORDER BY key").map_err(failed(ACT))?;
        let sessions: Vec<(i64, String)> = sessions
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .and_then(Iterator::collect)
            .map_err(failed(ACT))?;
        for (key, session) in sessions {
            report.sessions += 1;
            if let Err(error) = SessionId::parse(&session) {
                report.findings.push(Finding::Database(error.to_string()));
            }
            let mut statement = connection
                .prepare_cached(
                    "SELECT position, scope, kind, version, body FROM events
                     WHERE session = ?1 ORDER BY position",
                )
                .map_err(failed(ACT))?;
            let mut events = statement.query([key]).map_err(failed(ACT))?;
            let mut next: Position = 1;
            loop {
                let event = match events.next() {
                    Ok(Some(row)) => row.get(0).map(|Number(position)| (position, stored(row, 1))),
                    Ok(None) => break,
                    Err(error) => Err(error),
                };
                let unreadable = |position, reason: String| Finding::Unreadable {
                    session: session.clone(),
                    position,
                    reason,
                };
                let (position, event): (Position, _) = match event {
                    Ok(event) => event,
                    // The scan cannot go on behind a damaged page.
                    Err(error) => {
                        report.findings.push(unreadable(next, error.to_string()));
                        break;
                    }
                };
                report.events += 1;
                if position != next {
                    let session = session.clone();
                    report.findings.push(Finding::Missing { session, position: next });
                }
                next = position.saturating_add(1);
                let event = match event {
                    Ok(event) => event,
                    Err(error) => {
                        report.findings.push(unreadable(position, error.to_string()));
                        continue;
                    }
                };
                referred.extend(digests_in(&event.body));
                if let Err(error) = Event::decode(&event) {
                    report.findings.push(unreadable(position, error.to_string()));
                }
                let body = serde_json::from_str(&event.body).unwrap_or_default();
                references_in(&body, &mut |body| {
                    let stored = match rows.get(body.digest.as_bytes()) {
                        Some(bytes) => Some(*bytes),
                        None => self.blobs.length(&body.digest),
                    };
                    if stored != Some(body.bytes) {
                        let session = session.clone();
                        report.findings.push(Finding::MissingBody { session, position, body });
                    }
                });
            }
        }
        Ok(())
    }
}

/// Every run of 64 hexadecimal digits in the text, whatever it stands for: what a newer program
/// refers to in events that this one cannot read is kept too.
pub(crate) fn digests_in(text: &str) -> impl Iterator<Item = Digest> {
    text.split(|c: char| !c.is_ascii_hexdigit()).filter_map(|run| Digest::parse(run).ok())
}

/// Every reference to a body in an event.
fn references_in(value: &serde_json::Value, found: &mut impl FnMut(BodyRef)) {
    match value {
        serde_json::Value::Array(values) => values.iter().for_each(|v| references_in(v, found)),
        serde_json::Value::Object(fields) => {
            if fields.len() == 2
                && let Ok(body) = serde_json::from_value(value.clone())
            {
                found(body);
            }
            fields.values().for_each(|v| references_in(v, found));
        }
        _ => {}
    }
}
