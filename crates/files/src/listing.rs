//! What a walk found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::path::RelPath;
use crate::stat::{Kind, Stat, Time};

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The name.
    pub name: Box<[u8]>,
    /// What the system said about it.
    pub stat: Stat,
    /// Where a symbolic link points, literally.
    pub target: Option<Box<[u8]>>,
}

/// One folder and what of it was taken.
#[derive(Debug, Clone)]
pub struct FoundFolder {
    /// Its path.
    pub path: RelPath,
    /// What the system said about it.
    pub stat: Stat,
    /// What is in it, by name. Folders among them follow in the listing.
    pub entries: Vec<Found>,
}

/// Sums over a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Regular files.
    pub files: u64,
    /// Folders.
    pub folders: u64,
    /// Symbolic links.
    pub links: u64,
    /// Pipes, sockets, devices.
    pub specials: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// Bytes on the disk, which for a file with holes are fewer.
    pub stored: u64,
}

impl Totals {
    pub(crate) fn count(&mut self, stat: &Stat) {
        match stat.kind {
            Kind::File => {
                self.files += 1;
                self.bytes = self.bytes.saturating_add(stat.size);
                self.stored = self.stored.saturating_add(stat.stored);
            }
            Kind::Folder => self.folders += 1,
            Kind::Link => self.links += 1,
            Kind::Special(_) => self.specials += 1,
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.folders += other.folders;
        self.links += other.links;
        self.specials += other.specials;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.stored = self.stored.saturating_add(other.stored);
    }
}

/// Why something was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// The caller's filter said so.
    Chosen,
    /// Another file system begins there.
    OtherDevice,
}

/// Several names of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardLink {
    /// Its names in the listing, in order.
    pub paths: Vec<RelPath>,
    /// How many names it has in all, so also outside.
    pub names: u32,
}

/// A tree as a walk found it, in the order of its paths.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    pub(crate) root: PathBuf,
    pub(crate) began: Time,
    pub(crate) folders: Vec<FoundFolder>,
    pub(crate) left_out: BTreeMap<RelPath, LeftOut>,
    pub(crate) counted: BTreeMap<RelPath, Totals>,
    pub(crate) vanished: Vec<RelPath>,
}

impl Listing {
    /// The folder that was walked.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What the root itself was.
    pub fn root_stat(&self) -> Option<&Stat> {
        self.folders.first().map(|folder| &folder.stat)
    }

    /// When the walk began.
    pub fn began(&self) -> Time {
        self.began
    }

    /// The folders, the root first.
    pub fn folders(&self) -> &[FoundFolder] {
        &self.folders
    }

    /// What was left out, and why.
    pub fn left_out(&self) -> &BTreeMap<RelPath, LeftOut> {
        &self.left_out
    }

    /// What was only counted.
    pub fn counted(&self) -> &BTreeMap<RelPath, Totals> {
        &self.counted
    }

    /// Names that were listed and gone when they were looked at: the tree is being changed.
    pub fn vanished(&self) -> &[RelPath] {
        &self.vanished
    }

    /// Every name that was taken, in the order of paths; the root itself is not among them.
    pub fn entries(&self) -> impl Iterator<Item = (RelPath, &Found)> {
        self.numbered().map(|(_, path, found)| (path, found))
    }

    /// The same with the numbers of the folder and of the entry in it.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = ((usize, usize), RelPath, &Found)> {
        Entries { listing: self, stack: vec![(0, 0)], next_folder: 1 }
    }

    /// What is at a path, if it was taken and is not the root.
    pub fn get(&self, path: &RelPath) -> Option<&Found> {
        let parent = path.parent()?;
        let folder = self.folders.binary_search_by(|folder| folder.path.cmp(&parent)).ok()?;
        let entries = &self.folders.get(folder)?.entries;
        let entry = entries.binary_search_by(|found| (*found.name).cmp(path.name())).ok()?;
        entries.get(entry)
    }

    /// Sums over what was taken.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for found in self.folders.iter().flat_map(|folder| &folder.entries) {
            totals.count(&found.stat);
        }
        totals
    }

    /// Files that have more than one name.
    pub fn hard_links(&self) -> Vec<HardLink> {
        let mut by_file: BTreeMap<(u64, u64), HardLink> = BTreeMap::new();
        for folder in &self.folders {
            for found in &folder.entries {
                if found.stat.kind == Kind::File && found.stat.links > 1 {
                    by_file
                        .entry((found.stat.device, found.stat.inode))
                        .or_insert_with(|| HardLink { paths: Vec::new(), names: found.stat.links })
                        .paths
                        .push(folder.path.child(&found.name));
                }
            }
        }
        let mut links: Vec<HardLink> = by_file.into_values().collect();
        for link in &mut links {
            link.paths.sort();
        }
        links.sort_by(|a, b| a.paths.cmp(&b.paths));
        links
    }

    /// The folders directly in the root with the most bytes below them, largest first, and the
    /// sums: what a person who wants a smaller copy may leave out.
    pub fn largest(&self, most: usize) -> Vec<(RelPath, Totals)> {
        let mut sums: BTreeMap<&[u8], Totals> = BTreeMap::new();
        for folder in &self.folders {
            let Some(top) = folder.path.components().next() else { continue };
            let totals = sums.entry(top).or_default();
            for found in &folder.entries {
                totals.count(&found.stat);
            }
        }
        let root = RelPath::root();
        let mut sums: Vec<(RelPath, Totals)> =
            sums.into_iter().map(|(name, totals)| (root.child(name), totals)).collect();
        sums.sort_by(|a, b| b.1.stored.cmp(&a.1.stored).then_with(|| a.0.cmp(&b.0)));
        sums.truncate(most);
        sums
    }
}

/// Goes through the folders as a reader would: into each one when its name comes up.
struct Entries<'a> {
    listing: &'a Listing,
    /// Folders entered and how far each was read.
    stack: Vec<(usize, usize)>,
    /// Folders are stored in the order in which they are entered.
    next_folder: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = ((usize, usize), RelPath, &'a Found);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (number, at) = self.stack.last_mut()?;
            let numbers = (*number, *at);
            let Some(folder) = self.listing.folders.get(*number) else {
                self.stack.pop();
                continue;
            };
            let Some(found) = folder.entries.get(*at) else {
                self.stack.pop();
                continue;
            };
            *at += 1;
            let path = folder.path.child(&found.name);
            if found.stat.kind == Kind::Folder {
                self.stack.push((self.next_folder, 0));
                self.next_folder += 1;
            }
            return Some((numbers, path, found));
        }
    }
}
