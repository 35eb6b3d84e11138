//! Why work on a tree ended early.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::path::{RelPath, Shown};

/// Why a tree was not walked, captured, copied, changed or removed.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The system refused one act.
    #[error("cannot {act} {}: {source}", Shown(path.as_os_str().as_bytes()))]
    System {
        /// What was tried: `open`, `list`, `read`, `create`, ….
        act: &'static str,
        /// What it was tried for.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The caller's cancel flag was set.
    #[error("cancelled")]
    Cancelled,
    /// Files kept changing while they were read.
    #[error("{} keeps changing while it is read", list(.0))]
    Unstable(Vec<RelPath>),
    /// The root is a symbolic link or something else that is no folder, or it was replaced.
    #[error("{} is not the folder it was", Shown(.0.as_os_str().as_bytes()))]
    NotTheFolder(PathBuf),
    /// Something is where a new folder or file was to be made.
    #[error("{} already exists", Shown(.0.as_os_str().as_bytes()))]
    Exists(PathBuf),
    /// A copy was to be made inside its own source.
    #[error("{} lies inside {}", Shown(inner.as_os_str().as_bytes()), Shown(outer.as_os_str().as_bytes()))]
    Overlap {
        /// Where the copy was to be.
        inner: PathBuf,
        /// The source.
        outer: PathBuf,
    },
    /// A symbolic link, another file system or a file stands where a folder was expected on the
    /// way to a path.
    #[error("{} is reached over something that is not a folder of the root", Shown(.0.as_os_str().as_bytes()))]
    NotBeneath(PathBuf),
    /// Work failed, and what it had made could not be removed either.
    #[error("{cause}; and {leftover}")]
    LeftBehind {
        /// The first error.
        cause: Box<TreeError>,
        /// Why the removal failed; it names what is left.
        leftover: Box<TreeError>,
    },
}

impl TreeError {
    /// The system's error number, if it was the system that refused.
    pub fn errno(&self) -> Option<rustix::io::Errno> {
        match self {
            Self::System { source, .. } => rustix::io::Errno::from_io_error(source),
            Self::LeftBehind { cause, .. } => cause.errno(),
            _ => None,
        }
    }
}

/// As many paths as a line can name.
const NAMED: usize = 5;

fn list(paths: &[RelPath]) -> String {
    let mut text: Vec<String> = paths.iter().take(NAMED).map(ToString::to_string).collect();
    if let Some(more @ 1..) = paths.len().checked_sub(NAMED) {
        text.push(format!("and {more} more"));
    }
    text.join(", ")
}

pub(crate) fn at(
    act: &'static str,
    root: &Path,
    path: &RelPath,
    errno: rustix::io::Errno,
) -> TreeError {
    TreeError::System { act, path: full(root, path), source: errno.into() }
}

/// The whole path of what is at `path` below `root`, for messages.
pub(crate) fn full(root: &Path, path: &RelPath) -> PathBuf {
    if path.is_root() { root.to_owned() } else { root.join(path.as_os_str()) }
}
