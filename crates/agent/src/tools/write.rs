//! `write`: a whole file.

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;
use stead_core::permission::Zone;
use stead_core::refusal::{Refusal, RefusalKind};

use super::arguments::WriteArguments;
use super::authority::{Authority, Found, failed};
use super::output::Output;

/// Agents of one session may work in one folder: what reads a file and writes it back holds this,
/// so that no agent's edit swallows another's.
static WRITES: Mutex<()> = Mutex::new(());

pub(super) fn alone() -> MutexGuard<'static, ()> {
    // It guards no data, so a panic elsewhere leaves nothing half done in it.
    WRITES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Judges a call without doing it: where it would write.
pub(crate) fn judge(authority: &Authority, arguments: &WriteArguments) -> Result<Found, Refusal> {
    let found = authority.writing(&arguments.path)?;
    match fs::metadata(&found.real) {
        Ok(there) if there.is_dir() => {
            Err(Refusal::new(RefusalKind::InvalidArgument, format!("{} is a folder", found.shown)))
        }
        Ok(there) if !there.is_file() => Err(Refusal::new(
            RefusalKind::NotAllowed,
            format!("{} is not a regular file", found.shown),
        )),
        _ => Ok(found),
    }
}

/// Writes the file that was judged, with the folders it needs.
pub(crate) fn write(
    authority: &Authority,
    judged: &Found,
    arguments: &WriteArguments,
) -> Result<Output, Refusal> {
    let _alone = alone();
    let found = judge(authority, arguments)?;
    same(judged, &found)?;
    let new = !found.real.exists();
    if new && let Some(folder) = found.real.parent() {
        // Leave for one file is none for the folders above it.
        if found.zone == Zone::Outside && !folder.is_dir() {
            let line = format!("the folder of {} is not there; nothing was written", found.shown);
            return Err(Refusal::new(RefusalKind::NotFound, line));
        }
        fs::create_dir_all(folder)
            .map_err(|error| failed("make the folder of", &found.shown, &error))?;
    }
    replace(&found, arguments.content.as_bytes())?;
    let lines = arguments.content.lines().count();
    let bytes = arguments.content.len();
    let what = if new { "new file" } else { "replaced" };
    let text = format!("wrote {} ({what}, {lines} lines, {bytes} bytes)", found.shown);
    Ok(Output::new(text, json!({ "path": found.shown, "new": new, "bytes": bytes })))
}

/// Between leave and deed a link may have been turned: leave was given for one file only.
pub(super) fn same(judged: &Found, found: &Found) -> Result<(), Refusal> {
    if judged.real == found.real {
        return Ok(());
    }
    let line = format!("{} now leads to {}; nothing was written", judged.shown, found.shown);
    Err(Refusal::new(RefusalKind::Conflict, line).hint("try again"))
}

pub(super) fn replace(found: &Found, bytes: &[u8]) -> Result<(), Refusal> {
    stead_files::replace_through(&found.real, bytes)
        .map_err(|error| Refusal::new(RefusalKind::Failed, error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use stead_core::layout::Access;

    use super::*;

    #[test]
    fn a_file_is_written_whole_with_its_folders_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::iter::once((folder.path(), Access::Write));
        let authority = Authority::new(folder.path(), root, None);
        let call = |path: &str, content: &str| {
            let arguments = WriteArguments { path: path.into(), content: content.into() };
            write(&authority, &judge(&authority, &arguments)?, &arguments)
        };
        assert_eq!(
            call("a/b/c.sh", "x\ny").unwrap().text,
            "wrote a/b/c.sh (new file, 2 lines, 3 bytes)"
        );
        let path = folder.path().join("a/b/c.sh");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        symlink("c.sh", folder.path().join("a/b/link")).unwrap();
        assert!(call("a/b/link", "z").unwrap().text.starts_with("wrote a/b/c.sh (replaced"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "z");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        assert!(call("a", "").unwrap_err().line.contains("is a folder"));
        assert!(call("a/b/c.sh/d", "").is_err());
        let beside = tempfile::tempdir().unwrap();
        let outside = |name: &str| beside.path().join(name).display().to_string();
        call(&outside("f"), "x").unwrap();
        assert!(call(&outside("new/f"), "x").unwrap_err().line.contains("is not there"));
    }
}
