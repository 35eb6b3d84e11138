//! The log of events: readable, whole, nothing abandoned.

use std::time::Duration;

use stead_core::id::{Digest, SessionId};
use stead_engine::{Home, kept_bodies};
use stead_store::{Finding as Fault, Reader, Store, StoreError};

use super::finding::Finding;
use crate::clean;
use crate::render::counted;

const WHAT: &str = "store";
/// What is said of a home that no session was ever in.
pub(super) const NOTHING: &str = "nothing stored yet";
/// How old a file without an owner is when `stead gc` removes it.
const AGE: Duration = Duration::from_hours(30 * 24);
/// How many findings of one check are told one by one.
const MOST: usize = 20;

/// Reads the whole store.
pub(super) fn store(home: &Home, engine_alive: bool) -> Vec<Finding> {
    let reader = match Store::open_reader(home.data()) {
        Ok(reader) => reader,
        Err(StoreError::Absent(_)) => {
            return vec![Finding::ok(WHAT, NOTHING)];
        }
        Err(error @ StoreError::Older { .. }) => {
            let help = "nothing has to be done: the next stead command brings it up to date";
            return vec![Finding::warning(WHAT, error.to_string(), help)];
        }
        Err(error) => {
            let refusal = error.refusal();
            let help = refusal.hint.unwrap_or_else(|| {
                "keep the folder as it is; STEAD_HOME names another home to go on with".to_owned()
            });
            return vec![Finding::fault(WHAT, refusal.line, help)];
        }
    };
    let mut findings = checked(home, &reader);
    findings.extend(unfinished(&reader, engine_alive));
    findings
}

fn checked(home: &Home, reader: &Reader) -> Vec<Finding> {
    // What is kept for copies cannot be told where it cannot be read; then all is.
    let kept = kept_bodies(home).ok();
    let is_kept = |digest: &Digest| kept.as_ref().is_none_or(|kept| kept.contains(digest));
    let report = match reader.check(AGE, is_kept) {
        Ok(report) => report,
        Err(error) => {
            let help = "keep the folder as it is; look again, another program may use it just now";
            return vec![Finding::fault(WHAT, error.to_string(), help)];
        }
    };
    let mut findings = Vec::new();
    let (mut orphans, mut bytes) = (0, 0);
    for fault in &report.findings {
        match fault {
            Fault::Orphan { bytes: length, .. } => {
                orphans += 1;
                bytes += length;
            }
            fault if findings.len() < MOST => findings.push(told(fault)),
            _ => {}
        }
    }
    if findings.is_empty() && report.events == 0 {
        findings.push(Finding::ok(WHAT, NOTHING));
    } else if findings.is_empty() {
        let sessions =
            counted(usize::try_from(report.sessions).unwrap_or(0), "session", "sessions");
        let events = counted(usize::try_from(report.events).unwrap_or(0), "event", "events");
        findings.push(Finding::ok(WHAT, format!("{sessions}, {events}, all readable")));
    }
    if orphans > 0 {
        let files = counted(orphans, "file", "files");
        findings.push(Finding::warning(
            "bodies",
            format!("{files} that no event refers to, {}", crate::render::size(bytes)),
            "they do no harm; `stead gc` removes them",
        ));
    }
    findings
}

fn told(fault: &Fault) -> Finding {
    let others = "other sessions are not touched by it; `stead sessions show` reads what is left";
    match fault {
        Fault::Database(line) => Finding::fault(
            WHAT,
            format!("the database is damaged: {}", clean::brief(line, 200)),
            "copy the home away before anything else is done with it",
        ),
        Fault::Missing { session, position } => Finding::fault(
            WHAT,
            format!("session {session} has no event {position}, although later ones are there"),
            others,
        ),
        Fault::Unreadable { session, position, reason } => Finding::fault(
            WHAT,
            format!("event {position} of session {session} cannot be read: {reason}"),
            others,
        ),
        Fault::MissingBody { session, position, body } => Finding::fault(
            WHAT,
            format!(
                "event {position} of session {session} refers to a text of {} bytes that is not \
                 stored",
                body.bytes
            ),
            others,
        ),
        Fault::Orphan { path, .. } => {
            Finding::ok("bodies", format!("nothing refers to {}", path.display()))
        }
    }
}

fn unfinished(reader: &Reader, engine_alive: bool) -> Vec<Finding> {
    const TURNS: &str = "turns";
    let sessions = match reader.unfinished() {
        Ok(sessions) => sessions,
        Err(error) => {
            let help = "look again; another program may use the store just now";
            return vec![Finding::warning(TURNS, error.to_string(), help)];
        }
    };
    if sessions.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = sessions.iter().map(SessionId::as_str).take(MOST).collect();
    let names = names.join(", ");
    if engine_alive {
        return vec![Finding::ok(TURNS, format!("at work: {names}"))];
    }
    vec![Finding::warning(
        TURNS,
        format!("abandoned when the engine ended, in {names}"),
        format!(
            "the next stead command settles them as interrupted: `stead tree --session {}`",
            sessions.first().map_or("", SessionId::as_str)
        ),
    )]
}
