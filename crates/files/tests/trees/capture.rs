//! Capturing and comparing.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use stead_files::{
    CaptureOptions, Captured, Difference, Digests, Entry, Manifest, Node, Phase, Progress, Time,
    TreeError, WalkOptions, Watch, compare,
};

use crate::kit::{chmod, path, write};

fn capture(root: &Path, previous: Option<&Manifest>) -> Captured {
    stead_files::capture(root, previous, &CaptureOptions::default()).unwrap()
}

/// Past the moment in which a change could go unseen.
fn rest() {
    std::thread::sleep(Duration::from_millis(60));
}

#[test]
fn only_what_changed_is_read() {
    let base = tempfile::tempdir().unwrap();
    let root = base.path();
    for n in 0..100 {
        write(root, format!("d{}/f{n}", n % 9), b"some", 0o644);
    }
    rest();
    let first = capture(root, None);
    assert_eq!((first.read_files, first.read_bytes), (100, 400));
    let second = capture(root, Some(&first.manifest));
    assert_eq!(second.read_files, 0);
    assert_eq!(second.manifest.digest(), first.manifest.digest());
    write(root, "d1/f1", b"othe", 0o644);
    let third = capture(root, Some(&second.manifest));
    assert_eq!(third.read_files, 1);
    let changes = compare(&second.manifest, &third.manifest);
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].path, &path("d1/f1"));
}

#[test]
fn a_change_that_hides_its_time_and_size_is_seen() {
    let base = tempfile::tempdir().unwrap();
    let file = base.path().join("f");
    write(base.path(), "f", b"one", 0o644);
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    // No rest: this change falls into the moment of the capture.
    let first = capture(base.path(), None);
    fs::write(&file, b"two").unwrap();
    fs::File::open(&file).unwrap().set_modified(time).unwrap();
    let second = capture(base.path(), Some(&first.manifest));
    assert_eq!(second.read_files, 1);
    assert_ne!(second.manifest.digest(), first.manifest.digest());
    // A replacement by a rename keeps even more.
    rest();
    let second = capture(base.path(), Some(&second.manifest));
    write(base.path(), "g", b"six", 0o644);
    fs::File::open(base.path().join("g")).unwrap().set_modified(time).unwrap();
    fs::rename(base.path().join("g"), &file).unwrap();
    let third = capture(base.path(), Some(&second.manifest));
    assert_eq!(third.read_files, 1);
}

#[test]
fn times_and_inodes_are_no_part_of_what_a_tree_is() {
    let base = tempfile::tempdir().unwrap();
    let (one, two) = (base.path().join("one"), base.path().join("two"));
    for root in [&one, &two] {
        write(root, "d/f", b"same", 0o640);
        symlink("t", root.join("l")).unwrap();
    }
    fs::File::open(one.join("d/f")).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let (a, b) = (capture(&one, None).manifest, capture(&two, None).manifest);
    assert_ne!(a, b);
    assert_eq!(a.digest(), b.digest());
    chmod(&two.join("d/f"), 0o641);
    assert_ne!(a.digest(), capture(&two, None).manifest.digest());
}

#[test]
fn a_file_that_is_never_quiet_is_refused_by_name() {
    let base = tempfile::tempdir().unwrap();
    write(base.path(), "quiet", b"q", 0o644);
    write(base.path(), "d/busy", b"b", 0o644);
    let busy = base.path().join("d/busy");
    let report = |progress: Progress| {
        if progress.phase == Phase::Walk {
            fs::write(&busy, format!("{:?}", SystemTime::now())).unwrap();
        }
    };
    let watch = Watch { report: Some(&report), cancel: None };
    let options =
        CaptureOptions { walk: WalkOptions { watch, ..Default::default() }, digests: Digests::All };
    let error = stead_files::capture(base.path(), None, &options).unwrap_err();
    let TreeError::Unstable(named) = &error else { panic!("{error}") };
    assert_eq!(named, &[path("d/busy")]);
    assert!(error.to_string().contains("d/busy"));
}

#[test]
fn digests_are_taken_where_they_are_wanted() {
    let base = tempfile::tempdir().unwrap();
    write(base.path(), "yes", b"1", 0o644);
    write(base.path(), "no", b"2", 0o644);
    let wanted = |path: &stead_files::RelPath, _: &stead_files::Stat| path.name() == b"yes";
    let options = CaptureOptions { digests: Digests::Of(&wanted), ..Default::default() };
    let captured = stead_files::capture(base.path(), None, &options).unwrap();
    assert_eq!(captured.read_files, 1);
    assert!(!captured.manifest.is_complete());
    let node = |name| &captured.manifest.get(&path(name)).unwrap().node;
    assert!(matches!(node("yes"), Node::File { digest: Some(_), .. }));
    assert!(matches!(node("no"), Node::File { digest: None, .. }));
}

#[test]
fn every_kind_of_change_is_told() {
    let base = tempfile::tempdir().unwrap();
    let root = base.path();
    for name in ["same", "bytes", "mode", "both", "gone", "to-link", "to-folder", "below/f"] {
        write(root, name, b"before", 0o644);
    }
    for name in ["folder", "folder-gone", "folder-to-file"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    symlink("old", root.join("link")).unwrap();
    symlink("x", root.join("link-to-file")).unwrap();
    let before = capture(root, None).manifest;
    fs::write(root.join("bytes"), b"behind").unwrap();
    chmod(&root.join("mode"), 0o755);
    write(root, "both", b"longer than before", 0o600);
    for name in ["gone", "to-link", "to-folder", "link", "link-to-file"] {
        fs::remove_file(root.join(name)).unwrap();
    }
    for name in ["folder-gone", "folder-to-file"] {
        fs::remove_dir(root.join(name)).unwrap();
    }
    symlink("new", root.join("link")).unwrap();
    symlink("x", root.join("to-link")).unwrap();
    write(root, "to-folder/new", b"", 0o644);
    fs::write(root.join("link-to-file"), b"x").unwrap();
    fs::write(root.join("folder-to-file"), b"x").unwrap();
    fs::create_dir(root.join("folder-new")).unwrap();
    chmod(&root.join("folder"), 0o700);
    let after = capture(root, None).manifest;
    let altered = |bytes, mode, target| Difference::Altered { bytes, mode, target };
    let told: Vec<(String, Difference)> = compare(&before, &after)
        .iter()
        .map(|change| (change.path.to_string(), change.difference))
        .collect();
    let expected = [
        ("both", altered(true, true, false)),
        ("bytes", altered(true, false, false)),
        ("folder", altered(false, true, false)),
        ("folder-gone", Difference::Removed),
        ("folder-new", Difference::Added),
        ("folder-to-file", Difference::Kind),
        ("gone", Difference::Removed),
        ("link", altered(false, false, true)),
        ("link-to-file", Difference::Kind),
        ("mode", altered(false, true, false)),
        ("to-folder", Difference::Kind),
        ("to-folder/new", Difference::Added),
        ("to-link", Difference::Kind),
    ];
    assert_eq!(told, expected.map(|(name, difference)| (name.to_owned(), difference)));
}

#[test]
fn what_is_withheld_is_never_a_change() {
    let file = |name: &str, node| Entry { path: path(name), mode: 0o600, node, seen: None };
    let size = 3;
    let full = Node::File { size, digest: None };
    let taken = Time::now();
    let all = Manifest::new(taken, vec![file(".env", full.clone()), file("b", full.clone())]);
    let kept = vec![file(".env", Node::Withheld { size }), file("b", Node::Withheld { size })];
    let (all, kept) = (all.unwrap(), Manifest::new(taken, kept).unwrap());
    let none = Manifest::new(taken, Vec::new()).unwrap();
    assert!(compare(&all, &kept).is_empty() && compare(&kept, &all).is_empty());
    assert!(compare(&kept, &none).is_empty() && compare(&none, &kept).is_empty());
    assert_eq!(compare(&all, &none).len(), 2);
}

#[test]
fn a_manifest_finds_paths_and_refuses_nonsense() {
    let folder =
        |name: &str| Entry { path: path(name), mode: 0o755, node: Node::Folder, seen: None };
    let link = |name: &str| Entry {
        path: path(name),
        mode: 0,
        node: Node::Link(b"t"[..].into()),
        seen: None,
    };
    let taken = Time::now();
    let entries = vec![folder("a"), link("a/l"), folder("a/m"), folder("a-b"), link("z")];
    let manifest = Manifest::new(taken, entries).unwrap();
    assert_eq!(manifest.get(&path("a/l")), Some(&link("a/l")));
    assert_eq!(manifest.get(&path("a/k")), None);
    let within: Vec<_> = manifest.within(&path("a")).iter().map(|e| e.path.to_string()).collect();
    assert_eq!(within, ["a", "a/l", "a/m"]);
    assert!(manifest.within(&path("b")).is_empty());
    for bad in [
        vec![folder("b"), folder("a")],
        vec![folder("a"), folder("a")],
        vec![link("a"), link("a/b")],
    ] {
        assert!(Manifest::new(taken, bad).is_err());
    }
}
