//! The folders that a repository's objects are in.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use stead_files::FileIdentity;

use crate::error::GitError;
use crate::path::path_of;
use crate::repository::Repository;

/// How many borrowings in a row Git follows.
const DEEPEST: usize = 6;

/// Where objects are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectFolders {
    /// The repository's own.
    pub own: PathBuf,
    /// Those it borrows from, and those that these borrow from; canonical, each once, in the order
    /// in which Git looks.
    pub borrowed: Vec<PathBuf>,
    /// Those that are named but are not there, as they were named.
    pub missing: Vec<PathBuf>,
}

impl Repository {
    /// The object folders, `info/alternates` followed as far as Git follows it. Runs nothing.
    ///
    /// # Errors
    /// [`GitError::File`].
    pub fn object_folders(&self) -> Result<ObjectFolders, GitError> {
        let own = self.common_directory.join("objects");
        let identity = FileIdentity::of(&own).map_err(GitError::file("examine", &own))?;
        let mut found =
            ObjectFolders { own: own.clone(), borrowed: Vec::new(), missing: Vec::new() };
        let mut seen = vec![identity];
        let mut level = vec![own];
        for _ in 0..DEEPEST {
            let mut next = Vec::new();
            for folder in &level {
                for named in named_in(folder)? {
                    let there = named.canonicalize().ok().filter(|path| path.is_dir());
                    let identity = there.as_ref().and_then(|path| FileIdentity::of(path).ok());
                    let (Some(path), Some(identity)) = (there, identity) else {
                        found.missing.push(named);
                        continue;
                    };
                    if !seen.contains(&identity) {
                        seen.push(identity);
                        found.borrowed.push(path.clone());
                        next.push(path);
                    }
                }
            }
            level = next;
        }
        Ok(found)
    }
}

/// The lines of `info/alternates`; a relative one starts at the object folder itself.
fn named_in(folder: &Path) -> Result<Vec<PathBuf>, GitError> {
    let path = folder.join("info/alternates");
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(GitError::file("read", &path)(error)),
    };
    let lines = text.split(|byte| *byte == b'\n');
    let named = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    Ok(named.map(|line| folder.join(path_of(&unquoted(line)))).collect())
}

/// A line in quotes has the escapes of C; one whose quotes do not close means itself.
fn unquoted(line: &[u8]) -> Vec<u8> {
    let whole = || line.to_vec();
    let Some(inside) = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")) else {
        return whole();
    };
    let mut bytes = Vec::new();
    let mut rest = inside.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let meant = match rest.next() {
            Some(b'a') => 7,
            Some(b'b') => 8,
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'v') => 11,
            Some(b'f') => 12,
            Some(b'r') => b'\r',
            Some(byte @ (b'"' | b'\\')) => byte,
            Some(high @ b'0'..=b'3') => {
                let digits = [Some(high), rest.next(), rest.next()];
                let number = digits.into_iter().try_fold(0_u8, |number, digit| match digit {
                    Some(digit @ b'0'..=b'7') => Some((number << 3) | (digit - b'0')),
                    _ => None,
                });
                match number {
                    Some(number) => number,
                    None => return whole(),
                }
            }
            _ => return whole(),
        };
        bytes.push(meant);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::unquoted;

    #[test]
    fn quotes_are_read_as_git_writes_them() {
        for (line, meant) in [
            (&b"/plain \"path\""[..], &b"/plain \"path\""[..]),
            (b"\"/a\\nb\\\"\\\\\"", b"/a\nb\"\\"),
            (b"\"\\303\\244\"", "ä".as_bytes()),
            (b"\"/open", b"\"/open"),
            (b"\"\\9\"", b"\"\\9\""),
            (b"\"\\37\"", b"\"\\37\""),
        ] {
            assert_eq!(unquoted(line), meant);
        }
    }
}
