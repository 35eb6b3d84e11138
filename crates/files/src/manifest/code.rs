//! The stored form of a manifest.
//!
//! ```text
//! "stead-manifest", version
//! what the tree is:   count, then for each entry: path (bytes shared with the one before, rest),
//!                     kind, permission bits, size, digest or target
//! what was seen:      the time, then for each entry: nothing, or device, inode, times
//! the BLAKE3 digest of all that
//! ```
//!
//! Numbers are varints in their shortest form, so that a tree has one encoding; its digest covers
//! the first two lines.

use stead_core::id::Digest;

use super::{Entry, Manifest, Node, Seen};
use crate::path::{RelPath, shared};
use crate::stat::{Special, Time};

/// Bytes, or entries, that are no manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// They begin otherwise than a manifest does.
    #[error("these bytes are no manifest")]
    NotOne,
    /// A newer program wrote it.
    #[error("the manifest has version {0}; this program reads version {VERSION}")]
    Version(u8),
    /// The bytes are not those that were written.
    #[error("the manifest is damaged: {0}")]
    Damaged(&'static str),
    /// A path comes twice, out of order, or below something that is no folder.
    #[error("the manifest has {0} where it cannot be")]
    Order(RelPath),
}

const MAGIC: &[u8] = b"stead-manifest";
const VERSION: u8 = 1;
const CHECK: usize = 32;

/// The fewest bytes that an entry takes in both parts; bounds what a reader sets aside.
const LEAST: usize = 6;

/// All paths of a manifest together, so that a few bytes cannot ask for all the memory there is.
const MOST_PATH_BYTES: usize = 1 << 30;

const FILE: u8 = 0;
const FILE_DIGEST: u8 = 1;
const FOLDER: u8 = 2;
const LINK: u8 = 3;
const PIPE: u8 = 4;
const SOCKET: u8 = 5;
const DEVICE: u8 = 6;
const UNKNOWN: u8 = 7;
const WITHHELD: u8 = 8;

impl Manifest {
    /// The digest of what the tree is: the same for two trees that differ in times and inodes
    /// only.
    pub fn digest(&self) -> Digest {
        let mut hasher = blake3::Hasher::new();
        let mut bytes = Vec::new();
        self.encode_tree(&mut bytes, &mut |bytes| {
            hasher.update(bytes);
            bytes.clear();
        });
        hasher.update(&bytes);
        Digest::from_bytes(*hasher.finalize().as_bytes())
    }

    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.entries().len().saturating_mul(96));
        self.encode_tree(&mut bytes, &mut |_| {});
        put_time(&mut bytes, self.taken());
        for entry in self.entries() {
            match &entry.seen {
                None => bytes.push(0),
                Some(seen) => {
                    bytes.push(1);
                    put(&mut bytes, seen.device);
                    put(&mut bytes, seen.inode);
                    put_time(&mut bytes, seen.modified);
                    put_time(&mut bytes, seen.changed);
                }
            }
        }
        let check = blake3::hash(&bytes);
        bytes.extend_from_slice(check.as_bytes());
        bytes
    }

    /// `full` is called when many bytes have come together.
    fn encode_tree(&self, bytes: &mut Vec<u8>, full: &mut dyn FnMut(&mut Vec<u8>)) {
        bytes.extend_from_slice(MAGIC);
        bytes.push(VERSION);
        put(bytes, wide(self.entries().len()));
        let mut before: &[u8] = &[];
        for entry in self.entries() {
            let path = entry.path.as_bytes();
            let shared = shared(path, before);
            put(bytes, wide(shared));
            put_bytes(bytes, path.get(shared..).unwrap_or_default());
            before = path;
            let kind = match &entry.node {
                Node::File { digest: None, .. } => FILE,
                Node::File { digest: Some(_), .. } => FILE_DIGEST,
                Node::Folder => FOLDER,
                Node::Link(_) => LINK,
                Node::Special(Special::Pipe) => PIPE,
                Node::Special(Special::Socket) => SOCKET,
                Node::Special(Special::Device) => DEVICE,
                Node::Special(Special::Unknown) => UNKNOWN,
                Node::Withheld { .. } => WITHHELD,
            };
            bytes.push(kind);
            put(bytes, entry.mode.into());
            match &entry.node {
                Node::File { size, digest } => {
                    put(bytes, *size);
                    if let Some(digest) = digest {
                        bytes.extend_from_slice(digest.as_bytes());
                    }
                }
                Node::Withheld { size } => put(bytes, *size),
                Node::Link(target) => put_bytes(bytes, target),
                Node::Folder | Node::Special(_) => {}
            }
            if bytes.len() >= 1 << 16 {
                full(bytes);
            }
        }
    }

    /// Reads the stored form. Whatever the bytes are, it gives an error rather than more than a
    /// small multiple of their memory.
    pub fn decode(bytes: &[u8]) -> Result<Self, ManifestError> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else { return Err(ManifestError::NotOne) };
        match rest.first() {
            Some(&VERSION) => {}
            Some(&other) => return Err(ManifestError::Version(other)),
            None => return Err(ManifestError::Damaged("it ends early")),
        }
        let Some((body, check)) = bytes.split_last_chunk::<CHECK>() else {
            return Err(ManifestError::Damaged("it ends early"));
        };
        if blake3::hash(body) != *check {
            return Err(ManifestError::Damaged("its digest differs"));
        }
        let mut reader = Reader(body.get(MAGIC.len() + 1..).unwrap_or_default());
        let count = reader.length()?;
        if count > reader.0.len() / LEAST {
            return Err(ManifestError::Damaged("it has too many entries"));
        }
        let mut entries: Vec<Entry> = Vec::with_capacity(count);
        let mut path_bytes = 0_usize;
        for _ in 0..count {
            let before = entries.last().map_or(&[][..], |entry| entry.path.as_bytes());
            let path = reader.path(before)?;
            path_bytes = path_bytes.saturating_add(path.as_bytes().len());
            if path_bytes > MOST_PATH_BYTES {
                return Err(ManifestError::Damaged("its paths are too long"));
            }
            let kind = reader.byte()?;
            let mode = u16::try_from(reader.number()?)
                .ok()
                .filter(|mode| *mode <= 0o7777)
                .ok_or(ManifestError::Damaged("permission bits"))?;
            let node = reader.node(kind)?;
            entries.push(Entry { path, mode, node, seen: None });
        }
        let taken = reader.time()?;
        for entry in &mut entries {
            entry.seen = match reader.byte()? {
                0 => None,
                1 => Some(Seen {
                    device: reader.number()?,
                    inode: reader.number()?,
                    modified: reader.time()?,
                    changed: reader.time()?,
                }),
                _ => return Err(ManifestError::Damaged("a mark")),
            };
        }
        if !reader.0.is_empty() {
            return Err(ManifestError::Damaged("it goes on after its end"));
        }
        Self::new(taken, entries)
    }
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            bytes.push(low & 0x7f);
            return;
        }
        bytes.push(low | 0x80);
    }
}

fn put_bytes(bytes: &mut Vec<u8>, what: &[u8]) {
    put(bytes, wide(what.len()));
    bytes.extend_from_slice(what);
}

fn put_time(bytes: &mut Vec<u8>, time: Time) {
    // Zigzag: times before 1970 are short too.
    put(bytes, (time.secs.cast_unsigned() << 1) ^ (time.secs >> 63).cast_unsigned());
    put(bytes, time.nanos.into());
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], ManifestError> {
        let Some((taken, rest)) = self.0.split_at_checked(length) else {
            return Err(ManifestError::Damaged("it ends early"));
        };
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, ManifestError> {
        let Some((first, rest)) = self.0.split_first() else {
            return Err(ManifestError::Damaged("it ends early"));
        };
        self.0 = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Result<u64, ManifestError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            let shifted = bits << shift;
            if shifted >> shift != bits || (byte == 0 && shift > 0) {
                break;
            }
            number |= shifted;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(ManifestError::Damaged("a number"))
    }

    fn length(&mut self) -> Result<usize, ManifestError> {
        usize::try_from(self.number()?).map_err(|_| ManifestError::Damaged("a length"))
    }

    fn bytes(&mut self) -> Result<&'a [u8], ManifestError> {
        let length = self.length()?;
        self.take(length)
    }

    fn path(&mut self, before: &[u8]) -> Result<RelPath, ManifestError> {
        let shared = self.length()?;
        let own = self.bytes()?;
        let Some(shared) = before.get(..shared) else {
            return Err(ManifestError::Damaged("a path"));
        };
        // The longest shared part is the only one that is written.
        if before.get(shared.len()).is_some_and(|next| own.first() == Some(next)) {
            return Err(ManifestError::Damaged("a path"));
        }
        RelPath::parse([shared, own].concat()).map_err(|_| ManifestError::Damaged("a path"))
    }

    fn time(&mut self) -> Result<Time, ManifestError> {
        let zigzag = self.number()?;
        let secs = (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed();
        let nanos = u32::try_from(self.number()?)
            .ok()
            .filter(|nanos| *nanos < 1_000_000_000)
            .ok_or(ManifestError::Damaged("a time"))?;
        Ok(Time { secs, nanos })
    }

    fn node(&mut self, kind: u8) -> Result<Node, ManifestError> {
        Ok(match kind {
            FILE => Node::File { size: self.number()?, digest: None },
            FILE_DIGEST => {
                let size = self.number()?;
                let bytes = self.take(CHECK)?;
                let bytes = bytes.try_into().map_err(|_| ManifestError::Damaged("a digest"))?;
                Node::File { size, digest: Some(Digest::from_bytes(bytes)) }
            }
            FOLDER => Node::Folder,
            LINK => Node::Link(self.bytes()?.into()),
            PIPE => Node::Special(Special::Pipe),
            SOCKET => Node::Special(Special::Socket),
            DEVICE => Node::Special(Special::Device),
            UNKNOWN => Node::Special(Special::Unknown),
            WITHHELD => Node::Withheld { size: self.number()? },
            _ => return Err(ManifestError::Damaged("a kind")),
        })
    }
}
