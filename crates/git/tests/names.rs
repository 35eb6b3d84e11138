//! What is tracked, untracked and ignored, whatever the names are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use common::{name, with_every_git, write};
use stead_git::{Ignored, Index};

/// Names that have been quoted, cut, expanded or mistaken somewhere.
fn odd_names() -> Vec<PathBuf> {
    let names: [&[u8]; 15] = [
        b"a file",
        "caf\u{e9}.txt".as_bytes(),
        "\u{516c}\u{5171}\u{51fd}\u{6570}.cpp".as_bytes(),
        "\u{df}/\u{e9}.md".as_bytes(),
        "\u{4e2d}\u{6587}\".txt".as_bytes(),
        "\u{4e2d}\t.txt".as_bytes(),
        b"bad\xff.bin",
        b"bad\xfe.bin",
        b"new\nline",
        b"-n",
        b"report[1].md",
        b"*",
        b":(top)x",
        b"back\\slash",
        b"d\xff/inner",
    ];
    names.into_iter().map(name).collect()
}

#[test]
fn field_nam_05_names_come_out_as_they_are_whatever_the_quoting() {
    with_every_git(|kit| {
        for quoting in ["true", "false"] {
            let folder = kit.empty(format!("r{quoting}"), &[]);
            kit.ok(&folder, &["config", "core.quotePath", quoting]);
            for path in odd_names() {
                write(&folder.join(&path), "x");
                let mut ignored = name(b"ig").into_os_string();
                ignored.push(path.file_name().unwrap());
                write(&folder.join(&ignored), "x");
            }
            write(&folder.join(".git/info/exclude"), "ig*\n");
            let found = kit.discover(&folder);
            let sorted = |paths: Vec<PathBuf>| paths.into_iter().collect::<BTreeSet<_>>();
            let answer = found.ignored().unwrap();
            assert_eq!(answer.len(), odd_names().len());
            for Ignored { path, is_folder } in &answer {
                assert!(!is_folder && folder.join(path).is_file(), "{}", path.display());
            }
            let all: Vec<PathBuf> = answer.into_iter().map(|i| i.path).chain(odd_names()).collect();
            let ignored = found.ignored_among(all.iter().map(PathBuf::as_path)).unwrap();
            assert_eq!(ignored.len(), odd_names().len());
            assert!(
                ignored.iter().all(|path| path.as_os_str().as_encoded_bytes().starts_with(b"ig"))
            );
            kit.ok(&folder, &["add", "-A"]);
            let tracked = Index::of(&found).unwrap().entries.into_iter().map(|e| e.path).collect();
            assert_eq!(sorted(tracked), sorted(odd_names()));
        }
    });
}

#[test]
fn what_is_ignored_is_told_by_its_topmost_folder() {
    with_every_git(|kit| {
        let folder = kit.repository("r");
        let rules = "/target/\n*.log\nnode_modules\n!keep.log\n";
        kit.commit(&folder, ".gitignore", rules);
        for path in ["target/a/b", "src/x.log", "src/keep.log", "p/node_modules/m/i", "logs/1.log"]
        {
            write(&folder.join(path), "x");
        }
        // A tracked file in an ignored folder stays tracked, and the folder is then not a whole.
        write(&folder.join("target/kept"), "x");
        kit.ok(&folder, &["add", "-f", "target/kept"]);
        write(&folder.join("info/.gitignore"), "secret\n");
        write(&folder.join("info/secret"), "x");
        kit.repository("r/nested");
        fs::create_dir_all(folder.join("empty/inner")).unwrap();
        let found = kit.discover(&folder);
        let answer = found.ignored().unwrap();
        let ignored: BTreeSet<_> = answer.iter().map(|i| (&*i.path, i.is_folder)).collect();
        let expected = [
            ("info/secret", false),
            ("logs/1.log", false),
            ("p/node_modules", true),
            ("src/x.log", false),
            ("target/a", true),
        ];
        assert_eq!(ignored, expected.iter().map(|(p, f)| (Path::new(*p), *f)).collect());
        let asked = ["target/kept", "target/new", "x.log", "gone/node_modules/", "src/keep.log"];
        let said = found.ignored_among(asked.map(Path::new)).unwrap();
        let expected = ["target/new", "x.log", "gone/node_modules/"].map(PathBuf::from);
        assert_eq!(said, BTreeSet::from(expected));
        assert!(found.ignored_among([]).unwrap().is_empty());
    });
}

#[test]
fn the_persons_own_ignore_rules_count() {
    with_every_git(|kit| {
        let folder = kit.repository("r");
        write(&kit.at("home/.config/git/ignore"), "*.mine\n");
        write(&folder.join("x.mine"), "x");
        let answer = kit.discover(&folder).ignored().unwrap();
        assert_eq!(answer[0].path, Path::new("x.mine"));
    });
}

#[test]
fn an_odd_nested_repository_stops_nothing() {
    with_every_git(|kit| {
        let folder = kit.repository("r");
        kit.empty("r/two\nlines", &[]);
        write(&folder.join("nowhere/.git"), "gitdir: /gone\n");
        write(&folder.join("nowhere/file"), "x");
        write(&folder.join(".git/info/exclude"), "other\n");
        write(&folder.join("other"), "x");
        let answer = kit.discover(&folder).ignored().unwrap();
        assert_eq!(answer.iter().map(|i| &*i.path).collect::<Vec<_>>(), [Path::new("other")]);
    });
}
