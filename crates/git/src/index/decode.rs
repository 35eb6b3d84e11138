//! Reading an index, of the versions 2 to 4.

use std::path::PathBuf;

use super::{Entry, EntryKind, Index, IndexError, Stat, Time, tree};
use crate::object::{ObjectFormat, ObjectId};
use crate::path::path_of;

/// Bits of an entry's flags, and of the further ones from version 3 on.
pub(super) const ASSUMED: u16 = 0x8000;
pub(super) const EXTENDED: u16 = 0x4000;
pub(super) const STAGE: u16 = 0x3000;
pub(super) const LENGTH: u16 = 0x0fff;
pub(super) const SKIPPED: u16 = 0x4000;
pub(super) const INTENDED: u16 = 0x2000;

/// An entry of the shortest path has no fewer bytes than this with SHA-1: a number of entries
/// beyond the file's length is damage, not a reason to reserve memory.
const SHORTEST: usize = 62;

/// The mode of a folder, which only a sparse index has.
const FOLDER: u32 = 0o040_000;

const CUT: IndexError = IndexError::Damaged("it ends too early");

impl Index {
    /// From the bytes of a file that was last written at `written`. A checksum of zeros
    /// (`index.skipHash`) is not compared.
    ///
    /// # Errors
    /// Whatever is not an index, or cannot stand alone.
    pub fn decode(bytes: &[u8], format: ObjectFormat, written: Time) -> Result<Self, IndexError> {
        let end = bytes.len().checked_sub(format.length()).ok_or(CUT)?;
        let (content, checksum) = bytes.split_at_checked(end).ok_or(CUT)?;
        let is_unsummed = checksum.iter().all(|byte| *byte == 0);
        if !is_unsummed && super::encode::checksum(content, format) != checksum {
            return Err(IndexError::Checksum);
        }
        let mut reader = Reader { rest: content };
        if reader.take(4)? != b"DIRC" {
            return Err(IndexError::Damaged("it does not begin like one"));
        }
        let version = reader.number()?;
        if !(2..=4).contains(&version) {
            return Err(IndexError::Version(version));
        }
        let count = usize::try_from(reader.number()?).map_err(|_| CUT)?;
        if count > content.len() / SHORTEST {
            return Err(CUT);
        }
        let mut entries = Vec::with_capacity(count);
        let mut path = Vec::new();
        let mut found = Oddities::default();
        for _ in 0..count {
            entries.extend(reader.entry(version, format, &mut path, &mut found)?);
        }
        let mut kept = None;
        while !reader.rest.is_empty() {
            let name = reader.take(4)?;
            let length = usize::try_from(reader.number()?).map_err(|_| CUT)?;
            let content = reader.take(length)?;
            match name {
                b"link" => found.is_split = true,
                b"sdir" => found.is_sparse = true,
                b"TREE" => kept = Some(content),
                [first, ..] if !first.is_ascii_uppercase() => {
                    return Err(IndexError::Extension(String::from_utf8_lossy(name).into_owned()));
                }
                // Whatever else may be left out: caches of times and places that are not the copy's.
                _ => {}
            }
        }
        found.complain()?;
        let tree = kept.filter(|kept| tree::is_sound(kept, format, entries.len()));
        Ok(Self { format, entries, written, tree: tree.map(<[u8]>::to_vec) })
    }
}

/// What is wrong with single entries. Judged at the end, where it is known whether the whole file
/// is of a kind in which that is right.
#[derive(Default)]
struct Oddities {
    is_split: bool,
    is_sparse: bool,
    path: Option<PathBuf>,
}

impl Oddities {
    fn complain(self) -> Result<(), IndexError> {
        if self.is_split {
            return Err(IndexError::Split);
        }
        if self.is_sparse {
            return Err(IndexError::Sparse);
        }
        self.path.map_or(Ok(()), |path| Err(IndexError::Path(path)))
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], IndexError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(CUT)?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, IndexError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(CUT)?;
        self.rest = rest;
        Ok(u32::from_be_bytes(*taken))
    }

    fn short(&mut self) -> Result<u16, IndexError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(CUT)?;
        self.rest = rest;
        Ok(u16::from_be_bytes(*taken))
    }

    fn until_zero(&mut self) -> Result<&'a [u8], IndexError> {
        let length = self.rest.iter().position(|byte| *byte == 0).ok_or(CUT)?;
        let taken = self.take(length)?;
        self.take(1)?;
        Ok(taken)
    }

    /// A number in groups of seven bits, the highest first; each but the last counts one more.
    fn offset(&mut self) -> Result<usize, IndexError> {
        let mut number = 0_usize;
        loop {
            let byte = self.take(1)?.first().copied().ok_or(CUT)?;
            number |= usize::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            number = (number + 1).checked_mul(0x80).ok_or(CUT)?;
        }
    }

    /// `path` is the one of the entry before, and of this one afterwards. None for an entry that
    /// is told in `odd`.
    fn entry(
        &mut self,
        version: u32,
        format: ObjectFormat,
        path: &mut Vec<u8>,
        odd: &mut Oddities,
    ) -> Result<Option<Entry>, IndexError> {
        let before = self.rest.len();
        let ctime = Time { secs: self.number()?, nanos: self.number()? };
        let mtime = Time { secs: self.number()?, nanos: self.number()? };
        let (device, inode, mode) = (self.number()?, self.number()?, self.number()?);
        let (user, group, size) = (self.number()?, self.number()?, self.number()?);
        let id = ObjectId::from_bytes(self.take(format.length())?).ok_or(CUT)?;
        let flags = self.short()?;
        let further = if flags & EXTENDED == 0 { 0 } else { self.short()? };
        if (flags & EXTENDED != 0 && version < 3) || further & !(SKIPPED | INTENDED) != 0 {
            return Err(IndexError::Damaged("an entry has flags that are not known"));
        }
        if version == 4 {
            let kept = path.len().checked_sub(self.offset()?).ok_or(CUT)?;
            path.truncate(kept);
            path.extend_from_slice(self.until_zero()?);
        } else {
            path.clear();
            let length = flags & LENGTH;
            if length < LENGTH {
                path.extend_from_slice(self.take(usize::from(length))?);
            } else {
                let length = self.rest.iter().position(|byte| *byte == 0).ok_or(CUT)?;
                path.extend_from_slice(self.take(length)?);
            }
            // One to eight zero bytes, so that entries begin at multiples of eight.
            let read = before - self.rest.len();
            self.take(8 - read % 8)?;
        }
        let kind = match mode {
            FOLDER => {
                odd.is_sparse = true;
                return Ok(None);
            }
            0o120_000 => EntryKind::Link,
            0o160_000 => EntryKind::Gitlink,
            file if file & 0o170_000 == 0o100_000 && file & 0o100 != 0 => EntryKind::Executable,
            file if file & 0o170_000 == 0o100_000 => EntryKind::File,
            _ => return Err(IndexError::Damaged("an entry has a mode that is not known")),
        };
        if !is_safe(path) {
            odd.path.get_or_insert_with(|| path_of(path));
            return Ok(None);
        }
        Ok(Some(Entry {
            path: path_of(path),
            kind,
            id,
            stage: (flags & STAGE).to_be_bytes().first().map_or(0, |high| high >> 4),
            is_assumed_unchanged: flags & ASSUMED != 0,
            is_skipped: further & SKIPPED != 0,
            is_intended: further & INTENDED != 0,
            stat: Stat { ctime, mtime, device, inode, user, group, size },
        }))
    }
}

/// Whether a path stays below the top level and out of Git directories: who reads an index joins
/// its paths to a folder, and a file can say anything.
fn is_safe(path: &[u8]) -> bool {
    let is_name = |name: &[u8]| {
        !name.is_empty()
            && !name.contains(&0)
            && name != b"."
            && name != b".."
            && !name.eq_ignore_ascii_case(b".git")
    };
    path.split(|byte| *byte == b'/').all(is_name)
}
