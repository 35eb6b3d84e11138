//! Why the store refused or failed.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use stead_core::id::{Digest, Position, RequestId, SessionId};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_files::{AtomicError, FolderError, Holder, LockError};

/// Why the store refused or failed. Whatever it says, nothing of the call was stored, but for
/// [`StoreError::Closed`], after which the outcome is not known.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Another process, or another [`crate::Store`] of this one, writes the home.
    #[error("the home {} is written by {}", home.display(), named(holder.as_ref()))]
    Held {
        /// The home.
        home: PathBuf,
        /// Who said last that they hold it.
        holder: Option<Holder>,
    },
    /// Another holder has the lease.
    #[error("the lease {name} is held by {}", named(holder.as_ref()))]
    LeaseHeld {
        /// The lease.
        name: String,
        /// Who said last that they hold it.
        holder: Option<Holder>,
    },
    /// The home cannot be written: a read-only file system or missing permission.
    #[error("the home {} cannot be written: {source}", home.display())]
    Unwritable {
        /// The home.
        home: PathBuf,
        /// The system's reason.
        source: Arc<io::Error>,
    },
    /// A reader found no store in the home.
    #[error("there is no store in {}", .0.display())]
    Absent(PathBuf),
    /// A newer program wrote the store; nothing was touched.
    #[error("{} has version {found}; this program knows versions up to {known}", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// A reader found a store that an older program wrote; a writer would migrate it.
    #[error("{} has the older version {found}, which only a writer can migrate", path.display())]
    Older {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// The database is not one of stead's; nothing was touched.
    #[error("{} is a database, but not one of stead's", .0.display())]
    Foreign(PathBuf),
    /// A session with this id is stored already.
    #[error("the session {0} exists already")]
    SessionExists(SessionId),
    /// No session with this id is stored.
    #[error("there is no session {0}")]
    UnknownSession(SessionId),
    /// Some agent or session has, or once had, this id.
    #[error("the id {0} is taken")]
    IdTaken(SessionId),
    /// The session has moved on since the caller looked.
    #[error("the session {session} is at position {found}, not {expected}")]
    Conflict {
        /// The session.
        session: SessionId,
        /// The last position that the caller knew.
        expected: Position,
        /// The last position that is stored.
        found: Position,
    },
    /// The append is not well formed: no events, or numbers that leave a gap or go back.
    #[error("the append to session {session} at position {position} is malformed: {reason}")]
    Malformed {
        /// The session.
        session: SessionId,
        /// Where the fault is.
        position: Position,
        /// What is wrong.
        reason: String,
    },
    /// The request id was used before; its answer is derived from the event at `position`.
    #[error("the request {request} of session {session} is answered at position {position}")]
    RequestTaken {
        /// The session.
        session: SessionId,
        /// The request.
        request: RequestId,
        /// The first event of that request.
        position: Position,
    },
    /// A stored event is missing or cannot be read. `stead doctor` lists it.
    #[error("the session {session} is damaged at position {position}: {reason}")]
    Corrupt {
        /// The session.
        session: SessionId,
        /// The position that is missing or unreadable.
        position: Position,
        /// What is wrong.
        reason: String,
    },
    /// A newer program wrote this event.
    #[error(
        "the event at position {position} of session {session} is from a newer program: \
         {kind} in version {version}"
    )]
    NewerEvent {
        /// The session.
        session: SessionId,
        /// Its position.
        position: Position,
        /// Its kind.
        kind: String,
        /// The version of its body.
        version: u16,
    },
    /// The bytes of a stored body are not those of its digest.
    #[error("the body {0} is damaged")]
    Damaged(Digest),
    /// The disk or the quota is full.
    #[error("no room on the disk to {act}")]
    NoRoom {
        /// What could not be done.
        act: &'static str,
    },
    /// The database refused or failed.
    #[error("cannot {act}: {reason}")]
    Database {
        /// What could not be done.
        act: &'static str,
        /// SQLite's reason.
        reason: String,
    },
    /// The system refused something about a file or a thread.
    #[error("cannot {act} {}: {source}", path.display())]
    System {
        /// What could not be done.
        act: &'static str,
        /// To what.
        path: PathBuf,
        /// The system's reason.
        source: Arc<io::Error>,
    },
    /// A lock or a private folder of the home is not usable.
    #[error("{0}")]
    Home(String),
    /// A text is not a lease's name.
    #[error("{0:?} is not the name of a lease")]
    BadLeaseName(String),
    /// The writer thread has ended; whether the call was stored is not known.
    #[error("the store is closed")]
    Closed,
}

fn named(holder: Option<&Holder>) -> String {
    match holder {
        Some(holder) => {
            format!(
                "process {} started at tick {} ({})",
                holder.pid, holder.start_time, holder.purpose
            )
        }
        None => "a process that did not say who it is".to_owned(),
    }
}

impl StoreError {
    /// Whether the caller's append was at fault, and not the disk or the database: others of the
    /// same group commit are stored.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::SessionExists(_)
                | Self::UnknownSession(_)
                | Self::IdTaken(_)
                | Self::Conflict { .. }
                | Self::Malformed { .. }
                | Self::RequestTaken { .. }
        )
    }

    /// The same as a refusal, for people.
    pub fn refusal(&self) -> Refusal {
        let kind = match self {
            Self::Held { .. } | Self::LeaseHeld { .. } | Self::Closed => RefusalKind::Unavailable,
            Self::Absent(_) | Self::UnknownSession(_) => RefusalKind::NotFound,
            Self::SessionExists(_) | Self::IdTaken(_) => RefusalKind::AlreadyExists,
            Self::Conflict { .. } | Self::RequestTaken { .. } => RefusalKind::Conflict,
            Self::Malformed { .. } | Self::BadLeaseName(_) => RefusalKind::InvalidArgument,
            Self::Newer { .. }
            | Self::Older { .. }
            | Self::Foreign(_)
            | Self::Corrupt { .. }
            | Self::NewerEvent { .. }
            | Self::Damaged(_) => RefusalKind::Unreadable,
            Self::Unwritable { .. }
            | Self::NoRoom { .. }
            | Self::Database { .. }
            | Self::System { .. }
            | Self::Home(_) => RefusalKind::Storage,
        };
        let refusal = Refusal::new(kind, self.to_string());
        match self {
            Self::Corrupt { .. } | Self::Damaged(_) | Self::Database { .. } => {
                refusal.hint("stead doctor shows what is damaged")
            }
            Self::Newer { .. } | Self::NewerEvent { .. } => {
                refusal.hint("use the newest stead that was used with this home")
            }
            Self::NoRoom { .. } => refusal.hint("nothing was saved; make room and try again"),
            _ => refusal,
        }
    }

    /// A failure of the system, told apart by whether the disk is full.
    pub(crate) fn system(
        act: &'static str,
        path: impl Into<PathBuf>,
        source: io::Error,
    ) -> StoreError {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoRoom { act },
            _ => Self::System { act, path: path.into(), source: Arc::new(source) },
        }
    }
}

impl From<AtomicError> for StoreError {
    fn from(error: AtomicError) -> Self {
        match error {
            AtomicError::System { act, path, source } => Self::system(act, path, source),
            other => Self::Home(other.to_string()),
        }
    }
}

impl From<FolderError> for StoreError {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::System { act, path, source } => Self::system(act, path, source),
            other => Self::Home(other.to_string()),
        }
    }
}

impl From<LockError> for StoreError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::System { act, path, source } => Self::system(act, path, source),
            other => Self::Home(other.to_string()),
        }
    }
}
