//! Collecting garbage on the wire.

use serde::{Deserialize, Serialize};

/// How to collect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GarbageParams {
    /// Move copies that hold nothing more to bring, and copies of sessions that are gone, to the
    /// trash first.
    #[serde(default)]
    pub copies: bool,
    /// Only say what would be done.
    #[serde(default)]
    pub dry_run: bool,
}

/// What was collected, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GarbageResponse {
    /// Whether nothing was done.
    pub dry_run: bool,
    /// What went.
    pub removed: Vec<RemovedView>,
    /// What stayed although one might ask for it, and why.
    pub kept: Vec<KeptView>,
}

/// A kind of thing that is collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GarbageKind {
    /// A private copy, which goes to the trash.
    Copy,
    /// An entry of the trash.
    Trash,
    /// What a killed process left half made.
    Staging,
    /// The record of a task whose copies are all gone.
    Layout,
    /// A root's object files.
    Depot,
    /// Bodies that nothing names.
    Bodies,
    /// A registered root whose folder is gone, and of which no copy is left.
    Root,
}

/// One thing that went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedView {
    /// What it is.
    pub kind: GarbageKind,
    /// Which, for people.
    pub name: String,
    /// Bytes on the disk; none where they are not counted, or where nothing was freed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// One thing that stayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptView {
    /// What it is.
    pub kind: GarbageKind,
    /// Which, for people.
    pub name: String,
    /// Bytes on the disk, where they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Why.
    pub why: String,
}
