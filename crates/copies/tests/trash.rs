//! Discarding, the trash, what is found in a home, and what may be forgotten.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

use common::{Kit, contents, mode, picture, rel, request_for, session, set_mode, slot, write};
use stead_copies::{
    Base, Contents, CopyError, Layout, clear_staging, discard, empty_trash, forget_depot,
    forget_layout, found, freeze, live_blobs, restore, trashed,
};
use stead_core::id::{RootId, TaskId, Timestamp};
use stead_core::layout::Access;
use stead_files::{Lock, Watch};
use stead_testkit::as_a_plain_user;

#[test]
fn field_cln_11_work_on_a_detached_copy_is_in_the_trash_and_comes_back() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let (_, copy) = kit.copy(&app);
    kit.ok(&copy, &["checkout", "-q", "--detach"]);
    write(&copy.join("a.txt"), "committed\n");
    kit.ok(&copy, &["commit", "-q", "-a", "-m", "detached work"]);
    write(&copy.join("untracked"), "x");
    let before = contents(&copy);
    let gone = discard(&kit.home, &session(), TaskId(1), None, Timestamp(100)).unwrap().unwrap();
    assert!(!copy.exists() && !kit.home.copies().join("s1").exists());
    let listed = trashed(&kit.home).unwrap();
    assert_eq!(listed, [gone]);
    assert_eq!(listed[0].record.sources[0].as_path(), app);
    assert_eq!((listed[0].record.at, listed[0].record.task), (Timestamp(100), TaskId(1)));
    // Nothing younger than asked for is removed.
    assert!(empty_trash(&kit.home, Timestamp(100)).unwrap().is_empty());
    restore(&kit.home, &listed[0]).unwrap();
    assert_eq!(contents(&copy), before);
    assert_eq!(kit.ok(&copy, &["log", "-1", "--format=%s"]), "detached work\n");
    assert!(trashed(&kit.home).unwrap().is_empty());
}

#[test]
fn field_cln_06_removal_never_follows_a_link() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join("nm/precious"), "x");
    let (_, copy) = kit.copy(&app);
    fs::remove_dir_all(copy.join("nm")).unwrap();
    symlink(app.join("nm"), copy.join("nm")).unwrap();
    symlink("/", copy.join("rootlink")).unwrap();
    write(&copy.join("deep/x"), "");
    symlink(&app, copy.join("deep/r")).unwrap();
    let before = picture(&app);
    discard(&kit.home, &session(), TaskId(1), None, Timestamp(1)).unwrap().unwrap();
    assert_eq!(empty_trash(&kit.home, Timestamp(2)).unwrap().len(), 1);
    assert_eq!(fs::read_dir(kit.home.trash()).unwrap().count(), 0);
    assert!(picture(&app) == before);
}

#[test]
fn field_wt_21_a_copy_removed_by_hand_blocks_nothing() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let (_, copy) = kit.copy(&app);
    fs::remove_dir_all(&copy).unwrap();
    let there = found(&kit.home).unwrap();
    assert_eq!(there.tasks[0].missing, [slot("app")]);
    let name = slot("app");
    assert_eq!(discard(&kit.home, &session(), TaskId(1), Some(&name), Timestamp(1)).unwrap(), None);
    // The source knows nothing of it, and the next task gets a new one.
    assert_eq!(kit.ok(&app, &["worktree", "list"]).lines().count(), 1);
    kit.copy_as(2, &app);
    discard(&kit.home, &session(), TaskId(1), None, Timestamp(1)).unwrap().unwrap();
    assert_eq!(discard(&kit.home, &session(), TaskId(1), None, Timestamp(1)).unwrap(), None);
}

#[test]
fn field_cln_05_field_cln_02_any_state_of_the_copys_repository_can_be_discarded() {
    let kit = Kit::new();
    let app = kit.repository("app");
    for (task, words) in [
        (1, &["checkout", "-q", "--detach"][..]),
        (2, &["merge", "-q", "--squash", "HEAD"]),
        (3, &["checkout", "-q", "--orphan", "new"]),
    ] {
        let (_, copy) = kit.copy_as(task, &app);
        kit.ok(&copy, words);
        discard(&kit.home, &session(), TaskId(task), None, Timestamp(1)).unwrap().unwrap();
        assert!(!copy.exists());
    }
    assert_eq!(kit.ok(&app, &["branch"]).lines().count(), 1);
}

#[test]
fn what_is_not_recorded_as_steads_is_neither_moved_nor_removed() {
    let kit = Kit::new();
    let app = kit.repository("app");
    kit.copy(&app);
    let odd = kit.home.task(&session(), TaskId(9));
    write(&odd.join("app/file"), "by hand");
    let error = discard(&kit.home, &session(), TaskId(9), None, Timestamp(1)).unwrap_err();
    assert!(matches!(error, CopyError::Layout { .. }), "{error}");
    let name = slot("other");
    let error = discard(&kit.home, &session(), TaskId(1), Some(&name), Timestamp(1)).unwrap_err();
    assert!(error.to_string().contains("the task has app"), "{error}");
    write(&kit.home.trash().join("by-hand/file"), "");
    write(&kit.home.staging().join("by-hand/file"), "");
    assert!(empty_trash(&kit.home, Timestamp(i64::MAX)).unwrap().is_empty());
    assert!(clear_staging(&kit.home).unwrap().is_empty());
    for kept in [odd, kit.home.trash().join("by-hand"), kit.home.staging().join("by-hand")] {
        assert!(kept.is_dir(), "{}", kept.display());
    }
}

#[test]
fn what_a_killed_admission_left_is_cleared_and_a_living_one_is_left_alone() {
    let kit = Kit::new();
    let staging = kit.home.staging();
    for name in ["1-1", "1-2"] {
        write(&staging.join(name).join("app/file"), "half");
        write(&staging.join(format!("{name}.lock")), "");
    }
    let living = Lock::try_exclusive(&staging.join("1-2.lock"), "at work").unwrap().unwrap();
    let there = found(&kit.home).unwrap().staging;
    assert_eq!(there.iter().map(|s| s.is_alive).collect::<Vec<_>>(), [false, true]);
    assert_eq!(clear_staging(&kit.home).unwrap(), [staging.join("1-1")]);
    assert!(staging.join("1-2/app/file").exists());
    drop(living);
    assert_eq!(clear_staging(&kit.home).unwrap(), [staging.join("1-2")]);
    assert_eq!(fs::read_dir(&staging).unwrap().count(), 0);
}

#[test]
fn a_depot_goes_only_when_nothing_names_it() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let root = RootId::parse("root-app").unwrap();
    let none = BTreeSet::new();
    let forget = |reviewed: &BTreeSet<RootId>| forget_depot(&kit.home, &root, reviewed).unwrap();
    assert!(!forget(&none));
    kit.copy(&app);
    let there = found(&kit.home).unwrap();
    assert_eq!((there.depots.len(), there.depots[0].named_by), (1, 1));
    assert!(there.depots[0].bytes > 0);
    assert!(!forget(&none));
    discard(&kit.home, &session(), TaskId(1), None, Timestamp(1)).unwrap();
    assert!(!forget(&none), "the trash names it");
    assert!(found(&kit.home).unwrap().trash[0].1 > 0);
    empty_trash(&kit.home, Timestamp(2)).unwrap();
    assert!(!forget(&BTreeSet::from([root.clone()])), "a review names it");
    write(&kit.home.applies().join("root-app.journal"), "");
    assert!(!forget(&none), "an apply names it");
    fs::remove_dir_all(kit.home.applies()).unwrap();
    write(&kit.home.applies().join("root-app.lock"), "");
    let at_work = Lock::try_exclusive(&kit.home.applies().join("root-app.lock"), "apply");
    assert!(!forget(&none), "an apply is under way");
    drop(at_work);
    // The file of a lock that nobody holds names nothing.
    write(&kit.home.staging().join("1-1.lock"), "");
    assert!(!forget(&none), "something is being made");
    clear_staging(&kit.home).unwrap();
    write(&kit.home.task(&session(), TaskId(5)).join("x"), "");
    assert!(!forget(&none), "a task without a layout may name it");
    fs::remove_dir_all(kit.home.copies().join("s1")).unwrap();
    assert!(forget(&none));
    assert!(!kit.home.depot(&root).exists());
    kit.copy(&app);
}

#[test]
fn blobs_that_a_base_or_snapshot_needs_are_live() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join("untracked"), "kept");
    let (admitted, copy) = kit.copy(&app);
    let slot_of = &admitted.layout.slots[0];
    write(&copy.join("new"), "by the agent");
    let snapshot = freeze(
        &kit.home,
        &kit.git,
        &admitted.layout,
        &slot("app"),
        &slot_of.base,
        Watch::default(),
    )
    .unwrap();
    let live = live_blobs(&kit.home, [snapshot.digest]).unwrap();
    let stored = fs::read_dir(kit.home.path().join("blobs")).unwrap().flat_map(|folder| {
        let folder = folder.unwrap();
        let first = folder.file_name().into_string().unwrap();
        fs::read_dir(folder.path())
            .unwrap()
            .map(move |e| format!("{first}{}", e.unwrap().file_name().into_string().unwrap()))
            .collect::<Vec<_>>()
    });
    let live: BTreeSet<String> = live.iter().map(ToString::to_string).collect();
    let stored: Vec<String> = stored.collect();
    assert_eq!(stored.len(), 4, "the base, the snapshot and two contents");
    assert!(stored.iter().all(|name| live.contains(name)));
    // Also of what is in the trash.
    discard(&kit.home, &session(), TaskId(1), None, Timestamp(1)).unwrap();
    let live = live_blobs(&kit.home, []).unwrap();
    assert!(live.contains(&slot_of.base) && !live.contains(&snapshot.digest));
    let base = Base::load(&kit.home, &slot_of.base).unwrap();
    let contents = Contents::of(&kit.home, &kit.git, &slot_of.root, &base).unwrap();
    let entry = base.manifest.get(&rel("untracked")).unwrap();
    assert_eq!(contents.read(entry).unwrap(), b"kept");
}

#[test]
fn one_slot_is_discarded_and_restored_beside_the_others() {
    let kit = Kit::new();
    let (one, two) = (kit.repository("one"), kit.repository("two"));
    let request = request_for(1, &[("one", &one, Access::Write), ("two", &two, Access::Read)]);
    kit.try_admit(&request).unwrap();
    let gone = discard(&kit.home, &session(), TaskId(1), Some(&slot("one")), Timestamp(1));
    let gone = gone.unwrap().unwrap();
    let copy = |name: &str| kit.home.copy(&session(), TaskId(1), &slot(name));
    assert!(!copy("one").exists() && copy("two").exists());
    restore(&kit.home, &gone).unwrap();
    assert_eq!(kit.status(&copy("one")), "");
    let gone = discard(&kit.home, &session(), TaskId(1), Some(&slot("one")), Timestamp(1));
    discard(&kit.home, &session(), TaskId(1), None, Timestamp(1)).unwrap().unwrap();
    let error = restore(&kit.home, &gone.unwrap().unwrap()).unwrap_err();
    assert!(error.to_string().contains("restore the task first"), "{error}");
    assert!(Layout::load(&kit.home, &session(), TaskId(1)).unwrap().is_none());
}

#[test]
fn the_layout_of_copies_that_are_gone_for_good_goes_and_nothing_else_does() {
    use std::os::unix::ffi::OsStrExt as _;
    let kit = Kit::new();
    let app = kit.repository("app");
    kit.copy(&app);
    let forget = || forget_layout(&kit.home, &session(), TaskId(1)).unwrap();
    assert!(!forget(), "its copy is there");
    discard(&kit.home, &session(), TaskId(1), Some(&slot("app")), Timestamp(1)).unwrap();
    assert!(!forget(), "its copy can be brought back");
    empty_trash(&kit.home, Timestamp(2)).unwrap();
    let folder = kit.home.task(&session(), TaskId(1));
    let strange = folder.join(std::ffi::OsStr::from_bytes(b"\xff"));
    write(&strange, "mine");
    assert!(!forget(), "somebody keeps something in it");
    fs::remove_file(strange).unwrap();
    assert!(forget());
    assert!(!folder.exists() && !forget());
    assert!(
        forget_depot(&kit.home, &RootId::parse("root-app").unwrap(), &BTreeSet::new()).unwrap()
    );
}

#[test]
fn a_copy_that_may_not_be_written_is_discarded_restored_and_removed() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let (_, copy) = kit.copy(&app);
    kit.ok(&copy, &["rm", "-rq", "--cached", "dir"]);
    for folder in [copy.join("dir"), copy.clone()] {
        set_mode(&folder, 0o555);
    }
    as_a_plain_user();
    let before = contents(&copy);
    let gone = discard(&kit.home, &session(), TaskId(1), Some(&slot("app")), Timestamp(1));
    let gone = gone.unwrap().unwrap();
    assert!(!copy.exists());
    assert_eq!(mode(&gone.kept()), 0o555);
    restore(&kit.home, &gone).unwrap();
    assert_eq!((contents(&copy), mode(&copy)), (before, 0o555));
    discard(&kit.home, &session(), TaskId(1), Some(&slot("app")), Timestamp(1)).unwrap();
    assert_eq!(empty_trash(&kit.home, Timestamp(2)).unwrap().len(), 1);
    assert!(trashed(&kit.home).unwrap().is_empty());
}

#[test]
fn a_copy_that_cannot_be_moved_leaves_no_entry_in_the_trash() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let (_, copy) = kit.copy(&app);
    set_mode(copy.parent().unwrap(), 0o555);
    as_a_plain_user();
    discard(&kit.home, &session(), TaskId(1), Some(&slot("app")), Timestamp(1)).unwrap_err();
    assert!(copy.is_dir());
    assert_eq!(fs::read_dir(kit.home.trash()).unwrap().count(), 0);
    set_mode(copy.parent().unwrap(), 0o700);
}
