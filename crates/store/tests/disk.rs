//! Disks that are full and homes that cannot be written.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests, which clippy does not know as such"
)]

mod kit;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::mpsc;

use kit::{append, given_folder, home, in_own_mounts, is_child, run, session};
use stead_core::refusal::RefusalKind;
use stead_store::{Body, Store, StoreError};

fn mount_small(folder: &Path) {
    run(
        "mount",
        &["-t", "tmpfs", "-o", "size=2m", "none"]
            .map(OsStr::new)
            .into_iter()
            .chain([folder.as_os_str()])
            .collect::<Vec<_>>(),
    );
}

/// Takes all the room that is left.
fn fill(folder: &Path) {
    let _ = fs::write(folder.join("ballast"), vec![1_u8; 4 * 1024 * 1024]);
}

#[test]
#[ignore = "a child of field_dsk_01"]
fn a_full_disk_is_told_at_once() {
    if !is_child() {
        return;
    }
    let folder = given_folder();
    mount_small(&folder);
    let s = session("s");
    let home = folder.join("home");
    let store = Store::open(&home).unwrap();
    let mut tip = store.append(append(&s, 0, &[("", 1)])).unwrap().last;
    for round in 0..3 {
        fill(&folder);
        // The log may still fit into what SQLite holds already; then it does not for long.
        let error = loop {
            let mut batch = append(&s, tip, &[("", tip + 1)]);
            batch.bodies = vec![Body::new(format!("{tip} {}", "x".repeat(30_000)))];
            match store.append(batch) {
                Ok(done) => tip = done.last,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, StoreError::NoRoom { .. }), "{error}");
        assert_eq!(error.refusal().kind, RefusalKind::Storage);
        assert!(error.refusal().hint.unwrap().contains("nothing was saved"));
        // A whole group fails together and says so to each.
        let (sender, outcomes) = mpsc::channel();
        for number in 0..8_u64 {
            let sender = sender.clone();
            let id = session(&format!("new-{round}-{number}"));
            let mut batch = append(&id, 0, &[("", 1)]);
            batch.bodies = vec![Body::new(vec![u8::try_from(number).unwrap(); 60_000])];
            store.submit(batch, move |outcome| sender.send(outcome).unwrap());
        }
        drop(sender);
        assert!(outcomes.iter().all(|outcome| outcome.is_err()));
        // A long body that cannot be written costs its own append only, and leaves nothing.
        let mut long = append(&session("long"), 0, &[("", 1)]);
        long.bodies = vec![Body::new(vec![1; 3_000_000])];
        assert!(matches!(store.append(long), Err(StoreError::NoRoom { .. })));
        // Reading goes on.
        assert_eq!(store.reader().tip(&s).unwrap(), Some(tip));
        assert_eq!(store.reader().sessions().unwrap().len(), 1, "nothing of a failed group");
        fs::remove_file(folder.join("ballast")).unwrap();
        tip = store.append(append(&s, tip, &[("", tip + 1)])).unwrap().last;
    }
    check(&store, tip);
    // Killed while it was full: whatever was torn does not spoil what comes later.
    fill(&folder);
    while let Ok(done) = store.append(append(&s, tip, &[("", tip + 1)])) {
        tip = done.last;
    }
    let copy = folder.join("copy");
    fs::remove_file(folder.join("ballast")).unwrap();
    fs::create_dir(&copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["stead.db", "stead.db-wal"] {
        fs::copy(home.join(name), copy.join(name)).unwrap();
    }
    drop(store);
    for home in [copy, home] {
        let store = Store::open(&home).unwrap();
        check(&store, tip);
        check(&store, store.append(append(&s, tip, &[("", tip + 1)])).unwrap().last);
    }
}

fn check(store: &Store, tip: u64) {
    let s = session("s");
    let records = store.reader().read(&s, 1, usize::MAX).unwrap();
    assert_eq!(records.len() as u64, tip, "no gap, nothing lost, nothing that failed");
    let report = store.reader().check(std::time::Duration::ZERO, |_| false).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert!(report.findings.is_empty(), "a failed append left {report:?}");
}

#[test]
fn field_dsk_01_field_dsk_02_a_full_disk_loses_and_spoils_nothing() {
    let folder = home();
    in_own_mounts("a_full_disk_is_told_at_once", folder.path(), false);
}

#[test]
#[ignore = "a child of a_read_only_home_is_read_and_says_why_it_is_not_written"]
fn a_home_on_a_read_only_mount() {
    if !is_child() {
        return;
    }
    let folder = given_folder();
    run("mount", &[OsStr::new("--bind"), folder.as_os_str(), folder.as_os_str()]);
    run(
        "mount",
        &["-o", "remount,bind,ro"]
            .map(OsStr::new)
            .into_iter()
            .chain([folder.as_os_str()])
            .collect::<Vec<_>>(),
    );
    let s = session("s");
    for (name, tip) in [("closed", 1), ("killed", 2)] {
        let home = folder.join(name);
        let error = Store::open(&home).err().unwrap();
        assert!(matches!(error, StoreError::Unwritable { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
        let reader = Store::open_reader(&home).unwrap();
        assert_eq!(reader.tip(&s).unwrap(), Some(tip));
        assert_eq!(reader.read(&s, 1, 10).unwrap().len() as u64, tip);
        assert!(reader.check(std::time::Duration::ZERO, |_| false).unwrap().is_sound());
    }
    let error = Store::open_reader(&folder.join("none")).err().unwrap();
    assert!(matches!(error, StoreError::Absent(_)), "{error}");
}

#[test]
fn a_read_only_home_is_read_and_says_why_it_is_not_written() {
    let folder = home();
    let s = session("s");
    let closed = folder.path().join("closed");
    Store::open(&closed).unwrap().append(append(&s, 0, &[("", 1)])).unwrap();
    let store = Store::open(&closed).unwrap();
    let killed = folder.path().join("killed");
    fs::create_dir(&killed).unwrap();
    store.append(append(&s, 1, &[("", 2)])).unwrap();
    for name in ["stead.db", "stead.db-wal", "stead.db-shm"] {
        fs::copy(closed.join(name), killed.join(name)).unwrap();
    }
    drop(store);
    // Back to one event, closed properly.
    fs::remove_dir_all(&closed).unwrap();
    Store::open(&closed).unwrap().append(append(&s, 0, &[("", 1)])).unwrap();
    in_own_mounts("a_home_on_a_read_only_mount", folder.path(), false);
}

#[test]
fn reading_writes_nothing() {
    let home = home();
    let s = session("s");
    let listing = || {
        let mut names: Vec<_> = fs::read_dir(home.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name(), entry.metadata().unwrap().modified().unwrap()))
            .collect();
        names.sort();
        names
    };
    assert!(matches!(Store::open_reader(home.path()), Err(StoreError::Absent(_))));
    assert!(listing().is_empty());
    Store::open(home.path()).unwrap().append(append(&s, 0, &[("", 1)])).unwrap();
    let before = listing();
    let reader = Store::open_reader(home.path()).unwrap();
    assert_eq!(reader.tip(&s).unwrap(), Some(1));
    assert!(reader.check(std::time::Duration::ZERO, |_| false).unwrap().is_sound());
    assert_eq!(listing(), before);
    // The same reader sees what a writer does meanwhile, and after it is gone.
    let store = Store::open(home.path()).unwrap();
    for tip in 1..200 {
        store.append(append(&s, tip, &[("", tip + 1)])).unwrap();
        assert_eq!(reader.tip(&s).unwrap(), Some(tip + 1));
    }
    drop(store);
    assert_eq!(reader.tip(&s).unwrap(), Some(200));
}

#[test]
fn a_log_cut_to_its_header_is_read_at_once() {
    let (home, copy) = (home(), home());
    let s = session("s");
    Store::open(home.path()).unwrap().append(append(&s, 0, &[("", 1)])).unwrap();
    let store = Store::open(home.path()).unwrap();
    store.append(append(&s, 1, &[("", 2)])).unwrap();
    for name in ["stead.db", "stead.db-wal", "stead.db-shm"] {
        fs::copy(home.path().join(name), copy.path().join(name)).unwrap();
    }
    let log = fs::OpenOptions::new().write(true).open(copy.path().join("stead.db-wal")).unwrap();
    log.set_len(32).unwrap();
    assert_eq!(Store::open_reader(copy.path()).unwrap().tip(&s).unwrap(), Some(1));
    let cut = Store::open(copy.path()).unwrap();
    assert_eq!(cut.append(append(&s, 1, &[("", 2)])).unwrap().last, 2);
}
