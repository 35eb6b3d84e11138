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
