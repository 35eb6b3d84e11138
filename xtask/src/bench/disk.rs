//! The file system that is measured on: ext4 with a journal where we may mount one, as most people
//! have it; else the one of the temporary folder.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::stats::number;
use crate::report::Result;

/// The image's size; it is sparse.
const SIZE: u64 = 6 << 30;
/// What a peer's and the limit's record has, as `figures` of event logs usually do.
const RECORD: usize = 400;

/// A folder on that file system.
pub(super) struct Disk {
    mounted: Option<Mounted>,
    folder: TempDir,
    says: String,
}

impl Disk {
    /// Mounts an image when that is possible; says loudly when it is not.
    pub(super) fn new() -> Result<Self> {
        // A short name: sockets below it have a longest path.
        let folder = tempfile::Builder::new().prefix("sb-").tempdir()?;
        match Mounted::new(folder.path()) {
            Ok(mounted) => {
                let says = "File system: ext4 with a journal, on a loop device with direct I/O.";
                Ok(Self { mounted: Some(mounted), folder, says: says.to_owned() })
            }
            Err(why) => {
                let kind = kind_of(folder.path());
                let says = format!(
                    "FILE SYSTEM: {kind}, because an ext4 with a journal cannot be mounted here \
                     ({why}); what is durable may cost more or less elsewhere."
                );
                Ok(Self { mounted: None, folder, says })
            }
        }
    }

    /// The folder to work in.
    pub(super) fn folder(&self) -> &Path {
        self.mounted.as_ref().map_or(self.folder.path(), |mounted| &mounted.at)
    }

    /// Which file system it is.
    pub(super) fn says(&self) -> &str {
        &self.says
    }

    /// How many records a second can be made durable one by one: written over a file that is there
    /// already, each flushed. Nothing that waits for every record can be faster here.
    pub(super) fn flushes_per_second(&self, time: Duration) -> Result<f64> {
        let path = self.folder().join("flushes");
        fs::write(&path, vec![0_u8; 1 << 20])?;
        let file = File::options().write(true).open(&path)?;
        file.sync_all()?;
        let record = [b'x'; RECORD];
        let began = Instant::now();
        let mut count = 0;
        while began.elapsed() < time {
            let at = u64::try_from(count * RECORD % (1 << 19))?;
            file.write_all_at(&record, at)?;
            file.sync_data()?;
            count += 1;
        }
        let took = began.elapsed().as_secs_f64();
        fs::remove_file(&path)?;
        Ok(number(count) / took)
    }
}

/// The kind of the file system that holds `path`, by the longest mount point above it.
fn kind_of(path: &Path) -> String {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    mounted_at(&mounts, path).unwrap_or_else(|| "of an unknown kind".to_owned())
}

fn mounted_at(mounts: &str, path: &Path) -> Option<String> {
    let fields = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let above = fields.filter(|(point, _)| path.starts_with(point));
    above.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind.to_owned())
}

/// A mounted image; gone with everything in it when dropped.
struct Mounted {
    device: String,
    at: PathBuf,
}

impl Mounted {
    fn new(folder: &Path) -> Result<Self> {
        if said("id", &["-u"])? != "0" {
            return Err("it takes root".into());
        }
        let (image, at) = (folder.join("image"), folder.join("d"));
        let text = |path: &Path| path.to_string_lossy().into_owned();
        File::create(&image)?.set_len(SIZE)?;
        let lazy = "lazy_itable_init=0,lazy_journal_init=0";
        said("mkfs.ext4", &["-q", "-F", "-E", lazy, &text(&image)])?;
        let device = said("losetup", &["--find", "--show", "--direct-io=on", &text(&image)])?;
        let mounted = Self { device, at };
        fs::create_dir(&mounted.at)?;
        said("mount", &["-o", "relatime", &mounted.device, &text(&mounted.at)])?;
        Ok(mounted)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let at = self.at.to_string_lossy().into_owned();
        // The last process that used it may still be ending; a lazy one ends with it.
        if said("umount", &[&at]).is_err() {
            let _ = said("umount", &["--lazy", &at]);
        }
        let _ = said("losetup", &["--detach", &self.device]);
    }
}

/// What a program prints, on one line; an error when it fails.
fn said(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program}: {}", errors.trim()).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_on_the_nearest_mount() {
        let mounts =
            "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmp/x/d btrfs rw 0 0\n";
        let kind = |path: &str| mounted_at(mounts, Path::new(path)).unwrap();
        assert_eq!(kind("/home"), "ext4");
        assert_eq!(kind("/tmp/x"), "tmpfs");
        assert_eq!(kind("/tmp/x/d/e"), "btrfs");
        assert_eq!(kind("/tmpfile"), "ext4");
    }
}
