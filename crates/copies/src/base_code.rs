//! The stored form of a base.
//!
//! ```text
//! "stead-base", version
//! the commit:                    bytes, none for none
//! index, ignored, nested, left out, rules: a count, then each
//! the manifest, in its own form: the rest
//! ```
//!
//! Numbers are 64 bits, low bytes first; bytes have their count before them. The manifest's own
//! check and the blob's name cover damage.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use stead_files::{Manifest, ManifestError, RelPath};
use stead_git::ObjectId;

use crate::base::{Base, IndexedFile};
use crate::rules::Rules;

const MAGIC: &[u8] = b"stead-base";
const VERSION: u8 = 1;

/// The fewest bytes that anything counted takes; bounds what a reader sets aside.
const LEAST: usize = 8;

/// Bytes that are no base.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BaseError {
    /// They begin otherwise than a base does.
    #[error("these bytes are no base")]
    NotOne,
    /// A newer program wrote it.
    #[error("the base has version {0}; this program reads version {VERSION}")]
    Version(u8),
    /// The bytes are not those that were written.
    #[error("the base is damaged: {0}")]
    Damaged(&'static str),
    /// Its manifest cannot be read.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

impl Base {
    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        put_bytes(&mut bytes, self.commit.as_ref().map_or(&[], ObjectId::as_bytes));
        put_count(&mut bytes, self.index.len());
        for file in &self.index {
            put_bytes(&mut bytes, file.path.as_os_str().as_bytes());
            put(&mut bytes, file.mode.into());
            put_bytes(&mut bytes, file.object.as_bytes());
        }
        for paths in [&self.ignored, &self.nested, &self.left_out] {
            put_count(&mut bytes, paths.len());
            for path in paths {
                put_bytes(&mut bytes, path.as_bytes());
            }
        }
        put_count(&mut bytes, self.rules.files.len());
        for (path, rules) in &self.rules.files {
            put_bytes(&mut bytes, path.as_bytes());
            put_bytes(&mut bytes, rules);
        }
        put_bytes(&mut bytes, &self.rules.exclude);
        put_bytes(&mut bytes, &self.rules.person);
        put(&mut bytes, self.rules.ignores_case.into());
        bytes.extend_from_slice(&self.manifest.encode());
        bytes
    }

    /// Reads the stored form. Whatever the bytes are, it gives an error rather than more than a
    /// small multiple of their memory.
    pub fn decode(bytes: &[u8]) -> Result<Self, BaseError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(BaseError::NotOne)?;
        let mut reader = match rest.split_first() {
            Some((&VERSION, rest)) => Reader(rest),
            Some((&other, _)) => return Err(BaseError::Version(other)),
            None => return Err(BaseError::Damaged("it ends early")),
        };
        let commit = match reader.bytes()? {
            [] => None,
            id => Some(ObjectId::from_bytes(id).ok_or(BaseError::Damaged("a commit"))?),
        };
        let index = reader.list(|reader| {
            let path = PathBuf::from(OsStr::from_bytes(reader.bytes()?));
            let mode = u32::try_from(reader.number()?).map_err(|_| BaseError::Damaged("a mode"))?;
            let object = ObjectId::from_bytes(reader.bytes()?);
            let object = object.ok_or(BaseError::Damaged("an object"))?;
            Ok(IndexedFile { path, mode, object })
        })?;
        let ignored = reader.list(Reader::path)?;
        let nested = reader.list(Reader::path)?;
        let left_out = reader.list(Reader::path)?;
        let rules = Rules {
            files: reader.list(|reader| Ok((reader.path()?, reader.bytes()?.to_vec())))?,
            exclude: reader.bytes()?.to_vec(),
            person: reader.bytes()?.to_vec(),
            ignores_case: reader.number()? != 0,
        };
        let manifest = Manifest::decode(reader.0)?;
        Ok(Self { manifest, index, ignored, nested, left_out, rules, commit })
    }
}

fn put(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn put_count(bytes: &mut Vec<u8>, count: usize) {
    put(bytes, u64::try_from(count).unwrap_or(u64::MAX));
}

fn put_bytes(bytes: &mut Vec<u8>, what: &[u8]) {
    put_count(bytes, what.len());
    bytes.extend_from_slice(what);
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Result<u64, BaseError> {
        let (number, rest) =
            self.0.split_first_chunk().ok_or(BaseError::Damaged("it ends early"))?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*number))
    }

    fn bytes(&mut self) -> Result<&'a [u8], BaseError> {
        let length = self.number()?;
        let split = usize::try_from(length).ok().and_then(|at| self.0.split_at_checked(at));
        let (taken, rest) = split.ok_or(BaseError::Damaged("it ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn path(&mut self) -> Result<RelPath, BaseError> {
        RelPath::parse(self.bytes()?).map_err(|_| BaseError::Damaged("a path"))
    }

    fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, BaseError>,
    ) -> Result<Vec<T>, BaseError> {
        let count = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if count > self.0.len() / LEAST {
            return Err(BaseError::Damaged("it ends early"));
        }
        (0..count).map(|_| read(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stead_core::id::Digest;
    use stead_files::{Entry, Node, Time};

    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    fn base() -> Base {
        let digest = Some(Digest::from_bytes([7; 32]));
        let file = |name: &str| Entry {
            path: path(name),
            mode: 0o640,
            node: Node::File { size: 3, digest },
            seen: None,
        };
        Base {
            manifest: Manifest::new(Time { secs: 5, nanos: 6 }, vec![file("a"), file("b")])
                .unwrap(),
            index: vec![IndexedFile {
                path: PathBuf::from(OsStr::from_bytes(b"b\xff\n")),
                mode: 0o100_644,
                object: ObjectId::Sha256([9; 32]),
            }],
            ignored: vec![path("target")],
            nested: vec![path("vendor/x")],
            left_out: vec![path("wt")],
            rules: Rules {
                files: vec![(path(".gitignore"), b"*.o\n".to_vec())],
                exclude: b"x".to_vec(),
                person: b"y".to_vec(),
                ignores_case: true,
            },
            commit: Some(ObjectId::Sha1([4; 20])),
        }
    }

    #[test]
    fn a_base_survives_its_stored_form() {
        let base = base();
        assert_eq!(Base::decode(&base.encode()).unwrap(), base);
    }

    #[test]
    fn the_first_version_stays_readable_and_a_newer_one_is_named() {
        let mut bytes = base().encode();
        assert_eq!(blake3::hash(&bytes).to_hex().as_str(), FIRST_VERSION);
        let version = MAGIC.len();
        bytes[version] = 2;
        assert_eq!(Base::decode(&bytes), Err(BaseError::Version(2)));
    }

    /// The digest of [`base`] as version 1 writes it: a change of the form must be a new version,
    /// with the old one still read.
    const FIRST_VERSION: &str = "649c3849d6d4d53de4d08627280ab233497397b467c6659c9337ded31e36b6ab";

    proptest! {
        #[test]
        fn damage_is_an_error_and_no_panic(at in any::<prop::sample::Index>(), to in any::<u8>()) {
            let mut bytes = base().encode();
            let at = at.index(bytes.len());
            bytes[at] = to;
            let _ = Base::decode(&bytes);
            bytes.truncate(at);
            prop_assert!(Base::decode(&bytes).is_err());
        }
    }
}
