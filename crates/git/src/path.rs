//! Paths as Git says them: bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// The path of these bytes.
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// An answer of one line, which may itself hold line feeds, without the one at its end.
pub(crate) fn line(answer: &[u8]) -> Option<&[u8]> {
    if answer.is_empty() { None } else { Some(answer.strip_suffix(b"\n").unwrap_or(answer)) }
}

/// The paths of an answer in which each has a zero byte behind it.
pub(crate) fn paths(answer: &[u8]) -> impl Iterator<Item = &[u8]> {
    answer.split(|byte| *byte == 0).filter(|path| !path.is_empty())
}
