//! Walking.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use stead_files::{Choice, Kind, LeftOut, Phase, Threads, TreeError, WalkOptions, Watch, walk};

use crate::kit::{Elsewhere, elsewhere, given_folder, mount_small, path, paths, walked, write};

#[test]
fn names_come_in_order_and_links_are_not_entered() {
    let base = tempfile::tempdir().unwrap();
    let root = base.path().join("root");
    write(&root, "a/b/c", b"1", 0o644);
    write(&root, "a-b", b"22", 0o600);
    write(&root, "a/x", b"333", 0o755);
    fs::create_dir(root.join("empty")).unwrap();
    symlink("..", root.join("a/up")).unwrap();
    symlink("nowhere", root.join("z")).unwrap();
    let listing = walk(&root, &WalkOptions::default()).unwrap();
    let names: Vec<String> = listing.entries().map(|(path, _)| path.to_string()).collect();
    assert_eq!(names, ["a", "a/b", "a/b/c", "a/up", "a/x", "a-b", "empty", "z"]);
    let totals = listing.totals();
    assert_eq!((totals.files, totals.folders, totals.links, totals.bytes), (3, 3, 2, 6));
    let (_, up) = listing.entries().find(|(p, _)| *p == path("a/up")).unwrap();
    assert_eq!((up.stat.kind, up.target.as_deref()), (Kind::Link, Some(&b".."[..])));
    assert_eq!(listing.largest(1)[0].0, path("a"));
}

#[test]
fn what_is_left_out_is_named_and_what_is_counted_has_sums() {
    let base = tempfile::tempdir().unwrap();
    let root = base.path();
    write(root, "src/main.rs", b"x", 0o644);
    write(root, "target/debug/big", &[7; 1000], 0o644);
    write(root, "target/small", &[7; 10], 0o644);
    write(root, ".git/config", b"x", 0o644);
    let filter = |path: &stead_files::RelPath, _: &stead_files::Stat| match path.as_bytes() {
        b".git" => Choice::LeaveOut,
        b"target" => Choice::Count,
        _ => Choice::Take,
    };
    let options = WalkOptions { filter: Some(&filter), ..WalkOptions::default() };
    let listing = walk(root, &options).unwrap();
    let names: Vec<_> = listing.entries().map(|(path, _)| path).collect();
    assert_eq!(names, paths(&["src", "src/main.rs"]));
    assert_eq!(listing.left_out().get(&path(".git")), Some(&LeftOut::Chosen));
    let target = listing.counted()[&path("target")];
    assert_eq!((target.files, target.folders, target.bytes), (2, 2, 1010));
}

#[test]
fn the_root_may_not_be_a_link_or_a_file() {
    let base = tempfile::tempdir().unwrap();
    write(base.path(), "real/x", b"", 0o644);
    symlink("real", base.path().join("link")).unwrap();
    for bad in ["link", "real/x"] {
        let error = walk(&base.path().join(bad), &WalkOptions::default()).unwrap_err();
        assert!(matches!(error, TreeError::NotTheFolder(_)), "{error}");
    }
    let error = walk(&base.path().join("none"), &WalkOptions::default()).unwrap_err();
    assert!(error.to_string().contains("none"), "{error}");
}

#[test]
fn progress_is_told_and_a_cancel_is_heeded() {
    let base = tempfile::tempdir().unwrap();
    for n in 0..300 {
        write(base.path(), format!("d{n}/f"), b"12", 0o644);
    }
    let seen = Mutex::new(Vec::new());
    let report = |progress| seen.lock().unwrap().push(progress);
    let watch = Watch { report: Some(&report), cancel: None };
    walk(base.path(), &WalkOptions { watch, ..WalkOptions::default() }).unwrap();
    let last = *seen.lock().unwrap().last().unwrap();
    assert_eq!((last.phase, last.files, last.bytes), (Phase::Walk, 300, 600));

    let cancel = AtomicBool::new(false);
    let stop = |_: &stead_files::RelPath, _: &stead_files::Stat| {
        cancel.store(true, Ordering::Relaxed);
        Choice::Take
    };
    let watch = Watch { report: None, cancel: Some(&cancel) };
    let options = WalkOptions { watch, filter: Some(&stop), ..WalkOptions::default() };
    assert!(matches!(walk(base.path(), &options), Err(TreeError::Cancelled)));
}

#[test]
fn one_thread_and_many_find_the_same() {
    let base = tempfile::tempdir().unwrap();
    for n in 0..200 {
        write(base.path(), format!("{}/{}/f{n}", n % 7, n % 31), b"", 0o644);
    }
    let list = |first| {
        let options = WalkOptions { threads: Threads { first, most: first }, ..Default::default() };
        let listing = walk(base.path(), &options).unwrap();
        listing.entries().map(|(path, found)| (path, found.clone())).collect::<Vec<_>>()
    };
    assert_eq!(list(1), list(8));
    assert_eq!(list(1).len(), walked(base.path()).len());
}

#[test]
fn other_devices_are_not_entered_unless_told() {
    let base = tempfile::tempdir().unwrap();
    elsewhere(Elsewhere::OwnMounts, "walk::child_with_a_mount", base.path());
}

#[test]
#[ignore = "run by other_devices_are_not_entered_unless_told"]
fn child_with_a_mount() {
    let Some(root) = given_folder() else { return };
    write(&root, "own/x", b"1", 0o644);
    mount_small(&root.join("mounted"), "1m");
    write(&root, "mounted/y", b"1", 0o644);
    // A bind mount has the same device number and is a mount all the same.
    fs::create_dir(root.join("bound")).unwrap();
    let bound = std::process::Command::new("mount")
        .arg("--bind")
        .args([root.join("own"), root.join("bound")])
        .status();
    assert!(bound.unwrap().success());
    let listing = walk(&root, &WalkOptions::default()).unwrap();
    let names: Vec<_> = listing.entries().map(|(path, _)| path).collect();
    assert_eq!(names, paths(&["own", "own/x"]));
    for name in ["mounted", "bound"] {
        assert_eq!(listing.left_out().get(&path(name)), Some(&LeftOut::OtherDevice));
    }
    let options = WalkOptions { other_devices: true, ..WalkOptions::default() };
    assert_eq!(walk(&root, &options).unwrap().entries().count(), 6);
    let error = stead_files::remove_tree_at(&root.join("bound")).unwrap_err();
    assert!(error.to_string().contains("bound"), "{error}");
    assert!(root.join("own/x").exists());
}
