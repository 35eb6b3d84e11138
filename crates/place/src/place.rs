//! Adopting a directory as a place.

use std::io;
use std::path::{Path, PathBuf};

use stead_core::id::SessionId;
use stead_core::layout::AbsoluteDir;
use stead_files::{FolderError, private_dir};

/// The longest path of a Unix socket that every system takes, in bytes.
const LONGEST_SOCKET: usize = 104;

/// Why a directory cannot be a place.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The directory is gone, or is no directory that can be entered.
    #[error("the directory {} cannot be used: {source}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The directory's path leads elsewhere now: a symbolic link stands on the way.
    #[error("the directory {} leads to {} now", directory.display(), now.display())]
    Moved {
        /// The directory as it was admitted.
        directory: PathBuf,
        /// Where its path leads.
        now: PathBuf,
    },
    /// The scratch folder cannot be made.
    #[error(transparent)]
    Scratch(#[from] FolderError),
}

/// A directory equipped for the processes of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    directory: AbsoluteDir,
    scratch: PathBuf,
}

impl Place {
    /// Adopts `directory` for `agent`: looks that it is still the directory it was, and makes the
    /// agent's scratch folder below `host`. Writes nothing inside the directory and never falls
    /// back to another one.
    pub fn adopt(
        host: &Path,
        directory: &AbsoluteDir,
        agent: &SessionId,
    ) -> Result<Self, PlaceError> {
        check(directory)?;
        let scratch = host.join("scratch").join(agent.as_str());
        private_dir(&scratch)?;
        Ok(Self { directory: directory.clone(), scratch })
    }

    /// The directory.
    pub fn directory(&self) -> &AbsoluteDir {
        &self.directory
    }

    /// The scratch folder, of mode 0700, kept from run to run.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// Where the agent's socket goes: in the scratch folder, or below `runtime` when that path is
    /// too long for a socket.
    pub fn socket(&self, runtime: &Path) -> PathBuf {
        let socket = self.scratch.join("stead.sock");
        if socket.as_os_str().len() <= LONGEST_SOCKET {
            return socket;
        }
        let name = self.scratch.file_name().unwrap_or_default();
        runtime.join(name).with_extension("sock")
    }
}

/// Looks that the path still leads to a directory, and to itself.
fn check(directory: &AbsoluteDir) -> Result<(), PlaceError> {
    let path = directory.as_path();
    let failed = |source| PlaceError::Directory { directory: path.to_owned(), source };
    let now = path.canonicalize().map_err(failed)?;
    if now != path {
        return Err(PlaceError::Moved { directory: path.to_owned(), now });
    }
    if !path.metadata().map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::NotADirectory.into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn agent() -> SessionId {
        SessionId::parse("agent-1").unwrap()
    }

    #[test]
    fn a_place_is_the_directory_it_was_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let work = base.join("work");
        fs::create_dir(&work).unwrap();
        let directory = AbsoluteDir::new(&work).unwrap();
        let place = Place::adopt(&base.join("host"), &directory, &agent()).unwrap();
        assert_eq!(fs::read_dir(&work).unwrap().count(), 0);
        assert!(place.scratch().is_dir());

        fs::rename(&work, base.join("elsewhere")).unwrap();
        assert!(matches!(
            Place::adopt(&base.join("host"), &directory, &agent()),
            Err(PlaceError::Directory { .. })
        ));
        std::os::unix::fs::symlink(base.join("elsewhere"), &work).unwrap();
        assert!(matches!(
            Place::adopt(&base.join("host"), &directory, &agent()),
            Err(PlaceError::Moved { .. })
        ));
        fs::remove_file(&work).unwrap();
        fs::write(&work, "a file").unwrap();
        assert!(matches!(
            Place::adopt(&base.join("host"), &directory, &agent()),
            Err(PlaceError::Directory { .. })
        ));
    }

    #[test]
    fn a_socket_path_fits_or_goes_to_the_runtime_folder() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let directory = AbsoluteDir::new(&base).unwrap();
        let place = Place::adopt(&base.join("h".repeat(90)), &directory, &agent()).unwrap();
        assert_eq!(place.socket(Path::new("/run/x")), Path::new("/run/x/agent-1.sock"));
    }
}
