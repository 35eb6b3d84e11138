//! Where the `.git` entry of a nested work tree leads, as its copy would follow it.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use stead_files::RelPath;
use stead_git::{GitEntry, Kind, Repository};

use crate::error::{CopyError, failed};

/// Where a nested `.git` leads.
pub(super) enum Leads {
    /// To what is copied with it.
    Inside,
    /// To the Git directories of submodules in the root's own, which the copy needs then.
    ToModules,
    /// Anywhere else: in the copy Git would work on the original.
    Outside,
}

/// More than any path has.
const LONGEST: u64 = 16 << 10;

/// Looks at the entry of the work tree at `nested` below `directory`.
pub(super) fn of(
    directory: &Path,
    nested: &RelPath,
    repository: Option<&Repository>,
) -> Result<Leads, CopyError> {
    let folder = directory.join(nested.as_os_str());
    match GitEntry::of(&folder)? {
        // It vanished, or it is nothing that Git would follow.
        None | Some(GitEntry::Odd) => Ok(Leads::Inside),
        Some(GitEntry::Folder) => {
            let leads_away = names_elsewhere(&folder.join(".git/config"), &folder)?;
            Ok(if leads_away { Leads::Outside } else { Leads::Inside })
        }
        Some(GitEntry::Elsewhere(target)) => follow(directory, &folder, &target, repository),
    }
}

fn follow(
    directory: &Path,
    folder: &Path,
    target: &Path,
    repository: Option<&Repository>,
) -> Result<Leads, CopyError> {
    let Some(text) = literal(folder)? else { return Ok(Leads::Inside) };
    if text.is_absolute() {
        return Ok(Leads::Outside);
    }
    let is_module = repository.is_some_and(|repository| {
        repository.kind == Kind::Plain
            && target.starts_with(repository.git_directory.join("modules"))
    });
    let is_own = repository.is_some_and(|found| target.starts_with(&found.git_directory));
    let is_inside = target.starts_with(directory) && stays_inside(directory, folder, &text);
    if !is_inside || (is_own && !is_module) || names_elsewhere(&target.join("config"), folder)? {
        return Ok(Leads::Outside);
    }
    Ok(if is_module { Leads::ToModules } else { Leads::Inside })
}

/// What the file or link says, word for word.
fn literal(folder: &Path) -> Result<Option<PathBuf>, CopyError> {
    let path = folder.join(".git");
    if let Ok(target) = fs::read_link(&path) {
        return Ok(Some(target));
    }
    let mut text = Vec::new();
    fs::File::open(&path)
        .and_then(|file| file.take(LONGEST).read_to_end(&mut text))
        .map_err(failed("read", &path))?;
    let Some(text) = text.strip_prefix(b"gitdir: ") else { return Ok(None) };
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
    Ok(Some(PathBuf::from(OsStr::from_bytes(text.get(..end).unwrap_or_default()))))
}

/// Whether a relative way never leaves the root, so that it means the same in the copy.
fn stays_inside(directory: &Path, folder: &Path, text: &Path) -> bool {
    let Ok(below) = folder.strip_prefix(directory) else { return false };
    let mut depth = below.components().count();
    for component in text.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::CurDir => {}
            _ => return false,
        }
    }
    true
}

/// Whether settings put a work tree, or where its objects are, at an absolute path. Only files that
/// mention it at all are looked at closely; what includes other files is taken at its word.
fn names_elsewhere(config: &Path, folder: &Path) -> Result<bool, CopyError> {
    let text = match fs::read(config) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(CopyError::system("read", config, error)),
    };
    let text = String::from_utf8_lossy(&text).to_lowercase();
    let own = folder.to_string_lossy().to_lowercase();
    let is_absolute = |line: &str| {
        let value = line.trim().strip_prefix("worktree").map(str::trim_start);
        let value = value.and_then(|rest| rest.strip_prefix('=')).map(str::trim_start);
        value.is_some_and(|value| value.trim_start_matches('"').starts_with('/'))
    };
    Ok(text.lines().any(is_absolute) || (text.contains("worktree") && text.contains(&own)))
}
