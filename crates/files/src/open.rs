//! Opening what should be a regular file, where something else may be.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file to read it. A pipe or a device at the path is refused and holds nobody up.
///
/// # Errors
/// The system's; [`ErrorKind::InvalidInput`] when it is no regular file.
pub fn open_file(path: &Path) -> io::Result<File> {
    // Without NONBLOCK a pipe would hold the open up for ever; regular files do not know it.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(ErrorKind::InvalidInput, "it is not a file"))
    }
}

/// Reads a regular file whole.
///
/// # Errors
/// As [`open_file`]'s.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_pipe_at_the_path_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(read_file(&path).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(read_file(folder.path()).unwrap_err().kind(), ErrorKind::InvalidInput);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read_file(&path).unwrap_err().kind(), ErrorKind::NotFound);
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read_file(&path).unwrap(), b"text");
    }
}
