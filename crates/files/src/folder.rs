//! Folders that are stead's alone, and what kind of file system they are on.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Why a folder cannot be used as a private one.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The system refused to make or examine it.
    #[error("cannot {act} {}: {source}", path.display())]
    System {
        /// `create` or `examine`.
        act: &'static str,
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A symbolic link is there: whoever made it decides where private things go.
    #[error("{} is a symbolic link", .0.display())]
    SymbolicLink(PathBuf),
    /// Something else is there.
    #[error("{} is not a folder", .0.display())]
    NotAFolder(PathBuf),
    /// Another user made it first.
    #[error("{} belongs to user {owner}, not to user {me}", path.display())]
    ForeignOwner {
        /// The folder.
        path: PathBuf,
        /// The user id it belongs to.
        owner: u32,
        /// The effective user id of this process.
        me: u32,
    },
    /// Its group or everybody may put files in it.
    #[error("{} can be written by others (mode {mode:o})", path.display())]
    WritableByOthers {
        /// The folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

/// Makes the folder at `path`, and every missing one above it, with the bits `0700`, or checks the
/// one that is there: a real folder, this user's, writable by nobody else.
///
/// The bits of a folder that exists are never changed.
pub fn private_dir(path: &Path) -> Result<(), FolderError> {
    let system = |act| move |source| FolderError::System { act, path: path.to_owned(), source };
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(system("create"))?;
            fs::symlink_metadata(path).map_err(system("examine"))?
        }
        Err(error) => return Err(system("examine")(error)),
    };
    if found.is_symlink() {
        return Err(FolderError::SymbolicLink(path.to_owned()));
    }
    if !found.is_dir() {
        return Err(FolderError::NotAFolder(path.to_owned()));
    }
    let me = rustix::process::geteuid().as_raw();
    if found.uid() != me {
        return Err(FolderError::ForeignOwner { path: path.to_owned(), owner: found.uid(), me });
    }
    let mode = found.mode() & 0o7777;
    if mode & 0o022 != 0 {
        return Err(FolderError::WritableByOthers { path: path.to_owned(), mode });
    }
    Ok(())
}

/// File systems whose server may be another machine, by the number `statfs` gives: NFS, SMB, CIFS,
/// SMB2, 9P, AFS (two), Ceph, Coda, NCP, Lustre, GPFS, OrangeFS, OCFS2, GFS2.
const NETWORK: [i64; 15] = [
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x0102_1997,
    0x5346_414f,
    0x6b41_4653,
    0x00c3_6400,
    0x7375_7245,
    0x564c,
    0x0bd0_0bd0,
    0x4750_4653,
    0x2003_0528,
    0x7461_636f,
    0x0116_1970,
];

const FUSE: i64 = 0x6573_5546;

/// What `/proc/self/mountinfo` calls the FUSE file systems that reach over the network.
const NETWORK_FUSE: [&str; 10] = [
    "sshfs",
    "rclone",
    "s3fs",
    "glusterfs",
    "curlftpfs",
    "davfs",
    "gcsfuse",
    "goofys",
    "cephfs",
    "moosefs",
];

/// Whether `path`, or the nearest folder above it that exists, is on a file system that other
/// machines can change: locks and renames are not to be trusted there.
///
/// # Errors
/// The system's, when not even a folder above can be examined.
pub fn is_network_file_system(path: &Path) -> io::Result<bool> {
    let mut existing = path;
    let kind = loop {
        match rustix::fs::statfs(existing) {
            // The word's width and sign differ by platform; the numbers are 32 bits of it.
            #[allow(clippy::useless_conversion)]
            Ok(found) => break i64::from(found.f_type) & 0xffff_ffff,
            Err(rustix::io::Errno::NOENT) => match existing.parent() {
                Some(parent) if parent.as_os_str().is_empty() => existing = Path::new("."),
                Some(parent) => existing = parent,
                None => return Err(rustix::io::Errno::NOENT.into()),
            },
            Err(error) => return Err(error.into()),
        }
    };
    if kind == FUSE {
        let device = fs::metadata(existing)?.dev();
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        return Ok(is_network_fuse(&mounts, device));
    }
    Ok(NETWORK.contains(&kind))
}

fn is_network_fuse(mounts: &str, device: u64) -> bool {
    let wanted = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    mounts.lines().any(|line| {
        let Some((mount, system)) = line.split_once(" - ") else { return false };
        let kind = system.split(' ').next().unwrap_or_default();
        mount.split(' ').nth(2) == Some(&wanted)
            && NETWORK_FUSE.contains(&kind.strip_prefix("fuse.").unwrap_or(kind))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_private_folder_is_made_with_its_parents_and_checked_again() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("a/b");
        private_dir(&path).unwrap();
        private_dir(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(base.path().join("a")).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn links_files_and_shared_folders_are_refused() {
        let base = tempfile::tempdir().unwrap();
        let link = base.path().join("link");
        symlink(base.path(), &link).unwrap();
        assert!(matches!(private_dir(&link), Err(FolderError::SymbolicLink(_))));
        let file = base.path().join("file");
        fs::write(&file, b"").unwrap();
        assert!(matches!(private_dir(&file), Err(FolderError::NotAFolder(_))));
        let shared = base.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(private_dir(&shared), Err(FolderError::WritableByOthers { .. })));
    }

    #[test]
    fn a_folder_of_another_user_is_refused() {
        // Only root can give a folder away; elsewhere `/` is another user's.
        let base = tempfile::tempdir().unwrap();
        let foreign = base.path().join("foreign");
        fs::create_dir(&foreign).unwrap();
        let path = if std::os::unix::fs::chown(&foreign, Some(4321), None).is_ok() {
            foreign
        } else {
            PathBuf::from("/")
        };
        assert!(matches!(private_dir(&path), Err(FolderError::ForeignOwner { .. })));
    }

    #[test]
    fn the_temporary_folder_is_local_and_a_missing_path_asks_its_parent() {
        let base = tempfile::tempdir().unwrap();
        assert!(!is_network_file_system(&base.path().join("not/yet")).unwrap());
        assert!(!is_network_file_system(Path::new("not-yet")).unwrap());
    }

    #[test]
    fn fuse_is_network_only_by_its_kind() {
        let mounts = "36 35 0:52 / /mnt/far rw shared:1 - fuse.sshfs host:/ rw\n\
                      37 35 0:53 / /mnt/near rw - fuse.portal portal rw\n";
        assert!(is_network_fuse(mounts, rustix::fs::makedev(0, 52)));
        assert!(!is_network_fuse(mounts, rustix::fs::makedev(0, 53)));
        assert!(!is_network_fuse(mounts, rustix::fs::makedev(0, 5)));
    }
}
