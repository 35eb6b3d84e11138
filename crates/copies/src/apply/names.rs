//! Names in the folders of a destination, and which of them its file system takes for one another.

use std::collections::HashSet;

use rustix::fs::Dir;
use stead_files::{RelPath, RootFolder, TreeError};

use super::look::system;

/// The names in a folder; none when it is not there.
pub(super) fn names_in(root: &RootFolder, path: &RelPath) -> Result<Vec<Box<[u8]>>, TreeError> {
    let folder = match root.folder(path) {
        Ok(folder) => folder,
        Err(error) if error.errno() == Some(rustix::io::Errno::NOENT) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let fail = |errno| system("list", root, path, errno);
    let mut names = Vec::new();
    for entry in Dir::new(folder).map_err(fail)? {
        let name = entry.map_err(fail)?;
        let name = name.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.into());
        }
    }
    Ok(names)
}

/// Of paths in their order, those that differ from an earlier one in letter case only.
pub(super) fn same_names<'a>(paths: impl Iterator<Item = &'a RelPath>) -> Vec<RelPath> {
    let mut seen = HashSet::new();
    let folded = |path: &RelPath| String::from_utf8_lossy(path.as_bytes()).to_lowercase();
    paths.filter(|path| !seen.insert(folded(path))).cloned().collect()
}

/// Whether the root's file system takes names that differ in letter case for one another: asked of
/// a name that is there, so nothing is written.
pub(super) fn folds_names(root: &RootFolder) -> Result<bool, TreeError> {
    for name in names_in(root, &RelPath::root())? {
        let other: Vec<u8> = name
            .iter()
            .map(|byte| {
                if byte.is_ascii_lowercase() {
                    byte.to_ascii_uppercase()
                } else {
                    byte.to_ascii_lowercase()
                }
            })
            .collect();
        if *other == *name {
            continue;
        }
        let look = |name: &[u8]| match RelPath::parse(name) {
            Ok(path) => root.look(&path),
            Err(_) => Ok(None),
        };
        let (one, two) = (look(&name)?, look(&other)?);
        return Ok(one.zip(two).is_some_and(|(one, two)| one.is_same_file(&two)));
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_75_names_that_differ_in_case_are_found() {
        let paths: Vec<RelPath> = ["README", "Readme", "a/B", "a/b", "a/c", "Ä", "ä"]
            .iter()
            .map(|text| RelPath::parse(text).unwrap())
            .collect();
        let found: Vec<String> = same_names(paths.iter()).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["Readme", "a/b", "ä"]);
    }

    #[test]
    fn a_file_system_that_tells_cases_apart_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let root = RootFolder::open(folder.path()).unwrap();
        assert!(!folds_names(&root).unwrap());
        std::fs::write(folder.path().join("readme"), "").unwrap();
        assert!(!folds_names(&root).unwrap());
        // As such a file system would answer: one file by both names.
        std::fs::hard_link(folder.path().join("readme"), folder.path().join("README")).unwrap();
        assert!(folds_names(&root).unwrap());
    }
}
