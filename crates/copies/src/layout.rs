//! The layout file: stead's record beside a task's copies.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stead_core::id::{Digest, RootId, SessionId, SlotName, TaskId, Timestamp};
use stead_core::layout::{AbsoluteDir, Access, RootIdentity};

/// What a task may use: its copies, and where each came from. Written once, at admission; what
/// changes later (the base, after an apply) is in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// The form of this file.
    pub version: u32,
    /// The root session that owns it.
    pub session: SessionId,
    /// The task.
    pub task: TaskId,
    /// When the copies were complete.
    pub admitted: Timestamp,
    /// The slot whose copy is the agent's directory.
    pub primary: SlotName,
    /// The slots, in the order in which they were given.
    pub slots: Vec<Slot>,
}

/// One slot of a layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Its name, and the name of the copy's folder.
    pub slot: SlotName,
    /// The root it is a copy of.
    pub root: RootId,
    /// What the task may do in it.
    pub access: Access,
    /// The original, canonical.
    pub source: AbsoluteDir,
    /// What the original was at admission.
    pub identity: RootIdentity,
    /// What sort of folder it is.
    pub kind: RootKind,
    /// The base at admission: the blob of its encoded form.
    pub base: Digest,
}

/// What sort of folder a root is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RootKind {
    /// A folder without a repository of its own.
    Plain,
    /// The top level of a Git work tree.
    Git {
        /// The Git directory that the work trees share, in the original.
        common_directory: PathBuf,
        /// What was checked out.
        checkout: Checkout,
    },
}

/// What a work tree has checked out: recorded by review, compared by apply (P7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checkout {
    /// A branch, by its whole name; its commit may move.
    Branch(String),
    /// A commit, by its object id.
    Detached(String),
}
