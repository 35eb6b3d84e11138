//! Typed questions and changes over the `git` program, and the index file.
//!
//! What people and agents see is what Git says, so Git is asked: by exit codes and answers
//! separated by zero bytes, never by its messages. Paths are bytes. Every call has an environment
//! in which nothing of a repository runs a program; see [`Git`].
//!
//! Everything here is synchronous and blocks; callers on an async runtime use blocking tasks.

mod alternates;
mod config;
mod copied_config;
mod entry;
mod error;
mod git;
mod head;
pub mod index;
mod object;
mod objects;
mod operation;
mod path;
mod refs;
mod repository;
mod status;
mod worktree;

pub use alternates::ObjectFolders;
pub use config::{Config, Scope, Setting};
pub use copied_config::{ChangedSetting, PUSH_ADDRESS};
pub use entry::GitEntry;
pub use error::GitError;
pub use git::Git;
pub use head::Head;
pub use index::{Index, IndexError};
pub use object::{ObjectFormat, ObjectId};
pub use objects::TreeEntry;
pub use operation::Operation;
pub use refs::{Ref, Target};
pub use repository::{Kind, RefFormat, Repository};
pub use status::Ignored;
pub use worktree::Worktree;
