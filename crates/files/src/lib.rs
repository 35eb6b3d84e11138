//! Files on disk: trees walked, captured, copied, compared and removed; files replaced whole,
//! locked by the kernel, known by what they are and not by their path.
//!
//! Everything here is synchronous and blocks; callers on an async runtime use blocking tasks.

pub mod atomic;
mod capture;
mod clone;
mod compare;
mod content;
mod crew;
mod edit;
mod error;
mod folder;
mod identity;
mod listing;
pub mod lock;
mod manifest;
mod open;
mod path;
mod remove;
mod root;
mod space;
mod stat;
mod walk;
mod watch;

pub use atomic::{AtomicError, create_new, is_temporary, replace, replace_through};
pub use capture::{CaptureOptions, Captured, Digests, Wanted, capture};
pub use clone::{CloneOptions, Cloned, Method, Obstacle, ObstacleKind, clone};
pub use compare::{Change, Difference, compare};
pub use crew::Threads;
pub use edit::Staged;
pub use error::TreeError;
pub use folder::{FolderError, is_network_file_system, private_dir};
pub use identity::{Birth, FileIdentity};
pub use listing::{Found, FoundFolder, HardLink, LeftOut, Listing, Totals};
pub use lock::{Holder, Lock, LockError, holder};
pub use manifest::{Entry, Manifest, ManifestError, Node, Seen};
pub use open::{open_file, read_file};
pub use path::{PathError, RelPath, Target};
pub use remove::{remove_tree, remove_tree_at, trash};
pub use root::RootFolder;
pub use space::Space;
pub use stat::{Kind, Special, Stat, Time};
pub use walk::{Choice, Filter, WalkOptions, walk};
pub use watch::{Phase, Progress, Watch};
