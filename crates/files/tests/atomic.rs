//! Whole replacement, with real files and a real kill.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // the helpers of tests are not exempt by themselves

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use stead_files::{AtomicError, create_new, is_temporary, replace, replace_through};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

fn set_mode(path: &Path, bits: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
}

fn leftovers(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().filter(|e| is_temporary(&e.as_ref().unwrap().file_name())).count()
}

#[test]
fn field_mode_01() {
    let base = tempfile::tempdir().unwrap();
    let (script, key) = (base.path().join("s.sh"), base.path().join("k"));
    for (path, bits) in [(&script, 0o755), (&key, 0o640)] {
        fs::write(path, b"old").unwrap();
        set_mode(path, bits);
    }
    for edit in [|p: &Path| replace_through(p, b"new"), |p: &Path| replace(p, b"new", None)] {
        edit(&script).unwrap();
        edit(&key).unwrap();
        assert_eq!((mode(&script), mode(&key)), (0o755, 0o640));
    }
    assert_eq!(leftovers(base.path()), 0);
}

#[test]
fn new_files_get_their_default_bits() {
    let base = tempfile::tempdir().unwrap();
    let own = base.path().join("own");
    replace(&own, b"x", None).unwrap();
    assert_eq!(mode(&own), 0o600);
    replace(&own, b"x", Some(0o644)).unwrap();
    assert_eq!(mode(&own), 0o644);
    let (theirs, plain) = (base.path().join("theirs"), base.path().join("plain"));
    replace_through(&theirs, b"x").unwrap();
    fs::write(&plain, b"x").unwrap();
    assert_eq!(mode(&theirs), mode(&plain));
}

#[test]
fn an_owned_link_is_replaced_and_a_persons_link_is_followed() {
    let base = tempfile::tempdir().unwrap();
    let (target, link) = (base.path().join("target"), base.path().join("link"));
    fs::create_dir(base.path().join("deep")).unwrap();
    let dangling = base.path().join("deep/dangling");
    fs::write(&target, b"old").unwrap();
    symlink("target", &link).unwrap();
    symlink("../later", &dangling).unwrap();

    replace_through(&link, b"new").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&target).unwrap(), b"new");
    replace_through(&dangling, b"late").unwrap();
    assert_eq!(fs::read(base.path().join("later")).unwrap(), b"late");

    replace(&link, b"mine", None).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_file());
    assert_eq!(fs::read(&target).unwrap(), b"new");

    let ring = base.path().join("ring");
    symlink("ring", &ring).unwrap();
    assert!(matches!(replace_through(&ring, b""), Err(AtomicError::System { act: "follow", .. })));
}

#[test]
fn what_is_no_file_is_refused_and_left() {
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("folder");
    fs::create_dir(&folder).unwrap();
    assert!(matches!(replace(&folder, b"", None), Err(AtomicError::NotAFile(_))));
    assert!(matches!(replace_through(&folder, b""), Err(AtomicError::NotAFile(_))));
    assert!(matches!(create_new(&folder, b""), Err(AtomicError::Exists(_))));
    assert!(matches!(replace(Path::new("/"), b"", None), Err(AtomicError::NotAFile(_))));
    let nowhere = base.path().join("no/where");
    assert!(matches!(replace(&nowhere, b"", None), Err(AtomicError::System { .. })));
    assert_eq!(leftovers(base.path()), 0);
}

#[test]
fn a_new_file_never_replaces_an_old_one() {
    let base = tempfile::tempdir().unwrap();
    let (path, link) = (base.path().join("one"), base.path().join("link"));
    create_new(&path, b"first").unwrap();
    assert_eq!(mode(&path), 0o600);
    assert!(matches!(create_new(&path, b"second"), Err(AtomicError::Exists(_))));
    assert_eq!(fs::read(&path).unwrap(), b"first");
    symlink("nowhere", &link).unwrap();
    assert!(matches!(create_new(&link, b""), Err(AtomicError::Exists(_))));
    assert_eq!(leftovers(base.path()), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..Default::default() })]
    #[test]
    fn what_was_written_last_is_read_whole(
        contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4096), 1..5),
        through in any::<bool>(),
    ) {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("file");
        for content in &contents {
            if through { replace_through(&path, content) } else { replace(&path, content, None) }
                .unwrap();
            prop_assert_eq!(&fs::read(&path).unwrap(), content);
        }
        prop_assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
    }
}

const VICTIM: &str = "STEAD_FILES_TEST_VICTIM";

/// Not a test: the process that [`field_dsk_05`] kills.
#[test]
#[ignore = "started by field_dsk_05"]
fn victim() {
    let path = std::env::var_os(VICTIM).unwrap();
    for round in 0u64.. {
        let length = if round % 2 == 0 { 100_000 } else { 37 };
        let letter = b'a' + u8::try_from(round % 26).unwrap();
        replace(Path::new(&path), &vec![letter; length], None).unwrap();
    }
}

#[test]
fn field_dsk_05() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("state");
    replace(&path, b"zzz", None).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for round in 0u64..25 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "victim", "--ignored", "--nocapture"])
            .env(VICTIM, &path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let before = fs::metadata(&path).unwrap().ino();
        let deadline = Instant::now() + Duration::from_secs(10);
        while fs::metadata(&path).unwrap().ino() == before && Instant::now() < deadline {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_micros(137 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let content = fs::read(&path).unwrap();
        let first = content[0];
        assert!(content.iter().all(|byte| *byte == first), "a mix of two states");
        assert!([3, 37, 100_000].contains(&content.len()), "torn at {}", content.len());
        seen.insert(content.len());
    }
    assert!(seen.len() > 1, "the kills came at different moments: {seen:?}");
}
