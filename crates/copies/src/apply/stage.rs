//! The new files, written beside where they will be.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{AtFlags, Gid, Mode, Uid, XattrFlags, chownat, fchmod, fchown, fsetxattr};
use stead_core::id::Digest;
use stead_core::step::{self, Moment};
use stead_files::{RootFolder, Stat, Time, TreeError};
use stead_store::Blobs;

use super::look::system;
use super::plan::Planned;
use super::write::Cause;
use crate::changes::State;

/// By what a staged file is known again after it was renamed: nobody wrote to it if these are the
/// same, unless it was in the very moment that the file system's clock cannot tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    device: u64,
    inode: u64,
    size: u64,
    mode: u16,
    pub(crate) modified: Time,
}

impl Mark {
    fn of_open(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        Ok(Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            mode: u16::try_from(found.mode() & 0o7777).unwrap_or(0),
            modified: Time {
                secs: found.mtime(),
                nanos: u32::try_from(found.mtime_nsec()).unwrap_or(0),
            },
        })
    }

    /// Whether a look at a path found this very file.
    pub(crate) fn is_of(&self, stat: &Stat) -> bool {
        let Stat { device, inode, size, mode, modified, .. } = *stat;
        *self == Self { device, inode, size, mode, modified }
    }
}

/// What one thread reads into.
const BUFFER: usize = 64 << 10;

/// Stages the new file or link of each path that needs one, from the blobs; gives the marks of
/// files. What was staged before an error stays for [`settle`](super::settle()) to remove.
pub(crate) fn stage(
    root: &RootFolder,
    blobs: &Blobs,
    planned: &[Planned],
) -> Result<Vec<Option<Mark>>, Cause> {
    let mut buffer = vec![0; BUFFER];
    let mut marks = Vec::with_capacity(planned.len());
    for one in planned {
        let mark = match &one.step.new {
            Some(State::File { mode, digest, .. }) if one.step.is_staged() => {
                step::pass("copies.stage", Moment::Before);
                let mark = stage_file(root, blobs, one, *mode, digest, &mut buffer)?;
                step::pass("copies.stage", Moment::After);
                Some(mark)
            }
            Some(State::Link { target }) => {
                step::pass("copies.stage", Moment::Before);
                root.create_link(&one.staged, target)?;
                own_link(root, one)?;
                step::pass("copies.stage", Moment::After);
                None
            }
            _ => None,
        };
        marks.push(mark);
    }
    Ok(marks)
}

fn stage_file(
    root: &RootFolder,
    blobs: &Blobs,
    one: &Planned,
    mode: u16,
    digest: &Digest,
    buffer: &mut [u8],
) -> Result<Mark, Cause> {
    let path = one.staged.beside();
    let fail = |act| move |source| TreeError::System { act, path: root.full(path), source };
    let mut content = File::open(blobs.path(digest)).map_err(|_| Cause::Missing(*digest))?;
    let mut file = root.create(&one.staged)?;
    if !copy(&mut content, &mut file, digest, buffer).map_err(fail("write"))? {
        return Err(Cause::Missing(*digest));
    }
    let made = file.metadata().map_err(fail("examine"))?;
    if let Some((user, group)) = one.owner
        && (user, group) != (made.uid(), made.gid())
    {
        // Before the bits: giving a file away clears some of them.
        fchown(&file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))
            .map_err(|errno| system("give to its owner", root, path, errno))?;
    }
    for (name, value) in &one.extended {
        fsetxattr(&file, name, value, XattrFlags::CREATE)
            .map_err(|errno| system("set the attributes of", root, path, errno))?;
    }
    fchmod(&file, Mode::from_raw_mode(mode.into()))
        .map_err(|errno| system("set the permissions of", root, path, errno))?;
    Ok(Mark::of_open(&file).map_err(fail("examine"))?)
}

fn own_link(root: &RootFolder, one: &Planned) -> Result<(), TreeError> {
    let Some((user, group)) = one.owner else { return Ok(()) };
    let path = one.staged.beside();
    let folder = root.folder(&path.parent().unwrap_or_else(stead_files::RelPath::root))?;
    let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    chownat(&folder, path.name(), user, group, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|errno| system("give to its owner", root, path, errno))
}

/// Copies all of a blob; whether it was the content that its name says.
fn copy(from: &mut File, to: &mut File, digest: &Digest, buffer: &mut [u8]) -> io::Result<bool> {
    let mut hasher = blake3::Hasher::new();
    loop {
        let piece = match from.read(buffer) {
            Ok(0) => break,
            Ok(count) => buffer.get(..count).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(piece);
        to.write_all(piece)?;
    }
    Ok(hasher.finalize().as_bytes() == digest.as_bytes())
}
