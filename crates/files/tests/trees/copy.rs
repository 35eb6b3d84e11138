//! Copying.

use std::fs;
use std::io::{Seek, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, lgetxattr, lsetxattr, mknodat};
use stead_files::{
    CaptureOptions, CloneOptions, Digests, Method, Node, ObstacleKind, Phase, Progress, Special,
    Stat, TreeError, WalkOptions, Watch, clone, walk,
};

use crate::kit::{
    Elsewhere, assert_same, chmod, copy, describe, elsewhere, given_folder, mode, mount_small,
    path, paths, plain_copy, quick_folder, skip, walked, write,
};

fn sample(root: &Path) {
    write(root, "tracked.txt", b"tracked\r\n", 0o644);
    write(root, "untracked", b"untracked", 0o664);
    write(root, ".env", b"SECRET=1", 0o600);
    write(root, "group", b"for the group", 0o640);
    write(root, "readonly", b"r", 0o444);
    write(root, "nothing", b"", 0o000);
    write(root, "bin/tool", b"#!/bin/sh\n", 0o755);
    write(root, "bin/as", b"#!/bin/sh\n", 0o6755);
    fs::create_dir_all(root.join("empty/inner")).unwrap();
    chmod(&root.join("empty"), 0o750);
    fs::create_dir(root.join("sticky")).unwrap();
    chmod(&root.join("sticky"), 0o1777);
    write(root, "closed/inside", b"x", 0o644);
    chmod(&root.join("closed"), 0o555);
    symlink("nowhere/at all", root.join("dangling")).unwrap();
    symlink("../../outside", root.join("bin/out")).unwrap();
    symlink("/etc/hostname", root.join("absolute")).unwrap();
    symlink("bin", root.join("to-folder")).unwrap();
    let old = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
    fs::File::open(root.join("tracked.txt")).unwrap().set_times(old).unwrap();
    fs::File::open(root.join("empty")).unwrap().set_times(old).unwrap();
}

#[test]
fn copies_45_everything_arrives_literally() {
    let base = tempfile::tempdir().unwrap();
    let (from, to) = (base.path().join("from"), base.path().join("to"));
    sample(&from);
    let before = describe(&from);
    let cloned = plain_copy(&from, &to);
    assert_same(&from, &to);
    assert_eq!(describe(&from), before, "the source was touched");
    assert_eq!(fs::read_link(to.join("dangling")).unwrap(), Path::new("nowhere/at all"));
    assert_eq!(fs::read_link(to.join("bin/out")).unwrap(), Path::new("../../outside"));
    assert_eq!((mode(&to.join(".env")), mode(&to.join("group"))), (0o600, 0o640));
    assert!(to.join("empty/inner").is_dir());
    assert_eq!(cloned.obstacles, []);
    assert_eq!(cloned.files, 9);
}

#[test]
fn copies_46_a_umask_changes_no_mode() {
    let base = tempfile::tempdir().unwrap();
    elsewhere(Elsewhere::PlainUser, "copy::child_with_a_umask", base.path());
}

#[test]
#[ignore = "run by copies_46_a_umask_changes_no_mode"]
fn child_with_a_umask() {
    let Some(base) = given_folder() else { return };
    let (from, to) = (base.join("from"), base.join("to"));
    sample(&from);
    chmod(&from.join("nothing"), 0o200);
    rustix::process::umask(Mode::from_raw_mode(0o077));
    // What may not be read cannot be copied, and is named.
    let cloned = plain_copy(&from, &to);
    let unreadable: Vec<_> = cloned.obstacles.iter().map(|o| (&o.path, &o.kind)).collect();
    assert_eq!(unreadable, [(&path("nothing"), &ObstacleKind::Unreadable)]);
    fs::remove_file(from.join("nothing")).unwrap();
    stead_files::remove_tree_at(&to).unwrap();
    // One part is copied by the crew, the other when the source is looked at again.
    let listing = walk(&from, &WalkOptions::default()).unwrap();
    write(&from, "late/file", b"late", 0o666);
    chmod(&from.join("late"), 0o777);
    let cloned = clone(listing, &to, &CloneOptions::default()).unwrap();
    assert_eq!(cloned.rounds, 1);
    assert_same(&from, &to);
    // The process's umask is what it was.
    assert_eq!(rustix::process::umask(Mode::from_raw_mode(0o077)).as_raw_mode(), 0o077);
    // A folder of one's own that one may not write is no obstacle to its removal.
    assert!(stead_files::remove_tree_at(&to).unwrap());
    assert!(!to.exists());
}

#[test]
fn copies_50_what_changes_is_copied_again_or_refused() {
    let base = tempfile::tempdir().unwrap();
    let from = base.path().join("from");
    for n in 0..50 {
        write(&from, format!("d{}/f{n}", n % 5), b"first", 0o644);
    }
    write(&from, "gone", b"x", 0o644);
    write(&from, "folder/x", b"x", 0o644);
    // Changes between the walk and the copy.
    let listing = walk(&from, &WalkOptions::default()).unwrap();
    write(&from, "d1/f1", b"other", 0o644);
    write(&from, "d9/new/file", b"new", 0o600);
    fs::remove_file(from.join("gone")).unwrap();
    fs::remove_dir_all(from.join("folder")).unwrap();
    fs::write(from.join("folder"), b"a file now").unwrap();
    chmod(&from.join("d2"), 0o700);
    let options = CloneOptions { manifest: true, digests: Digests::All, ..Default::default() };
    let to = base.path().join("to");
    let cloned = clone(listing, &to, &options).unwrap();
    assert!(cloned.rounds >= 1);
    assert_same(&from, &to);
    let manifest = cloned.manifest.unwrap();
    let Node::File { digest, .. } = manifest.get(&path("d1/f1")).unwrap().node else { panic!() };
    assert_eq!(digest.unwrap().as_bytes(), blake3::hash(b"other").as_bytes());

    // A file that is written whenever somebody looks.
    let number = AtomicU32::new(0);
    let report = |progress: Progress| {
        if progress.phase == Phase::Walk {
            let number = number.fetch_add(1, Ordering::Relaxed).to_string();
            fs::write(from.join("d3/busy"), number).unwrap();
        }
    };
    let watch = Watch { report: Some(&report), cancel: None };
    let options = CloneOptions { walk: WalkOptions { watch, ..Default::default() }, ..options };
    let to = base.path().join("never");
    let error = copy(&from, &to, &options).unwrap_err();
    let TreeError::Unstable(named) = &error else { panic!("{error}") };
    assert!(named.contains(&path("d3/busy")), "{named:?}");
    assert!(!to.exists());
}

#[test]
fn odd_names_are_copied_as_they_are() {
    let base = tempfile::tempdir().unwrap();
    let (from, to) = (base.path().join("from"), base.path().join("to"));
    let names: [&[u8]; 9] = [
        b"new\nline",
        b"bad\xff.bin",
        b"bad\xfe.bin",
        b"-rf",
        b"report[1].md",
        b" ",
        b"d\xff/\xfe",
        "é/ü\u{200b}".as_bytes(),
        b"\\x41\t\"'",
    ];
    for name in names {
        write(&from, name, name, 0o644);
    }
    plain_copy(&from, &to);
    assert_same(&from, &to);
    let listing = walk(&to, &WalkOptions::default()).unwrap();
    assert_eq!(listing.totals().files, 9);
    assert!(walked(&to).contains(&"bad\\xff.bin".to_owned()));
    let json = serde_json::to_string(&path(b"bad\xff.bin")).unwrap();
    assert_eq!(serde_json::from_str::<stead_files::RelPath>(&json).unwrap(), path(b"bad\xff.bin"));
}

#[test]
fn copies_52_a_large_folder_shows_progress_and_a_cancel_leaves_nothing() {
    let base = quick_folder();
    let (from, to) = (base.path().join("from"), base.path().join("to"));
    fs::create_dir(&from).unwrap();
    for n in 0..300 {
        fs::create_dir(from.join(n.to_string())).unwrap();
        for k in 0..100 {
            fs::write(from.join(format!("{n}/{k}")), b"content").unwrap();
        }
    }
    let last = Mutex::new(None);
    let cancel = AtomicBool::new(false);
    let stop_at = AtomicU64::new(u64::MAX);
    let report = |progress: Progress| {
        if progress.phase == Phase::Copy {
            *last.lock().unwrap() = Some(progress);
            if progress.files > stop_at.load(Ordering::Relaxed) {
                cancel.store(true, Ordering::Relaxed);
            }
        }
    };
    let watch = Watch { report: Some(&report), cancel: Some(&cancel) };
    let walk = WalkOptions { watch, ..Default::default() };
    let options = CloneOptions { walk, ..Default::default() };
    let cloned = copy(&from, &to, &options).unwrap();
    let last = last.lock().unwrap().unwrap();
    assert_eq!((last.files, last.bytes), (30_000, 210_000));
    assert_eq!(last.of, Some((30_000, 210_000)));
    assert!(["reading", "reflinks"].iter().any(|word| cloned.method.to_string().contains(word)));
    stop_at.store(0, Ordering::Relaxed);
    let error = copy(&from, &base.path().join("stopped"), &options).unwrap_err();
    assert!(matches!(error, TreeError::Cancelled), "{error}");
    assert_eq!(walked(base.path()).iter().filter(|name| !name.contains('/')).count(), 2);
}

#[test]
fn copies_54_a_full_disk_leaves_no_copy_and_the_source_as_it_was() {
    let base = tempfile::tempdir().unwrap();
    elsewhere(Elsewhere::OwnMounts, "copy::child_with_a_small_disk", base.path());
}

#[test]
#[ignore = "run by copies_54_a_full_disk_leaves_no_copy_and_the_source_as_it_was"]
fn child_with_a_small_disk() {
    let Some(base) = given_folder() else { return };
    let (from, disk) = (base.join("from"), base.join("disk"));
    for n in 0..40 {
        write(&from, format!("d{n}/f"), &vec![u8::try_from(n).unwrap(); 100_000], 0o444);
        chmod(&from.join(format!("d{n}")), 0o555);
    }
    let before = describe(&from);
    mount_small(&disk, "2m");
    let space = stead_files::Space::of(&disk).unwrap();
    assert!(space.free <= 2 << 20);
    assert!(walk(&from, &WalkOptions::default()).unwrap().totals().bytes > space.free);
    let error = copy(&from, &disk.join("to"), &CloneOptions::default()).unwrap_err();
    assert_eq!(error.errno(), Some(rustix::io::Errno::NOSPC), "{error}");
    assert!(error.to_string().contains("disk/to/d"), "{error}");
    assert_eq!(fs::read_dir(&disk).unwrap().count(), 0);
    assert_eq!(describe(&from), before);
    // Half of it has room, twice: the failure took nothing away.
    for n in 10..40 {
        chmod(&from.join(format!("d{n}")), 0o755);
        fs::remove_dir_all(from.join(format!("d{n}"))).unwrap();
    }
    // Between two kinds of file systems, where the kernel may not copy by itself.
    write(&from, "large", &vec![5; 300_000], 0o644);
    plain_copy(&from, &disk.join("to"));
    assert_same(&from, &disk.join("to"));
}

#[test]
fn field_cpy_02_links_stay_links() {
    let base = tempfile::tempdir().unwrap();
    let (from, to) = (base.path().join("from"), base.path().join("to"));
    write(&from, "t", b"t", 0o644);
    symlink("t", from.join("l")).unwrap();
    symlink("/nowhere", from.join("d")).unwrap();
    fs::create_dir(from.join("nm")).unwrap();
    symlink("../t", from.join("nm/l2")).unwrap();
    symlink("x".repeat(4000), from.join("long")).unwrap();
    plain_copy(&from, &to);
    assert_same(&from, &to);
    for (name, text) in [("l", "t"), ("d", "/nowhere"), ("nm/l2", "../t")] {
        assert_eq!(fs::read_link(to.join(name)).unwrap(), Path::new(text));
    }
}

#[test]
fn field_cpy_05_special_files_are_named_and_nothing_hangs() {
    let base = tempfile::tempdir().unwrap();
    let (from, to) = (base.path().join("from"), base.path().join("to"));
    write(&from, "nm/f", b"f", 0o644);
    mknodat(CWD, from.join("nm/p"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let _socket = UnixListener::bind(from.join("nm/s")).unwrap();
    // An interruption in the middle, then the same again.
    let cancel = AtomicBool::new(false);
    let listing = walk(&from, &WalkOptions::default()).unwrap();
    cancel.store(true, Ordering::Relaxed);
    let watch = Watch { cancel: Some(&cancel), report: None };
    let options =
        CloneOptions { walk: WalkOptions { watch, ..Default::default() }, ..Default::default() };
    assert!(matches!(clone(listing.clone(), &to, &options), Err(TreeError::Cancelled)));
    assert!(!to.exists());
    let named: Vec<_> =
        listing.obstacles(&|_| true).into_iter().map(|o| (o.path, o.kind)).collect();
    let expected = [
        (path("nm/p"), ObstacleKind::Special(Special::Pipe)),
        (path("nm/s"), ObstacleKind::Special(Special::Socket)),
    ];
    assert_eq!(named, expected);
    let cloned = plain_copy(&from, &to);
    let named: Vec<_> = cloned.obstacles.into_iter().map(|o| (o.path, o.kind)).collect();
    assert_eq!(named, expected);
    assert_eq!(walked(&to), ["nm", "nm/f"]);
    assert_eq!(fs::read(to.join("nm/f")).unwrap(), b"f");
}

/// An access control list as the kernel stores it: version 2, then tag, bits and id of each entry.
fn acl() -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, bits, id) in [
        (1_u16, 6_u16, u32::MAX),
        (2, 4, 1234),
        (4, 4, u32::MAX),
        (0x10, 4, u32::MAX),
        (0x20, 0, u32::MAX),
    ] {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(bits.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

#[test]
fn attributes_are_carried_and_lists_are_named() {
    let base = tempfile::tempdir().unwrap();
    let (from, to) = (base.path().join("from"), base.path().join("to"));
    write(&from, "marked", b"m", 0o644);
    write(&from, "listed", b"l", 0o640);
    write(&from, "folder/x", b"x", 0o644);
    let none = XattrFlags::empty();
    let set = lsetxattr(from.join("marked"), "user.note", b"of mine\0", none)
        .and_then(|()| lsetxattr(from.join("folder"), "user.colour", b"red", none))
        .and_then(|()| lsetxattr(from.join("listed"), "system.posix_acl_access", &acl(), none));
    if let Err(error) = set {
        return skip(&format!("the temporary folder has no attributes: {error}"));
    }
    let cloned = plain_copy(&from, &to);
    let named: Vec<_> = cloned.obstacles.into_iter().map(|o| (o.path, o.kind)).collect();
    assert_eq!(named, [(path("listed"), ObstacleKind::Acl)]);
    assert!(!to.join("listed").exists());
    assert_eq!(cloned.attributes, paths(&["folder", "marked"]));
    let mut value = [0_u8; 64];
    let length = lgetxattr(to.join("marked"), "user.note", &mut value[..]).unwrap();
    assert_eq!(&value[..length], b"of mine\0");
    assert_eq!(lgetxattr(to.join("folder"), "user.colour", &mut value[..]).unwrap(), 3);
}

#[test]
fn flagged_files_are_named() {
    let base = tempfile::tempdir().unwrap();
    let (from, to) = (base.path().join("from"), base.path().join("to"));
    write(&from, "fixed", b"f", 0o644);
    let chattr = |flag: &str| Command::new("chattr").arg(flag).arg(from.join("fixed")).status();
    if !chattr("+i").is_ok_and(|status| status.success()) {
        return skip("chattr +i does not work here");
    }
    let cloned = copy(&from, &to, &CloneOptions::default());
    let error = stead_files::remove_tree_at(&from).unwrap_err();
    chattr("-i").unwrap();
    assert!(error.to_string().contains("fixed"), "{error}");
    let named: Vec<_> = cloned.unwrap().obstacles.into_iter().map(|o| (o.path, o.kind)).collect();
    assert_eq!(named, [(path("fixed"), ObstacleKind::Flagged)]);
}

#[test]
fn hard_links_become_files_of_their_own() {
    let base = tempfile::tempdir().unwrap();
    let (from, to) = (base.path().join("from"), base.path().join("to"));
    write(&from, "a/one", b"same", 0o644);
    write(&from, "own", b"own", 0o644);
    fs::hard_link(from.join("a/one"), from.join("two")).unwrap();
    fs::hard_link(from.join("own"), base.path().join("outside")).unwrap();
    let listing = walk(&from, &WalkOptions::default()).unwrap();
    let links: Vec<_> = listing.hard_links().into_iter().map(|l| (l.paths, l.names)).collect();
    assert_eq!(links, [(paths(&["a/one", "two"]), 2), (paths(&["own"]), 2)]);
    let ignored = path("a");
    let named = listing.obstacles(&|path| !path.is_within(&ignored));
    let named: Vec<_> = named.into_iter().map(|o| o.path).collect();
    assert_eq!(named, paths(&["own", "two"]));
    plain_copy(&from, &to);
    assert_same(&from, &to);
    let inodes = |root: &Path| ["a/one", "two", "own"].map(|n| Stat::of(&root.join(n)).unwrap());
    for copy in inodes(&to) {
        assert_eq!(copy.links, 1);
        assert!(inodes(&from).iter().all(|source| !source.is_same_file(&copy)));
    }
}

#[test]
fn holes_stay_holes() {
    let base = tempfile::tempdir().unwrap();
    let (from, to) = (base.path().join("from"), base.path().join("to"));
    fs::create_dir(&from).unwrap();
    let mut file = fs::File::create(from.join("sparse")).unwrap();
    file.write_all(&[1; 5000]).unwrap();
    file.seek(SeekFrom::Start(30 << 20)).unwrap();
    file.write_all(b"middle").unwrap();
    file.set_len((64 << 20) + 7).unwrap();
    fs::File::create(from.join("hole")).unwrap().set_len(1 << 20).unwrap();
    let options = CloneOptions { manifest: true, digests: Digests::All, ..Default::default() };
    for (name, options) in [("to", CloneOptions::default()), ("digested", options)] {
        let to = base.path().join(name);
        let cloned = copy(&from, &to, &options).unwrap();
        assert_same(&from, &to);
        let stored = fs::metadata(to.join("sparse")).unwrap().blocks() * 512;
        assert!(stored < 1 << 20, "{stored}");
        assert_eq!(fs::metadata(to.join("hole")).unwrap().blocks(), 0);
        let Some(manifest) = cloned.manifest else { continue };
        let Node::File { digest, .. } = manifest.get(&path("sparse")).unwrap().node else {
            panic!()
        };
        let whole = fs::read(from.join("sparse")).unwrap();
        assert_eq!(digest.unwrap().as_bytes(), blake3::hash(&whole).as_bytes());
    }
    assert!(fs::File::open(to.join("sparse")).unwrap().read_at(&mut [0; 4], 0).is_ok());
}

#[test]
fn an_existing_destination_and_one_inside_the_source_are_refused() {
    let base = tempfile::tempdir().unwrap();
    let from = base.path().join("from");
    write(&from, "d/x", b"1", 0o644);
    write(base.path(), "file", b"mine", 0o644);
    symlink("nowhere", base.path().join("link")).unwrap();
    fs::create_dir(base.path().join("folder")).unwrap();
    for taken in ["file", "link", "folder", "from"] {
        let error = copy(&from, &base.path().join(taken), &CloneOptions::default()).unwrap_err();
        assert!(matches!(error, TreeError::Exists(_)), "{taken}: {error}");
    }
    assert_eq!(fs::read(base.path().join("file")).unwrap(), b"mine");
    symlink("from/d", base.path().join("into")).unwrap();
    for inside in ["from/to", "from/d/to", "into/to"] {
        let error = copy(&from, &base.path().join(inside), &CloneOptions::default()).unwrap_err();
        assert!(matches!(error, TreeError::Overlap { .. }), "{inside}: {error}");
    }
    assert_eq!(walked(&from), ["d", "d/x"]);
    let listing = walk(&from, &WalkOptions::default()).unwrap();
    fs::rename(&from, base.path().join("moved")).unwrap();
    fs::create_dir(&from).unwrap();
    let error = clone(listing, &base.path().join("to"), &CloneOptions::default()).unwrap_err();
    assert!(matches!(error, TreeError::NotTheFolder(_)), "{error}");
}

#[test]
fn the_manifest_of_a_copy_is_that_of_its_source_and_spares_the_next_capture() {
    let base = tempfile::tempdir().unwrap();
    let (from, to) = (base.path().join("from"), base.path().join("to"));
    sample(&from);
    write(&from, "big", &vec![3; 3 << 20], 0o644);
    let source = stead_files::capture(&from, None, &CaptureOptions::default()).unwrap().manifest;
    let options = CloneOptions { manifest: true, digests: Digests::All, ..Default::default() };
    let manifest = copy(&from, &to, &options).unwrap().manifest.unwrap();
    assert!(manifest.is_complete());
    assert_eq!(manifest.digest(), source.digest());
    assert!(stead_files::compare(&source, &manifest).is_empty());
    let now = stead_files::capture(&to, Some(&manifest), &CaptureOptions::default()).unwrap();
    assert_eq!(now.manifest.digest(), source.digest());
}

#[test]
fn a_deep_tree_is_copied_and_removed() {
    let base = quick_folder();
    let (from, to) = (base.path().join("from"), base.path().join("to"));
    fs::create_dir(&from).unwrap();
    crate::remove::dig(&from, 1000);
    let cloned = plain_copy(&from, &to);
    assert_eq!(cloned.listing.totals().folders, 1000);
    assert_eq!(cloned.files, 1000);
    let (a, b) = (
        stead_files::capture(&from, None, &CaptureOptions::default()).unwrap(),
        stead_files::capture(&to, None, &CaptureOptions::default()).unwrap(),
    );
    assert_eq!(a.manifest.digest(), b.manifest.digest());
    assert!(stead_files::remove_tree_at(&from).unwrap());
    assert!(stead_files::remove_tree_at(&to).unwrap());
}

#[test]
fn reflinks_are_used_where_they_work_and_said() {
    let base = tempfile::tempdir().unwrap();
    elsewhere(Elsewhere::OwnMounts, "copy::child_with_reflinks", base.path());
}

#[test]
#[ignore = "run by reflinks_are_used_where_they_work_and_said"]
fn child_with_reflinks() {
    let Some(base) = given_folder() else { return };
    for (make, expected) in [
        (&["mkfs.btrfs", "-q"][..], Method::Reflink),
        (&["mkfs.xfs", "-q", "-m", "reflink=1"], Method::Mixed),
    ] {
        let (image, disk) = (base.join(format!("{}.img", make[0])), base.join(make[0]));
        fs::File::create(&image).unwrap().set_len(400 << 20).unwrap();
        fs::create_dir(&disk).unwrap();
        let made = Command::new(make[0]).args(&make[1..]).arg(&image).output();
        let mounted = made.is_ok_and(|made| made.status.success())
            && Command::new("mount")
                .args(["-o", "loop"])
                .arg(&image)
                .arg(&disk)
                .status()
                .unwrap()
                .success();
        if !mounted {
            skip(&format!("no file system by {} can be mounted here", make[0]));
            continue;
        }
        let (from, to) = (disk.join("from"), disk.join("to"));
        sample(&from);
        write(&from, "large", &vec![9; 4 << 20], 0o644);
        let options = CloneOptions { manifest: true, digests: Digests::All, ..Default::default() };
        let cloned = copy(&from, &to, &options).unwrap();
        assert_eq!(cloned.method, expected);
        assert_same(&from, &to);
        let source = stead_files::capture(&from, None, &CaptureOptions::default()).unwrap();
        assert_eq!(cloned.manifest.unwrap().digest(), source.manifest.digest());
        let options = CloneOptions { reflink: false, ..Default::default() };
        assert_eq!(copy(&from, &disk.join("by-bytes"), &options).unwrap().method, Method::Bytes);
        assert_same(&from, &disk.join("by-bytes"));
        Command::new("umount").arg(&disk).status().unwrap();
    }
}
