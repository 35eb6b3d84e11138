//! What is at a path of a destination now, read from the disk.

use std::ffi::{CStr, CString};
use std::io::Read as _;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{fgetxattr, flistxattr};
use rustix::io::Errno;
use stead_core::id::Digest;
use stead_files::{Kind, RelPath, RootFolder, Stat, Time, TreeError};

use crate::changes::State;

/// What is at a path, and what the system says about it.
#[derive(Debug, Clone)]
pub(crate) struct Here {
    pub(crate) state: State,
    pub(crate) stat: Stat,
}

/// How often a file that changes while it is read is read again.
const ROUNDS: usize = 3;

/// What is at `path`; nothing when it or a folder on the way is not there. A file is read whole.
/// One that keeps changing is given as it was read, and so is equal to nothing.
pub(crate) fn observe(root: &RootFolder, path: &RelPath) -> Result<Option<Here>, TreeError> {
    let mut round = 0;
    loop {
        let Some(stat) = root.look(path)? else { return Ok(None) };
        let (state, steady) = match stat.kind {
            Kind::Folder => (State::Folder { mode: stat.mode }, true),
            Kind::Special(_) => (State::Special, true),
            Kind::Link => match root.read_link(path) {
                Ok(target) => (State::Link { target: target.into() }, true),
                Err(error) => (State::Special, retried(error, &mut round)?),
            },
            Kind::File => match read(root, path) {
                Ok((digest, steady)) => {
                    (State::File { mode: stat.mode, size: stat.size, digest }, steady)
                }
                Err(error) => (State::Special, retried(error, &mut round)?),
            },
        };
        round += 1;
        if steady || round > ROUNDS {
            return Ok(Some(Here { state, stat }));
        }
    }
}

/// It became something else between two calls: looked at again, a few times.
fn retried(error: TreeError, round: &mut usize) -> Result<bool, TreeError> {
    let changed = matches!(error, TreeError::NotBeneath(_))
        || matches!(error.errno(), Some(Errno::NOENT | Errno::INVAL));
    if changed && *round < ROUNDS { Ok(false) } else { Err(error) }
}

fn read(root: &RootFolder, path: &RelPath) -> Result<(Digest, bool), TreeError> {
    let (mut file, stat) = root.open_file(path)?;
    let fail = |source| TreeError::System { act: "read", path: root.full(path), source };
    let digest = digest_of(&mut file).map_err(fail)?;
    let after = file.metadata().map_err(fail)?;
    let time = |secs, nanos| Time { secs, nanos: u32::try_from(nanos).unwrap_or(0) };
    let steady = after.size() == stat.size
        && time(after.mtime(), after.mtime_nsec()) == stat.modified
        && time(after.ctime(), after.ctime_nsec()) == stat.changed;
    Ok((digest, steady))
}

fn digest_of(file: &mut std::fs::File) -> std::io::Result<Digest> {
    // Most files fit.
    let mut buffer = [0; 16 << 10];
    let mut hasher = blake3::Hasher::new();
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(Digest::from_bytes(*hasher.finalize().as_bytes())),
            Ok(count) => {
                hasher.update(buffer.get(..count).unwrap_or_default());
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whether nothing about a file changed between the two looks, as far as the system says.
pub(crate) fn is_unchanged(one: &Stat, two: &Stat) -> bool {
    is_untouched(one, two) && one.changed == two.changed
}

/// The same, but for what a rename changes too.
pub(crate) fn is_untouched(one: &Stat, two: &Stat) -> bool {
    one.is_same_file(two)
        && (one.kind, one.mode, one.uid, one.gid) == (two.kind, two.mode, two.uid, two.gid)
        && (one.size, one.modified) == (two.size, two.modified)
}

/// Extended attributes by name.
pub(crate) type Extended = Vec<(CString, Vec<u8>)>;

/// The extended attributes of a file that a new one in its place must have too.
///
/// # Errors
/// Also, as a word, when it has some that cannot be carried over: an access control list, a
/// capability, what only the administrator sees.
pub(crate) fn extended(
    root: &RootFolder,
    path: &RelPath,
) -> Result<Result<Extended, &'static str>, TreeError> {
    let (file, _) = root.open_file(path)?;
    let names = match list(&file) {
        Ok(names) => names,
        Err(Errno::NOTSUP) => return Ok(Ok(Vec::new())),
        Err(errno) => return Err(system("list the attributes of", root, path, errno)),
    };
    let mut kept = Vec::new();
    for name in names.split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        match name.to_bytes() {
            b"system.posix_acl_access" | b"system.nfs4_acl" => {
                return Ok(Err("it has an access control list"));
            }
            b"security.capability" => return Ok(Err("it has capabilities")),
            // Labels are the policy's of the machine, which gives a new file its own.
            name if name.starts_with(b"security.") => continue,
            name if name.starts_with(b"trusted.") || name.starts_with(b"system.") => {
                return Ok(Err("it has attributes that cannot be carried over"));
            }
            _ => {}
        }
        let value = value(&file, name)
            .map_err(|errno| system("read the attributes of", root, path, errno))?;
        kept.push((name.to_owned(), value));
    }
    Ok(Ok(kept))
}

/// More than any file system lets one file have.
const MOST: usize = 64 << 10;

fn list(file: impl AsFd) -> rustix::io::Result<Vec<u8>> {
    // Almost no file has more than a few.
    let mut names = [0; 512];
    match flistxattr(&file, &mut names[..]) {
        Ok(length) => Ok(names.get(..length).unwrap_or_default().to_vec()),
        Err(Errno::RANGE) => {
            let mut names = vec![0; MOST];
            let length = flistxattr(&file, names.as_mut_slice())?;
            names.truncate(length);
            Ok(names)
        }
        Err(errno) => Err(errno),
    }
}

fn value(file: impl AsFd, name: &CStr) -> rustix::io::Result<Vec<u8>> {
    let mut value = vec![0; MOST];
    let length = fgetxattr(file, name, value.as_mut_slice())?;
    value.truncate(length);
    Ok(value)
}

pub(crate) fn system(
    act: &'static str,
    root: &RootFolder,
    path: &RelPath,
    errno: Errno,
) -> TreeError {
    TreeError::System { act, path: root.full(path), source: errno.into() }
}
