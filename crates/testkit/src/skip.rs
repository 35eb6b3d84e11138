//! Skipping out loud.

use std::fs::OpenOptions;
use std::io::Write as _;

/// Says that a test cannot run here: to standard error, and in the file that `STEAD_SKIPS` names,
/// which the test command prints at its end. The test returns after that.
pub fn skip(test: &str, reason: &str) {
    eprintln!("SKIPPED {test}: {reason}");
    if let Some(path) = std::env::var_os("STEAD_SKIPS") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| writeln!(file, "{test}: {reason}")).expect("STEAD_SKIPS");
    }
}
