//! Capturing a tree: a manifest that reads only what changed since the one before.

use std::path::Path;

use rustix::io::Errno;
use stead_core::id::Digest;

use crate::content::{self, Buffer, Fault};
use crate::crew;
use crate::error::{TreeError, at};
use crate::listing::{Found, Listing};
use crate::manifest::{Entry, Manifest, Node, Seen};
use crate::path::RelPath;
use crate::root::{RootFolder, open_file};
use crate::stat::{Kind, Stat};
use crate::walk::{WalkOptions, finish, walk_root};
use crate::watch::{Meter, Phase};

/// Says of a file whether its digest is wanted.
pub type Wanted<'a> = dyn Fn(&RelPath, &Stat) -> bool + Sync + 'a;

/// Which files' digests are wanted.
#[derive(Clone, Copy, Default)]
pub enum Digests<'a> {
    /// Every file's.
    #[default]
    All,
    /// No file's.
    None,
    /// Those of which this says so.
    Of(&'a Wanted<'a>),
}

impl Digests<'_> {
    pub(crate) fn wants(&self, path: impl FnOnce() -> RelPath, stat: &Stat) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Of(wanted) => wanted(&path(), stat),
        }
    }
}

/// How a tree is captured. The default takes everything and every digest.
#[derive(Clone, Copy, Default)]
pub struct CaptureOptions<'a> {
    /// How it is walked.
    pub walk: WalkOptions<'a>,
    /// Whose digests are wanted.
    pub digests: Digests<'a>,
}

/// A tree as it is now.
#[derive(Debug, Clone)]
pub struct Captured {
    /// What is in it.
    pub manifest: Manifest,
    /// What the walk found, so also what was left out and only counted.
    pub listing: Listing,
    /// How many files had to be read.
    pub read_files: u64,
    /// How many bytes.
    pub read_bytes: u64,
}

/// How often a tree that changes meanwhile is looked at again.
pub(crate) const ROUNDS: usize = 3;

/// Files of one folder that one thread takes at once.
const BATCH: usize = 64;

/// Captures the folder at `root`.
///
/// A file whose size, times and inode are those that `previous` saw keeps its digest without being
/// read, unless it may have changed in the very moment when `previous` was taken.
///
/// # Errors
/// [`TreeError::Unstable`] names what still changed while it was read after three more tries.
pub fn capture(
    root: &Path,
    previous: Option<&Manifest>,
    options: &CaptureOptions<'_>,
) -> Result<Captured, TreeError> {
    let root = RootFolder::open(root)?.crossing(options.walk.other_devices);
    let mut known: Option<Manifest> = None;
    let (mut read_files, mut read_bytes) = (0, 0);
    for round in 0..=ROUNDS {
        let listing = walk_root(&root, &options.walk)?;
        let mut plan = Plan::new(&listing, known.as_ref().or(previous), options);
        let jobs = std::mem::take(&mut plan.jobs);
        let of = Some((plan.files, plan.bytes));
        let meter = Meter::new(options.walk.watch, Phase::Digest, of);
        let ended = crew::run(
            options.walk.threads,
            jobs,
            &|| meter.is_cancelled(),
            &|| (Buffer::new(), Vec::new()),
            &|job, _, local| digest_folder(&root, &job, &meter, local),
        );
        let mut torn = Vec::new();
        for (_, results) in finish(ended, &root)? {
            for (index, digest) in results {
                let Some(entry) = plan.entries.get_mut(index) else { continue };
                match (&mut entry.node, digest) {
                    (Node::File { digest: slot, size }, Some(digest)) => {
                        *slot = Some(digest);
                        read_files += 1;
                        read_bytes += *size;
                    }
                    _ => torn.push(entry.path.clone()),
                }
            }
        }
        meter.end();
        torn.sort();
        let settled = torn.is_empty() && listing.vanished.is_empty();
        // A walk gives each path once and in order.
        let manifest = Manifest::new(listing.began, plan.entries)
            .map_err(|_| TreeError::NotTheFolder(root.path().to_owned()))?;
        if settled {
            return Ok(Captured { manifest, listing, read_files, read_bytes });
        }
        if round == ROUNDS {
            torn.extend(listing.vanished);
            torn.sort();
            return Err(TreeError::Unstable(torn));
        }
        known = Some(manifest);
    }
    Err(TreeError::Unstable(Vec::new()))
}

/// Files of one folder to be read: where each stands in the manifest, and what it was.
struct Job {
    folder: RelPath,
    files: Vec<(usize, Box<[u8]>, Stat)>,
}

struct Plan {
    entries: Vec<Entry>,
    jobs: Vec<Job>,
    files: u64,
    bytes: u64,
}

impl Plan {
    fn new(listing: &Listing, known: Option<&Manifest>, options: &CaptureOptions<'_>) -> Self {
        let mut plan = Self { entries: Vec::new(), jobs: Vec::new(), files: 0, bytes: 0 };
        let mut open: Vec<Job> = Vec::new();
        let mut old = known.map(Manifest::entries).unwrap_or_default().iter().peekable();
        for (path, found) in listing.entries() {
            while old.next_if(|entry| entry.path < path).is_some() {}
            let before = old.next_if(|entry| entry.path == path);
            let stat = &found.stat;
            let wanted = stat.kind == Kind::File && options.digests.wants(|| path.clone(), stat);
            let taken = known.map(Manifest::taken);
            let kept = before
                .zip(taken)
                .filter(|_| wanted)
                .and_then(|(before, taken)| kept_digest(before, taken, stat));
            if wanted && kept.is_none() {
                let folder = path.parent().unwrap_or_else(RelPath::root);
                while open.last().is_some_and(|job| !folder.is_within(&job.folder)) {
                    plan.jobs.extend(open.pop());
                }
                let index = plan.entries.len();
                let file = (index, found.name.clone(), *stat);
                match open.last_mut() {
                    Some(job) if job.folder == folder && job.files.len() < BATCH => {
                        job.files.push(file);
                    }
                    _ => open.push(Job { folder, files: vec![file] }),
                }
                plan.files += 1;
                plan.bytes = plan.bytes.saturating_add(stat.size);
            }
            plan.entries.push(entry(path, found, kept));
        }
        plan.jobs.extend(open);
        // The last is taken first.
        plan.jobs.reverse();
        plan
    }
}

/// The entry of what a walk found.
pub(crate) fn entry(path: RelPath, found: &Found, digest: Option<Digest>) -> Entry {
    let stat = &found.stat;
    let (node, mode, seen) = match stat.kind {
        Kind::File => (Node::File { size: stat.size, digest }, stat.mode, Some(Seen::of(stat))),
        Kind::Folder => (Node::Folder, stat.mode, None),
        Kind::Link => (Node::Link(found.target.clone().unwrap_or_default()), 0, None),
        Kind::Special(special) => (Node::Special(special), stat.mode, None),
    };
    Entry { path, mode, node, seen }
}

fn kept_digest(before: &Entry, taken: crate::stat::Time, stat: &Stat) -> Option<Digest> {
    let Node::File { size, digest } = before.node else { return None };
    let seen = before.seen?;
    let same = size == stat.size && seen.is_same(&Seen::of(stat)) && !seen.changed.is_racy(taken);
    digest.filter(|_| same)
}

type Local = (Buffer, Vec<(usize, Option<Digest>)>);

fn digest_folder(
    root: &RootFolder,
    job: &Job,
    meter: &Meter<'_>,
    (buffer, results): &mut Local,
) -> Result<(), TreeError> {
    let folder = match root.open_folder(&job.folder) {
        Ok(folder) => folder,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {
            results.extend(job.files.iter().map(|(index, ..)| (*index, None)));
            return Ok(());
        }
        Err(errno) => return Err(at("open", root.path(), &job.folder, errno)),
    };
    for (index, name, stat) in &job.files {
        if meter.is_cancelled() {
            return Err(TreeError::Cancelled);
        }
        let fail = |act, errno| at(act, root.path(), &job.folder.child(name), errno);
        let file = match open_file(&folder, name) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => {
                results.push((*index, None));
                continue;
            }
            Err(errno) => return Err(fail("open", errno)),
        };
        let digest = match content::digest(&file, stat.size, buffer, &|| meter.is_cancelled()) {
            Ok(digest) => digest,
            Err(Fault::Cancelled) => return Err(TreeError::Cancelled),
            // It became something else between the look and the open.
            Err(Fault::Read(Errno::SPIPE | Errno::ISDIR | Errno::AGAIN | Errno::INVAL)) => {
                results.push((*index, None));
                continue;
            }
            Err(Fault::Read(errno) | Fault::Write(errno)) => return Err(fail("read", errno)),
        };
        let after = Stat::of_open(&file).map_err(|errno| fail("examine", errno))?;
        results.push((*index, after.is_unchanged(stat).then_some(digest)));
        meter.add(1, stat.size);
    }
    Ok(())
}
