//! The directory that a spawn asks for.

use std::path::{Path, PathBuf};

use stead_core::layout::{AbsoluteDir, Root};
use stead_core::refusal::{Refusal, RefusalKind};

/// Judges a directory that a spawn asked for (A12): absolute, or relative to the parent's;
/// existing; canonical; inside one of the folders that the parent uses.
pub(super) fn judge(
    parent: Option<&AbsoluteDir>,
    roots: &[Root],
    chosen: &Path,
) -> Result<AbsoluteDir, Refusal> {
    let refuse = |line: String| {
        Refusal::new(RefusalKind::InvalidArgument, line)
            .hint("leave `working_directory` out to work in the caller's directory")
    };
    let whole = match parent {
        Some(parent) => parent.as_path().join(chosen),
        None => PathBuf::from(chosen),
    };
    let canonical = whole
        .canonicalize()
        .map_err(|e| refuse(format!("the directory {} cannot be used: {e}", whole.display())))?;
    if !canonical.is_dir() {
        return Err(refuse(format!("{} is not a directory", canonical.display())));
    }
    let directory = AbsoluteDir::new(canonical).map_err(|e| refuse(e.to_string()))?;
    if roots.iter().any(|root| directory.is_within(&root.directory)) {
        return Ok(directory);
    }
    Err(refuse(format!(
        "the directory {} is in none of the caller's folders",
        directory.as_path().display()
    )))
}
