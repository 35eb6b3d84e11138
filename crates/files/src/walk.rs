//! Listing a tree in parallel, following no link.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use rustix::fs::RawDir;
use rustix::io::Errno;

use crate::crew::{self, Ended, Queue, Threads};
use crate::error::{TreeError, at};
use crate::listing::{Found, FoundFolder, LeftOut, Listing, Totals};
use crate::path::RelPath;
use crate::root::{Held, RootFolder, open_subfolder};
use crate::stat::{Kind, Stat, Time};
use crate::watch::{Meter, Phase, Watch};

/// What becomes of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// It is listed, and a folder entered.
    Take,
    /// It is named as left out, and a folder not entered.
    LeaveOut,
    /// Only sums over it are kept; a folder is entered for them.
    Count,
}

/// Chooses for each name. It is not asked about what is below a folder that is left out or
/// counted.
pub type Filter<'a> = dyn Fn(&RelPath, &Stat) -> Choice + Sync + 'a;

/// How a tree is walked. The default takes everything on the root's device.
#[derive(Clone, Copy, Default)]
pub struct WalkOptions<'a> {
    /// What is taken; without one, everything.
    pub filter: Option<&'a Filter<'a>>,
    /// Whether what is mounted below the root is entered.
    pub other_devices: bool,
    /// How many threads.
    pub threads: Threads,
    /// Who looks on.
    pub watch: Watch<'a>,
}

/// Walks the folder at `root`.
///
/// # Errors
/// A folder that cannot be read is an error that names it. What vanishes meanwhile is none; see
/// [`Listing::vanished`].
pub fn walk(root: &Path, options: &WalkOptions<'_>) -> Result<Listing, TreeError> {
    walk_root(&RootFolder::open(root)?.crossing(options.other_devices), options)
}

/// Walks an open root.
pub(crate) fn walk_root(
    root: &RootFolder,
    options: &WalkOptions<'_>,
) -> Result<Listing, TreeError> {
    let began = Time::now();
    let meter = Meter::new(options.watch, Phase::Walk, None);
    let held = AtomicUsize::new(0);
    let walker = Walker { root, options, meter: &meter, held: &held };
    let stat = Stat::of_open(root).map_err(|e| at("examine", root.path(), &RelPath::root(), e))?;
    let first = Item { path: RelPath::root(), stat, parent: None, counted: None };
    let ended = crew::run(
        options.threads,
        vec![first],
        &|| meter.is_cancelled(),
        &Gathered::new,
        &|item, queue, gathered| walker.folder(item, queue, gathered),
    );
    let parts = finish(ended, root)?;
    meter.end();
    let mut listing = Listing {
        root: root.path().to_owned(),
        began,
        folders: Vec::new(),
        left_out: BTreeMap::new(),
        counted: BTreeMap::new(),
        vanished: Vec::new(),
    };
    for part in parts {
        listing.folders.extend(part.folders);
        listing.left_out.extend(part.left_out);
        listing.vanished.extend(part.vanished);
        for (path, totals) in part.counted {
            listing.counted.entry(path).or_default().add(&totals);
        }
    }
    listing.folders.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    listing.vanished.sort();
    if !listing.vanished.is_empty() {
        drop_unlisted(&mut listing);
    }
    Ok(listing)
}

/// What every crew over a tree makes of its end: the error of the first path, so that two runs
/// over one tree say the same if they come to say it.
pub(crate) fn finish<L>(
    ended: Ended<L, TreeError>,
    root: &RootFolder,
) -> Result<Vec<L>, TreeError> {
    match ended {
        Ended::Done(parts) => Ok(parts),
        Ended::Cancelled => Err(TreeError::Cancelled),
        Ended::Failed(mut errors) => {
            errors.sort_by_cached_key(ToString::to_string);
            Err(errors.into_iter().next().unwrap_or(TreeError::Cancelled))
        }
        Ended::NoThread(source) => Err(TreeError::System {
            act: "start a thread for",
            path: root.path().to_owned(),
            source,
        }),
    }
}

/// A folder that vanished after its name was read has no listing of its own: its name goes too.
fn drop_unlisted(listing: &mut Listing) {
    let paths: std::collections::BTreeSet<RelPath> =
        listing.folders.iter().map(|folder| folder.path.clone()).collect();
    for folder in &mut listing.folders {
        let path = &folder.path;
        folder.entries.retain(|found| {
            found.stat.kind != Kind::Folder || paths.contains(&path.child(&found.name))
        });
    }
}

/// A folder to be read.
struct Item<'a> {
    path: RelPath,
    stat: Stat,
    parent: Option<Arc<Held<'a>>>,
    /// The counted folder it is in or is.
    counted: Option<RelPath>,
}

struct Gathered {
    folders: Vec<FoundFolder>,
    left_out: Vec<(RelPath, LeftOut)>,
    counted: BTreeMap<RelPath, Totals>,
    vanished: Vec<RelPath>,
    buffer: Vec<u8>,
}

impl Gathered {
    fn new() -> Self {
        Self {
            folders: Vec::new(),
            left_out: Vec::new(),
            counted: BTreeMap::new(),
            vanished: Vec::new(),
            buffer: Vec::with_capacity(LISTED_AT_ONCE),
        }
    }
}

/// Bytes of names that one call lists.
const LISTED_AT_ONCE: usize = 32 * 1024;

struct Walker<'a> {
    root: &'a RootFolder,
    options: &'a WalkOptions<'a>,
    meter: &'a Meter<'a>,
    held: &'a AtomicUsize,
}

impl<'a> Walker<'a> {
    fn folder(
        &self,
        item: Item<'a>,
        queue: &Queue<Item<'a>>,
        gathered: &mut Gathered,
    ) -> Result<(), TreeError> {
        let Item { path, stat, parent, counted } = item;
        let opened = match &parent {
            Some(parent) => open_subfolder(&parent.fd, path.name()),
            None => self.root.open_folder(&path),
        };
        drop(parent);
        let fd = match opened {
            Ok(fd) => fd,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !path.is_root() => {
                gathered.vanished.push(path);
                return Ok(());
            }
            Err(errno) => return Err(at("open", self.root.path(), &path, errno)),
        };
        let vanished = gathered.vanished.len();
        let names = self.list(&fd, &path, gathered)?;
        if counted.is_some() {
            // Sums may be off by what comes and goes; nobody copies from here.
            gathered.vanished.truncate(vanished);
        }
        let here = Held::new(fd, self.held);
        let mut entries = Vec::with_capacity(names.len());
        let mut below = Vec::new();
        let mut totals = Totals::default();
        for Found { name, stat, target } in names {
            let kind = stat.kind;
            // A path costs an allocation, and most names need none here.
            let wanted =
                kind == Kind::Folder || (counted.is_none() && self.options.filter.is_some());
            let child = if wanted { path.child(&name) } else { RelPath::root() };
            let mut counting = counted.clone();
            if counting.is_none() {
                match self.choose(&child, &stat) {
                    Ok(Choice::Take) => {}
                    Ok(Choice::Count) => counting = Some(child.clone()),
                    Ok(Choice::LeaveOut) => {
                        gathered.left_out.push((child, LeftOut::Chosen));
                        continue;
                    }
                    Err(why) => {
                        gathered.left_out.push((path.child(&name), why));
                        continue;
                    }
                }
            } else if self.is_elsewhere(&stat) {
                continue;
            }
            totals.count(&stat);
            if let Some(top) = &counting {
                gathered.counted.entry(top.clone()).or_default().count(&stat);
            }
            if kind == Kind::Folder {
                let parent = here.may_wait().then(|| Arc::clone(&here));
                below.push(Item { path: child, stat, parent, counted: counting.clone() });
            }
            if counting.is_none() {
                entries.push(Found { name, stat, target });
            }
        }
        // The last is taken first: so in the order of names, which is how a disk likes it best.
        queue.push(below.into_iter().rev());
        self.meter.add(totals.files + totals.links + totals.specials, totals.bytes);
        if counted.is_none() {
            gathered.folders.push(FoundFolder { path, stat, entries });
        }
        Ok(())
    }

    fn choose(&self, path: &RelPath, stat: &Stat) -> Result<Choice, LeftOut> {
        if self.is_elsewhere(stat) {
            return Err(LeftOut::OtherDevice);
        }
        Ok(self.options.filter.map_or(Choice::Take, |filter| filter(path, stat)))
    }

    fn is_elsewhere(&self, stat: &Stat) -> bool {
        !self.options.other_devices && (stat.mounted || stat.device != self.root.stat().device)
    }

    /// The names in a folder, in order, with what they stand for.
    fn list(
        &self,
        folder: &OwnedFd,
        path: &RelPath,
        gathered: &mut Gathered,
    ) -> Result<Vec<Found>, TreeError> {
        let mut names = Vec::new();
        let mut reader = RawDir::new(folder, gathered.buffer.spare_capacity_mut());
        while let Some(entry) = reader.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // The folder was removed while it was read.
                Err(Errno::NOENT) => {
                    gathered.vanished.push(path.clone());
                    break;
                }
                Err(errno) => return Err(at("list", self.root.path(), path, errno)),
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            match look(folder, name) {
                Ok(found) => names.push(found),
                Err(Errno::NOENT) => gathered.vanished.push(path.child(name.to_bytes())),
                Err(errno) => {
                    let child = path.child(name.to_bytes());
                    return Err(at("examine", self.root.path(), &child, errno));
                }
            }
        }
        names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(names)
    }
}

fn look(folder: &OwnedFd, name: &std::ffi::CStr) -> rustix::io::Result<Found> {
    let stat = Stat::at(folder, name)?;
    let target = if stat.kind == Kind::Link {
        match rustix::fs::readlinkat(folder, name, Vec::new()) {
            Ok(target) => Some(target.into_bytes().into_boxed_slice()),
            // Replaced since: as good as gone, the next look will tell.
            Err(Errno::INVAL) => return Err(Errno::NOENT),
            Err(errno) => return Err(errno),
        }
    } else {
        None
    };
    Ok(Found { name: name.to_bytes().into(), stat, target })
}
