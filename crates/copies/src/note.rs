//! What a person should know of a copy that was made all the same.

use std::fmt;

use stead_files::RelPath;

/// What is worth knowing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    /// Work trees of the repository that are registered inside the root: left out.
    WorkTree,
    /// Pipes, sockets and devices among ignored files: left out.
    Special,
    /// What another file system is mounted on: left out.
    OtherDevice,
    /// Repositories in the root, initialised submodules among them: carried, never reviewed.
    Nested,
    /// Submodules that are not initialised: their folders are empty, as in the original.
    NotInitialised,
    /// Files that a filter or an encoding stands behind: carried as their bytes are, nothing run.
    Filtered,
    /// Symbolic links with absolute targets in the original: writing through them reaches it.
    AbsoluteLink,
    /// Databases that a program may have open: no copy of one that is written is consistent.
    Database,
    /// Files with `user.*` attributes, which are carried.
    Attributes,
    /// Files that had several names among ignored ones: independent files in the copy.
    HardLinks,
    /// A sparse checkout: copied as it is.
    Sparse,
    /// The history is cut off, in the copy too.
    Shallow,
    /// The repository borrows objects from others; the copy has them through the depot.
    Borrows,
    /// The source is a further work tree of a repository; the copy is a repository of its own.
    LinkedWorkTree,
    /// Contents that Git LFS keeps beside the repository are left out; files that are checked out
    /// are there.
    LargeFiles,
}

/// One kind of thing worth knowing, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What.
    pub kind: NoteKind,
    /// Where, all of them; none when it is about the root as a whole.
    pub paths: Vec<RelPath>,
}

impl Note {
    /// A note about some paths; none when there are none.
    pub(crate) fn about(kind: NoteKind, paths: impl IntoIterator<Item = RelPath>) -> Option<Self> {
        let paths: Vec<RelPath> = paths.into_iter().collect();
        (!paths.is_empty()).then_some(Self { kind, paths })
    }

    /// A note about the root as a whole, if it holds.
    pub(crate) fn whole(kind: NoteKind, holds: bool) -> Option<Self> {
        holds.then_some(Self { kind, paths: Vec::new() })
    }
}

/// As many paths as a line names.
const NAMED: usize = 5;

/// One line, which names the first few paths.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            NoteKind::WorkTree => "left out, work trees of the repository",
            NoteKind::Special => "left out, no files",
            NoteKind::OtherDevice => "left out, another disk is mounted there",
            NoteKind::Nested => "carried and not reviewed, repositories of their own",
            NoteKind::NotInitialised => "submodules that are not initialised",
            NoteKind::Filtered => "carried as they are, no filter was run",
            NoteKind::AbsoluteLink => "links that lead back into the original",
            NoteKind::Database => {
                "a program may be writing these databases; their copies may not be consistent"
            }
            NoteKind::Attributes => "carried with their extended attributes",
            NoteKind::HardLinks => "several names of one file, independent files in the copy",
            NoteKind::Sparse => "a sparse checkout, copied as it is",
            NoteKind::Shallow => "the history is cut off, in the copy too",
            NoteKind::Borrows => "the repository borrows objects; the copy has them all",
            NoteKind::LinkedWorkTree => "a linked work tree; the copy is a repository of its own",
            NoteKind::LargeFiles => "left out, what Git LFS keeps beside the repository",
        })?;
        let mut sign = ": ";
        for path in self.paths.iter().take(NAMED) {
            write!(f, "{sign}{path}")?;
            sign = ", ";
        }
        match self.paths.len().checked_sub(NAMED) {
            Some(more @ 1..) => write!(f, ", and {more} more"),
            _ => Ok(()),
        }
    }
}
