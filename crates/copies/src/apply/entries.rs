//! The index entries of affected paths: a person's staged change is theirs, like one in a file (P8).

use std::collections::HashMap;
use std::path::Path;

use stead_files::{RelPath, RootFolder, TreeError};
use stead_git::index::{Entry, EntryKind};
use stead_git::{GitError, Index, ObjectFormat, ObjectId, Repository};

use super::conflict::Clash;
use super::refused::ApplyRefused;
use crate::Base;
use crate::changes::State;

/// What an index has at a path, its stat data aside.
pub(crate) type Indexed = Option<(u32, ObjectId)>;

/// The index of the destination beside the base's and HEAD's.
pub(crate) struct Entries<'a> {
    repository: &'a Repository,
    now: HashMap<&'a Path, &'a Entry>,
    base: HashMap<&'a Path, (u32, ObjectId)>,
    /// Asked of Git only when the other two do not agree.
    head: Option<HashMap<std::path::PathBuf, (u32, ObjectId)>>,
}

impl<'a> Entries<'a> {
    pub(crate) fn new(repository: &'a Repository, index: &'a Index, base: &'a Base) -> Self {
        // The last of several sides of a conflict stands for all: none of them is of stage 0.
        let now = index.entries.iter().map(|entry| (entry.path.as_path(), entry)).collect();
        let base =
            base.index.iter().map(|file| (file.path.as_path(), (file.mode, file.object))).collect();
        Self { repository, now, base, head: None }
    }

    /// What the index has at a path now.
    pub(crate) fn at(&self, path: &RelPath) -> Indexed {
        self.now.get(Path::new(path.as_os_str())).map(|entry| (entry.kind.mode(), entry.id))
    }

    /// Whether a person staged something at a path that an apply is to change from `before`: its
    /// entry must equal the base's, or HEAD's, or hold the base's bytes and mode. The file itself
    /// is known to be as `before` says.
    pub(crate) fn clash(
        &mut self,
        root: &RootFolder,
        path: &RelPath,
        before: Option<&State>,
    ) -> Result<Option<Clash>, ApplyRefused> {
        let at = Path::new(path.as_os_str());
        if self.is_below_an_entry(path) {
            return Ok(Some(Clash::Ancestor));
        }
        let Some(entry) = self.now.get(at) else {
            // Untracked here. Where the base tracked it, the person unstaged it; the file is as
            // it was, and HEAD says whether that is more than what Git itself would say.
            let fine = !self.base.contains_key(at) || self.head_at(at)?.is_none();
            return Ok((!fine).then_some(Clash::Staged));
        };
        let now = (entry.kind.mode(), entry.id);
        let (stage, format) = (entry.stage, self.repository.object_format);
        if stage != 0 || entry.kind == EntryKind::Gitlink {
            return Ok(Some(Clash::Staged));
        }
        let fine = self.base.get(at) == Some(&now)
            || self.head_at(at)? == Some(now)
            || before.is_some_and(|state| mode_of(state) == Some(now.0))
                && content(root, path, before, format)? == Some(now.1);
        Ok((!fine).then_some(Clash::Staged))
    }

    /// Whether the index has a file or submodule where a folder on the way is.
    fn is_below_an_entry(&self, path: &RelPath) -> bool {
        let above = Path::new(path.as_os_str()).ancestors().skip(1);
        above.filter(|above| !above.as_os_str().is_empty()).any(|above| {
            self.now.get(above).is_some_and(|entry| {
                entry.kind == EntryKind::Gitlink || !self.base.contains_key(above)
            })
        })
    }

    fn head_at(&mut self, path: &Path) -> Result<Option<(u32, ObjectId)>, GitError> {
        if self.head.is_none() {
            let tree = match self.repository.head.commit() {
                Some(commit) => self.repository.tree(commit)?,
                None => Vec::new(),
            };
            let entries = tree.into_iter().map(|entry| (entry.path, (entry.kind.mode(), entry.id)));
            self.head = Some(entries.collect());
        }
        Ok(self.head.as_ref().and_then(|head| head.get(path).copied()))
    }
}

/// Git's mode for a state.
fn mode_of(state: &State) -> Option<u32> {
    match state {
        State::File { mode, .. } if mode & 0o100 != 0 => Some(EntryKind::Executable.mode()),
        State::File { .. } => Some(EntryKind::File.mode()),
        State::Link { .. } => Some(EntryKind::Link.mode()),
        State::Folder { .. } | State::Special => None,
    }
}

/// Git's name for the bytes of a file, or for what a link says.
fn content(
    root: &RootFolder,
    path: &RelPath,
    before: Option<&State>,
    format: ObjectFormat,
) -> Result<Option<ObjectId>, TreeError> {
    let fail = |source| TreeError::System { act: "read", path: root.full(path), source };
    match before {
        Some(State::File { size, .. }) => {
            let (mut file, _) = root.open_file(path)?;
            ObjectId::of_content(format, *size, &mut file).map(Some).map_err(fail)
        }
        Some(State::Link { target }) => {
            let size = u64::try_from(target.len()).unwrap_or(u64::MAX);
            ObjectId::of_content(format, size, &mut &target[..]).map(Some).map_err(fail)
        }
        _ => Ok(None),
    }
}
