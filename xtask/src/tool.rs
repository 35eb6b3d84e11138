//! The programs that checks run: cargo and what it starts.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::report::Result;

/// Where these point, Git works; set by a hook that runs us, they would send a test's Git into the
/// project's own repository.
const GIT_PLACES: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// `cargo` in the workspace, without what belongs to the session or hook that runs us.
///
/// `STEAD_TEST_…` stays: it is how a person asks the tests for something.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root).args(arguments).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let ours = text.starts_with("STEAD_") && !text.starts_with("STEAD_TEST_");
        if ours || GIT_PLACES.contains(&text.as_ref()) {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a command with its output on the terminal; answers the violation when it fails.
pub(crate) fn succeed(mut command: Command, says: &str) -> Result<Option<String>> {
    let status = command.status().map_err(|error| format!("{says}: {error}"))?;
    Ok((!status.success()).then(|| format!("`{says}` ended with {status}")))
}

/// What a command prints; an error when it fails.
pub(crate) fn printed(mut command: Command, says: &str) -> Result<String> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|error| format!("{says}: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{says}` ended with {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
