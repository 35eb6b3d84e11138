//! Files on disk: replaced whole, locked by the kernel, known by what they are and not by their
//! path.
//!
//! Everything here is synchronous and blocks; callers on an async runtime use blocking tasks.

pub mod atomic;
mod folder;
mod identity;
pub mod lock;

pub use atomic::{AtomicError, create_new, is_temporary, replace, replace_through};
pub use folder::{FolderError, is_network_file_system, private_dir};
pub use identity::{Birth, FileIdentity};
pub use lock::{Holder, Lock, LockError, holder};
