//! Questions to the objects.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use common::{name, picture, with_every_git, write};
use stead_git::index::EntryKind;
use stead_git::{Index, ObjectId};

#[test]
fn the_tree_of_a_commit_is_what_the_index_was() {
    with_every_git(|kit| {
        for format in ["sha1", "sha256"] {
            let options = format!("--object-format={format}");
            let folder = kit.empty(format, &[&options]);
            for path in [name(b"a/b\xff\n\t\"c"), name(b"run"), name(b"z")] {
                write(&folder.join(path), "x");
            }
            fs::set_permissions(folder.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
            symlink("z", folder.join("link")).unwrap();
            kit.commit(&folder, "file", "one\n");
            let found = kit.discover(&folder);
            let tree = found.tree(found.head.commit().unwrap()).unwrap();
            let index = Index::of(&found).unwrap();
            let of_index: Vec<(PathBuf, EntryKind, ObjectId)> =
                index.entries.into_iter().map(|entry| (entry.path, entry.kind, entry.id)).collect();
            let of_tree: Vec<_> =
                tree.into_iter().map(|entry| (entry.path, entry.kind, entry.id)).collect();
            assert_eq!(of_tree, of_index);
        }
    });
}

#[test]
fn missing_objects_are_told_and_never_fetched() {
    with_every_git(|kit| {
        let source = kit.repository("source");
        kit.ok(&source, &["config", "uploadpack.allowFilter", "true"]);
        let all: Vec<ObjectId> =
            Index::of(&kit.discover(&source)).unwrap().entries.iter().map(|e| e.id).collect();
        let nobody = ObjectId::from_bytes(&[7; 20]).unwrap();
        let asked = [all[0], nobody, all[0]];
        assert_eq!(kit.discover(&source).missing_objects(asked).unwrap(), [nobody]);
        assert!(kit.discover(&source).missing_objects([]).unwrap().is_empty());
        let url = format!("file://{}", source.display());
        let clone = ["clone", "-q", "--no-checkout", "--filter=blob:none", &url, "partial"];
        kit.ok(&kit.at(""), &clone);
        let before = picture(&kit.at("partial"));
        match kit.discover(&kit.at("partial")).missing_objects(asked) {
            Ok(missing) => assert_eq!(missing, asked),
            Err(error) => assert!(kit.version < (2, 45), "{error}"),
        }
        assert!(before == picture(&kit.at("partial")));
    });
}

#[test]
fn commits_of_a_copy_are_counted() {
    with_every_git(|kit| {
        let folder = kit.repository("r");
        let base = kit.discover(&folder).head.commit().unwrap();
        kit.commit(&folder, "file", "two\n");
        kit.commit(&folder, "file", "three\n");
        let found = kit.discover(&folder);
        let tip = found.head.commit().unwrap();
        assert_eq!(found.count_commits(Some(base), tip).unwrap(), 2);
        assert_eq!(found.count_commits(None, tip).unwrap(), 3);
        assert_eq!(found.count_commits(Some(tip), base).unwrap(), 0);
    });
}

#[test]
fn contents_are_as_they_are_stored_and_through_no_filter() {
    with_every_git(|kit| {
        let folder = kit.repository("r");
        let ran = kit.at("ran");
        write(&folder.join(".gitattributes"), "*.f filter=x\n*.txt text eol=crlf\n");
        write(&folder.join("a.txt"), "one\r\ntwo\r\n");
        write(&folder.join("b.f"), "\n\0blob 3\n");
        write(&folder.join("empty"), "");
        kit.ok(&folder, &["add", "-A"]);
        let touch = format!("touch {}", ran.display());
        kit.ok(&folder, &["config", "filter.x.smudge", &touch]);
        kit.ok(&folder, &["config", "filter.x.process", &touch]);
        let found = kit.discover(&folder);
        let index = Index::of(&found).unwrap();
        let id = |name: &str| index.entries.iter().find(|e| e.path.as_os_str() == name).unwrap().id;
        let nobody = ObjectId::from_bytes(&[7; 20]).unwrap();
        let commit = found.head.commit().unwrap();
        let asked = [id("b.f"), nobody, id("a.txt"), commit, id("empty"), id("b.f")];
        let odd = b"\n\0blob 3\n".to_vec();
        let expected = [
            Some(odd.clone()),
            None,
            Some(b"one\ntwo\n".to_vec()),
            None,
            Some(Vec::new()),
            Some(odd),
        ];
        assert_eq!(found.blobs(&asked).unwrap(), expected);
        let sizes = expected.map(|bytes| bytes.map(|b| u64::try_from(b.len()).unwrap()));
        assert_eq!(found.blob_sizes(&asked).unwrap(), sizes);
        assert!(found.blobs(&[]).unwrap().is_empty() && found.blob_sizes(&[]).unwrap().is_empty());
        assert!(!ran.exists());
    });
}

#[test]
fn files_behind_filters_and_encodings_are_told_by_attributes() {
    with_every_git(|kit| {
        let folder = kit.repository("r");
        let rules = "*.f filter=x\n*.u working-tree-encoding=UTF-16\nno.f -filter\n*.txt text\n";
        write(&folder.join(".gitattributes"), rules);
        write(&folder.join(".git/info/attributes"), "private filter=y\n");
        let names: [&[u8]; 6] = [b"a.f", b"no.f", b"x\xff\n.u", b"-b.txt", b"private", b"d/c.f"];
        let paths: Vec<PathBuf> = names.iter().map(|bytes| name(bytes)).collect();
        let found = kit.discover(&folder).converted_among(paths.iter().map(PathBuf::as_path));
        let expected: [&[u8]; 4] = [b"a.f", b"d/c.f", b"private", b"x\xff\n.u"];
        let expected: Vec<PathBuf> = expected.iter().map(|bytes| name(bytes)).collect();
        assert_eq!(found.unwrap().into_iter().collect::<Vec<_>>(), expected);
    });
}
