//! An apply, against replacing the same files by hand.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use super::row::Row;
use super::start::plain;
use super::stats::{middle, ratio, shown, timed};
use super::{Bench, Outcome, Stage};
use crate::report::Result;

pub(super) const BENCH: Bench = Bench {
    name: "apply",
    heading: "an apply",
    method: "20 and 3,000 files of 3,500 bytes, 30 in a folder, all changed in a copy of a plain \
             folder. Timed is the apply through the library, after the review: every check, the \
             writing, and the removal of the journal and of what was replaced. Then as many files \
             are replaced by a new file and a rename each, without any sync; then with a sync of \
             the new file before each rename. Five rounds.",
    usual: true,
    run,
};

/// Files of one folder, as the example has them.
const EACH: usize = 30;
/// Bytes of a file, as the example has them.
const BYTES: usize = 3500;

fn run(stage: &Stage<'_>) -> Result<Outcome> {
    let mut rows = Vec::new();
    for (files, says) in [(20, "20"), (3000, "3,000")] {
        let (mut applied, mut renamed, mut synced) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..stage.rounds(5) {
            applied.push(apply(stage, files)?);
            renamed.push(by_hand(stage, files, false)?);
            synced.push(by_hand(stage, files, true)?);
        }
        let unsynced = format!("{says} files renamed, no sync");
        let one_by_one = format!("{says} files synced and renamed");
        rows.push(
            Row::new(format!("apply of {says} files"), shown(middle("an apply", &applied)?))
                .ratio(ratio("an apply", &applied, &renamed)?, &unsynced),
        );
        rows.push(
            Row::new("the same", "").ratio(ratio("an apply", &applied, &synced)?, &one_by_one),
        );
        rows.push(Row::new(unsynced, shown(middle("renames", &renamed)?)));
        rows.push(Row::new(one_by_one, shown(middle("syncs", &synced)?)));
    }
    let limit = "The limit is two renames a file, one that takes the new file to its place and one \
                 that can take it back, and the flushes that stand between the journal, the new \
                 files, the exchange and the outcome; their number does not depend on the files'.";
    Ok(Outcome { rows, notes: vec![limit.to_owned()] })
}

/// How many microseconds an apply takes.
fn apply(stage: &Stage<'_>, files: usize) -> Result<f64> {
    let folder = tempfile::Builder::new().prefix("a-").tempdir_in(stage.disk.folder())?;
    let mut command = plain(&stage.programs.example("apply").to_string_lossy(), &[]);
    let output = command.arg(folder.path()).arg(files.to_string()).output()?;
    super::copy::figure(&output, "micros")
}

/// How many microseconds the replacing of as many files takes.
fn by_hand(stage: &Stage<'_>, files: usize, syncs: bool) -> Result<f64> {
    let folder = tempfile::Builder::new().prefix("a-").tempdir_in(stage.disk.folder())?;
    for number in 0..files {
        if number.is_multiple_of(EACH) {
            fs::create_dir(folder.path().join(format!("d{}", number / EACH)))?;
        }
        fs::write(place(folder.path(), number), [b'a'; BYTES])?;
    }
    settle(folder.path())?;
    let (time, ()) = timed(|| -> Result<()> {
        for number in 0..files {
            let path = place(folder.path(), number);
            let new = path.with_extension("new");
            let mut file = File::create_new(&new)?;
            file.write_all(&[b'b'; BYTES])?;
            if syncs {
                file.sync_all()?;
            }
            fs::rename(&new, &path)?;
        }
        Ok(())
    })?;
    Ok(time)
}

fn place(folder: &Path, number: usize) -> std::path::PathBuf {
    folder.join(format!("d{}/f{number}", number / EACH))
}

/// Writes back what is under way, so that no bench pays for what came before it.
pub(super) fn settle(folder: &Path) -> Result<()> {
    let status = plain("sync", &["--file-system"]).arg(folder).status()?;
    if status.success() { Ok(()) } else { Err(format!("sync ended with {status}").into()) }
}
