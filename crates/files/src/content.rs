//! A file's content: read for its digest, or copied.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{SeekFrom, copy_file_range, ftruncate, ioctl_ficlone, seek};
use rustix::io::{Errno, pread, pwrite};
use stead_core::id::Digest;

use crate::stat::Stat;

/// Bytes that one call moves. Larger ones are no faster; smaller files are read whole in one call.
const AT_ONCE: usize = 256 * 1024;

/// The same for the kernel's own copying, which is not asked whether it was cancelled meanwhile.
const KERNEL_AT_ONCE: usize = 16 * 1024 * 1024;

/// What one thread reads into.
pub(crate) struct Buffer(Box<[u8]>);

impl Buffer {
    pub(crate) fn new() -> Self {
        Self(vec![0; AT_ONCE].into_boxed_slice())
    }
}

/// What stopped a file, and on which side.
pub(crate) enum Fault {
    /// The source could not be read.
    Read(Errno),
    /// The copy could not be written.
    Write(Errno),
    Cancelled,
}

/// How a file's content was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The copy shares its blocks with the source until one of them is written.
    Reflink,
    /// Read and written, by the kernel or by us.
    Bytes,
}

/// What the pair of file systems can do, found out once and corrected when a call disagrees.
pub(crate) struct Means {
    /// Files of this size and larger are tried as reflinks; none when that does not work.
    pub(crate) reflink_from: Option<u64>,
    /// Whether the kernel copies between the two.
    pub(crate) kernel: AtomicBool,
}

/// The digest of the first `size` bytes of a file, or of as many as there are.
pub(crate) fn digest(
    file: &OwnedFd,
    size: u64,
    buffer: &mut Buffer,
    cancelled: &dyn Fn() -> bool,
) -> Result<Digest, Fault> {
    let mut hasher = blake3::Hasher::new();
    let mut at = 0;
    while at < size {
        let piece = read(file, at, size, buffer)?;
        if piece.is_empty() {
            break;
        }
        hasher.update(piece);
        at = at.saturating_add(wide(piece.len()));
        if at < size && cancelled() {
            return Err(Fault::Cancelled);
        }
    }
    Ok(finish(&hasher))
}

/// Copies the first `stat.size` bytes of `from` into the new file `to`, holes as holes.
pub(crate) fn copy(
    from: &OwnedFd,
    stat: &Stat,
    to: &OwnedFd,
    means: &Means,
    wants_digest: bool,
    buffer: &mut Buffer,
    cancelled: &dyn Fn() -> bool,
) -> Result<(Way, Option<Digest>), Fault> {
    if means.reflink_from.is_some_and(|least| stat.size >= least) && stat.size > 0 {
        match ioctl_ficlone(to, from) {
            Ok(()) => {
                // Read from the copy, which nobody writes.
                let digest =
                    wants_digest.then(|| digest(to, stat.size, buffer, cancelled)).transpose()?;
                return Ok((Way::Reflink, digest));
            }
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::IO)) => {
                return Err(Fault::Write(errno));
            }
            // This file cannot (another block size, a swap file, …); its bytes can.
            Err(_) => {}
        }
    }
    let mut job = Job {
        from,
        to,
        hasher: wants_digest.then(blake3::Hasher::new),
        kernel: &means.kernel,
        buffer,
        cancelled,
    };
    if stat.stored >= stat.size {
        job.range(0, stat.size)?;
    } else {
        job.sparse(stat.size)?;
    }
    Ok((Way::Bytes, job.hasher.as_ref().map(finish)))
}

struct Job<'a> {
    from: &'a OwnedFd,
    to: &'a OwnedFd,
    hasher: Option<blake3::Hasher>,
    kernel: &'a AtomicBool,
    buffer: &'a mut Buffer,
    cancelled: &'a dyn Fn() -> bool,
}

impl Job<'_> {
    fn sparse(&mut self, size: u64) -> Result<(), Fault> {
        ftruncate(self.to, size).map_err(Fault::Write)?;
        let mut at = 0;
        while at < size {
            let data = match seek(self.from, SeekFrom::Data(at)) {
                Ok(data) => data.min(size),
                // Nothing but a hole from here on.
                Err(Errno::NXIO) => size,
                // The file system does not tell.
                Err(_) => at,
            };
            self.skip(data.saturating_sub(at));
            let hole = match seek(self.from, SeekFrom::Hole(data)) {
                Ok(hole) if hole > data => hole.min(size),
                _ => size,
            };
            if data < size {
                self.range(data, hole)?;
            }
            at = hole;
        }
        Ok(())
    }

    /// A hole is read as zeros.
    fn skip(&mut self, mut length: u64) {
        let Some(hasher) = &mut self.hasher else { return };
        let zeros = [0; 16 * 1024];
        while length > 0 {
            let piece = zeros.get(..narrow(length)).unwrap_or(&zeros);
            hasher.update(piece);
            length = length.saturating_sub(wide(piece.len()));
        }
    }

    fn range(&mut self, mut at: u64, end: u64) -> Result<(), Fault> {
        if self.hasher.is_none() && end.saturating_sub(at) > wide(AT_ONCE) {
            at = self.range_by_kernel(at, end)?;
        }
        while at < end {
            let piece = read(self.from, at, end, self.buffer)?;
            if piece.is_empty() {
                break;
            }
            let length = piece.len();
            let mut left = piece;
            let mut to = at;
            while !left.is_empty() {
                let written = match pwrite(self.to, left, to) {
                    Ok(0) => return Err(Fault::Write(Errno::NOSPC)),
                    Ok(written) => written,
                    Err(Errno::INTR) => continue,
                    Err(errno) => return Err(Fault::Write(errno)),
                };
                left = left.get(written..).unwrap_or_default();
                to = to.saturating_add(wide(written));
            }
            if let Some(hasher) = &mut self.hasher {
                hasher.update(piece);
            }
            at = at.saturating_add(wide(length));
            if at < end && (self.cancelled)() {
                return Err(Fault::Cancelled);
            }
        }
        Ok(())
    }

    /// Copies as far as the kernel does it, and says how far that is.
    fn range_by_kernel(&mut self, at: u64, end: u64) -> Result<u64, Fault> {
        let (mut from, mut to) = (at, at);
        while from < end && self.kernel.load(Ordering::Relaxed) {
            let length = narrow(end.saturating_sub(from)).min(KERNEL_AT_ONCE);
            match copy_file_range(self.from, Some(&mut from), self.to, Some(&mut to), length) {
                // Shorter than it was: the last look will tell.
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno @ (Errno::NOSPC | Errno::DQUOT)) => return Err(Fault::Write(errno)),
                Err(_) => {
                    self.kernel.store(false, Ordering::Relaxed);
                }
            }
            if (self.cancelled)() {
                return Err(Fault::Cancelled);
            }
        }
        Ok(from)
    }
}

/// Reads a piece at `at`, not beyond `end`; nothing at the file's end.
fn read(file: impl AsFd, at: u64, end: u64, buffer: &mut Buffer) -> Result<&[u8], Fault> {
    let length = narrow(end.saturating_sub(at)).min(AT_ONCE);
    let Buffer(bytes) = buffer;
    let Some(into) = bytes.get_mut(..length) else { return Ok(&[]) };
    loop {
        match pread(&file, &mut *into, at) {
            Ok(count) => return Ok(into.get(..count).unwrap_or_default()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Fault::Read(errno)),
        }
    }
}

fn finish(hasher: &blake3::Hasher) -> Digest {
    Digest::from_bytes(*hasher.finalize().as_bytes())
}

fn wide(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

fn narrow(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}
