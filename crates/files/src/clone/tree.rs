//! The whole copy: from a listing to a complete folder, or to nothing.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, fchmod, fremovexattr, fstatfs, ioctl_ficlone, mkdirat, openat,
    unlinkat,
};
use rustix::io::Errno;
use stead_core::step::{self, Moment};

use super::carry::Owner;
use super::copier::{Copier, Hand, bits, gets_bits_late};
use super::report::{Cloned, Tally};
use super::settle::{settle, wait_for_quiet};
use crate::capture::Digests;
use crate::content::{Buffer, Means};
use crate::crew::{self, Queue};
use crate::error::{TreeError, at};
use crate::listing::{FoundFolder, Listing};
use crate::path::RelPath;
use crate::remove::remove_tree;
use crate::root::{Held, RootFolder, open_file, open_subfolder};
use crate::stat::{Kind, Stat};
use crate::walk::{WalkOptions, finish};
use crate::watch::{Meter, Phase};

/// How a tree is copied.
#[derive(Clone, Copy)]
pub struct CloneOptions<'a> {
    /// How the source was walked: it is walked again at the end, the same way.
    pub walk: WalkOptions<'a>,
    /// Whether reflinks are tried.
    pub reflink: bool,
    /// Whether [`Cloned::manifest`] is wanted.
    pub manifest: bool,
    /// Whose digests are taken while copying, for the manifest.
    pub digests: Digests<'a>,
}

impl Default for CloneOptions<'_> {
    /// Everything on the root's device, by reflinks where they work, no manifest.
    fn default() -> Self {
        Self {
            walk: WalkOptions::default(),
            reflink: true,
            manifest: false,
            digests: Digests::None,
        }
    }
}

/// Copies what `listing` found into a new folder at `destination`, whose parent exists; renaming
/// it to where it is wanted is the caller's.
///
/// Bytes, literal links, permission bits whatever the umask is, empty folders, times of change,
/// holes and `user.*` attributes are kept. Nothing in the copy is a hard link. The copy's root is
/// always open to its owner, so that it can be renamed. What cannot be carried is not copied and
/// named in [`Cloned::obstacles`]; whether that is acceptable is the caller's to say.
///
/// After the last byte the source is walked again, and what changed since is copied again, until
/// two walks agree: then the copy is the source as it was at one moment. Passes the step
/// `files.clone`.
///
/// # Errors
/// On any error, a cancel included, nothing is left at `destination`; else the error is
/// [`TreeError::LeftBehind`].
pub fn clone(
    listing: Listing,
    destination: &Path,
    options: &CloneOptions<'_>,
) -> Result<Cloned, TreeError> {
    let source = RootFolder::open(listing.root())?.crossing(options.walk.other_devices);
    if let Some(stat) = listing.root_stat() {
        source.expect(stat)?;
    }
    let (parent_path, name) = match (destination.parent(), destination.file_name()) {
        (Some(parent), Some(name)) if parent.as_os_str().is_empty() => (Path::new("."), name),
        (Some(parent), Some(name)) => (parent, name),
        _ => return Err(TreeError::Exists(destination.to_owned())),
    };
    let parent = openat(CWD, parent_path, FOLDER, Mode::empty())
        .map_err(|errno| at("open", parent_path, &RelPath::root(), errno))?;
    refuse_inside(&source, parent_path, destination)?;
    step::pass("files.clone", Moment::Before);
    mkdirat(&parent, name, Mode::RWXU).map_err(|errno| match errno {
        Errno::EXIST => TreeError::Exists(destination.to_owned()),
        _ => at("create", destination, &RelPath::root(), errno),
    })?;
    match fill(&source, listing, destination, options) {
        Ok(cloned) => {
            step::pass("files.clone", Moment::After);
            Ok(cloned)
        }
        Err(cause) => match remove_tree(&parent, name, parent_path) {
            Ok(_) => Err(cause),
            Err(leftover) => {
                let (cause, leftover) = (Box::new(cause), Box::new(leftover));
                Err(TreeError::LeftBehind { cause, leftover })
            }
        },
    }
}

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// A copy inside its own source would copy itself.
fn refuse_inside(source: &RootFolder, parent: &Path, inner: &Path) -> Result<(), TreeError> {
    let examine =
        |path: &Path, source| TreeError::System { act: "examine", path: path.to_owned(), source };
    let real = parent.canonicalize().map_err(|error| examine(parent, error))?;
    for above in real.ancestors() {
        let stat = Stat::of(above).map_err(|error| examine(above, error))?;
        if source.stat().is_same_file(&stat) {
            let (inner, outer) = (inner.to_owned(), source.path().to_owned());
            return Err(TreeError::Overlap { inner, outer });
        }
    }
    Ok(())
}

fn fill(
    source: &RootFolder,
    listing: Listing,
    destination: &Path,
    options: &CloneOptions<'_>,
) -> Result<Cloned, TreeError> {
    let copy = RootFolder::open(destination)?;
    // What the parent's default list or its set-group bit gave the new folder would be passed on
    // to everything in it.
    for list in ["system.posix_acl_default", "system.posix_acl_access"] {
        let _ = fremovexattr(&copy, list);
    }
    fchmod(&copy, Mode::RWXU)
        .map_err(|errno| at("set the permissions of", destination, &RelPath::root(), errno))?;
    let (owner, means) = probe(source, &listing, &copy, options)?;
    let totals = listing.totals();
    let meter = Meter::new(options.walk.watch, Phase::Copy, Some((totals.files, totals.bytes)));
    let copier = Copier { source, copy: &copy, options, means: &means, owner, meter: &meter };
    wait_for_quiet(&listing);
    let mut tally = copy_all(&copier, &listing)?;
    meter.end();
    let (listing, rounds) = settle(&copier, listing, &mut tally)?;
    // What is below a folder comes after it, so from the end: a folder that its owner may not
    // enter is closed when all below it is done.
    for folder in listing.folders().iter().rev() {
        let mode = folder.stat.mode;
        let wanted = if folder.path.is_root() { mode | 0o700 } else { mode };
        if folder.path.is_root() || gets_bits_late(mode) {
            copy.open_folder(&folder.path)
                .and_then(|made| fchmod(&made, bits(wanted)))
                .map_err(|errno| at("set the permissions of", destination, &folder.path, errno))?;
        }
    }
    Ok(tally.into_cloned(listing, rounds, (owner.uid, owner.gid), options.manifest))
}

/// From this size on a reflink costs no more than reading and writing, where files have extents
/// only (XFS). Where every file is a tree of references (Btrfs, bcachefs) it always pays.
const REFLINK_PAYS: u64 = 256 * 1024;

const ALWAYS_PAYS: [i64; 2] = [0x9123_683e, 0xca45_1a4e];

/// Whom new files belong to, and what the two file systems can do together: tried on a file that
/// is removed again.
fn probe(
    source: &RootFolder,
    listing: &Listing,
    copy: &RootFolder,
    options: &CloneOptions<'_>,
) -> Result<(Owner, Means), TreeError> {
    let name = ".stead-probe";
    let fail = |act| move |errno| at(act, copy.path(), &RelPath::root(), errno);
    let new = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file =
        openat(copy, name, new, Mode::RUSR | Mode::WUSR).map_err(fail("create a file in"))?;
    let stat = Stat::of_open(&file).map_err(fail("examine a file in"))?;
    let is_root = rustix::process::geteuid().is_root();
    let owner = Owner { uid: stat.uid, gid: stat.gid, is_root };
    let works = options.reflink
        && first_file(source, listing).is_some_and(|from| ioctl_ficlone(&file, &from).is_ok());
    unlinkat(copy, name, AtFlags::empty()).map_err(fail("remove a file in"))?;
    // The word's width and sign differ by platform; the numbers are 32 bits of it.
    #[allow(clippy::useless_conversion)]
    let kind = fstatfs(copy).map_or(0, |found| i64::from(found.f_type) & 0xffff_ffff);
    let least = if ALWAYS_PAYS.contains(&kind) { 1 } else { REFLINK_PAYS };
    let means = Means { reflink_from: works.then_some(least), kernel: AtomicBool::new(true) };
    Ok((owner, means))
}

fn first_file(source: &RootFolder, listing: &Listing) -> Option<OwnedFd> {
    listing.folders().iter().find_map(|folder| {
        let is_full = |kind, size| kind == Kind::File && size > 0;
        let found = folder.entries.iter().find(|f| is_full(f.stat.kind, f.stat.size))?;
        open_file(source.open_folder(&folder.path).ok()?, &found.name).ok()
    })
}

/// A folder's two sides, open while something in it is to be done.
pub(super) struct Sides<'a> {
    from: Arc<Held<'a>>,
    to: Arc<Held<'a>>,
    folder: &'a FoundFolder,
    /// Its number in the listing.
    number: usize,
    /// Parts of it that are not done.
    open: AtomicUsize,
}

enum Item<'a> {
    /// The folder of this number, whose subfolders and parts become further items.
    Folder { number: usize, parent: Option<Arc<Sides<'a>>> },
    /// Some of the entries of a folder.
    Part { sides: Arc<Sides<'a>>, first: usize },
}

/// Entries of one folder that one thread takes at once.
const PART: usize = 128;

fn copy_all(copier: &Copier<'_>, listing: &Listing) -> Result<Tally, TreeError> {
    let below = subfolders(listing);
    let live = AtomicUsize::new(0);
    let work = Work { copier, listing, below: &below, live: &live };
    let ended = crew::run(
        copier.options.walk.threads,
        vec![Item::Folder { number: 0, parent: None }],
        &|| copier.meter.is_cancelled(),
        &|| Hand { exact: own_umask(), buffer: Buffer::new(), tally: Tally::default() },
        &|item, queue, hand| match item {
            Item::Folder { number, parent } => work.folder(number, parent, queue, hand),
            Item::Part { sides, first } => work.part(&sides, first, hand),
        },
    );
    let mut tally = Tally::default();
    for hand in finish(ended, copier.copy)? {
        tally.add(hand.tally);
    }
    Ok(tally)
}

/// The numbers of the folders directly in each folder, in the order of names.
fn subfolders(listing: &Listing) -> Vec<Vec<usize>> {
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); listing.folders().len()];
    let mut above: Vec<usize> = Vec::new();
    for (number, folder) in listing.folders().iter().enumerate() {
        let is_above = |other: &usize| {
            listing.folders().get(*other).is_some_and(|other| folder.path.is_within(&other.path))
        };
        while above.last().is_some_and(|other| !is_above(other)) {
            above.pop();
        }
        if let Some(parent) = above.last().and_then(|parent| below.get_mut(*parent)) {
            parent.push(number);
        }
        above.push(number);
    }
    below
}

struct Work<'a> {
    copier: &'a Copier<'a>,
    listing: &'a Listing,
    below: &'a [Vec<usize>],
    live: &'a AtomicUsize,
}

impl<'a> Work<'a> {
    fn folder(
        &self,
        number: usize,
        parent: Option<Arc<Sides<'a>>>,
        queue: &Queue<Item<'a>>,
        hand: &mut Hand,
    ) -> Result<(), TreeError> {
        let Some(folder) = self.listing.folders().get(number) else { return Ok(()) };
        let (source, copy) = (self.copier.source, self.copier.copy);
        let open = |root: &RootFolder, held: Option<&Held<'_>>| match held {
            Some(held) => open_subfolder(&held.fd, folder.path.name()),
            None => root.open_folder(&folder.path),
        };
        let from = match open(source, parent.as_ref().map(|sides| &*sides.from)) {
            Ok(from) => from,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {
                hand.tally.missed.insert(folder.path.clone());
                return Ok(());
            }
            Err(errno) => return Err(at("open", source.path(), &folder.path, errno)),
        };
        let to = open(copy, parent.as_ref().map(|sides| &*sides.to))
            .map_err(|errno| at("open", copy.path(), &folder.path, errno))?;
        drop(parent);
        self.copier.dress_folder(&from, &to, folder, hand)?;
        for found in folder.entries.iter().filter(|found| found.stat.kind == Kind::Folder) {
            self.copier.make_folder(&to, folder, found, hand)?;
        }
        let parts = folder.entries.len().div_ceil(PART).max(1);
        let sides = Arc::new(Sides {
            from: Held::new(from, self.live),
            to: Held::new(to, self.live),
            folder,
            number,
            open: AtomicUsize::new(parts),
        });
        let below = self.below.get(number).map(Vec::as_slice).unwrap_or_default();
        let waits = sides.to.may_wait();
        queue.push(below.iter().rev().map(|number| Item::Folder {
            number: *number,
            parent: waits.then(|| Arc::clone(&sides)),
        }));
        queue.push(
            (1..parts).map(|part| Item::Part { sides: Arc::clone(&sides), first: part * PART }),
        );
        self.part(&sides, 0, hand)
    }

    fn part(&self, sides: &Sides<'a>, first: usize, hand: &mut Hand) -> Result<(), TreeError> {
        let folder = sides.folder;
        let (mut files, mut bytes) = (0, 0);
        for (entry, found) in folder.entries.iter().enumerate().skip(first).take(PART) {
            if found.stat.kind == Kind::Folder {
                continue;
            }
            if self.copier.meter.is_cancelled() {
                return Err(TreeError::Cancelled);
            }
            let made = self.copier.entry(&sides.from.fd, &sides.to.fd, folder, found, hand)?;
            hand.tally.made.extend(made.map(|made| ((sides.number, entry), made)));
            if found.stat.kind == Kind::File {
                files += 1;
                bytes += found.stat.size;
            }
        }
        self.copier.meter.add(files, bytes);
        if sides.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.copier.close_folder(&sides.to.fd, folder)?;
        }
        Ok(())
    }
}

/// Gives this thread a umask of its own, of nothing, so that what it creates gets the bits asked
/// for. The process's umask is everybody's and stays as it is.
#[allow(unsafe_code)]
fn own_umask() -> bool {
    // SAFETY: FS alone is unshared: this thread's umask, directory and root, none of which any
    // other code on this thread counts on sharing; the thread is one of our crew and ends with it.
    // Descriptors, which the call could make dangerous, stay shared.
    let own = unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FS) }.is_ok();
    if own {
        rustix::process::umask(Mode::empty());
    }
    own
}
