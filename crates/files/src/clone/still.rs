//! Whether a tree is still what a walk has found, for less than another walk costs.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use crate::crew;
use crate::error::{TreeError, at};
use crate::listing::{FoundFolder, Listing};
use crate::path::RelPath;
use crate::root::RootFolder;
use crate::stat::{Kind, Stat};
use crate::walk::{WalkOptions, finish};
use crate::watch::{Meter, Phase};

/// Folders that one thread looks at at once.
const FOLDERS: usize = 64;

/// Whether a walk of the root would find what `listing` has, which was walked with these options:
/// then the tree is as it was when the last of it was listed. It costs less than a walk. False when
/// that cannot be told, because something changed just before it was listed.
pub(super) fn is_still(
    root: &RootFolder,
    listing: &Listing,
    options: &WalkOptions<'_>,
) -> Result<bool, TreeError> {
    // A name that comes or goes shows in the folder's time, unless it came within the same tick.
    let shows = |folder: &FoundFolder| !folder.stat.changed.is_racy(listing.began);
    let is_whole = listing.vanished.is_empty() && listing.counted.is_empty();
    if !is_whole || !listing.folders.iter().all(shows) {
        return Ok(false);
    }
    let differs = AtomicBool::new(false);
    let meter = Meter::new(options.watch, Phase::Walk, None);
    let parts: Vec<&[FoundFolder]> = listing.folders.chunks(FOLDERS).rev().collect();
    let ended = crew::run(
        options.threads,
        parts,
        &|| meter.is_cancelled(),
        &|| (),
        &|folders: &[FoundFolder], _, ()| {
            for folder in folders {
                if differs.load(Ordering::Relaxed) {
                    break;
                }
                if !folder_is_still(root, folder)? {
                    differs.store(true, Ordering::Relaxed);
                }
                meter.add(u64::try_from(folder.entries.len()).unwrap_or(u64::MAX), 0);
            }
            Ok(())
        },
    );
    finish(ended, root)?;
    meter.end();
    Ok(!differs.into_inner())
}

fn folder_is_still(root: &RootFolder, folder: &FoundFolder) -> Result<bool, TreeError> {
    let gone = |errno| matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV);
    let fd = match root.open_folder(&folder.path) {
        Ok(fd) => fd,
        Err(errno) if gone(errno) => return Ok(false),
        Err(errno) => return Err(at("open", root.path(), &folder.path, errno)),
    };
    let examine = |path: &RelPath, errno| at("examine", root.path(), path, errno);
    let now = Stat::of_open(&fd).map_err(|errno| examine(&folder.path, errno))?;
    if !now.is_unchanged(&folder.stat) {
        return Ok(false);
    }
    // Folders are looked at in their own turn.
    for found in folder.entries.iter().filter(|found| found.stat.kind != Kind::Folder) {
        match Stat::at(&fd, &*found.name) {
            Ok(now) if now.is_unchanged(&found.stat) => {}
            Ok(_) => return Ok(false),
            Err(errno) if gone(errno) => return Ok(false),
            Err(errno) => return Err(examine(&folder.path.child(&found.name), errno)),
        }
    }
    Ok(true)
}
