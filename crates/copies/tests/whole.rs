//! A copy is its original, byte for byte and mode for mode, told by other programs than stead.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{Kit, contents, mode, picture, request_for, session, set_mode, slot, write};
use proptest::prelude::*;
use stead_copies::{MakeError, Obstruction, admit};
use stead_core::id::TaskId;
use stead_core::layout::Access;
use stead_files::{Phase, Progress, Watch};

#[derive(Debug, Clone)]
enum Thing {
    File(Vec<u8>, u32),
    Folder(u32),
    Link(Vec<u8>),
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let odd = prop::sample::select(vec![
        b"-x".to_vec(),
        b" ".to_vec(),
        b"new\nline".to_vec(),
        b"\xff\xfe".to_vec(),
        b"[a]*?".to_vec(),
        b"x.log".to_vec(),
        b"\"quote".to_vec(),
        "é".as_bytes().to_vec(),
    ]);
    prop_oneof![3 => "[a-d]{1,2}".prop_map(String::into_bytes), 1 => odd]
}

fn thing() -> impl Strategy<Value = Thing> {
    let mode = prop::sample::select(vec![0o644, 0o755, 0o600, 0o400, 0o640, 0o777, 0o4755, 0o664]);
    let folder = prop::sample::select(vec![0o755, 0o700, 0o750, 0o2775, 0o1777, 0o555]);
    prop_oneof![
        4 => (prop::collection::vec(any::<u8>(), 0..40), mode).prop_map(|(b, m)| Thing::File(b, m)),
        2 => folder.prop_map(Thing::Folder),
        1 => prop::collection::vec(1_u8.., 1..20).prop_map(Thing::Link),
    ]
}

fn tree() -> impl Strategy<Value = Vec<(Vec<Vec<u8>>, Thing)>> {
    prop::collection::vec((prop::collection::vec(name(), 1..4), thing()), 0..30)
}

/// Makes what can be made of it; folders get their bits last.
fn make(root: &Path, tree: &[(Vec<Vec<u8>>, Thing)]) {
    fs::create_dir_all(root).unwrap();
    let mut folders = Vec::new();
    for (names, thing) in tree {
        let path = root.join(OsStr::from_bytes(&names.join(&b'/')));
        if fs::create_dir_all(path.parent().unwrap()).is_err() || path.exists() {
            continue;
        }
        match thing {
            Thing::File(bytes, mode) => {
                if fs::write(&path, bytes).is_ok() {
                    set_mode(&path, *mode);
                }
            }
            Thing::Folder(mode) => {
                if fs::create_dir(&path).is_ok() {
                    folders.push((path, *mode));
                }
            }
            Thing::Link(target) => {
                let _ = symlink(OsStr::from_bytes(target), &path);
            }
        }
    }
    for (path, mode) in folders {
        set_mode(&path, mode);
    }
}

fn rsync_says_equal(one: &Path, two: &Path) {
    let Ok(output) = Command::new("rsync")
        .args(["-nrlpE", "--checksum", "--delete", "--itemize-changes", "--exclude=/.git"])
        .arg(one.join(""))
        .arg(two.join(""))
        .output()
    else {
        return;
    };
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stdout);
    // The roots' own bits aside: a copy's root is always open to its owner.
    let differences: Vec<&str> = said.lines().filter(|line| !line.ends_with(" ./")).collect();
    assert_eq!(differences, [""; 0]);
}

fn open_all(root: &Path) {
    let _ = Command::new("chmod").args(["-R", "u+rwx"]).arg(root).status();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn copies_45_any_tree_is_the_same_in_its_copy(tree in tree(), with_git in any::<bool>()) {
        let kit = Kit::new();
        let root = kit.at("root");
        make(&root, &tree);
        if with_git {
            kit.ok(&root, &["init", "-q", "-b", "main"]);
            write(&root.join(".git/info/exclude"), "*.log\na*\n");
            kit.ok(&root, &["-c", "core.safecrlf=false", "add", "-A"]);
            kit.ok(&root, &["commit", "-q", "--allow-empty", "-m", "x"]);
        }
        let before = picture(&root);
        let (_, copy) = kit.copy(&root);
        prop_assert!(picture(&root) == before);
        prop_assert_eq!(contents(&copy), contents(&root));
        rsync_says_equal(&root, &copy);
        if with_git {
            prop_assert_eq!(kit.status(&copy), kit.status(&root));
        }
        open_all(&root);
        open_all(&copy);
    }
}

#[test]
fn copies_45_field_cpy_02_everything_arrives_literally() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join(".git/info/exclude"), ".env\nnm\n*.link\n");
    write(&app.join(".env"), "SECRET=1");
    set_mode(&app.join(".env"), 0o640);
    write(&app.join("untracked"), "x");
    fs::create_dir(app.join("empty")).unwrap();
    symlink("/nowhere", app.join("d.link")).unwrap();
    symlink("../out", app.join("dangling")).unwrap();
    write(&app.join("nm/t"), "t");
    symlink("../a.txt", app.join("nm/l2")).unwrap();
    let (_, copy) = kit.copy(&app);
    assert_eq!(contents(&copy), contents(&app));
    assert_eq!(mode(&copy.join(".env")), 0o640);
    assert_eq!(fs::read_link(copy.join("dangling")).unwrap(), Path::new("../out"));
    assert_eq!(fs::read_link(copy.join("nm/l2")).unwrap(), Path::new("../a.txt"));
    assert_eq!(kit.status(&copy), kit.status(&app));
}

#[test]
fn copies_52_progress_is_told_and_a_cancel_while_copying_leaves_nothing() {
    let kit =
        Kit::below(Path::new(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" }));
    let app = kit.at("many");
    for folder in 0..60 {
        for file in 0..50 {
            write(&app.join(format!("nm/{folder}/{file}")), [b'x'; 400]);
        }
    }
    let request = request_for(1, &[("app", &app, Access::Write)]);
    let (told, last) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let report = |progress: Progress| {
        if progress.phase == Phase::Copy {
            told.fetch_add(1, Ordering::Relaxed);
            assert_eq!(progress.of.unwrap().0, 3000);
            last.store(usize::try_from(progress.files).unwrap(), Ordering::Relaxed);
        }
    };
    let watch = Watch { cancel: None, report: Some(&report) };
    let admitted = admit(&kit.home, &kit.git, &request, watch).unwrap();
    assert!(told.load(Ordering::Relaxed) > 0 && last.load(Ordering::Relaxed) == 3000);
    assert_eq!(admitted.slots[0].totals.files, 3000);
    assert!(!admitted.slots[0].method.to_string().is_empty());
    fs::remove_dir_all(kit.home.path().join("copies/s1")).unwrap();
    let cancel = AtomicBool::new(false);
    let stop = |progress: Progress| {
        if progress.phase == Phase::Copy {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let watch = Watch { cancel: Some(&cancel), report: Some(&stop) };
    let error = admit(&kit.home, &kit.git, &request, watch).unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    kit.assert_nothing_left();
}

#[test]
fn copies_50_a_root_that_keeps_changing_is_refused_and_nothing_is_left() {
    let kit = Kit::new();
    let app = kit.at("app");
    for n in 0..200 {
        write(&app.join(format!("f{n}")), "x");
    }
    let request = request_for(1, &[("app", &app, Access::Write)]);
    // Whenever the tree has been looked at, a file in it grows.
    let length = AtomicUsize::new(1);
    let grow = |progress: Progress| {
        if progress.phase == Phase::Walk {
            let length = length.fetch_add(1, Ordering::Relaxed);
            fs::write(app.join("f7"), "x".repeat(length)).unwrap();
        }
    };
    let watch = Watch { cancel: None, report: Some(&grow) };
    let error = admit(&kit.home, &kit.git, &request, watch);
    let Err(MakeError::Refused(refused)) = error else { panic!("{error:?}") };
    let Obstruction::Unstable(paths) = &refused.why else { panic!("{refused}") };
    assert!(paths.contains(&common::rel("f7")), "{refused}");
    kit.assert_nothing_left();
}

#[test]
fn a_commit_while_the_copy_is_made_never_tears_it() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !over.load(Ordering::Relaxed) {
                number += 1;
                write(&app.join("dir/b.txt"), format!("{number}\n"));
                kit.run(&app, &["commit", "-q", "-a", "-m", "next"]);
                std::thread::sleep(Duration::from_millis(120));
            }
        });
        let deadline = Instant::now() + Duration::from_secs(20);
        for task in 1..=6 {
            let request = request_for(task, &[("app", &app, Access::Write)]);
            match kit.try_admit(&request) {
                Ok(_) => {
                    let copy = kit.home.copy(&session(), TaskId(task), &slot("app"));
                    kit.ok(&copy, &["fsck", "--full"]);
                    // Nothing is staged that nobody staged.
                    let staged = kit.ok(&copy, &["diff", "--cached", "--name-only"]);
                    assert_eq!(staged, "");
                }
                Err(MakeError::Refused(refused)) => {
                    assert!(matches!(refused.why, Obstruction::Unstable(_)), "{refused}");
                }
                Err(error) => panic!("{error}"),
            }
            if Instant::now() > deadline {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
    });
}
