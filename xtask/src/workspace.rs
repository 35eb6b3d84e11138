//! The checkout that is looked at.

use std::fs;
use std::path::{Path, PathBuf};

use crate::report::Result;

/// The workspace's root: the nearest folder upwards whose manifest has a `[workspace]`.
///
/// Asked at run time, not taken from the build, because several checkouts may share one folder of
/// build products and with it one `xtask` binary.
pub(crate) fn root() -> Result<PathBuf> {
    let here = std::env::current_dir()?;
    for folder in here.ancestors() {
        let manifest = folder.join("Cargo.toml");
        let Ok(text) = fs::read_to_string(&manifest) else { continue };
        if text.parse::<toml::Table>()?.contains_key("workspace") {
            return Ok(folder.to_owned());
        }
    }
    Err(format!("no workspace at or above {}", here.display()).into())
}

/// Every Rust file at or below `folder`, sorted; build products and hidden folders left out.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| named(&folder, &error))? {
            let entry = entry?;
            let path = entry.path();
            let name = entry.file_name();
            let hidden = name.as_encoded_bytes().starts_with(b".");
            if entry.file_type()?.is_dir() {
                if !hidden && name != "target" {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The text of a file; an error names the file.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| named(path, &error).into())
}

/// Writes a generated file when it differs; answers whether it did.
pub(crate) fn write_if_changed(path: &Path, text: &str) -> Result<bool> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(false);
    }
    fs::write(path, text).map_err(|error| named(path, &error))?;
    Ok(true)
}

/// A path as it is written in reports and generated pages: below the root, with forward slashes.
pub(crate) fn shown(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn named(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_products_and_hidden_folders_are_not_searched() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["src", "target", ".git"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("a.rs"), "").unwrap();
        }
        let found = rust_files(folder.path()).unwrap();
        assert_eq!(found, [folder.path().join("src/a.rs")]);
    }

    #[test]
    fn an_unchanged_page_is_not_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("page.md");
        assert!(write_if_changed(&page, "a\n").unwrap());
        assert!(!write_if_changed(&page, "a\n").unwrap());
        assert!(write_if_changed(&page, "b\n").unwrap());
    }
}
