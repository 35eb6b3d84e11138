//! What the tests of trees share: an oracle, ways to run a test elsewhere, skipping out loud.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stead_files::{CloneOptions, Cloned, RelPath, TreeError, WalkOptions, clone, walk};

pub(crate) fn path(text: impl AsRef<[u8]>) -> RelPath {
    RelPath::parse(text).unwrap()
}

pub(crate) fn paths(texts: &[&str]) -> Vec<RelPath> {
    texts.iter().map(path).collect()
}

pub(crate) fn write(root: &Path, name: impl AsRef<[u8]>, content: &[u8], mode: u32) {
    let file = root.join(OsStr::from_bytes(name.as_ref()));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, content).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Walks and copies, as every caller does.
pub(crate) fn copy(
    from: &Path,
    to: &Path,
    options: &CloneOptions<'_>,
) -> Result<Cloned, TreeError> {
    clone(walk(from, &options.walk).unwrap(), to, options)
}

pub(crate) fn plain_copy(from: &Path, to: &Path) -> Cloned {
    copy(from, to, &CloneOptions::default()).unwrap()
}

/// Everything that `find` and `sha256sum` say about a tree, the root's own bits aside, which a
/// copy widens for its owner.
pub(crate) fn describe(root: &Path) -> Vec<String> {
    let script = r#"
        cd -- "$1" || exit 1
        find . -type f -printf 'f %p %m %s %T@ %U %G\0'
        find . -mindepth 1 -type d -printf 'd %p %m %T@ %U %G\0'
        find . -maxdepth 0 -printf 'root %T@\0'
        find . -type l -printf 'l %p %l %T@\0'
        find . ! -type f ! -type d ! -type l -printf 'other %p %y %m\0'
        find . -type f -print0 | sort -z | xargs -0 -r sha256sum -z --
    "#;
    let output = Command::new("sh").args(["-ec", script, "sh"]).arg(root).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut lines: Vec<String> =
        output.stdout.split(|b| *b == 0).map(|line| line.escape_ascii().to_string()).collect();
    lines.sort();
    lines
}

/// Fails with the first difference when the oracle can tell the two trees apart.
pub(crate) fn assert_same(one: &Path, two: &Path) {
    let (a, b) = (describe(one), describe(two));
    for line in &a {
        assert!(b.contains(line), "missing: {line}");
    }
    for line in &b {
        assert!(a.contains(line), "extra: {line}");
    }
    // A second opinion, where it is installed.
    let rsync = Command::new("rsync")
        .args(["-n", "-a", "--checksum", "--delete", "--itemize-changes", "--omit-dir-times"])
        .arg(one.join("."))
        .arg(two)
        .stderr(Stdio::null())
        .output();
    let Ok(output) = rsync else {
        static ONCE: std::sync::Once = std::sync::Once::new();
        return ONCE.call_once(|| skip("no rsync: only find and sha256sum compared"));
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let said: Vec<&str> = said.lines().filter(|line| !line.ends_with(" ./")).collect();
    assert!(said.is_empty(), "rsync: {said:?}");
}

/// A temporary folder in memory where there is one: a disk may take a minute to give back ten
/// thousand inodes.
pub(crate) fn quick_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// Says loudly that the running test, or a part of it, did not run.
pub(crate) fn skip(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test of stead-files");
    eprintln!("SKIPPED {test}: {reason}");
    if let Some(path) = std::env::var_os("STEAD_SKIPS") {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{test}: {reason}").unwrap();
    }
}

const CHILD: &str = "STEAD_FILES_TEST_FOLDER";

/// The folder that the parent of this child test gave it; none when it is run by itself, as
/// `--run-ignored` does.
pub(crate) fn given_folder() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// Where a child test runs.
#[derive(Clone, Copy)]
pub(crate) enum Elsewhere {
    /// In a mount namespace of its own, so that what it mounts goes with it.
    OwnMounts,
    /// As a user who is not root.
    PlainUser,
}

/// Runs the ignored test `name` elsewhere; `false` when this machine allows no such thing.
pub(crate) fn elsewhere(how: Elsewhere, name: &str, folder: &Path) -> bool {
    let me = rustix::process::geteuid();
    let prefix: &[&str] = match how {
        Elsewhere::OwnMounts if me.is_root() => &["unshare", "-m"],
        Elsewhere::OwnMounts => &["unshare", "-Urm"],
        Elsewhere::PlainUser if me.is_root() => {
            &["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"]
        }
        Elsewhere::PlainUser => &["env"],
    };
    // The program itself is tried too: another user may not reach where it was built.
    let works = Command::new(prefix[0])
        .args(&prefix[1..])
        .arg(std::env::current_exe().unwrap())
        .arg("--list")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let works = works.is_ok_and(|status| status.success());
    if !works {
        skip(&format!("{} does not work here", prefix.join(" ")));
        return false;
    }
    if matches!(how, Elsewhere::PlainUser) && me.is_root() {
        std::os::unix::fs::chown(folder, Some(12345), Some(12345)).unwrap();
    }
    let output = Command::new(prefix[0])
        .args(&prefix[1..])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"])
        .env(CHILD, folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{name}: {said}");
    true
}

/// Mounts a memory file system of `size` at a new folder.
pub(crate) fn mount_small(at: &Path, size: &str) {
    fs::create_dir_all(at).unwrap();
    let done = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"])
        .arg(at)
        .status()
        .unwrap();
    assert!(done.success());
}

/// Everything below `root` by the walk, as text.
pub(crate) fn walked(root: &Path) -> Vec<String> {
    let listing = walk(root, &WalkOptions::default()).unwrap();
    listing.entries().map(|(path, _)| path.to_string()).collect()
}
