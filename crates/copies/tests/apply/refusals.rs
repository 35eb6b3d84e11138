//! What refuses an apply before the first write, but for conflicts.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use stead_copies::{ApplyRefused, Bar, Barred, Checkout};
use stead_core::id::SlotName;
use stead_core::layout::Access;
use stead_core::refusal::RefusalKind;

use crate::kit::{World, chmod, everything, slot, write};

fn small(root: &Path) {
    write(root, "a.txt", "one\n");
    write(root, "d/b.txt", "two\n");
}

fn edited() -> World {
    let world = World::repository(small);
    write(&world.copy, "a.txt", "task\n");
    world
}

#[test]
fn copies_55_without_review_on_a_read_slot_or_an_unknown_one_it_is_refused() {
    let mut world = edited();
    let before = everything(&world.root);
    let snapshot = world.freeze();
    let review = world.review(&snapshot);
    // A review of what the copy was earlier is no review of this.
    write(&world.copy, "a.txt", "later\n");
    let later = world.freeze();
    let refused = world.check(&later, &review).unwrap_err();
    assert!(matches!(refused, ApplyRefused::NotReviewed(_)), "{refused}");
    let mut other = review.clone();
    other.digest = later.digest;
    let refused = world.check(&snapshot, &other).unwrap_err();
    assert!(matches!(refused, ApplyRefused::NotReviewed(_)), "{refused}");
    assert_eq!(refused.refusal().kind, RefusalKind::WrongState);

    world.layout.slots[0].access = Access::Read;
    let review = world.review(&snapshot);
    assert_eq!(review.access, Access::Read, "it can be reviewed");
    let refused = world.check(&snapshot, &review).unwrap_err();
    assert!(matches!(refused, ApplyRefused::ReadOnly(_)), "{refused}");
    world.layout.slots[0].access = Access::Write;
    world.layout.slots[0].slot = SlotName::parse("library").unwrap();
    let refused = world.check(&snapshot, &review).unwrap_err();
    assert_eq!(refused.to_string(), "the task has no slot app; it has library");
    world.layout.slots[0].slot = slot();
    world.layout.version = 0;
    let refused = world.check(&snapshot, &review).unwrap_err();
    assert!(matches!(refused, ApplyRefused::Version(0)), "{refused}");
    world.layout.version = 1;
    fs::rename(&world.copy, world.folder.path().join("moved")).unwrap();
    let refused = world.check(&snapshot, &review).unwrap_err();
    assert!(matches!(refused, ApplyRefused::NotOurs(_)), "{refused}");
    assert_eq!(everything(&world.root), before);
}

#[test]
fn field_apl_15_changes_in_a_read_slot_are_listed_and_never_applied() {
    let mut world = World::repository(small);
    world.layout.slots[0].access = Access::Read;
    chmod(&world.copy.join("a.txt"), 0o755);
    let snapshot = world.freeze();
    let review = world.review(&snapshot);
    let said: Vec<String> = review.changes.iter().map(stead_copies::headline).collect();
    assert_eq!(said, ["file a.txt: mode 644 becomes 755"]);
    let refused = world.refused();
    assert!(matches!(refused, ApplyRefused::ReadOnly(_)), "{refused}");
}

#[test]
fn copies_58_a_home_on_another_disk_is_refused_without_a_trace() {
    let mut world = edited();
    let elsewhere = tempfile::tempdir_in("/tmp").unwrap();
    let at = elsewhere.path().canonicalize().unwrap();
    let device = |path: &Path| stead_files::Stat::of(path).unwrap().device;
    if device(&at) == device(&world.root) {
        let name = "copies_58_a_home_on_another_disk_is_refused_without_a_trace";
        return stead_testkit::skip(name, "only one disk here");
    }
    let copied = Command::new("cp").arg("-a").arg(world.home.path()).arg(&at).status().unwrap();
    assert!(copied.success());
    world.home = stead_copies::Home::new(at.join("home"));
    world.copy = world.home.copy(&world.layout.session, world.layout.task, &slot());
    let refused = world.refused();
    assert!(matches!(refused, ApplyRefused::OtherDevice { .. }), "{refused}");
}

#[test]
fn copies_63_a_moved_checkout_or_an_operation_in_progress_is_refused() {
    let mut world = edited();
    let snapshot = world.freeze();
    let review = world.review(&snapshot);
    world.ok(&["checkout", "-q", "-b", "other"]);
    let before = everything(&world.root);
    match world.check(&snapshot, &review).unwrap_err() {
        ApplyRefused::CheckoutChanged { reviewed, now } => {
            assert_eq!(reviewed, Some(Checkout::Branch("refs/heads/main".into())));
            assert_eq!(now, Some(Checkout::Branch("refs/heads/other".into())));
        }
        other => panic!("{other}"),
    }
    assert_eq!(everything(&world.root), before);
    world.ok(&["checkout", "-q", "--detach"]);
    let refused = world.check(&snapshot, &review).unwrap_err();
    assert!(matches!(refused, ApplyRefused::CheckoutChanged { .. }), "{refused}");
    // A detached commit is held to that very commit.
    let review = world.review(&snapshot);
    world.ok(&["commit", "-q", "--allow-empty", "-m", "on"]);
    let refused = world.check(&snapshot, &review).unwrap_err();
    assert!(matches!(refused, ApplyRefused::CheckoutChanged { .. }), "{refused}");
    // The branch's commit may move.
    world.ok(&["checkout", "-q", "main"]);
    let review = world.review(&snapshot);
    world.ok(&["commit", "-q", "--allow-empty", "-m", "on"]);
    world.check(&snapshot, &review).unwrap();

    for mark in ["MERGE_HEAD", "BISECT_LOG", "rebase-merge/head-name"] {
        write(&world.root.join(".git"), mark, "x");
        let refused = world.refused();
        assert!(matches!(refused, ApplyRefused::InProgress { .. }), "{mark}: {refused}");
        let top = world.root.join(".git").join(mark.split('/').next().unwrap());
        let _ = fs::remove_file(&top);
        let _ = fs::remove_dir_all(&top);
    }
    let lock = world.root.join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let before = everything(&world.root);
    let refused = world.ready().unwrap_err();
    assert!(matches!(refused, ApplyRefused::IndexLocked(_)), "{refused}");
    assert_eq!(everything(&world.root), before);
}

#[test]
fn copies_63_an_editors_lock_is_waited_for() {
    let mut world = edited();
    let lock = world.root.join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let editor = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        fs::remove_file(lock).unwrap();
    });
    assert_eq!(world.apply(), ["a.txt"]);
    editor.join().unwrap();
}

#[test]
fn another_folder_at_the_path_is_refused() {
    let mut world = edited();
    let snapshot = world.freeze();
    let review = world.review(&snapshot);
    let moved = world.folder.path().canonicalize().unwrap().join("moved");
    fs::rename(&world.root, &moved).unwrap();
    let is_changed = |world: &mut World| match world.check(&snapshot, &review).unwrap_err() {
        ApplyRefused::DestinationChanged { why, .. } => why,
        other => panic!("{other}"),
    };
    assert_eq!(is_changed(&mut world), "it is not there");
    symlink(&moved, &world.root).unwrap();
    assert_eq!(is_changed(&mut world), "a symbolic link is on its way");
    fs::remove_file(&world.root).unwrap();
    let copied = Command::new("cp").arg("-a").args([&moved, &world.root]).status().unwrap();
    assert!(copied.success());
    assert_eq!(is_changed(&mut world), "another folder is at its path");
}

#[test]
fn a_plain_folder_that_became_a_repository_is_another_checkout() {
    let mut world = World::plain(small);
    write(&world.copy, "a.txt", "task\n");
    let snapshot = world.freeze();
    let review = world.review(&snapshot);
    world.ok(&["init", "-q"]);
    let refused = world.check(&snapshot, &review).unwrap_err();
    assert!(matches!(refused, ApplyRefused::CheckoutChanged { .. }), "{refused}");
}

#[test]
fn what_cannot_be_carried_is_refused() {
    let mut world = edited();
    fs::hard_link(world.root.join("a.txt"), world.root.join("other name")).unwrap();
    let refused = world.refused();
    assert!(matches!(refused, ApplyRefused::Unsupported { .. }), "{refused}");
    fs::remove_file(world.root.join("other name")).unwrap();
    let made = Command::new("mkfifo").arg(world.copy.join("pipe")).status().unwrap();
    assert!(made.success());
    let refused = world.refused();
    assert!(matches!(refused, ApplyRefused::Barred { bar: Bar::Special, .. }), "{refused}");
    fs::remove_file(world.copy.join("pipe")).unwrap();
    // An access control list, in the form in which the kernel keeps it: a named user may read.
    let acl: Vec<u8> = [
        &2_u32.to_le_bytes()[..],
        &[1, 0, 6, 0, 255, 255, 255, 255],
        &[2, 0, 4, 0, 57, 48, 0, 0],
        &[4, 0, 4, 0, 255, 255, 255, 255],
        &[16, 0, 4, 0, 255, 255, 255, 255],
        &[32, 0, 4, 0, 255, 255, 255, 255],
    ]
    .concat();
    let file = world.root.join("a.txt");
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(&file, c"system.posix_acl_access", &acl, flags).is_err() {
        return stead_testkit::skip("what_cannot_be_carried_is_refused", "no ACLs here");
    }
    let refused = world.refused();
    assert!(matches!(refused, ApplyRefused::Unsupported { .. }), "{refused}");
}

#[test]
fn paths_into_git_and_contents_that_are_missing_are_refused() {
    let mut world = World::plain(small);
    write(&world.copy, "d/new", "task");
    let snapshot = world.freeze();
    let review = world.review(&snapshot);
    let body = stead_store::Body::new("task");
    fs::remove_file(world.home.blobs().path(&body.digest())).unwrap();
    let refused = world.check(&snapshot, &review).unwrap_err();
    assert!(matches!(refused, ApplyRefused::Missing(_)), "{refused}");
    let mut entries = snapshot.manifest.clone().into_entries();
    let at = entries.iter().position(|entry| entry.path.to_string() == "d/new").unwrap();
    entries[at].path = crate::kit::path("d/.GIT");
    entries.sort_by(|one, two| one.path.cmp(&two.path));
    let mut snapshot = snapshot;
    snapshot.manifest = stead_files::Manifest::new(snapshot.manifest.taken(), entries).unwrap();
    let review = world.review(&snapshot);
    let refused = world.check(&snapshot, &review).unwrap_err();
    let bar = Bar::GitName;
    assert_eq!(review.barred, [Barred { path: crate::kit::path("d/.GIT"), bar }]);
    assert!(matches!(refused, ApplyRefused::Barred { bar: Bar::GitName, .. }), "{refused}");
}

#[test]
fn two_applies_to_one_root_exclude_each_other() {
    let mut world = edited();
    let first = world.ready().unwrap();
    let refused = world.ready().unwrap_err();
    assert!(matches!(refused, ApplyRefused::Busy(Some(_))), "{refused}");
    drop(first);
    world.apply();
}

const CHILD: &str = "STEAD_COPIES_TEST_FOLDER";

/// Runs the ignored test `name` with a prefix; `false` when this machine allows no such thing.
fn elsewhere(prefix: &[&str], name: &str, folder: &Path) -> bool {
    let program = std::env::current_exe().unwrap();
    let tried = Command::new(prefix[0]).args(&prefix[1..]).arg(&program).arg("--list").output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        stead_testkit::skip(name, &format!("{} does not work here", prefix.join(" ")));
        return false;
    }
    let output = Command::new(prefix[0])
        .args(&prefix[1..])
        .arg(&program)
        .args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"])
        .env(CHILD, folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{name}: {said}{errors}");
    true
}

#[test]
fn copies_73_a_place_that_refuses_is_told_from_the_work() {
    let folder = crate::kit::quick_folder();
    elsewhere(&["unshare", "-m"], "refusals::writes_to_small_and_closed_disks", folder.path());
}

#[test]
#[ignore = "a child of copies_73, in a mount namespace of its own"]
fn writes_to_small_and_closed_disks() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let folder = Path::new(&folder);
    let mount = |options: &str| {
        let words = ["-t", "tmpfs", "-o", options, "none"];
        assert!(Command::new("mount").args(words).arg(folder).status().unwrap().success());
    };
    mount("size=24m");
    let inside = tempfile::tempdir_in(folder).unwrap();
    let mut world = World::new(inside, false, small);
    write(&world.copy, "big", vec![7_u8; 5 << 20]);
    let snapshot = world.freeze();
    let review = world.review(&snapshot);
    let filler = world.folder.path().join("filler");
    let before = everything(&world.root);
    // Not enough from the first.
    write(&world.root, &filler, vec![1_u8; 12 << 20]);
    let refused = world.check(&snapshot, &review).unwrap_err();
    assert!(matches!(refused, ApplyRefused::NoSpace { .. }) && refused.is_place(), "{refused}");
    // Many small files take whole blocks.
    fs::remove_file(&filler).unwrap();
    for number in 0..300 {
        write(&world.copy, format!("small/{number}"), number.to_string());
    }
    let many = world.freeze();
    let many_review = world.review(&many);
    write(&world.root, &filler, vec![1_u8; 1 << 20]);
    let free = stead_files::Space::of(&world.root).unwrap().free;
    fs::write(&filler, vec![1_u8; usize::try_from(free + (1 << 20) - (6800 << 10)).unwrap()])
        .unwrap();
    let refused = world.check(&many, &many_review).unwrap_err();
    assert!(matches!(refused, ApplyRefused::NoSpace { .. }), "{refused}");
    fs::remove_dir_all(world.copy.join("small")).unwrap();
    // Full only once it writes.
    fs::remove_file(&filler).unwrap();
    let apply = world.check(&snapshot, &review).unwrap();
    let _ = fs::write(&filler, vec![1_u8; 24 << 20]);
    match apply.write() {
        stead_copies::Outcome::RolledBack { cause, rescue } => {
            assert!(cause.is_place(), "{cause}");
            assert!(rescue.paths.is_empty());
        }
        stead_copies::Outcome::Written(_) => panic!("written to a full disk"),
        // The journal itself may have no room to be removed with; it is led back later.
        stead_copies::Outcome::RecoveryNeeded { .. } => panic!("recovery needed"),
    }
    fs::remove_file(&filler).unwrap();
    assert_eq!(everything(&world.root).len(), before.len());
    world.is_clean();
    let closed = ["-o", "remount,ro,bind"];
    let root = world.root.clone();
    let bound = Command::new("mount").arg("--bind").args([&root, &root]).status().unwrap();
    assert!(bound.success());
    let again = Command::new("mount").args(closed).arg(&root).status().unwrap();
    assert!(again.success());
    let refused = world.check(&snapshot, &review).unwrap_err();
    assert!(refused.is_place(), "{refused}");
    assert!(Command::new("umount").arg(&root).status().unwrap().success());
}

#[test]
fn copies_73_a_folder_that_may_not_be_written_is_the_place() {
    let folder = crate::kit::quick_folder();
    let user = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"];
    let prefix: &[&str] = if rustix::process::geteuid().is_root() { &user } else { &["env"] };
    std::os::unix::fs::chown(folder.path(), Some(12345), Some(12345)).ok();
    elsewhere(prefix, "refusals::writes_as_a_plain_user", folder.path());
}

#[test]
#[ignore = "a child of copies_73, as a user who is not root"]
fn writes_as_a_plain_user() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let inside = tempfile::tempdir_in(folder).unwrap();
    let mut world = World::new(inside, true, small);
    write(&world.copy, "d/new", "task");
    chmod(&world.root.join("d"), 0o555);
    chmod(&world.copy.join("d"), 0o555);
    world.admit();
    chmod(&world.copy.join("d"), 0o755);
    write(&world.copy, "d/new", "task");
    chmod(&world.copy.join("d"), 0o555);
    let refused = world.refused();
    assert!(matches!(refused, ApplyRefused::Place(_)) && refused.is_place(), "{refused}");
    chmod(&world.root.join("d"), 0o755);
    chmod(&world.copy.join("d"), 0o755);
}
