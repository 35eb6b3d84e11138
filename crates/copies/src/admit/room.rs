//! Whether there is room for the copies, asked before the first byte.

use std::fs::File;
use std::path::Path;

use rustix::fs::ioctl_ficlone;
use stead_files::{Kind, Listing, RelPath, Space};

use super::survey::Survey;
use crate::error::{CopyError, failed};
use crate::refusal::{MakeError, Obstruction};

/// What stays free of a disk, whatever is copied: a tenth, and at least so many bytes.
const LEAST_FREE: u64 = 2 << 30;
const LEAST_PART: u64 = 10;

/// Files below this size may be copied by reading and writing where reflinks work.
const REFLINK_FROM: u64 = 256 * 1024;

/// As many large folders as a refusal names.
const LARGEST: usize = 5;

/// What every file costs besides its bytes.
const EACH: u64 = 512;

/// Refuses when the copies of all roots would leave too little.
pub(super) fn check(staged: &Path, surveys: &[(&Path, Survey)]) -> Result<(), MakeError> {
    let space = Space::of(staged)?;
    let (mut needed, mut files) = (0_u64, 0_u64);
    for (_, survey) in surveys {
        let totals = survey.listing.totals();
        let count = totals.files + totals.folders + totals.links;
        files = files.saturating_add(count);
        needed = needed.saturating_add(count.saturating_mul(EACH));
        needed = needed.saturating_add(totals.stored.saturating_mul(2));
    }
    let lacks_files = space.free_files.is_some_and(|free| free < files.saturating_mul(2));
    if !lacks_files && leaves_enough(needed, &space) {
        // So there is room whatever is kept twice.
        return Ok(());
    }
    let mut needed = 0_u64;
    let mut most: Option<(&Path, &Listing, u64)> = None;
    for (root, survey) in surveys {
        let shares = shares_blocks(staged, &survey.listing)?;
        let bytes = estimate(survey, shares);
        needed = needed.saturating_add(bytes);
        if most.is_none_or(|(.., other)| bytes > other) {
            most = Some((root, &survey.listing, bytes));
        }
    }
    match most {
        Some((root, listing, _)) if lacks_files || !leaves_enough(needed, &space) => {
            let largest = listing.largest(LARGEST).into_iter();
            let largest: Vec<(RelPath, u64)> =
                largest.map(|(path, totals)| (path, totals.stored)).collect();
            let why = Obstruction::NoRoom { needed, free: space.free, largest };
            Err(MakeError::refused(root, why))
        }
        _ => Ok(()),
    }
}

fn leaves_enough(needed: u64, space: &Space) -> bool {
    let left = space.free.saturating_sub(needed);
    left >= LEAST_FREE.max(space.total / LEAST_PART)
}

/// The copy, and what of it is kept once more for the base: in a plain folder everything, in a
/// repository what is not tracked.
fn estimate(survey: &Survey, shares: bool) -> u64 {
    let uncovered = survey.uncovered();
    let tracked: std::collections::HashSet<&[u8]> = survey
        .git
        .iter()
        .flat_map(|git| &git.index.entries)
        .map(|entry| std::os::unix::ffi::OsStrExt::as_bytes(entry.path.as_os_str()))
        .collect();
    let mut bytes = 0_u64;
    for (path, found) in survey.listing.entries() {
        let stat = &found.stat;
        bytes = bytes.saturating_add(EACH);
        if stat.kind != Kind::File || (shares && stat.size >= REFLINK_FROM) {
            continue;
        }
        let times = if tracked.contains(path.as_bytes()) || uncovered.holds(&path) { 1 } else { 2 };
        bytes = bytes.saturating_add(stat.stored.saturating_mul(times));
    }
    bytes
}

/// Whether files of the root can share their blocks with copies in the home, tried on one.
fn shares_blocks(staged: &Path, listing: &Listing) -> Result<bool, CopyError> {
    let first =
        listing.entries().find(|(_, found)| found.stat.kind == Kind::File && found.stat.size > 0);
    let Some((path, _)) = first else { return Ok(false) };
    let Ok(from) = File::open(listing.root().join(path.as_os_str())) else { return Ok(false) };
    let probe = staged.join(".probe");
    let to = File::create_new(&probe).map_err(failed("create", &probe))?;
    let works = ioctl_ficlone(&to, &from).is_ok();
    std::fs::remove_file(&probe).map_err(failed("remove", &probe))?;
    Ok(works)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_tenth_and_two_gibibytes_stay_free() {
        let disk = |total, free| Space { free, total, free_files: None };
        assert!(leaves_enough(70 * GIB, &disk(100 * GIB, 80 * GIB)));
        assert!(!leaves_enough(71 * GIB, &disk(100 * GIB, 80 * GIB)));
        assert!(leaves_enough(6 * GIB, &disk(10 * GIB, 8 * GIB)));
        assert!(!leaves_enough(7 * GIB, &disk(10 * GIB, 8 * GIB)));
        assert!(!leaves_enough(u64::MAX, &disk(10 * GIB, 8 * GIB)));
    }
}
