//! Removing and putting aside.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use stead_files::{TreeError, remove_tree, remove_tree_at, trash};

use crate::kit::{chmod, quick_folder, walked, write};

/// Digs a tree of so many folders, one in the other, each with a file.
pub(crate) fn dig(root: &Path, levels: usize) {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut at: OwnedFd = openat(CWD, root, folder, Mode::empty()).unwrap();
    let file = OFlags::WRONLY | OFlags::CREATE;
    for _ in 0..levels {
        mkdirat(&at, "a-level", Mode::RWXU).unwrap();
        at = openat(&at, "a-level", folder, Mode::empty()).unwrap();
        openat(&at, "file", file, Mode::RUSR).unwrap();
    }
}

#[test]
fn field_cln_06_links_are_removed_and_never_entered() {
    let base = tempfile::tempdir().unwrap();
    let (original, copy) = (base.path().join("original"), base.path().join("copy"));
    write(&original, "nm/package", b"p", 0o644);
    write(&copy, "deep/file", b"f", 0o644);
    symlink(original.join("nm"), copy.join("nm")).unwrap();
    symlink("/", copy.join("rootlink")).unwrap();
    symlink(&original, copy.join("deep/r")).unwrap();
    assert!(remove_tree_at(&copy).unwrap());
    assert!(!copy.exists());
    assert_eq!(walked(&original), ["nm", "nm/package"]);
    // A link in place of the tree goes itself.
    symlink(&original, &copy).unwrap();
    assert!(remove_tree_at(&copy).unwrap());
    assert_eq!(walked(&original), ["nm", "nm/package"]);
    assert!(!remove_tree_at(&copy).unwrap());
}

#[test]
fn ten_thousand_levels_go() {
    let base = quick_folder();
    let root = base.path().join("root");
    fs::create_dir(&root).unwrap();
    dig(&root, 10_000);
    // What bears one of our own names is nobody's but the tree's.
    write(&root, ".stead-removed-0", b"x", 0o644);
    assert!(remove_tree_at(&root).unwrap());
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}

#[test]
fn odd_names_and_closed_folders_go() {
    let base = tempfile::tempdir().unwrap();
    let root = base.path().join("root");
    for name in [&b"bad\xff/x\n"[..], b"-rf", b"closed/in/x", b"hidden/x", b" /\xfe"] {
        write(&root, name, b"", 0o000);
    }
    for (name, bits) in [("closed/in", 0o555), ("closed", 0o500), ("hidden", 0o000)] {
        chmod(&root.join(name), bits);
    }
    let folder = openat(CWD, base.path(), OFlags::RDONLY, Mode::empty()).unwrap();
    assert!(remove_tree(&folder, OsStr::new("root"), base.path()).unwrap());
    assert!(!root.exists());
}

#[test]
fn trash_takes_a_tree_whole() {
    let base = tempfile::tempdir().unwrap();
    let bin = base.path().join("trash");
    fs::create_dir(&bin).unwrap();
    for content in ["first", "second"] {
        write(base.path(), "copy/f", content.as_bytes(), 0o644);
        let done = trash(&base.path().join("copy"), &bin, OsStr::new("one"));
        if content == "first" {
            done.unwrap();
        } else {
            let error = done.unwrap_err();
            assert!(matches!(error, TreeError::Exists(_)), "{error}");
        }
    }
    assert_eq!(fs::read(bin.join("one/f")).unwrap(), b"first");
    assert_eq!(fs::read(base.path().join("copy/f")).unwrap(), b"second");
}
