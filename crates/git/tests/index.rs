//! The index of a copy: what Git makes of it, and what it need not look at.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use common::{Kit, name, with_every_git, write};
use proptest::prelude::*;
use stead_git::index::{Entry, EntryKind, Pair, Stat, Time};
use stead_git::{Index, IndexError, ObjectFormat, ObjectId};

/// A tree with everything that an index can say of a path.
fn tree(kit: &Kit, options: &[&str]) -> PathBuf {
    let folder = kit.empty("source", options);
    for path in ["file", "run", "empty", "assumed", "skipped", "a/b/c/deep", "a/b2", "z"] {
        write(&folder.join(path), path);
    }
    write(&folder.join("empty"), "");
    write(&folder.join(name(b"odd\xff\n \"name")), "x");
    write(&folder.join("long".repeat(50)).join("l".repeat(250)), "x");
    fs::set_permissions(folder.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("nowhere/at all", folder.join("link")).unwrap();
    age(&folder);
    kit.ok(&folder, &["add", "-A"]);
    kit.ok(&folder, &["commit", "-qm", "all"]);
    write(&folder.join("intended"), "x");
    age_one(&folder.join("intended"));
    kit.ok(&folder, &["add", "-N", "intended"]);
    kit.ok(&folder, &["update-index", "--assume-unchanged", "assumed"]);
    kit.ok(&folder, &["update-index", "--skip-worktree", "skipped"]);
    fs::remove_file(folder.join("skipped")).unwrap();
    write(&folder.join("z"), "staged");
    age_one(&folder.join("z"));
    kit.ok(&folder, &["add", "z"]);
    folder
}

/// Makes every file older than any index.
fn age(folder: &Path) {
    let script = format!("find . -path ./.git -prune -o -print0 | xargs -0 touch -h -d {OLD}");
    assert!(sh(&script, folder));
}

/// Not the others: Git does not notice that their ctime changes within a second, we do.
fn age_one(file: &Path) {
    assert!(Command::new("touch").args(["-d", OLD]).arg(file).status().unwrap().success());
}

const OLD: &str = "2020-02-02T02:02:02.020202";

fn sh(script: &str, folder: &Path) -> bool {
    Command::new("sh").args(["-c", script]).current_dir(folder).status().unwrap().success()
}

/// The same tree in another place, all of it: what differs is every inode and every ctime.
fn copied(kit: &Kit, source: &Path) -> PathBuf {
    let copy = kit.at("copy");
    let _ = fs::remove_dir_all(&copy);
    assert!(Command::new("cp").arg("-a").args([source, &copy]).status().unwrap().success());
    copy
}

fn stat(path: &Path) -> Option<Stat> {
    Some(Stat::from(&fs::symlink_metadata(path).ok()?))
}

/// Gives the copy an index with its own stat data, and how many entries that covers.
fn rewrite(kit: &Kit, source: &Path, copy: &Path) -> (usize, Index) {
    let mut index = Index::of(&kit.discover(source)).unwrap();
    let settled = index.settle(|path| {
        Some(Pair { source: stat(&source.join(path))?, copy: stat(&copy.join(path))? })
    });
    fs::write(copy.join(".git/index"), index.encode().unwrap()).unwrap();
    (settled, index)
}

/// Counts how often Git looks at the bytes of a file in `folder`.
fn looks(kit: &Kit, folder: &Path) -> usize {
    let (log, script) = (kit.at("looks"), kit.at("look"));
    let _ = fs::remove_file(&log);
    fs::write(&script, format!("#!/bin/sh\necho x >> '{}'\nexec cat\n", log.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    write(&folder.join(".git/info/attributes"), "* filter=look\n");
    let setting = format!("filter.look.clean={}", script.display());
    kit.ok(folder, &["-c", &setting, "--no-optional-locks", "status", "--porcelain"]);
    fs::remove_file(folder.join(".git/info/attributes")).unwrap();
    fs::read_to_string(&log).map_or(0, |text| text.lines().count())
}

fn same_answers(kit: &Kit, source: &Path, copy: &Path) {
    for question in [
        &["--no-optional-locks", "status", "--porcelain=v2", "-z", "--ignored"][..],
        &["ls-files", "--stage", "-v", "-z"],
        &["diff-index", "--cached", "--raw", "-z", "HEAD"],
    ] {
        let (ours, theirs) = (kit.ok(source, question), kit.ok(copy, question));
        assert_eq!(String::from_utf8_lossy(&ours), String::from_utf8_lossy(&theirs));
    }
    kit.ok(copy, &["fsck", "--strict"]);
}

#[test]
fn git_in_a_copy_sees_the_same_and_looks_at_no_file() {
    with_every_git(|kit| {
        for version in ["2", "4"] {
            for format in ["sha1", "sha256"] {
                let _ = fs::remove_dir_all(kit.at("source"));
                let source = tree(kit, &[&format!("--object-format={format}")]);
                kit.ok(&source, &["config", "core.untrackedCache", "true"]);
                kit.ok(&source, &["update-index", "--index-version", version]);
                kit.ok(&source, &["status"]);
                let copy = copied(kit, &source);
                assert!(looks(kit, &copy) >= 6, "a plain copy has to be looked at");
                let (settled, index) = rewrite(kit, &source, &copy);
                assert_eq!(
                    settled,
                    index.entries.len() - 2,
                    "all but the skipped and the intended one"
                );
                assert_eq!(
                    kit.ok(&copy, &["diff-files", "--raw", "-z"]),
                    kit.ok(&source, &["diff-files", "--raw", "-z"])
                );
                assert_eq!(looks(kit, &copy), 0);
                same_answers(kit, &source, &copy);
                let written = fs::read(copy.join(".git/index")).unwrap();
                assert_eq!(written[7], 3);
                assert!(written.windows(4).any(|bytes| bytes == b"TREE"));
                assert!(!written.windows(4).any(|bytes| bytes == b"UNTR"));
                // And it can be worked with.
                kit.commit(&copy, "file", "new");
                kit.ok(&copy, &["fsck", "--strict"]);
            }
        }
    });
}

#[test]
fn a_change_that_git_could_not_see_in_the_stat_data_is_looked_at() {
    with_every_git(|kit| {
        let source = kit.repository("source");
        age(&source);
        kit.ok(&source, &["config", "core.trustctime", "false"]);
        kit.ok(&source, &["config", "core.checkStat", "minimal"]);
        kit.ok(&source, &["update-index", "--refresh"]);
        // Same size, same time: only the ctime, which the person has told Git not to look at.
        write(&source.join("file"), "two\n");
        age(&source);
        assert_eq!(kit.text(&source, &["status", "--porcelain"]), "");
        let copy = copied(kit, &source);
        let (settled, _) = rewrite(kit, &source, &copy);
        assert_eq!(settled, 0);
        assert_eq!(kit.text(&copy, &["status", "--porcelain"]), " M file");
    });
}

#[test]
fn racy_entries_are_looked_at_in_the_copy() {
    with_every_git(|kit| {
        let source = kit.empty("source", &[]);
        write(&source.join("file"), "one\n");
        let future = SystemTime::now() + Duration::from_hours(1);
        let touch = |path: &Path| {
            fs::File::options().write(true).open(path).unwrap().set_modified(future).unwrap();
        };
        touch(&source.join("file"));
        kit.ok(&source, &["add", "file"]);
        kit.ok(&source, &["commit", "-qm", "x"]);
        let copy = copied(kit, &source);
        let (settled, index) = rewrite(kit, &source, &copy);
        assert_eq!((settled, index.entries[0].stat), (0, Stat::default()));
        // The same number of bytes with the same time: an index with the copy's own stat data and
        // a time of its own would hide it.
        write(&copy.join("file"), "two\n");
        touch(&copy.join("file"));
        assert_eq!(kit.text(&copy, &["status", "--porcelain"]), " M file");
    });
}

#[test]
fn uncommitted_work_shows_in_the_copy_as_in_the_source() {
    with_every_git(|kit| {
        let source = tree(kit, &[]);
        write(&source.join("file"), "edited");
        write(&source.join("a/b2"), "staged");
        kit.ok(&source, &["add", "a/b2"]);
        write(&source.join("a/b2"), "and edited");
        fs::remove_file(source.join("empty")).unwrap();
        kit.ok(&source, &["rm", "-q", "--cached", "run"]);
        write(&source.join("untracked"), "x");
        let copy = copied(kit, &source);
        rewrite(kit, &source, &copy);
        same_answers(kit, &source, &copy);
    });
}

#[test]
fn conflicts_keep_their_three_sides() {
    with_every_git(|kit| {
        let source = kit.repository("source");
        kit.ok(&source, &["checkout", "-q", "-b", "side"]);
        kit.commit(&source, "file", "side\n");
        kit.ok(&source, &["checkout", "-q", "main"]);
        kit.commit(&source, "file", "main\n");
        kit.run(&source, &["merge", "side"]);
        let copy = copied(kit, &source);
        let (_, index) = rewrite(kit, &source, &copy);
        assert_eq!(index.entries.iter().map(|e| e.stage).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(index.unmerged().collect::<Vec<_>>(), [Path::new("file")]);
        same_answers(kit, &source, &copy);
    });
}

#[test]
fn an_index_without_a_checksum_is_read() {
    with_every_git(|kit| {
        let source = kit.repository("source");
        kit.ok(&source, &["config", "index.skipHash", "true"]);
        kit.commit(&source, "file", "two\n");
        let copy = copied(kit, &source);
        rewrite(kit, &source, &copy);
        same_answers(kit, &source, &copy);
        let written = fs::read(copy.join(".git/index")).unwrap();
        assert!(written[written.len() - 20..] != [0; 20]);
    });
}

#[test]
fn paths_that_lead_out_of_the_tree_are_refused() {
    for bad in ["../x", "/x", "a//b", "a/", "a/./b", "a/../b", ".git/hooks/x", "a/.GIT/x", ""] {
        let mut index = Index::empty(ObjectFormat::Sha1);
        index.entries.push(entry(bad.as_bytes(), 0));
        let bytes = index.encode().unwrap();
        let read = Index::decode(&bytes, ObjectFormat::Sha1, Time::default());
        assert_eq!(read, Err(IndexError::Path(bad.into())));
    }
}

#[test]
fn damage_is_told_and_never_panics() {
    let mut index = Index::empty(ObjectFormat::Sha1);
    index.entries.extend([entry(b"a", 0), entry(&[b'x'; 5000], 1)]);
    let bytes = index.encode().unwrap();
    let read = |bytes: &[u8]| Index::decode(bytes, ObjectFormat::Sha1, Time::default());
    assert_eq!(read(&bytes), Ok(index));
    for length in 0..bytes.len() {
        assert!(read(&bytes[..length]).is_err());
    }
    let mut flipped = bytes.clone();
    flipped[20] ^= 1;
    assert_eq!(read(&flipped), Err(IndexError::Checksum));
    assert_eq!(
        Index::decode(&bytes, ObjectFormat::Sha256, Time::default()),
        Err(IndexError::Checksum)
    );
}

fn entry(path: &[u8], stage: u8) -> Entry {
    Entry {
        path: name(path),
        kind: EntryKind::File,
        id: ObjectId::from_bytes(&[7; 20]).unwrap(),
        stage,
        is_assumed_unchanged: false,
        is_skipped: false,
        is_intended: false,
        stat: Stat::default(),
    }
}

fn entries() -> impl Strategy<Value = Entry> {
    let kinds = prop_oneof![
        Just(EntryKind::File),
        Just(EntryKind::Executable),
        Just(EntryKind::Link),
        Just(EntryKind::Gitlink)
    ];
    let path = prop::collection::vec(prop_oneof![1u8..46, 48u8..=255], 1..300);
    (path, kinds, any::<[u8; 32]>(), 0u8..4, any::<[bool; 3]>(), any::<[u32; 9]>()).prop_map(
        |(path, kind, id, stage, bits, numbers)| Entry {
            // Never a name that is refused.
            path: name(&[b"p", &path[..]].concat()),
            kind,
            id: ObjectId::from_bytes(&id).unwrap(),
            stage,
            is_assumed_unchanged: bits[0],
            is_skipped: bits[1],
            is_intended: bits[2],
            stat: Stat {
                ctime: Time { secs: numbers[0], nanos: numbers[1] },
                mtime: Time { secs: numbers[2], nanos: numbers[3] },
                device: numbers[4],
                inode: numbers[5],
                user: numbers[6],
                group: numbers[7],
                size: numbers[8],
            },
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_is_written_is_read_again(found in prop::collection::vec(entries(), 0..20)) {
        let mut index = Index::empty(ObjectFormat::Sha256);
        index.entries = found;
        let bytes = index.encode().unwrap();
        prop_assert_eq!(Index::decode(&bytes, ObjectFormat::Sha256, Time::default()).unwrap(), index);
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        found in prop::collection::vec(entries(), 1..4),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        version in 2u8..5,
        behind in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut index = Index::empty(ObjectFormat::Sha256);
        index.entries = found;
        let mut bytes = index.encode().unwrap();
        bytes[7] = version;
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - 32);
        bytes.extend(behind);
        bytes.extend([0; 32]);
        let _ = Index::decode(&bytes, ObjectFormat::Sha256, Time::default());
    }
}
