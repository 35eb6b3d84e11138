//! What a copy became, and what it could not carry.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use stead_core::id::Digest;

use crate::listing::Listing;
use crate::manifest::{Manifest, Node, Seen};
use crate::path::RelPath;
use crate::stat::{Kind, Special};

/// How the contents were copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Every file that has content shares its blocks with its source until one of them is written.
    Reflink,
    /// Some do: files that are too small to gain from it, or cannot, were read and written.
    Mixed,
    /// All were read and written.
    Bytes,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reflink => "reflinks",
            Self::Mixed => "reflinks for large files, reading and writing for the others",
            Self::Bytes => "reading and writing",
        })
    }
}

/// Something that a copy cannot carry whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Obstacle {
    /// Where.
    pub path: RelPath,
    /// What.
    pub kind: ObstacleKind,
}

/// What a copy cannot carry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObstacleKind {
    /// It belongs to another user, and only root may give files away.
    Owner(u32),
    /// It has an access control list.
    Acl,
    /// It is immutable or append-only.
    Flagged,
    /// It has an extended attribute that is not carried, or could not be.
    Attribute(String),
    /// It is no file, folder or link.
    Special(Special),
    /// It may not be read.
    Unreadable,
    /// It is one of several names of one file.
    HardLink {
        /// How many names that file has in all.
        names: u32,
    },
}

impl fmt::Display for ObstacleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner(uid) => write!(f, "belongs to user {uid}"),
            Self::Acl => f.write_str("has an access control list"),
            Self::Flagged => f.write_str("is immutable or append-only"),
            Self::Attribute(name) => write!(f, "has the attribute {name}"),
            Self::Special(special) => write!(f, "is {special}"),
            Self::Unreadable => f.write_str("may not be read"),
            Self::HardLink { names } => write!(f, "is one of {names} names of a file"),
        }
    }
}

impl Listing {
    /// What a copy of this tree could not carry, as far as it shows without opening anything:
    /// owners, flags, special files, and hard links among the paths that are `eligible`. Access
    /// control lists and attributes show while copying.
    pub fn obstacles(&self, eligible: &dyn Fn(&RelPath) -> bool) -> Vec<Obstacle> {
        let mut obstacles: Vec<Obstacle> = Vec::new();
        let me = rustix::process::geteuid();
        for (path, found) in self.entries() {
            let stat = &found.stat;
            let mut kinds = Vec::new();
            if !me.is_root() && stat.uid != me.as_raw() {
                kinds.push(ObstacleKind::Owner(stat.uid));
            }
            if stat.flagged {
                kinds.push(ObstacleKind::Flagged);
            }
            match stat.kind {
                Kind::Special(special) => kinds.push(ObstacleKind::Special(special)),
                Kind::File if stat.links > 1 && eligible(&path) => {
                    kinds.push(ObstacleKind::HardLink { names: stat.links });
                }
                _ => {}
            }
            obstacles.extend(kinds.into_iter().map(|kind| Obstacle { path: path.clone(), kind }));
        }
        obstacles
    }
}

/// A copy that is complete, but for its obstacles.
#[derive(Debug, Clone)]
pub struct Cloned {
    /// What was copied: the source as it was when the copy was complete.
    pub listing: Listing,
    /// Files that are in the copy.
    pub files: u64,
    /// Bytes of their contents.
    pub bytes: u64,
    /// How.
    pub method: Method,
    /// What is not carried. Files named here are not in the copy, folders are, but for a file
    /// with [`ObstacleKind::HardLink`], which never stands here: see [`Listing::hard_links`].
    pub obstacles: Vec<Obstacle>,
    /// Paths that carry `user.*` attributes, which not every tool keeps.
    pub attributes: Vec<RelPath>,
    /// How often files that changed meanwhile were copied again.
    pub rounds: usize,
    /// The user and the group that files in the copy have where their sources do.
    pub owner: (u32, u32),
    /// What the copy holds, if that was asked for: digests of the source's bytes as they were
    /// copied, [`Entry::seen`](crate::manifest::Entry::seen) of the copy's own files.
    pub manifest: Option<Manifest>,
}

/// What is kept of each file for the manifest.
pub(super) struct Made {
    pub(super) digest: Option<Digest>,
    pub(super) seen: Option<Seen>,
}

/// What the threads gather.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) reflinked: u64,
    pub(super) written: u64,
    pub(super) obstacles: BTreeMap<RelPath, ObstacleKind>,
    pub(super) attributes: Vec<RelPath>,
    /// By the numbers of folder and entry in the listing that is copied.
    pub(super) made: Vec<((usize, usize), Made)>,
    /// By path, once the listing is another one; of a file that was copied again the last.
    pub(super) made_again: HashMap<RelPath, Made>,
    /// What was gone or something else when its turn came.
    pub(super) missed: BTreeSet<RelPath>,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.reflinked += other.reflinked;
        self.written += other.written;
        self.obstacles.extend(other.obstacles);
        self.attributes.extend(other.attributes);
        self.made.extend(other.made);
        self.made_again.extend(other.made_again);
        self.missed.extend(other.missed);
    }

    /// Forgets what was at and below a path.
    pub(super) fn forget(&mut self, path: &RelPath) {
        self.obstacles.retain(|other, _| !other.is_within(path));
        self.attributes.retain(|other| !other.is_within(path));
    }

    /// Keeps by path what is kept by the numbers of `listing`.
    pub(super) fn name(&mut self, listing: &Listing) {
        for ((folder, entry), made) in self.made.drain(..) {
            let Some(folder) = listing.folders.get(folder) else { continue };
            let Some(found) = folder.entries.get(entry) else { continue };
            self.made_again.entry(folder.path.child(&found.name)).or_insert(made);
        }
    }

    pub(super) fn into_cloned(
        mut self,
        listing: Listing,
        rounds: usize,
        owner: (u32, u32),
        wants_manifest: bool,
    ) -> Cloned {
        self.attributes.sort();
        self.attributes.dedup();
        let mut numbered: Vec<Vec<Option<Made>>> = Vec::new();
        if wants_manifest {
            let folders = listing.folders.iter();
            numbered.extend(folders.map(|f| f.entries.iter().map(|_| None).collect()));
        }
        for ((folder, entry), made) in self.made {
            if let Some(room) = numbered.get_mut(folder).and_then(|f| f.get_mut(entry)) {
                *room = Some(made);
            }
        }
        let (mut files, mut bytes) = (0, 0);
        let mut entries = Vec::with_capacity(numbered.iter().map(Vec::len).sum());
        for ((folder, number), path, found) in listing.numbered() {
            let is_missing = found.stat.kind != Kind::Folder && self.obstacles.contains_key(&path);
            if is_missing {
                continue;
            }
            if found.stat.kind == Kind::File {
                files += 1;
                bytes += found.stat.size;
            }
            if wants_manifest {
                let mut entry = crate::capture::entry(path, found, None);
                entry.seen = None;
                let made = numbered.get_mut(folder).and_then(|f| f.get_mut(number)?.take());
                let made = made.or_else(|| self.made_again.remove(&entry.path));
                if let (Node::File { digest, .. }, Some(made)) = (&mut entry.node, made) {
                    *digest = made.digest;
                    entry.seen = made.seen;
                }
                entries.push(entry);
            }
        }
        let method = match (self.reflinked, self.written) {
            (0, _) => Method::Bytes,
            (_, 0) => Method::Reflink,
            _ => Method::Mixed,
        };
        let manifest =
            wants_manifest.then(|| Manifest::new(crate::stat::Time::now(), entries).ok()).flatten();
        let obstacles = self.obstacles.into_iter().map(|(path, kind)| Obstacle { path, kind });
        Cloned {
            files,
            bytes,
            method,
            obstacles: obstacles.collect(),
            attributes: self.attributes,
            rounds,
            owner,
            manifest,
            listing,
        }
    }
}
