//! Freezing: what a review covers, by the base's rules, and what it only counts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use common::{Kit, mode, rel, set_mode, slot, write};
use stead_copies::{
    Admitted, Base, Contents, MakeError, Obstruction, Snapshot, clear_staging, freeze,
};
use stead_files::{Difference, Node, ObstacleKind, Watch, compare};

fn try_freeze(kit: &Kit, admitted: &Admitted) -> Result<Snapshot, MakeError> {
    let base = admitted.layout.slots[0].base;
    freeze(&kit.home, &kit.git, &admitted.layout, &slot("app"), &base, Watch::default())
}

fn frozen(kit: &Kit, admitted: &Admitted) -> Snapshot {
    try_freeze(kit, admitted).unwrap_or_else(|error| panic!("{error}"))
}

fn base(kit: &Kit, admitted: &Admitted) -> Base {
    Base::load(&kit.home, &admitted.layout.slots[0].base).unwrap()
}

/// Sign and path of every change against the base.
fn changes(kit: &Kit, admitted: &Admitted, snapshot: &Snapshot) -> Vec<String> {
    let base = base(kit, admitted).eligible();
    compare(&base, &snapshot.manifest)
        .iter()
        .map(|change| {
            let sign = match change.difference {
                Difference::Added => '+',
                Difference::Removed => '-',
                Difference::Kind => '!',
                Difference::Altered { bytes: true, .. } => '~',
                Difference::Altered { .. } => '.',
            };
            format!("{sign} {}", change.path)
        })
        .collect()
}

#[test]
fn field_cln_08_a_fresh_copy_has_nothing_to_review() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join("target/out"), "built");
    write(&app.join("untracked"), "new");
    let (admitted, copy) = kit.copy(&app);
    let snapshot = frozen(&kit, &admitted);
    assert_eq!(changes(&kit, &admitted, &snapshot), [""; 0]);
    assert_eq!((snapshot.beside.as_slice(), snapshot.commits), (&[][..], Some(0)));
    assert_eq!(kit.status(&copy), "?? untracked\n");
    // Two freezes of one state have one name, whatever the times.
    fs::File::options()
        .write(true)
        .open(copy.join("a.txt"))
        .unwrap()
        .set_modified(std::time::SystemTime::now())
        .unwrap();
    assert_eq!(frozen(&kit, &admitted), snapshot);
    assert_eq!(Snapshot::load(&kit.home, &snapshot.digest).unwrap().manifest, snapshot.manifest);
}

#[test]
fn every_kind_of_change_is_in_the_snapshot_and_its_contents_are_durable() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join("script"), "#!/bin/sh\n");
    write(&app.join("gone"), "");
    fs::create_dir(app.join("empty")).unwrap();
    symlink("a.txt", app.join("link")).unwrap();
    kit.commit_all(&app, "more");
    let (admitted, copy) = kit.copy(&app);
    write(&copy.join("a.txt"), "changed\n");
    write(&copy.join("new/file"), "new\n");
    set_mode(&copy.join("script"), 0o755);
    fs::remove_file(copy.join("gone")).unwrap();
    fs::remove_dir(copy.join("empty")).unwrap();
    fs::create_dir(copy.join("hollow")).unwrap();
    fs::remove_file(copy.join("link")).unwrap();
    symlink("dir", copy.join("link")).unwrap();
    fs::remove_dir_all(copy.join("dir")).unwrap();
    symlink("/nowhere", copy.join("dir")).unwrap();
    let snapshot = frozen(&kit, &admitted);
    assert_eq!(
        changes(&kit, &admitted, &snapshot),
        [
            "~ a.txt",
            "! dir",
            "- dir/b.txt",
            "- empty",
            "- gone",
            "+ hollow",
            ". link",
            "+ new",
            "+ new/file",
            ". script"
        ]
    );
    // Whatever becomes of the copy, everything can be read.
    fs::remove_dir_all(&copy).unwrap();
    let base = base(&kit, &admitted);
    let contents =
        Contents::of(&kit.home, &kit.git, &admitted.layout.slots[0].root, &base).unwrap();
    let text = |entry: Option<&stead_files::Entry>| {
        String::from_utf8(contents.read(entry.unwrap()).unwrap()).unwrap()
    };
    assert_eq!(text(snapshot.manifest.get(&rel("a.txt"))), "changed\n");
    assert_eq!(text(snapshot.manifest.get(&rel("new/file"))), "new\n");
    assert_eq!(text(snapshot.manifest.get(&rel("script"))), "#!/bin/sh\n");
    for (path, expected) in [("a.txt", "one\n"), ("dir/b.txt", "two\n"), ("gone", "")] {
        assert_eq!(text(base.manifest.get(&rel(path))), expected, "{path}");
    }
    let files: Vec<_> = base.eligible().into_entries();
    let files: Vec<_> = files.iter().filter(|e| matches!(e.node, Node::File { .. })).collect();
    assert_eq!(contents.read_all(&files).unwrap().len(), files.len());
}

#[test]
fn contents_of_clean_tracked_files_are_gits_and_all_others_are_kept() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join("crlf.txt"), "x\r\ny\r\n");
    write(&app.join(".gitattributes"), "crlf.txt text eol=crlf\n*.enc filter=rot\n");
    write(&app.join("same-size.enc"), "abc");
    kit.ok(&app, &["config", "filter.rot.clean", "tr a-z b-za"]);
    kit.ok(&app, &["config", "filter.rot.smudge", "tr b-za a-z"]);
    kit.commit_all(&app, "more");
    write(&app.join("a.txt"), "dirty\n");
    write(&app.join("untracked"), "untracked\n");
    write(&app.join("build.log"), "ignored\n");
    let (admitted, copy) = kit.copy(&app);
    let base = base(&kit, &admitted);
    let kept = |path: &str| {
        let Node::File { digest, .. } = &base.manifest.get(&rel(path)).unwrap().node else {
            panic!("{path}")
        };
        digest.is_some_and(|digest| kit.home.blobs().path(&digest).exists())
    };
    for path in ["dir/b.txt", ".gitignore", ".gitattributes"] {
        assert!(!kept(path), "{path}");
    }
    for path in ["a.txt", "untracked", "crlf.txt", "same-size.enc"] {
        assert!(kept(path), "{path}");
    }
    assert!(!kept("build.log"));
    // The bytes are those of the files, not Git's.
    let contents =
        Contents::of(&kit.home, &kit.git, &admitted.layout.slots[0].root, &base).unwrap();
    for path in ["crlf.txt", "same-size.enc", "dir/b.txt", "a.txt"] {
        let entry = base.manifest.get(&rel(path)).unwrap();
        assert_eq!(contents.read(entry).unwrap(), fs::read(copy.join(path)).unwrap(), "{path}");
    }
}

#[test]
fn the_bases_ignore_rules_decide_whatever_becomes_of_them_in_the_copy() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join("dir/.gitignore"), "*.tmp\n!keep.tmp\n");
    kit.commit_all(&app, "rules");
    write(&app.join(".git/info/exclude"), "private\n");
    write(&kit.at("user/.config/git/ignore"), "*.swp\n");
    write(&app.join("old.log"), "ignored at admission");
    let (admitted, copy) = kit.copy(&app);
    // The agent ignores its own work and takes everything else out of the rules.
    write(&copy.join(".gitignore"), "secret-change\n");
    fs::remove_file(copy.join("dir/.gitignore")).unwrap();
    write(&copy.join("secret-change"), "");
    for ignored in ["target/x/y", "new.log", "old.log", "dir/a.tmp", "private", "x.swp"] {
        write(&copy.join(ignored), "changed");
    }
    write(&copy.join("dir/keep.tmp"), "");
    let snapshot = frozen(&kit, &admitted);
    assert_eq!(
        changes(&kit, &admitted, &snapshot),
        ["~ .gitignore", "- dir/.gitignore", "+ dir/keep.tmp", "+ secret-change"]
    );
    let beside: Vec<String> =
        snapshot.beside.iter().map(|(path, count)| format!("{path} {count}")).collect();
    assert_eq!(
        beside,
        ["dir/a.tmp 1", "new.log 1", "old.log 1", "private 1", "target 3", "x.swp 1"]
    );
    assert_eq!(clear_staging(&kit.home).unwrap(), [""; 0].map(std::path::PathBuf::from));
}

#[test]
fn tracked_files_below_ignored_folders_are_covered() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join("target/kept"), "one");
    kit.ok(&app, &["add", "-f", "target/kept"]);
    kit.commit_all(&app, "forced");
    write(&app.join("target/other"), "one");
    let (admitted, copy) = kit.copy(&app);
    write(&copy.join("target/kept"), "two");
    write(&copy.join("target/other"), "two");
    let snapshot = frozen(&kit, &admitted);
    assert_eq!(changes(&kit, &admitted, &snapshot), ["~ target/kept"]);
    assert_eq!(snapshot.beside, [(rel("target/other"), 1)]);
}

#[test]
fn in_a_plain_folder_everything_is_covered() {
    let kit = Kit::new();
    let folder = kit.at("plain");
    write(&folder.join("a.log"), "one");
    write(&folder.join(".gitignore"), "*.log\n");
    let (admitted, copy) = kit.copy(&folder);
    write(&copy.join("a.log"), "two");
    kit.ok(&copy, &["init", "-q"]);
    let snapshot = frozen(&kit, &admitted);
    assert_eq!(changes(&kit, &admitted, &snapshot), ["~ a.log"]);
    assert_eq!(snapshot.commits, Some(0));
}

#[test]
fn commits_in_the_copy_are_counted_and_a_broken_repository_is_no_loss() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let (admitted, copy) = kit.copy(&app);
    for text in ["two", "three"] {
        write(&copy.join("a.txt"), text);
        kit.ok(&copy, &["commit", "-q", "-a", "-m", text]);
    }
    let snapshot = frozen(&kit, &admitted);
    assert_eq!(snapshot.commits, Some(2));
    assert_eq!(changes(&kit, &admitted, &snapshot), ["~ a.txt"]);
    fs::remove_dir_all(copy.join(".git")).unwrap();
    let snapshot = frozen(&kit, &admitted);
    assert_eq!(snapshot.commits, None);
    assert_eq!(changes(&kit, &admitted, &snapshot), ["~ a.txt"]);
}

#[test]
fn field_nam_04_an_odd_nested_repository_of_the_agents_is_named_and_left_out() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let (admitted, copy) = kit.copy(&app);
    let nested = copy.join("chi\nld");
    fs::create_dir(&nested).unwrap();
    kit.ok(&nested, &["init", "-q"]);
    write(&copy.join("base2"), "x");
    let snapshot = frozen(&kit, &admitted);
    assert_eq!(changes(&kit, &admitted, &snapshot), ["+ base2"]);
    assert_eq!(snapshot.beside.len(), 1);
    assert_eq!(snapshot.beside[0].0, rel("chi\nld"));
}

#[test]
fn field_nam_05_names_are_bytes() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let names: [&[u8]; 12] = [
        "café.txt".as_bytes(),
        "公共函数.cpp".as_bytes(),
        "ß/é.md".as_bytes(),
        b"with space.txt",
        "naïve.txt".as_bytes(),
        "中文\".txt".as_bytes(),
        "中\t.txt".as_bytes(),
        b"bad\xff.bin",
        b"bad\xfe.bin",
        b"d\xff/x",
        b"new\nline",
        b"-dash [1].md",
    ];
    for quote in ["true", "false"] {
        kit.ok(&app, &["config", "core.quotePath", quote]);
        for name in &names[..6] {
            write(&app.join(Path::new(OsStr::from_bytes(name))), "tracked");
        }
        if quote == "true" {
            kit.commit_all(&app, "names");
        }
        let task = if quote == "true" { 1 } else { 2 };
        let (admitted, copy) = kit.copy_as(task, &app);
        assert_eq!(kit.status(&copy), "");
        for name in names {
            write(&copy.join(Path::new(OsStr::from_bytes(name))), "by the agent");
        }
        let snapshot = frozen(&kit, &admitted);
        let found = changes(&kit, &admitted, &snapshot);
        // Twelve files, and the new folder of one of them.
        assert_eq!(found.len(), 13, "{found:?}");
        for name in names {
            let path = stead_files::RelPath::parse(name).unwrap();
            assert!(matches!(
                snapshot.manifest.get(&path).unwrap().node,
                Node::File { size: 12, .. }
            ));
        }
    }
}

#[test]
fn what_no_apply_could_bring_is_refused_with_its_paths() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let (admitted, copy) = kit.copy(&app);
    write(&copy.join("target/one"), "x");
    fs::hard_link(copy.join("target/one"), copy.join("target/two")).unwrap();
    kit.ok(&copy, &["status"]);
    frozen(&kit, &admitted);
    fs::hard_link(copy.join("a.txt"), copy.join("second")).unwrap();
    let pipe = copy.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let error = try_freeze(&kit, &admitted).unwrap_err();
    let hint = error.hint().unwrap();
    let MakeError::Refused(refused) = error else { panic!() };
    let Obstruction::Unsupported(obstacles) = &refused.why else { panic!("{refused}") };
    assert!(hint.contains("remove pipes") && hint.contains(copy.to_str().unwrap()), "{hint}");
    let paths: Vec<String> = obstacles.iter().map(|o| o.path.to_string()).collect();
    assert_eq!(paths, ["a.txt", "pipe", "second"]);
    assert_eq!(obstacles[0].kind, ObstacleKind::HardLink { names: 2 });
    assert!(refused.to_string().contains("pipe is a named pipe"), "{refused}");
}

#[test]
fn only_what_changed_is_read() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let (admitted, copy) = kit.copy(&app);
    // A file that may not be read and did not change does not stop a freeze.
    write(&copy.join("dir/b.txt"), "changed");
    set_mode(&copy.join("dir/b.txt"), 0o600);
    let base = base(&kit, &admitted);
    let options = stead_files::CaptureOptions::default();
    let captured = stead_files::capture(&copy.join("dir"), None, &options).unwrap();
    assert_eq!(captured.read_files, 1);
    assert!(base.manifest.entries().iter().all(|entry| {
        !matches!(entry.node, Node::File { digest: Some(_), .. }) || entry.seen.is_some()
    }));
    assert_eq!(mode(&copy.join("dir/b.txt")), 0o600);
    let snapshot = frozen(&kit, &admitted);
    assert_eq!(changes(&kit, &admitted, &snapshot), ["~ dir/b.txt"]);
}

#[test]
fn the_base_after_an_apply_is_the_snapshot_with_the_rest_as_it_was() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join("target/out"), "built");
    let (admitted, copy) = kit.copy(&app);
    write(&copy.join("a.txt"), "two\n");
    write(&copy.join("new.txt"), "new\n");
    let snapshot = frozen(&kit, &admitted);
    let after = base(&kit, &admitted).after(&snapshot).unwrap();
    let digest = after.save(&kit.home).unwrap();
    assert_eq!(Base::load(&kit.home, &digest).unwrap(), after);
    assert!(compare(&after.eligible(), &snapshot.manifest).is_empty());
    assert!(after.manifest.get(&rel("target/out")).is_some());
    let again =
        freeze(&kit.home, &kit.git, &admitted.layout, &slot("app"), &digest, Watch::default())
            .unwrap();
    assert_eq!(again, snapshot);
}

#[test]
fn a_folder_that_became_a_repository_is_named_and_what_it_held_is_no_removal() {
    let entries: [fn(&Path); 4] = [
        |git| fs::create_dir(git).unwrap(),
        |git| fs::write(git, "").unwrap(),
        |git| fs::write(git, "gitdir: /nowhere").unwrap(),
        |git| symlink("nowhere", git).unwrap(),
    ];
    for (number, make) in (1..).zip(entries) {
        let kit = Kit::new();
        let app = kit.repository("app");
        write(&app.join("dir/untracked"), "precious");
        write(&app.join("dir/deep/c"), "three\n");
        let (admitted, copy) = kit.copy_as(number, &app);
        make(&copy.join("dir/.git"));
        fs::remove_file(copy.join("dir/b.txt")).unwrap();
        write(&copy.join("dir/deep/c"), "changed\n");
        write(&copy.join("a.txt"), "changed\n");
        let snapshot = frozen(&kit, &admitted);
        assert_eq!(changes(&kit, &admitted, &snapshot), ["~ a.txt"]);
        assert_eq!(snapshot.repositories, [rel("dir")]);
        assert_eq!(snapshot.beside, [(rel("dir"), 3)]);
        let base = base(&kit, &admitted);
        assert_eq!(stead_copies::changes(&base, &snapshot).unwrap().len(), 1);
        let loaded = Snapshot::load(&kit.home, &snapshot.digest).unwrap();
        assert_eq!(loaded.manifest, snapshot.manifest);
        // Applied, it is told against what the original still has.
        let next = base.after(&snapshot).unwrap();
        assert_eq!(next.manifest.within(&rel("dir")).len(), 5);
    }
}

#[test]
fn a_file_in_whose_place_a_repository_is_stays_and_a_new_repository_is_only_counted() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let (admitted, copy) = kit.copy(&app);
    fs::remove_file(copy.join("a.txt")).unwrap();
    kit.ok(&copy, &["init", "-q", "a.txt"]);
    kit.ok(&copy, &["init", "-q", "clone"]);
    let snapshot = frozen(&kit, &admitted);
    assert_eq!(changes(&kit, &admitted, &snapshot), [""; 0]);
    assert_eq!(snapshot.repositories, [rel("a.txt")]);
    assert_eq!(snapshot.beside.len(), 2);
}
