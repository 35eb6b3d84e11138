//! Copies that were made and never admitted: no agent ever worked in them.

use std::fs;
use std::io::ErrorKind;

use stead_core::id::{SessionId, TaskId};

use crate::error::{CopyError, failed};
use crate::home::Home;
use crate::staging::Staged;

/// Removes the copies of a task whose admission was not recorded; false when there are none. They
/// go where they were made first, so that nobody ever sees half of them.
///
/// # Errors
/// The system's; what is left then is in the staging, for [`clear_staging`](crate::clear_staging).
pub fn withdraw(home: &Home, session: &SessionId, task: TaskId) -> Result<bool, CopyError> {
    let folder = home.task(session, task);
    let staged = Staged::begin(home, &format!("withdraw task {task} of {session}"))?;
    let moved = fs::rename(&folder, staged.path().join("withdrawn"));
    match moved {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(CopyError::system("remove", &folder, error)),
    }
    if let Some(of_session) = folder.parent() {
        // Only an empty one goes.
        let _ = fs::remove_dir(of_session);
    }
    staged.remove()?;
    Ok(true)
}

/// Removes the copies of every task of `session` but those that are `known` to its log: what an
/// engine that died made and did not record.
///
/// # Errors
/// As [`withdraw`]'s.
pub fn withdraw_others(
    home: &Home,
    session: &SessionId,
    known: &[TaskId],
) -> Result<Vec<TaskId>, CopyError> {
    let folder = home.copies().join(session.as_str());
    let listed = match fs::read_dir(&folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CopyError::system("list", &folder, error)),
    };
    let mut removed = Vec::new();
    for entry in listed {
        let name = entry.map_err(failed("list", &folder))?.file_name();
        // Only what a task's number names is a task's.
        let Some(task) = name.to_str().and_then(|text| text.parse().ok()).map(TaskId) else {
            continue;
        };
        if !known.contains(&task) && withdraw(home, session, task)? {
            removed.push(task);
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_log_does_not_know_goes() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("home"));
        let session = SessionId::parse("s").unwrap();
        for name in ["1", "2", "x", "-3"] {
            fs::create_dir_all(home.copies().join("s").join(name).join("app")).unwrap();
        }
        stead_files::private_dir(home.path()).unwrap();
        let removed = withdraw_others(&home, &session, &[TaskId(1)]).unwrap();
        assert_eq!(removed, [TaskId(2)]);
        assert!(home.task(&session, TaskId(1)).join("app").is_dir());
        assert!(home.copies().join("s/x/app").is_dir());
        assert!(!withdraw(&home, &session, TaskId(2)).unwrap());
        assert!(withdraw(&home, &session, TaskId(1)).unwrap());
        assert!(crate::staged(&home).unwrap().is_empty());
        let none = SessionId::parse("none").unwrap();
        assert!(withdraw_others(&home, &none, &[]).unwrap().is_empty());
    }
}
