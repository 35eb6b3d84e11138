//! What a work tree has checked out.

use std::ffi::OsString;

use crate::object::ObjectId;

/// What a work tree has checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// A branch.
    Branch {
        /// Its whole name, such as `refs/heads/main`.
        name: OsString,
        /// Its commit; none before the first one.
        commit: Option<ObjectId>,
    },
    /// A commit, without a branch.
    Detached(ObjectId),
}

impl Head {
    /// The commit, where there is one.
    pub fn commit(&self) -> Option<ObjectId> {
        match self {
            Self::Branch { commit, .. } => *commit,
            Self::Detached(commit) => Some(*commit),
        }
    }
}
