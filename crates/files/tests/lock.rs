//! Locks, with real processes dying.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // the helpers of tests are not exempt by themselves

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stead_files::{Lock, LockError, holder};

#[test]
fn one_at_a_time_and_the_holder_is_named() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("lock");
    assert_eq!(holder(&path).unwrap(), None);
    let lock = Lock::try_exclusive(&path, "first\nthings").unwrap().unwrap();
    assert!(Lock::try_exclusive(&path, "second").unwrap().is_none());
    let named = holder(&path).unwrap().unwrap();
    assert_eq!((named.pid, named.purpose.as_str()), (std::process::id(), "first things"));
    assert!(named.start_time > 0);
    drop(lock);
    assert!(Lock::try_exclusive(&path, "second").unwrap().is_some());
}

#[test]
fn waiting_ends_at_the_limit_or_with_the_release() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("lock");
    let lock = Lock::try_exclusive(&path, "a").unwrap().unwrap();
    let began = Instant::now();
    assert!(Lock::exclusive_within(&path, "b", Duration::from_millis(50)).unwrap().is_none());
    assert!(began.elapsed() >= Duration::from_millis(50));
    std::thread::scope(|scope| {
        let waiter =
            scope.spawn(|| Lock::exclusive_within(&path, "b", Duration::from_secs(30)).unwrap());
        drop(lock);
        assert!(waiter.join().unwrap().is_some());
    });
}

#[test]
fn a_shared_descriptor_goes_on_holding() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("lock");
    let lock = Lock::try_exclusive(&path, "run").unwrap().unwrap();
    let shared = lock.share().unwrap();
    drop(lock);
    assert!(Lock::try_exclusive(&path, "other").unwrap().is_none());
    let lock = Lock::from_fd(shared, &path).unwrap();
    assert!(Lock::try_exclusive(&path, "other").unwrap().is_none());
    drop(lock.into_fd());
    let lock = Lock::try_exclusive(&path, "other").unwrap().unwrap();
    let stranger = fs::File::open(&path).unwrap().into();
    assert!(matches!(Lock::from_fd(stranger, &path), Err(LockError::NotHeld(_))));
    drop(lock);
}

#[test]
fn links_and_what_is_no_file_are_refused() {
    let base = tempfile::tempdir().unwrap();
    let link = base.path().join("link");
    symlink("elsewhere", &link).unwrap();
    assert!(matches!(Lock::try_exclusive(&link, ""), Err(LockError::SymbolicLink(_))));
    assert!(matches!(holder(&link), Err(LockError::SymbolicLink(_))));
    assert!(!base.path().join("elsewhere").exists());
    assert!(matches!(Lock::try_exclusive(base.path(), ""), Err(LockError::NotAFile(_))));
}

#[test]
fn takers_never_hold_a_file_that_was_removed() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("lock");
    let inside = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let limit = Duration::from_secs(30);
                    let lock = Lock::exclusive_within(&path, "turn", limit).unwrap().unwrap();
                    assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                    inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    // From here on others may lock a new file at the path.
                    fs::remove_file(&path).unwrap();
                    drop(lock);
                }
            });
        }
    });
}

const VICTIM: &str = "STEAD_FILES_TEST_VICTIM";

/// Not a test: the process that holds a lock until it is killed.
#[test]
#[ignore = "started by field_lck_04"]
fn victim() {
    let path = std::env::var_os(VICTIM).unwrap();
    let lock = Lock::try_exclusive(Path::new(&path), "to be killed").unwrap().unwrap();
    std::thread::sleep(Duration::from_mins(1));
    drop(lock);
}

#[test]
fn field_lck_04() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("lock");

    let mut stranger = Command::new("sleep").arg("60").spawn().unwrap();
    fs::write(&path, format!("{} 1 a stranger has this number now\n", stranger.id())).unwrap();
    assert!(Lock::try_exclusive(&path, "me").unwrap().is_some());
    assert!(stranger.try_wait().unwrap().is_none());
    stranger.kill().unwrap();
    stranger.wait().unwrap();

    for torn in ["", "12", "12 34", "12 34 half a li", "x y z\n", "\0\0\0"] {
        fs::write(&path, torn).unwrap();
        assert_eq!(holder(&path).unwrap(), None, "{torn:?}");
        assert!(Lock::try_exclusive(&path, "me").unwrap().is_some());
    }

    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim", "--ignored", "--nocapture"])
        .env(VICTIM, &path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while holder(&path).unwrap().is_none_or(|found| found.pid != victim.id()) {
        assert!(Instant::now() < deadline, "the victim never took the lock");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(Lock::try_exclusive(&path, "me").unwrap().is_none());
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(Lock::try_exclusive(&path, "me").unwrap().is_some());
}
