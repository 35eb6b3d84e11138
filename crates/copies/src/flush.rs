//! Whether a task's copies would survive a power cut.
//!
//! Copies are published as soon as they are whole, and the disk gets them while the agent begins.
//! Until it has them a file beside them names the boot in which they were made. Only the power, not
//! a kill, takes what is not on the disk yet; so found in another boot, or without its text, that
//! file says that the copies were cut off: nobody can tell what is missing in them, and they are not
//! used again. The file is older than their place, so no file system shows them without it. The
//! originals have everything that was copied.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use stead_core::id::{SessionId, TaskId};
use stead_core::step::{self, Moment};

use crate::error::{CopyError, failed};
use crate::home::Home;
use crate::keep::{sync, sync_file_system};

/// The file beside the copies; no slot can have its name.
pub(crate) const UNFLUSHED: &str = ".unflushed";

/// What it holds instead of a boot once the disk has refused something.
const FAILED: &str = "failed";

/// What the disk has of a task's copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    /// Everything, since admission.
    Disk,
    /// Not everything yet.
    Memory,
    /// Not everything, and the rest is gone.
    Nothing,
}

/// Says of the copies in `folder`, which nobody sees yet, that the disk does not have them.
pub(crate) fn mark(folder: &Path) -> Result<(), CopyError> {
    let path = folder.join(UNFLUSHED);
    let boot = this_boot(&path)?;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(boot.as_bytes()))
        .map_err(failed("write", &path))
}

/// What the disk has of the copies in `folder`.
pub(crate) fn reached(folder: &Path) -> Result<Reached, CopyError> {
    let path = folder.join(UNFLUSHED);
    match stead_files::read_file(&path) {
        Ok(boot) if boot == this_boot(&path)?.as_bytes() => Ok(Reached::Memory),
        Ok(_) => Ok(Reached::Nothing),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Reached::Disk)
        }
        Err(error) => Err(CopyError::system("read", &path, error)),
    }
}

/// Brings a task's copies to the disk, if they are not there yet. Passes the step `copies.flush`.
///
/// # Errors
/// [`CopyError::CutOff`], and the disk's. It tells each error once, so the copies then count as cut
/// off.
pub fn flush(home: &Home, session: &SessionId, task: TaskId) -> Result<(), CopyError> {
    let folder = home.task(session, task);
    match reached(&folder)? {
        Reached::Disk => return Ok(()),
        Reached::Memory => {}
        Reached::Nothing => return Err(CopyError::CutOff { task }),
    }
    let path = folder.join(UNFLUSHED);
    step::pass("copies.flush", Moment::Before);
    if let Err(error) = sync_file_system(home.path()) {
        let told = File::options().write(true).truncate(true).open(&path);
        let told = told.and_then(|mut file| {
            file.write_all(FAILED.as_bytes())?;
            file.sync_all()
        });
        return Err(told.map_err(failed("write", &path)).err().unwrap_or(error));
    }
    match fs::remove_file(&path) {
        Ok(()) => {}
        // Discarded meanwhile, or flushed by another.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(CopyError::system("remove", &path, error)),
    }
    sync(&folder)?;
    step::pass("copies.flush", Moment::After);
    Ok(())
}

/// Brings all copies to the disk that a killed engine published and did not flush. Those that were
/// cut off stay as they are.
///
/// # Errors
/// As [`flush`]'s, for the first task that has one.
pub fn flush_all(home: &Home) -> Result<(), CopyError> {
    let tasks = crate::tasks(home)?;
    let mut left = tasks.iter().filter(|task| !task.is_cut_off);
    left.try_for_each(|task| flush(home, &task.session, task.task))
}

/// The boot's name, from the same source as that of processes.
fn this_boot(path: &Path) -> Result<String, CopyError> {
    let me =
        stead_process::ProcessIdentity::of_self().map_err(failed("name the boot for", path))?;
    Ok(me.boot_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(home: &Home) -> (SessionId, std::path::PathBuf) {
        let session = SessionId::parse("s").unwrap();
        let folder = home.task(&session, TaskId(1));
        fs::create_dir_all(&folder).unwrap();
        mark(&folder).unwrap();
        (session, folder)
    }

    #[test]
    fn what_was_marked_in_this_boot_is_flushed_once() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().to_owned());
        let (session, task) = published(&home);
        assert_eq!(reached(&task).unwrap(), Reached::Memory);
        flush_all(&home).unwrap();
        assert_eq!(reached(&task).unwrap(), Reached::Disk);
        assert!(!task.join(UNFLUSHED).exists());
        flush(&home, &session, TaskId(1)).unwrap();
        flush(&home, &session, TaskId(2)).unwrap();
    }

    #[test]
    fn what_was_marked_in_another_boot_or_has_lost_its_text_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().to_owned());
        let (session, task) = published(&home);
        for text in ["another boot", "", FAILED] {
            fs::write(task.join(UNFLUSHED), text).unwrap();
            assert_eq!(reached(&task).unwrap(), Reached::Nothing);
            flush_all(&home).unwrap();
            let refused = flush(&home, &session, TaskId(1)).unwrap_err();
            assert!(matches!(refused, CopyError::CutOff { task: TaskId(1) }), "{refused}");
            assert!(refused.hint().unwrap().contains("stead task discard 1"));
            assert_eq!(fs::read(task.join(UNFLUSHED)).unwrap(), text.as_bytes());
        }
    }
}
