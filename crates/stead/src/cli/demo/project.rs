//! The project of the demo: the one of `examples/repair`.

use std::fs;
use std::path::Path;

use stead_core::refusal::{Refusal, RefusalKind};

/// Every file of it, as it is in the source of stead.
const FILES: [(&str, &str); 10] = [
    (".gitignore", include_str!("../../../../../examples/repair/project/.gitignore")),
    ("Cargo.lock", include_str!("../../../../../examples/repair/project/Cargo.lock")),
    ("Cargo.toml", include_str!("../../../../../examples/repair/project/Cargo.toml")),
    ("spans/Cargo.toml", include_str!("../../../../../examples/repair/project/spans/Cargo.toml")),
    ("spans/src/lib.rs", include_str!("../../../../../examples/repair/project/spans/src/lib.rs")),
    (
        "spans/src/parse.rs",
        include_str!("../../../../../examples/repair/project/spans/src/parse.rs"),
    ),
    ("spans/src/show.rs", include_str!("../../../../../examples/repair/project/spans/src/show.rs")),
    ("timerd/Cargo.toml", include_str!("../../../../../examples/repair/project/timerd/Cargo.toml")),
    ("timerd/src/lib.rs", include_str!("../../../../../examples/repair/project/timerd/src/lib.rs")),
    (
        "timerd/src/main.rs",
        include_str!("../../../../../examples/repair/project/timerd/src/main.rs"),
    ),
];

/// The tests in a file of their own.
const TALK: (&str, &str) = (
    "timerd/tests/talk.rs",
    include_str!("../../../../../examples/repair/project/timerd/tests/talk.rs"),
);

/// What the agents are to repair; everything else stays.
pub(super) const REPAIRED: [&str; 3] =
    ["spans/src/parse.rs", "spans/src/show.rs", "timerd/src/lib.rs"];

/// What the agents say and call.
pub(super) const PLAYBOOK: &str = include_str!("playbook.toml");

/// Writes the project into `folder`, which is made.
pub(super) fn write(folder: &Path) -> Result<(), Refusal> {
    for (path, text) in FILES.into_iter().chain([TALK]) {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).and_then(|()| fs::write(&path, text)).map_err(|error| {
            Refusal::new(RefusalKind::Storage, format!("cannot write {}: {error}", path.display()))
                .hint("TMPDIR or `--keep DIR` names another folder")
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_the_example() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/repair/project");
        let tree = |root: &Path| {
            let options = stead_files::CaptureOptions::default();
            stead_files::capture(root, None, &options).unwrap().manifest
        };
        // A build of the example leaves `target`.
        let (written, example) = (tree(folder.path()), tree(&example));
        let eligible = |manifest: stead_files::Manifest| -> Vec<_> {
            let entries = manifest.into_entries().into_iter().map(|entry| entry.path);
            entries.filter(|path| !path.as_bytes().starts_with(b"target")).collect()
        };
        assert_eq!(eligible(written), eligible(example));
    }
}
