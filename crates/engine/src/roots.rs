//! Looking at the folders that a person or a layout gives.

use std::path::Path;

use stead_core::id::SlotName;
use stead_core::layout::{AbsoluteDir, Access, Root, RootIdentity, derive_slot};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_files::FileIdentity;

use crate::api::RootParams;
use crate::registry::Registry;

/// Looks at the roots that a person gave, makes them canonical and registers them.
pub(crate) fn admit(registry: &Registry, given: Vec<RootParams>) -> Result<Vec<Root>, Refusal> {
    let mut folders = Vec::with_capacity(given.len());
    let mut slots: Vec<SlotName> = Vec::with_capacity(given.len());
    for RootParams { directory, slot, .. } in &given {
        let folder = look(directory.as_path())?;
        let slot =
            slot.clone().or_else(|| derive_slot(folder.0.as_path(), &slots)).ok_or_else(|| {
                refuse(format!("the root {} needs a slot", directory.as_path().display()))
            })?;
        slots.push(slot);
        folders.push(folder);
    }
    let accesses = given.iter().map(|root| root.access);
    register(registry, folders, slots.into_iter().zip(accesses))
}

/// Registers folders that were looked at as roots of a layout.
pub(crate) fn register(
    registry: &Registry,
    folders: Vec<(AbsoluteDir, RootIdentity)>,
    uses: impl Iterator<Item = (SlotName, Access)>,
) -> Result<Vec<Root>, Refusal> {
    let ids = registry.ids(&folders)?;
    let roots = ids.into_iter().zip(folders).zip(uses);
    Ok(roots
        .map(|((id, (directory, identity)), (slot, access))| Root {
            id,
            slot,
            directory,
            access,
            identity,
        })
        .collect())
}

/// The canonical path of a folder, and what it is.
pub(crate) fn look(given: &Path) -> Result<(AbsoluteDir, RootIdentity), Refusal> {
    let unusable =
        |e: std::io::Error| refuse(format!("the root {} cannot be used: {e}", given.display()));
    let canonical = given.canonicalize().map_err(unusable)?;
    if !canonical.is_dir() {
        return Err(refuse(format!("the root {} is not a folder", given.display())));
    }
    let identity = identity(&canonical).map_err(unusable)?;
    let directory = AbsoluteDir::new(canonical).map_err(|e| refuse(e.to_string()))?;
    Ok((directory, identity))
}

/// What the folder at `path` is besides its path.
pub(crate) fn identity(path: &Path) -> std::io::Result<RootIdentity> {
    let identity = FileIdentity::of(path)?;
    let birth = identity.birth.map(|b| (b.secs, b.nanos));
    Ok(RootIdentity { inode: identity.inode, birth })
}

/// The same for a source in a layout, which is given as it is or not at all: absolute, and reached
/// through no link (`spec/copies.md` 2.3).
pub(crate) fn look_exactly(given: &Path) -> Result<(AbsoluteDir, RootIdentity), Refusal> {
    if !given.is_absolute() {
        return Err(refuse(format!("the source {} is not absolute", given.display())));
    }
    let folder = look(given)?;
    let real = folder.0.as_path();
    if AbsoluteDir::new(given).is_ok_and(|as_given| as_given.as_path() == real) {
        return Ok(folder);
    }
    Err(refuse(format!("the source {} is reached through a link", given.display()))
        .hint(format!("the folder itself is {}", real.display())))
}

fn refuse(line: String) -> Refusal {
    Refusal::new(RefusalKind::InvalidArgument, line).hint("`--root DIR` names a folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_37_a_source_behind_a_link_is_refused_with_the_real_path() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("real/app")).unwrap();
        std::os::unix::fs::symlink("real", base.join("link")).unwrap();
        assert_eq!(
            look_exactly(&base.join("real/app")).unwrap().0.as_path(),
            base.join("real/app")
        );
        let refusal = look_exactly(&base.join("link/app")).unwrap_err();
        assert!(refusal.hint.unwrap().contains(&*base.join("real/app").to_string_lossy()));
        for bad in ["real/app", "", "/no/such/folder"] {
            assert!(look_exactly(Path::new(bad)).is_err(), "{bad}");
        }
        std::fs::write(base.join("file"), "").unwrap();
        assert!(look_exactly(&base.join("file")).is_err());
        assert!(look_exactly(&base.join("real/../real/app")).is_err());
    }
}
