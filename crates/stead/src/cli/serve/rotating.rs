//! A log file of bounded size: a full one becomes `….1`, and the one before that goes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// How large the file grows.
const LARGEST: u64 = 4 * 1024 * 1024;

/// The log. A line that cannot be written is dropped: nobody is there to be told, and the engine
/// goes on.
pub(super) struct Log {
    path: PathBuf,
    file: Option<File>,
    bytes: u64,
    largest: u64,
}

impl Log {
    /// A log at `path`. Nothing is made before the first line; the folder is made by others.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None, bytes: 0, largest: LARGEST }
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
            self.bytes = file.metadata()?.len();
            self.file = Some(file);
        }
        if self.bytes >= self.largest {
            let mut older = self.path.clone().into_os_string();
            older.push(".1");
            fs::rename(&self.path, older)?;
            self.file = None;
            return self.append(line);
        }
        if let Some(file) = &mut self.file {
            file.write_all(line)?;
            self.bytes += u64::try_from(line.len()).unwrap_or(u64::MAX);
        }
        Ok(())
    }
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.append(line).is_err() {
            // The next line tries to open it anew.
            self.file = None;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_is_kept_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.log");
        let mut log = Log { largest: 10, ..Log::new(path.clone()) };
        for line in ["first line\n", "second line\n", "third\n", "4\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "third\n4\n");
        assert_eq!(
            fs::read_to_string(folder.path().join("engine.log.1")).unwrap(),
            "second line\n"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_log_without_a_folder_loses_lines_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("log");
        let mut log = Log::new(missing.join("engine.log"));
        log.write_all(b"lost\n").unwrap();
        fs::create_dir(&missing).unwrap();
        log.write_all(b"kept\n").unwrap();
        assert_eq!(fs::read_to_string(missing.join("engine.log")).unwrap(), "kept\n");
    }
}
