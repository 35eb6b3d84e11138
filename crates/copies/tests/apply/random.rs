//! Random trees, random work in the copy, a person who works beside it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use crate::kit::{World, assert_same, chmod, content, everything, quick_folder, written};

/// What becomes of a path.
#[derive(Debug, Clone)]
enum Thing {
    File { content: Vec<u8>, mode: u32 },
    Link(Vec<u8>),
    Folder { mode: u32 },
    Mode(u32),
    Nothing,
}

type Work = Vec<(Vec<Vec<u8>>, Thing)>;

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => prop::sample::select(vec![&b"a"[..], b"b", b"a-b", b".x"]).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(1_u8.., 1..6)
            .prop_filter("a name", |n| !n.contains(&b'/') && n != b"." && n != b".."),
    ]
}

fn thing() -> impl Strategy<Value = Thing> {
    prop_oneof![
        5 => (prop::collection::vec(any::<u8>(), 0..60), 0_u32..0o10000)
            .prop_map(|(content, mode)| Thing::File { content, mode: mode | 0o400 }),
        2 => prop::collection::vec(1_u8.., 1..20).prop_map(Thing::Link),
        2 => (0_u32..0o10000).prop_map(|mode| Thing::Folder { mode: mode | 0o700 }),
        1 => (0_u32..0o10000).prop_map(|mode| Thing::Mode(mode | 0o700)),
        2 => Just(Thing::Nothing),
    ]
}

fn work(most: usize) -> impl Strategy<Value = Work> {
    prop::collection::vec((prop::collection::vec(name(), 1..5), thing()), 0..most)
}

/// Does as much of the work as can be done.
fn act(root: &Path, work: &Work) {
    for (place, thing) in work {
        let mut at = root.to_owned();
        let Some((last, above)) = place.split_last() else { continue };
        for name in above {
            at.push(OsStr::from_bytes(name));
            // What is in the way of a folder goes.
            if !at.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                let _ = fs::remove_file(&at);
                fs::create_dir(&at).unwrap();
            }
        }
        at.push(OsStr::from_bytes(last));
        if let Thing::Mode(mode) = thing {
            if at.symlink_metadata().is_ok_and(|found| !found.is_symlink()) {
                chmod(&at, *mode);
            }
            continue;
        }
        stead_files::remove_tree_at(&at).unwrap();
        match thing {
            Thing::File { content, mode } => {
                fs::write(&at, content).unwrap();
                chmod(&at, *mode);
            }
            Thing::Link(text) => symlink(OsStr::from_bytes(text), &at).unwrap(),
            Thing::Folder { mode } => {
                fs::create_dir(&at).unwrap();
                chmod(&at, *mode);
            }
            Thing::Mode(_) | Thing::Nothing => {}
        }
    }
}

const MINE: &str = "of the person";

/// Puts a file of the person's into every folder that both trees have.
fn work_beside(root: &Path, copy: &Path) {
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let below = folder.join(entry.file_name());
            let is_folder = |at: &Path| at.symlink_metadata().is_ok_and(|found| found.is_dir());
            if entry.file_name() != ".git"
                && is_folder(&entry.path())
                && is_folder(&copy.join(&below))
            {
                folders.push(below);
            }
        }
        fs::write(root.join(folder).join(MINE), "mine").unwrap();
    }
}

fn mine(root: &Path) -> Vec<String> {
    let mut lines = everything(root);
    lines.retain(|line| line.contains(MINE));
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn an_apply_makes_what_it_touches_equal_and_touches_nothing_else(
        first in work(25),
        then in work(25),
        later in work(10),
        is_git in any::<bool>(),
        exchanges in any::<bool>(),
    ) {
        let mut world = World::new(quick_folder(), is_git, |root| act(root, &first));
        act(&world.copy, &then);
        work_beside(&world.root, &world.copy);
        let before = mine(&world.root);
        let index = fs::read(world.root.join(".git/index")).ok();
        let snapshot = world.freeze();
        let review = world.review(&snapshot);
        let mut apply = world.check(&snapshot, &review).unwrap();
        prop_assert!(apply.kept().is_empty());
        if !exchanges {
            apply = apply.without_exchange();
        }
        prop_assert_eq!(apply.paths().count(), review.changes.len());
        written(apply.write()).clear().unwrap();
        world.base.manifest = snapshot.manifest;
        prop_assert_eq!(mine(&world.root), before, "not a time of it changed");
        prop_assert_eq!(fs::read(world.root.join(".git/index")).ok(), index);

        // More work, applied on top, with the person's files still there.
        act(&world.copy, &later);
        let expected: Vec<String> = content(&world.copy);
        let snapshot = world.freeze();
        let review = world.review(&snapshot);
        if let Ok(apply) = world.check(&snapshot, &review) {
            let kept = apply.kept().len();
            written(apply.write()).clear().unwrap();
            let mut now = content(&world.root);
            now.retain(|line| !line.contains(MINE));
            prop_assert_eq!(now.len(), expected.len() + kept, "only folders in use are kept");
            for line in expected {
                prop_assert!(now.contains(&line), "missing: {}", line);
            }
        }
        world.is_clean();
    }

    #[test]
    fn what_an_apply_brings_is_the_copy(first in work(25), then in work(25)) {
        let mut world = World::plain(|root| act(root, &first));
        act(&world.copy, &then);
        world.apply();
        assert_same(&world.copy, &world.root);
    }
}
