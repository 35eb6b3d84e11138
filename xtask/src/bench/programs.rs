//! The programs that are measured, built first.

use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;

use crate::report::Result;
use crate::tool;

/// What is built beside the program: packages and their examples.
pub(crate) type Examples = &'static [(&'static str, &'static str)];

/// The examples that benches run.
pub(super) const BENCHES: Examples = &[
    ("stead", "loaded_engine"),
    ("stead-store", "one_row"),
    ("stead-copies", "admit"),
    ("stead-copies", "apply"),
];

/// The built programs.
pub(crate) struct Programs {
    folder: PathBuf,
}

/// Builds the program, and `examples`; unoptimised when it is a trial.
pub(crate) fn build(root: &Path, quick: bool, examples: Examples) -> Result<Programs> {
    println!("building {} …", if quick { "an unoptimised program" } else { "a release" });
    let mut calls = vec![vec!["build", "--package", "stead", "--bins"]];
    for (package, example) in examples {
        calls.push(vec!["build", "--package", package, "--example", example]);
    }
    for mut call in calls {
        call.extend(["--quiet", "--locked"]);
        if !quick {
            call.push("--release");
        }
        let says = format!("cargo {}", call.join(" "));
        if let Some(violation) = tool::succeed(tool::cargo(root, &call), &says)? {
            return Err(violation.into());
        }
    }
    let metadata = MetadataCommand::new().current_dir(root).no_deps().exec()?;
    let profile = if quick { "debug" } else { "release" };
    Ok(Programs { folder: metadata.target_directory.join(profile).into() })
}

impl Programs {
    /// The program.
    pub(crate) fn stead(&self) -> PathBuf {
        self.folder.join("stead")
    }

    /// An example.
    pub(super) fn example(&self, name: &str) -> PathBuf {
        self.folder.join("examples").join(name)
    }
}
