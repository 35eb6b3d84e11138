//! What is brought from a private copy into the original, and that nothing else ever is.

use std::fs;
use std::path::{Path, PathBuf};

use super::ok;
use super::tree::{Files, changed, everything, unexpected};
use crate::bench::world::World;
use crate::report::Result;

/// A file that is written in the copy after the first apply.
const LATER: &str = "LATER.txt";

/// An original before anything may have reached it: every byte of it, its Git directory with it.
pub(super) struct Untouched {
    files: Files,
    status: String,
}

impl Untouched {
    /// Makes `folder` a repository with one commit and looks at it.
    pub(super) fn committed(world: &World, folder: &Path) -> Result<Self> {
        git(world, folder, &["init", "--quiet", "."])?;
        commit(world, folder, "as it came")?;
        Ok(Self { files: everything(folder)?, status: status(world, folder)? })
    }

    /// What is not as it was.
    pub(super) fn differences(&self, world: &World, folder: &Path) -> Result<Vec<String>> {
        let now = everything(folder)?;
        let mut found: Vec<String> = changed(&self.files, &now)
            .iter()
            .map(|path| format!("{} differs before any apply", path.display()))
            .collect();
        if status(world, folder)? != self.status {
            found.push("git status differs before any apply".to_owned());
        }
        Ok(found)
    }
}

/// Reviews and applies; then commits, writes on in the copy, reviews and applies again. What was
/// found wrong on the way; at its end the original has the agents' work and [`LATER`].
pub(super) fn bring_over(
    world: &World,
    folder: &Path,
    untouched: &Untouched,
    expected: &[&str],
) -> Result<Vec<String>> {
    let mut found = untouched.differences(world, folder)?;
    world.ok(folder, ["task", "review", "1"])?;
    found.extend(untouched.differences(world, folder)?);
    let git_before = git_files(folder)?;
    world.ok(folder, ["task", "apply", "1"])?;
    let now = everything(folder)?;
    found.extend(unexpected(&changed(&untouched.files, &now), expected));
    if git_files(folder)? != git_before {
        found.push("the apply changed something in .git".to_owned());
    }
    commit(world, folder, "applied")?;
    let before = everything(folder)?;
    fs::write(copy_of(world, folder)?.join(LATER), "later\n")?;
    world.ok(folder, ["task", "review", "1"])?;
    world.ok(folder, ["task", "apply", "1"])?;
    found.extend(unexpected(&changed(&before, &everything(folder)?), &[LATER]));
    fs::remove_file(folder.join(LATER))?;
    Ok(found)
}

fn copy_of(world: &World, folder: &Path) -> Result<PathBuf> {
    let shown = world.ok(folder, ["task", "show", "1", "--json"])?;
    let shown: serde_json::Value = serde_json::from_str(&shown)?;
    let copy = shown.pointer("/delegated/slots/0/copy").and_then(serde_json::Value::as_str);
    Ok(PathBuf::from(copy.ok_or("task 1 names no copy")?))
}

fn git_files(folder: &Path) -> Result<Files> {
    everything(&folder.join(".git"))
}

fn status(world: &World, folder: &Path) -> Result<String> {
    // An ordinary status would write the index anew.
    ok(world, folder, &["git", "--no-optional-locks", "status", "--porcelain"])
}

fn commit(world: &World, folder: &Path, subject: &str) -> Result<()> {
    git(world, folder, &["add", "--all"])?;
    let identity = ["-c", "user.name=field", "-c", "user.email=field@localhost"];
    git(world, folder, &[identity.as_slice(), &["commit", "--quiet", "-m", subject]].concat())
}

fn git(world: &World, folder: &Path, arguments: &[&str]) -> Result<()> {
    ok(world, folder, &[&["git"], arguments].concat()).map(|_| ())
}
