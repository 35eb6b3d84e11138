//! Looking at the source again until it is what was copied.

use std::cmp::Ordering;
use std::os::fd::OwnedFd;

use rustix::fs::fchmod;
use rustix::io::Errno;

use super::copier::{Copier, Hand, bits, gets_bits_late};
use super::report::Tally;
use super::still::is_still;
use crate::capture::ROUNDS;
use crate::content::Buffer;
use crate::error::{TreeError, at};
use crate::listing::{Found, FoundFolder, Listing};
use crate::path::RelPath;
use crate::remove::remove_tree;
use crate::root::RootFolder;
use crate::stat::{Kind, Time};
use crate::walk::walk_root;

/// What must be done again.
#[derive(Default)]
struct Again {
    /// What has to go from the copy.
    gone: Vec<RelPath>,
    /// What has to be made: numbers of folder and entry in the new listing.
    make: Vec<(usize, usize)>,
    /// Folders whose own state has to be set: numbers in the new listing.
    touched: Vec<usize>,
    /// All of it by path, for the message.
    paths: Vec<RelPath>,
}

/// Looks at the source again and copies what changed, until nothing did. Gives the last listing and
/// how often something had to be copied.
pub(super) fn settle(
    copier: &Copier<'_>,
    mut copied: Listing,
    tally: &mut Tally,
) -> Result<(Listing, usize), TreeError> {
    for round in 0..=ROUNDS {
        if tally.missed.is_empty() && is_still(copier.source, &copied, &copier.options.walk)? {
            return Ok((copied, round));
        }
        let now = walk_root(copier.source, &copier.options.walk)?;
        let again = differences(&copied, &now, tally);
        if again.paths.is_empty() && now.vanished.is_empty() {
            return Ok((now, round));
        }
        if round == ROUNDS {
            let mut paths = again.paths;
            paths.extend(now.vanished);
            paths.sort();
            paths.dedup();
            return Err(TreeError::Unstable(paths));
        }
        tally.missed.clear();
        tally.name(&copied);
        wait_for_quiet(&now);
        amend(copier, &now, &again, tally)?;
        copied = now;
    }
    Err(TreeError::Unstable(Vec::new()))
}

/// Waits until a change of any file would show in its times.
///
/// A file may be written twice within one tick of the clock that stamps it. If it is read before
/// that tick is over, the second write goes unseen; read later, every further write shows. The
/// wait is some milliseconds, and only when a file changed just now.
pub(super) fn wait_for_quiet(listing: &Listing) {
    let now = Time::now();
    let files = listing.folders.iter().flat_map(|folder| &folder.entries);
    let waits =
        files.filter(|f| f.stat.kind == Kind::File).map(|f| f.stat.changed.quiet().wait(now));
    if let Some(longest) = waits.max().filter(|wait| !wait.is_zero()) {
        std::thread::sleep(longest);
    }
}

fn differences(copied: &Listing, now: &Listing, tally: &Tally) -> Again {
    let mut again = Again::default();
    let mut old = copied.folders.iter().peekable();
    for (number, folder) in now.folders.iter().enumerate() {
        // A folder that is gone shows as a name that is gone from the folder above it.
        while old.next_if(|other| other.path < folder.path).is_some() {}
        let before = old
            .next_if(|other| other.path == folder.path)
            .filter(|_| !tally.missed.iter().any(|missed| folder.path.is_within(missed)));
        let differs = match before {
            None => {
                again.make.extend((0..folder.entries.len()).map(|entry| (number, entry)));
                true
            }
            Some(before) => {
                let differs = entries(before, folder, number, tally, &mut again);
                differs || !before.stat.is_unchanged(&folder.stat)
            }
        };
        if differs {
            again.touched.push(number);
            again.paths.push(folder.path.clone());
        }
    }
    again
}

/// Compares the names of one folder; whether anything differs.
fn entries(
    before: &FoundFolder,
    after: &FoundFolder,
    number: usize,
    tally: &Tally,
    again: &mut Again,
) -> bool {
    let mut differs = false;
    let mut old = before.entries.iter().peekable();
    let mut new = after.entries.iter().enumerate().peekable();
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return differs,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some((_, b))) => a.name.cmp(&b.name),
        };
        let gone = if order.is_le() { old.next() } else { None };
        let come = if order.is_ge() { new.next() } else { None };
        if let (Some(gone), Some((_, come))) = (gone, come) {
            let missed =
                !tally.missed.is_empty() && tally.missed.contains(&after.path.child(&come.name));
            if !missed && is_as_copied(gone, come) {
                continue;
            }
        }
        differs = true;
        if let Some(name) = gone.map(|found| &found.name) {
            again.gone.push(after.path.child(name));
        }
        if let Some((entry, found)) = come {
            again.make.push((number, entry));
            again.paths.push(after.path.child(&found.name));
        }
    }
}

fn is_as_copied(before: &Found, after: &Found) -> bool {
    match (before.stat.kind, after.stat.kind) {
        // What is in it, and its own state, are compared in its own turn.
        (Kind::Folder, Kind::Folder) => true,
        _ => before.stat.is_unchanged(&after.stat) && before.target == after.target,
    }
}

fn amend(
    copier: &Copier<'_>,
    now: &Listing,
    again: &Again,
    tally: &mut Tally,
) -> Result<(), TreeError> {
    // This thread's umask is everybody's; so bits are set, not asked for.
    let mut hand = Hand { exact: false, buffer: Buffer::new(), tally: std::mem::take(tally) };
    let done = amend_with(copier, now, again, &mut hand);
    *tally = hand.tally;
    done
}

fn amend_with(
    copier: &Copier<'_>,
    now: &Listing,
    again: &Again,
    hand: &mut Hand,
) -> Result<(), TreeError> {
    for path in &again.gone {
        hand.tally.forget(path);
        let Some(parent) = path.parent() else { continue };
        let Some(folder) = open(copier.copy, &parent)? else { continue };
        let name = std::os::unix::ffi::OsStrExt::from_bytes(path.name());
        remove_tree(&folder, name, &copier.copy.full(&parent))?;
    }
    let mut at_hand: Option<(usize, OwnedFd, OwnedFd)> = None;
    for (number, entry) in &again.make {
        if copier.meter.is_cancelled() {
            return Err(TreeError::Cancelled);
        }
        let Some(folder) = now.folders.get(*number) else { continue };
        let Some(found) = folder.entries.get(*entry) else { continue };
        if at_hand.as_ref().is_none_or(|(other, ..)| other != number) {
            at_hand = sides(copier, folder)?.map(|(from, to)| (*number, from, to));
        }
        let Some((_, from, to)) = &at_hand else {
            hand.tally.missed.insert(folder.path.clone());
            continue;
        };
        if found.stat.kind == Kind::Folder {
            match copier.make_folder(to, folder, found, hand) {
                // Its name was there before, and what is in it was missed.
                Err(error) if error.errno() == Some(Errno::EXIST) => {}
                other => other?,
            }
        } else {
            let made = copier.entry(from, to, folder, found, hand)?;
            let path = || folder.path.child(&found.name);
            hand.tally.made_again.extend(made.map(|made| (path(), made)));
        }
    }
    for number in &again.touched {
        let Some(folder) = now.folders.get(*number) else { continue };
        let Some((from, to)) = sides(copier, folder)? else {
            hand.tally.missed.insert(folder.path.clone());
            continue;
        };
        hand.tally.obstacles.remove(&folder.path);
        copier.dress_folder(&from, &to, folder, hand)?;
        let mode = if gets_bits_late(folder.stat.mode) { 0o700 } else { folder.stat.mode };
        fchmod(&to, bits(mode)).map_err(|errno| {
            at("set the permissions of", copier.copy.path(), &folder.path, errno)
        })?;
        copier.close_folder(&to, folder)?;
    }
    Ok(())
}

/// A folder of the source and of the copy; nothing when the source's went meanwhile.
fn sides(
    copier: &Copier<'_>,
    folder: &FoundFolder,
) -> Result<Option<(OwnedFd, OwnedFd)>, TreeError> {
    let Some(from) = open(copier.source, &folder.path)? else { return Ok(None) };
    Ok(open(copier.copy, &folder.path)?.map(|to| (from, to)))
}

fn open(root: &RootFolder, path: &RelPath) -> Result<Option<OwnedFd>, TreeError> {
    match root.open_folder(path) {
        Ok(folder) => Ok(Some(folder)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
        Err(errno) => Err(at("open", root.path(), path, errno)),
    }
}
