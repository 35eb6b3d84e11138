//! Names that are two in the original and one on the home's file system.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use stead_files::{Listing, RelPath};

use crate::error::{CopyError, failed};

/// Which names a file system takes for one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sameness {
    /// Those that differ in case.
    case: bool,
}

impl Sameness {
    /// Tries it in `folder`, once for all roots. File systems that also compose accents have no
    /// such names in them to be copied, or refuse the second name while copying.
    pub(super) fn probe(folder: &Path) -> Result<Self, CopyError> {
        let (small, large) = (folder.join(".probe-name"), folder.join(".PROBE-NAME"));
        drop(File::create_new(&small).map_err(failed("create", &small))?);
        let case = match fs::symlink_metadata(&large) {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(CopyError::system("examine", &large, error)),
        };
        fs::remove_file(&small).map_err(failed("remove", &small))?;
        Ok(Self { case })
    }

    /// The paths that would meet, both of each pair.
    pub(super) fn collisions(self, listing: &Listing) -> Vec<RelPath> {
        if !self.case {
            return Vec::new();
        }
        listing
            .folders()
            .iter()
            .flat_map(|folder| {
                let names: Vec<&[u8]> = folder.entries.iter().map(|found| &*found.name).collect();
                meeting(&names).into_iter().filter_map(|name| folder.path.join(name).ok())
            })
            .collect()
    }
}

/// The names of one folder that differ in case at most.
fn meeting<'a>(names: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let mut by_fold: BTreeMap<String, Vec<&'a [u8]>> = BTreeMap::new();
    for name in names {
        // Other bytes than text are compared as they are by every such file system.
        let fold = match std::str::from_utf8(name) {
            Ok(text) => text.to_lowercase(),
            Err(_) => continue,
        };
        by_fold.entry(fold).or_default().push(name);
    }
    by_fold.into_values().filter(|same| same.len() > 1).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_case_meet() {
        let names: [&[u8]; 6] =
            [b"README", b"Readme", b"other", "É".as_bytes(), "é".as_bytes(), b"\xff"];
        let met = meeting(&names);
        assert_eq!(met, [&b"README"[..], b"Readme", "É".as_bytes(), "é".as_bytes()]);
    }
}
