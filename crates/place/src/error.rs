//! Why a host, a run or a release was refused.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stead_files::{AtomicError, FolderError, Holder, LockError};
use stead_process::KeepError;

use crate::admission::Holding;
use crate::listing::Listed;
use crate::top::NoPlace;

/// The facts of this host cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A folder cannot be made, or is not this user's alone.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A lock cannot be tried.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file cannot be replaced.
    #[error(transparent)]
    Replace(#[from] AtomicError),
    /// The system refused something else.
    #[error("cannot {act} {}: {source}", path.display())]
    System {
        /// What was tried.
        act: &'static str,
        /// What it was tried with.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Locks of a network file system say nothing about this host.
    #[error("{} is on a network file system, where locks cannot be relied on", .0.display())]
    Network(PathBuf),
    /// What decisions rest on is damaged or from a newer program.
    #[error("{} cannot be read: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A lock that is held for moments only is not let go of.
    #[error("{} is held by {}", path.display(), shown(holder.as_ref()))]
    Stuck {
        /// The lock's file.
        path: PathBuf,
        /// Who said that they hold it.
        holder: Option<Holder>,
    },
    /// The scratch folder at its recorded path is not the one that was made there.
    #[error("{} is not the folder that stead made there", .0.display())]
    ForeignScratch(PathBuf),
}

impl HostError {
    pub(crate) fn system(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::System { act, path, source }
    }
}

fn shown(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "somebody".to_owned(), ToString::to_string)
}

/// Why a run was not started.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The directory is no place.
    #[error(transparent)]
    NoPlace(#[from] NoPlace),
    /// There is no room, and the caller would not wait.
    #[error("there is no room for another run: {}", holding(.0))]
    NoRoom(Vec<Holding>),
    /// There is no room, and none will be: all of it is held by runs that this one is part of.
    #[error("there is no room for another run: this one is part of {}", holding(.0))]
    OwnRoom(Vec<Holding>),
    /// There was no room for as long as the caller would wait.
    #[error("gave up after {} without room for another run: {}", brief(*waited), holding(holders))]
    GaveUp {
        /// How long that was.
        waited: Duration,
        /// Who holds the room now.
        holders: Vec<Holding>,
    },
    /// The caller no longer wants the room that it waited for.
    #[error("the wait for room was given up: nobody wants the run any more")]
    Cancelled,
    /// The settings leave no room for any run.
    #[error("{reserved} of {runs} runs are reserved for submissions, which leaves none")]
    AllReserved {
        /// `[runs] bound`.
        runs: u32,
        /// `[runs] reserved`.
        reserved: u32,
    },
    /// Every block of ports is held or in use.
    #[error("no block of ports is left; {}", blocks(.0))]
    NoPorts(Vec<Listed>),
    /// The place is being released.
    #[error("the place {} is being released by {}", place.display(), shown(holder.as_ref()))]
    Releasing {
        /// The place.
        place: PathBuf,
        /// Who said that they release it.
        holder: Option<Holder>,
    },
    /// The command cannot be started.
    #[error(transparent)]
    Start(#[from] KeepError),
    /// The host's facts cannot be read or written.
    #[error(transparent)]
    Host(#[from] HostError),
}

fn holding(holders: &[Holding]) -> String {
    match holders {
        [] => "others wait before it".to_owned(),
        holders => holders.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
    }
}

fn blocks(holders: &[Listed]) -> String {
    match holders {
        [] => "all are in use by others".to_owned(),
        holders => {
            let each = holders.iter().map(|listed| {
                let state = if listed.is_there() { "" } else { " (gone)" };
                format!("{}{state} since {} ago", listed.place.display(), brief(listed.age))
            });
            format!("held by {}", each.collect::<Vec<_>>().join("; "))
        }
    }
}

/// A span in its largest whole unit.
pub(crate) fn brief(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Why a place was not released.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// The caller is part of a run of the place and would end itself half-way.
    #[error("this process is part of a run of {}", .0.display())]
    FromWithin(PathBuf),
    /// Another release of the place goes on and on.
    #[error("the place {} is being released by {}", place.display(), shown(holder.as_ref()))]
    Busy {
        /// The place.
        place: PathBuf,
        /// Who said that they release it.
        holder: Option<Holder>,
    },
    /// No place has that name.
    #[error("there is no place {0:?}")]
    Unknown(String),
    /// The host's facts cannot be read or written.
    #[error(transparent)]
    Host(#[from] HostError),
}
