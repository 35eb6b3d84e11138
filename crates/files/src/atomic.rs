//! Whole replacement of a file: a reader sees the old content or the new, never a mix.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Access, RenameFlags};
use stead_core::step::{self, Moment};

/// How every temporary file made here begins; the leading dot hides it from listings.
pub(crate) const TEMPORARY: &str = ".stead-new-";

/// The permission bits of a stored file that nobody chose bits for: its owner's alone.
const PRIVATE: u32 = 0o600;

/// As many links as the kernel itself follows before it says `ELOOP`.
const MOST_LINKS: usize = 40;

/// Why a file was not replaced or created. The old content, if any, is still there unless the
/// message says that the *folder* could not be synced.
#[derive(Debug, thiserror::Error)]
pub enum AtomicError {
    /// The system refused one act of the replacement.
    #[error("cannot {act} {}: {source}", path.display())]
    System {
        /// What was tried: `create`, `write`, `sync`, `rename`, `sync the folder of`, ….
        act: &'static str,
        /// The file it was tried for.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// [`create_new`] found something at the path.
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
    /// The path names a folder, a device, a socket or a pipe.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The path has no file name to replace (`/`, `..`).
    #[error("{} does not name a file", .0.display())]
    NoName(PathBuf),
}

/// Replaces the content of stead's own file at `path`, durably: when this returns, `bytes` survive
/// a power cut.
///
/// `mode` is the new file's permission bits, whatever the umask is; with `None` an existing
/// regular file keeps its bits and a new one gets `0600`. A symbolic link at `path` is itself
/// replaced, never followed. Passes the step `files.replace`.
///
/// # Errors
/// On any error up to the rename the old file is untouched and the temporary file is gone. An
/// error whose act is `sync the folder of` comes after the rename: the new content is in place but
/// may not survive a power cut.
pub fn replace(path: &Path, bytes: &[u8], mode: Option<u32>) -> Result<(), AtomicError> {
    let kept = match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => Some(found.permissions().mode() & 0o777),
        Ok(found) if found.is_symlink() => None,
        Ok(_) => return Err(AtomicError::NotAFile(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(system("examine", path)(error)),
    };
    let bits = mode.or(kept).unwrap_or(PRIVATE);
    step::pass("files.replace", Moment::Before);
    let temporary = Temporary::write(path, bytes, PRIVATE, Some(bits))?;
    temporary.file.sync_all().map_err(system("sync", path))?;
    temporary.rename_to(path)?;
    sync_folder(path)?;
    step::pass("files.replace", Moment::After);
    Ok(())
}

/// Replaces the content of a *person's* file, as an editor would.
///
/// A symbolic link at `path` stays: the file it leads to is replaced (or created). Permission bits
/// stay as they are, the executable ones included; a new file gets `0666` less the umask. Hard
/// links to the old file keep the old content. Nothing is synced: like an editor's save, it is
/// whole for every reader at once but may be lost in a power cut. Passes the step
/// `files.replace`.
///
/// # Errors
/// A file that its user may not write is refused, although the rename would succeed. On any error
/// the old file is untouched and the temporary file is gone.
pub fn replace_through(path: &Path, bytes: &[u8]) -> Result<(), AtomicError> {
    let target = resolve(path)?;
    let bits = match fs::symlink_metadata(&target) {
        Ok(found) if found.is_file() => {
            rustix::fs::access(&target, Access::WRITE_OK)
                .map_err(|error| system("write", &target)(error.into()))?;
            Some(found.permissions().mode() & 0o777)
        }
        Ok(_) => return Err(AtomicError::NotAFile(target)),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(system("examine", &target)(error)),
    };
    step::pass("files.replace", Moment::Before);
    let created = if bits.is_some() { PRIVATE } else { 0o666 };
    Temporary::write(&target, bytes, created, bits)?.rename_to(&target)?;
    step::pass("files.replace", Moment::After);
    Ok(())
}

/// Creates stead's own file at `path` with the bits `0600`, whole and durable, and only if nothing
/// is there, not even a dangling link. Passes the step `files.create`.
///
/// # Errors
/// [`AtomicError::Exists`] when something is there; else as [`replace`].
pub fn create_new(path: &Path, bytes: &[u8]) -> Result<(), AtomicError> {
    step::pass("files.create", Moment::Before);
    let temporary = Temporary::write(path, bytes, PRIVATE, Some(PRIVATE))?;
    temporary.file.sync_all().map_err(system("sync", path))?;
    temporary.settle_at(path)?;
    sync_folder(path)?;
    step::pass("files.create", Moment::After);
    Ok(())
}

/// Whether a file of this name is a temporary one of this module: left behind by a killed process
/// if it is old, and then safe to remove.
pub fn is_temporary(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes())
}

/// A file beside its destination that is removed again unless it reaches it.
struct Temporary {
    path: PathBuf,
    file: File,
    settled: bool,
}

impl Temporary {
    /// `created` are the bits asked of `open`, which the umask cuts; `exact` are set afterwards.
    fn write(
        destination: &Path,
        bytes: &[u8],
        created: u32,
        exact: Option<u32>,
    ) -> Result<Self, AtomicError> {
        let mut temporary = Self::create(destination, created)?;
        temporary.file.write_all(bytes).map_err(system("write", destination))?;
        if let Some(bits) = exact {
            temporary
                .file
                .set_permissions(fs::Permissions::from_mode(bits))
                .map_err(system("set the permissions of", destination))?;
        }
        Ok(temporary)
    }

    fn create(destination: &Path, bits: u32) -> Result<Self, AtomicError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        if destination.file_name().is_none() {
            return Err(AtomicError::NoName(destination.to_owned()));
        }
        let process = std::process::id();
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = folder_of(destination).join(format!("{TEMPORARY}{process}-{number}"));
            match OpenOptions::new().write(true).create_new(true).mode(bits).open(&path) {
                Ok(file) => return Ok(Self { path, file, settled: false }),
                // A killed process that had our number left one behind.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(system("create", destination)(error)),
            }
        }
    }

    fn rename_to(mut self, destination: &Path) -> Result<(), AtomicError> {
        fs::rename(&self.path, destination).map_err(system("rename", destination))?;
        self.settled = true;
        Ok(())
    }

    fn settle_at(mut self, destination: &Path) -> Result<(), AtomicError> {
        let here = rustix::fs::CWD;
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(here, &self.path, here, destination, flags) {
            Ok(()) => {
                self.settled = true;
                return Ok(());
            }
            Err(rustix::io::Errno::EXIST) => {
                return Err(AtomicError::Exists(destination.to_owned()));
            }
            // Some file systems know no such flag; a hard link refuses an existing name too.
            Err(_) => {}
        }
        match fs::hard_link(&self.path, destination) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(AtomicError::Exists(destination.to_owned()))
            }
            Err(error) => Err(system("create", destination)(error)),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.settled {
            // The error that brought us here matters more than one about the leftover.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn system(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> AtomicError {
    let path = path.to_owned();
    move |source| AtomicError::System { act, path, source }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn sync_folder(path: &Path) -> Result<(), AtomicError> {
    File::open(folder_of(path))
        .and_then(|folder| folder.sync_all())
        .map_err(system("sync the folder of", path))
}

/// Follows the links at the final component only, so that a dangling one still has a target.
fn resolve(path: &Path) -> Result<PathBuf, AtomicError> {
    let mut current = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&current) {
            Ok(target) => current = folder_of(&current).join(target),
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => {
                return Ok(current);
            }
            Err(error) => return Err(system("follow", path)(error)),
        }
    }
    Err(system("follow", path)(rustix::io::Errno::LOOP.into()))
}
