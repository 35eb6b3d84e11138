//! Random trees survive everything that is done to them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;
use stead_files::{
    CaptureOptions, CloneOptions, Difference, Digests, Entry, Manifest, ManifestError, Node,
    Progress, Seen, Time, TreeError, WalkOptions, Watch, capture, compare,
};

use crate::kit::{assert_same, copy, describe, path};

/// One thing in a random tree.
#[derive(Debug, Clone)]
enum Thing {
    File { content: Vec<u8>, mode: u32 },
    Sparse { at: u64, size: u64 },
    Link(Vec<u8>),
    Folder { mode: u32 },
    SameAs(usize),
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => proptest::sample::select(vec![&b"a"[..], b"b", b"a-b", b"src", b".x"])
            .prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(1u8.., 1..8)
            .prop_filter("a name", |n| !n.contains(&b'/') && n != b"." && n != b".."),
        1 => Just(vec![b'n'; 255]),
    ]
}

/// Bits with which root and owner can still read: what they cannot is an obstacle, not a copy.
fn file_mode() -> impl Strategy<Value = u32> {
    (0u32..0o10000).prop_map(|mode| mode | 0o400)
}

fn thing() -> impl Strategy<Value = Thing> {
    let content = prop_oneof![
        3 => proptest::collection::vec(any::<u8>(), 0..200),
        1 => (any::<u8>(), 100_000usize..700_000).prop_map(|(b, size)| vec![b; size]),
    ];
    prop_oneof![
        4 => (content, file_mode()).prop_map(|(content, mode)| Thing::File { content, mode }),
        1 => (0u64..1 << 20, 1u64..1 << 21).prop_map(|(at, size)| Thing::Sparse { at, size }),
        2 => proptest::collection::vec(1u8.., 1..40).prop_map(Thing::Link),
        2 => (0u32..0o10000).prop_map(|mode| Thing::Folder { mode: mode | 0o500 }),
        1 => (0usize..30).prop_map(Thing::SameAs),
    ]
}

type Tree = Vec<(Vec<Vec<u8>>, Thing)>;

fn tree(most: usize) -> impl Strategy<Value = Tree> {
    let place = proptest::collection::vec(name(), 1..5);
    proptest::collection::vec((place, thing()), 0..most)
}

/// Makes as much of the tree as fits together.
fn build(root: &Path, tree: &Tree) {
    fs::create_dir_all(root).unwrap();
    let mut folders = Vec::new();
    let mut files = Vec::new();
    for (place, thing) in tree {
        let at = root.join(std::ffi::OsStr::from_bytes(&place.join(&b'/')));
        if fs::create_dir_all(at.parent().unwrap()).is_err() || fs::symlink_metadata(&at).is_ok() {
            continue;
        }
        match thing {
            Thing::File { content, mode } => {
                fs::write(&at, content).unwrap();
                fs::set_permissions(&at, fs::Permissions::from_mode(*mode)).unwrap();
                files.push(at);
            }
            Thing::Sparse { at: begin, size } => {
                let file = fs::File::create(&at).unwrap();
                file.write_all_at(b"data", *begin).unwrap();
                file.set_len(begin.max(size) + 1).unwrap();
                files.push(at);
            }
            Thing::Link(text) => symlink(std::ffi::OsStr::from_bytes(text), &at).unwrap(),
            Thing::Folder { mode } => {
                fs::create_dir(&at).unwrap();
                folders.push((at, *mode));
            }
            Thing::SameAs(number) => {
                if let Some(file) = files.get(*number) {
                    fs::hard_link(file, &at).unwrap();
                }
            }
        }
    }
    for (number, (folder, mode)) in folders.iter().enumerate() {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(number as u64 * 1001);
        fs::File::open(folder).unwrap().set_modified(time).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(*mode)).unwrap();
    }
}

fn all() -> CaptureOptions<'static> {
    CaptureOptions::default()
}

fn manifest(root: &Path) -> Manifest {
    capture(root, None, &all()).unwrap().manifest
}

/// What two manifests differ in, found the slow and simple way.
fn naive(base: &Manifest, now: &Manifest) -> BTreeMap<Vec<u8>, &'static str> {
    let index = |manifest: &Manifest| -> BTreeMap<Vec<u8>, Entry> {
        let entries = manifest.entries().iter().cloned();
        entries.map(|entry| (entry.path.as_bytes().to_vec(), entry)).collect()
    };
    let (base, now) = (index(base), index(now));
    let mut told = BTreeMap::new();
    for (path, entry) in &base {
        match now.get(path) {
            None => told.insert(path.clone(), "removed"),
            Some(other) if !other.is_identical(entry) => told.insert(path.clone(), "changed"),
            Some(_) => None,
        };
    }
    for path in now.keys().filter(|path| !base.contains_key(*path)) {
        told.insert(path.clone(), "added");
    }
    told
}

fn few() -> ProptestConfig {
    ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(few())]

    #[test]
    fn a_copy_is_its_source(tree in tree(30), digests: bool) {
        let base = tempfile::tempdir().unwrap();
        let (from, to) = (base.path().join("from"), base.path().join("to"));
        build(&from, &tree);
        let before = describe(&from);
        let digests = if digests { Digests::All } else { Digests::None };
        let options = CloneOptions { digests, manifest: true, ..Default::default() };
        let cloned = copy(&from, &to, &options).unwrap();
        prop_assert_eq!(&cloned.obstacles, &[]);
        assert_same(&from, &to);
        prop_assert_eq!(describe(&from), before);
        if matches!(digests, Digests::All) {
            prop_assert_eq!(cloned.manifest.unwrap().digest(), manifest(&to).digest());
        }
        prop_assert!(stead_files::remove_tree_at(&to).unwrap());
        prop_assert!(!to.exists());
    }

    #[test]
    fn comparing_tells_exactly_what_differs(one in tree(20), two in tree(20)) {
        let base = tempfile::tempdir().unwrap();
        let (a, b) = (base.path().join("a"), base.path().join("b"));
        build(&a, &one);
        // Much in common, and something else.
        build(&b, &one.into_iter().skip(2).chain(two).collect());
        let (a, b) = (manifest(&a), manifest(&b));
        let told: BTreeMap<Vec<u8>, &str> = compare(&a, &b)
            .iter()
            .map(|change| {
                let word = match change.difference {
                    Difference::Added => "added",
                    Difference::Removed => "removed",
                    Difference::Kind | Difference::Altered { .. } => "changed",
                };
                (change.path.as_bytes().to_vec(), word)
            })
            .collect();
        prop_assert_eq!(told, naive(&a, &b));
        prop_assert!(compare(&a, &a).is_empty());
        prop_assert_eq!(Manifest::decode(&a.encode()).unwrap(), a);
    }

    #[test]
    fn stopping_anywhere_leaves_nothing(tree in tree(25), stop in 0u64..30) {
        let base = tempfile::tempdir().unwrap();
        let (from, to) = (base.path().join("from"), base.path().join("to"));
        build(&from, &tree);
        let before = describe(&from);
        let cancel = AtomicBool::new(false);
        let asked = AtomicU64::new(0);
        // The filter is asked again in the last walk, so this stops in every phase.
        let filter = |_: &stead_files::RelPath, _: &stead_files::Stat| {
            if asked.fetch_add(1, Ordering::Relaxed) == stop {
                cancel.store(true, Ordering::Relaxed);
            }
            stead_files::Choice::Take
        };
        let report = |progress: Progress| {
            if progress.files == stop {
                cancel.store(true, Ordering::Relaxed);
            }
        };
        let watch = Watch { cancel: Some(&cancel), report: Some(&report) };
        let quiet = WalkOptions::default();
        let listing = stead_files::walk(&from, &quiet).unwrap();
        let walk = WalkOptions { watch, filter: Some(&filter), ..quiet };
        let done = stead_files::clone(listing, &to, &CloneOptions { walk, ..Default::default() });
        match done {
            Ok(_) => assert_same(&from, &to),
            Err(error) => {
                prop_assert!(matches!(error, TreeError::Cancelled), "{}", error);
                prop_assert!(fs::symlink_metadata(&to).is_err());
            }
        }
        prop_assert_eq!(describe(&from), before);
    }
}

fn entries() -> impl Strategy<Value = Manifest> {
    let digest = any::<[u8; 32]>().prop_map(stead_core::id::Digest::from_bytes);
    let node = prop_oneof![
        (any::<u64>(), proptest::option::of(digest))
            .prop_map(|(size, digest)| Node::File { size, digest }),
        Just(Node::Folder),
        proptest::collection::vec(any::<u8>(), 0..300)
            .prop_map(|target| Node::Link(target.into_boxed_slice())),
        Just(Node::Special(stead_files::Special::Pipe)),
        Just(Node::Special(stead_files::Special::Unknown)),
        any::<u64>().prop_map(|size| Node::Withheld { size }),
    ];
    let time =
        || (any::<i64>(), 0u32..1_000_000_000).prop_map(|(secs, nanos)| Time { secs, nanos });
    let seen = (any::<u64>(), any::<u64>(), time(), time())
        .prop_map(|(device, inode, modified, changed)| Seen { device, inode, modified, changed });
    let place = proptest::collection::vec(name(), 1..4).prop_map(|p| path(p.join(&b'/')));
    let entry = (0u16..0o10000, node, proptest::option::of(seen));
    (time(), proptest::collection::btree_map(place, entry, 0..20)).prop_map(|(taken, map)| {
        let mut kept: Vec<Entry> = Vec::new();
        for (path, (mode, node, seen)) in map {
            let inside = kept.last().is_some_and(|last: &Entry| {
                path.is_within(&last.path) && last.node != Node::Folder
            });
            if !inside {
                kept.push(Entry { path, mode, node, seen });
            }
        }
        Manifest::new(taken, kept).unwrap()
    })
}

proptest! {
    #[test]
    fn a_manifest_survives_being_stored(manifest in entries()) {
        let bytes = manifest.encode();
        let read = Manifest::decode(&bytes).unwrap();
        prop_assert_eq!(&read, &manifest);
        prop_assert_eq!(read.encode(), bytes);
        prop_assert_eq!(read.digest(), manifest.digest());
    }

    #[test]
    fn damaged_bytes_are_an_error_and_never_a_panic(
        manifest in entries(),
        at in any::<proptest::sample::Index>(),
        with in any::<u8>(),
        cut: bool,
        repaired: bool,
    ) {
        let mut bytes = manifest.encode();
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] = with;
        }
        // Also where somebody made the check at the end agree again.
        if repaired && bytes.len() >= 32 {
            let body = bytes.len() - 32;
            let check = *blake3::hash(&bytes[..body]).as_bytes();
            bytes[body..].copy_from_slice(&check);
        }
        if let Ok(read) = Manifest::decode(&bytes) {
            prop_assert_eq!(read.encode(), bytes);
        }
    }

    #[test]
    fn any_bytes_are_no_panic(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = b"stead-manifest\x01".to_vec();
        bytes.extend(tail);
        let check = *blake3::hash(&bytes).as_bytes();
        bytes.extend(check);
        let _ = Manifest::decode(&bytes);
        prop_assert_eq!(Manifest::decode(b"{}"), Err(ManifestError::NotOne));
        prop_assert_eq!(Manifest::decode(b"stead-manifest\x07"), Err(ManifestError::Version(7)));
    }
}
