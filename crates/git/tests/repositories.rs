//! Every kind of repository, found and described by every Git of the machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use common::{Kit, name, with_every_git, write};
use stead_git::{
    GitEntry, GitError, Head, Index, IndexError, Kind, ObjectFormat, Operation, RefFormat,
    Repository,
};

fn branch(kit: &Kit, folder: &Path, name: &str) -> Head {
    let id = kit.text(folder, &["rev-parse", "HEAD"]);
    let commit = stead_git::ObjectId::from_hex(id.as_bytes());
    assert!(commit.is_some());
    Head::Branch { name: name.into(), commit }
}

#[test]
fn a_plain_repository_is_found_from_any_folder_in_it() {
    with_every_git(|kit| {
        for folder in [name(b"plain"), name(b"two\nlines"), name(b"d\xff")] {
            let folder = kit.repository(folder);
            write(&folder.join("a/b/file"), "");
            let found = kit.discover(&folder.join("a/b"));
            assert_eq!(found.kind, Kind::Plain);
            assert_eq!(found.top_level.as_deref(), Some(folder.as_path()));
            assert_eq!(found.git_directory, folder.join(".git"));
            assert_eq!(found.common_directory, found.git_directory);
            assert_eq!(found.index_file, folder.join(".git/index"));
            assert_eq!(found.head, branch(kit, &folder, "refs/heads/main"));
            assert_eq!(found.object_format, ObjectFormat::Sha1);
            assert_eq!(found.ref_format, RefFormat::Files);
            assert!(!found.is_shallow && !found.is_sparse() && !found.is_partial().unwrap());
            assert!(found.operations().unwrap().is_empty());
            assert!(!found.is_index_locked().unwrap());
            assert_eq!(found.worktrees.len(), 1);
            assert!(found.registers(&found));
            assert_eq!(found.git_path("shallow").unwrap(), folder.join(".git/shallow"));
        }
    });
}

#[test]
fn where_no_repository_is_there_is_none() {
    with_every_git(|kit| {
        let plain = kit.at("plain");
        fs::create_dir(&plain).unwrap();
        assert!(Repository::discover(&kit.git, &plain).unwrap().is_none());
        let missing = Repository::discover(&kit.git, &kit.at("missing"));
        assert!(matches!(missing, Err(GitError::Tool(_))));
    });
}

#[test]
fn what_git_cannot_use_is_not_taken_for_a_plain_folder() {
    with_every_git(|kit| {
        let newer = kit.repository("newer");
        kit.ok(&newer, &["config", "core.repositoryformatversion", "99"]);
        let error = Repository::discover(&kit.git, &newer).unwrap_err();
        assert!(matches!(&error, GitError::Unusable { path, .. } if *path == newer.join(".git")));
        let nowhere = kit.at("nowhere");
        write(&nowhere.join(".git"), "gitdir: ../gone\n");
        let error = Repository::discover(&kit.git, &nowhere).unwrap_err();
        assert!(matches!(error, GitError::Unusable { .. }), "{error}");
        let inside = Repository::discover(&kit.git, &kit.repository("r").join(".git/refs"));
        assert!(matches!(inside, Err(GitError::InsideGitDirectory(_))));
    });
}

#[test]
fn a_linked_worktree_has_a_head_of_its_own_and_is_known_by_identity() {
    with_every_git(|kit| {
        let main = kit.repository("main");
        let linked = kit.at("linked");
        kit.ok(&main, &["worktree", "add", "-q", "-b", "feature", "../linked"]);
        kit.commit(&linked, "more", "x");
        let (ours, theirs) = (kit.discover(&main), kit.discover(&linked));
        assert_eq!(theirs.kind, Kind::Linked);
        assert_eq!(theirs.head, branch(kit, &linked, "refs/heads/feature"));
        assert_eq!(ours.head, branch(kit, &main, "refs/heads/main"));
        assert_eq!(theirs.common_directory, main.join(".git"));
        assert_eq!(theirs.git_directory, main.join(".git/worktrees/linked"));
        assert_eq!(theirs.index_file, main.join(".git/worktrees/linked/index"));
        assert!(ours.registers(&theirs) && theirs.registers(&ours));
        let entry = GitEntry::of(&linked).unwrap();
        assert_eq!(entry, Some(GitEntry::Elsewhere(theirs.git_directory.clone())));

        // Neither a clone of the same name nor a copied folder is a work tree of it.
        let clone = kit.at("elsewhere/linked");
        kit.ok(&kit.at(""), &["clone", "-q", "main", "elsewhere/linked"]);
        assert!(!ours.registers(&kit.discover(&clone)));
        let copied = kit.at("copied");
        fs::create_dir(&copied).unwrap();
        fs::copy(linked.join(".git"), copied.join(".git")).unwrap();
        assert!(!ours.registers(&kit.discover(&copied)));
        fs::remove_dir_all(&linked).unwrap();
        kit.repository("linked");
        assert!(!ours.registers(&kit.discover(&linked)));
    });
}

#[test]
fn a_worktree_whose_folder_is_gone_is_prunable() {
    with_every_git(|kit| {
        let main = kit.repository("main");
        kit.ok(&main, &["worktree", "add", "-q", "--detach", "../two\nlines"]);
        fs::remove_dir_all(kit.at("two\nlines")).unwrap();
        let trees = kit.discover(&main).worktrees;
        assert_eq!(trees[1].path, kit.at("two\nlines"));
        assert!(trees[1].prunable && matches!(trees[1].head, Some(Head::Detached(_))));
    });
}

#[test]
fn a_submodule_is_a_repository_of_its_own() {
    with_every_git(|kit| {
        kit.repository("library");
        let outer = kit.repository("outer");
        let allow = ["-c", "protocol.file.allow=always"];
        let add = ["submodule", "--quiet", "add", "../library", "sub"];
        kit.ok(&outer, &[&allow[..], &add[..]].concat());
        kit.ok(&outer, &["commit", "-qm", "with a submodule"]);
        kit.ok(&outer, &["config", "submodule.recurse", "true"]);
        let sub = kit.discover(&outer.join("sub"));
        assert_eq!(sub.kind, Kind::Submodule { superproject: outer.clone() });
        assert_eq!(sub.top_level, Some(outer.join("sub")));
        assert_eq!(sub.git_directory, outer.join(".git/modules/sub"));
        assert_eq!(sub.head, branch(kit, &outer.join("sub"), "refs/heads/main"));
        let index = Index::of(&kit.discover(&outer)).unwrap();
        let links: Vec<_> = index.gitlinks().map(|entry| entry.path.clone()).collect();
        assert_eq!(links, [Path::new("sub")]);
        assert_eq!(index.gitlinks().next().unwrap().id, sub.head.commit().unwrap());
        let entry = GitEntry::of(&outer.join("sub")).unwrap();
        assert_eq!(entry, Some(GitEntry::Elsewhere(outer.join(".git/modules/sub"))));
        // One that is not initialised has no entry, and is then no repository of its own.
        kit.ok(&outer, &["submodule", "--quiet", "deinit", "-f", "sub"]);
        assert_eq!(GitEntry::of(&outer.join("sub")).unwrap(), None);
        assert_eq!(kit.discover(&outer.join("sub")).top_level, Some(outer));
    });
}

#[test]
fn a_bare_layout_names_the_worktrees_to_take() {
    with_every_git(|kit| {
        kit.repository("source");
        let layout = kit.at("layout");
        fs::create_dir(&layout).unwrap();
        kit.ok(&layout, &["clone", "-q", "--bare", "../source", ".bare"]);
        fs::write(layout.join(".git"), "gitdir: ./.bare\n").unwrap();
        kit.ok(&layout, &["worktree", "add", "-q", "main"]);
        for folder in [layout.clone(), layout.join(".bare")] {
            let bare = kit.discover(&folder);
            assert_eq!(bare.kind, Kind::Bare);
            assert_eq!(bare.top_level, None);
            assert_eq!(bare.head, branch(kit, &layout, "refs/heads/main"));
            assert_eq!(bare.worktrees[0].head, None);
            assert_eq!(bare.worktrees[1].path, layout.join("main"));
            assert!(bare.registers(&kit.discover(&layout.join("main"))));
            assert!(!bare.registers(&bare));
        }
        let tree = kit.discover(&layout.join("main"));
        assert_eq!(tree.kind, Kind::Linked);
        assert_eq!(tree.head, branch(kit, &layout, "refs/heads/main"));
    });
}

#[test]
fn a_git_directory_may_be_elsewhere() {
    with_every_git(|kit| {
        kit.empty("apart", &["--separate-git-dir", "../store"]);
        let by_file = kit.discover(&kit.at("apart"));
        assert_eq!(by_file.kind, Kind::Separate);
        assert_eq!(by_file.git_directory, kit.at("store"));
        let linked = kit.at("by-link");
        fs::create_dir(&linked).unwrap();
        kit.repository("real");
        symlink("../real/.git", linked.join(".git")).unwrap();
        let by_link = kit.discover(&linked);
        assert_eq!(by_link.kind, Kind::Separate);
        assert!(by_link.identity.is_same(&kit.discover(&kit.at("real")).identity, true));
    });
}

#[test]
fn a_head_may_have_no_commit_or_no_branch() {
    with_every_git(|kit| {
        let new = kit.empty("new", &[]);
        let unborn = Head::Branch { name: "refs/heads/main".into(), commit: None };
        assert_eq!(kit.discover(&new).head, unborn);
        assert!(Index::of(&kit.discover(&new)).unwrap().entries.is_empty());
        kit.empty("new-bare", &["--bare"]);
        assert_eq!(kit.discover(&kit.at("new-bare")).head, unborn);
        let detached = kit.repository("detached");
        kit.ok(&detached, &["checkout", "-q", "--detach"]);
        let head = kit.discover(&detached).head;
        assert!(matches!(head, Head::Detached(id) if Some(id) == head.commit()));
    });
}

#[test]
fn formats_of_objects_and_refs_are_told() {
    with_every_git(|kit| {
        let long = kit.empty("long", &["--object-format=sha256"]);
        kit.commit(&long, "file", "x");
        let found = kit.discover(&long);
        assert_eq!(found.object_format, ObjectFormat::Sha256);
        assert_eq!(found.head, branch(kit, &long, "refs/heads/main"));
        if kit.version < (2, 45) {
            return;
        }
        let tables = kit.empty("tables", &["--ref-format=reftable"]);
        kit.commit(&tables, "file", "x");
        let found = kit.discover(&tables);
        assert_eq!(found.ref_format, RefFormat::Reftable);
        assert_eq!(found.head, branch(kit, &tables, "refs/heads/main"));
        assert!(found.operations().unwrap().is_empty());
    });
}

#[test]
fn a_cut_history_and_a_partial_clone_are_told() {
    with_every_git(|kit| {
        let source = kit.repository("source");
        kit.commit(&source, "file", "two\n");
        kit.ok(&source, &["config", "uploadpack.allowFilter", "true"]);
        let url = format!("file://{}", source.display());
        kit.ok(&kit.at(""), &["clone", "-q", "--depth=1", &url, "shallow"]);
        kit.ok(&kit.at(""), &["clone", "-q", "--filter=blob:none", &url, "partial"]);
        let (shallow, partial) =
            (kit.discover(&kit.at("shallow")), kit.discover(&kit.at("partial")));
        assert!(shallow.is_shallow && !shallow.is_partial().unwrap());
        assert!(!partial.is_shallow && partial.is_partial().unwrap());
        // The packs tell, whatever became of the settings.
        kit.ok(&kit.at("partial"), &["config", "--remove-section", "remote.origin"]);
        kit.run(&kit.at("partial"), &["config", "--unset", "extensions.partialclone"]);
        assert!(kit.discover(&kit.at("partial")).is_partial().unwrap());
    });
}

#[test]
fn borrowed_objects_are_followed_to_the_end() {
    with_every_git(|kit| {
        kit.repository("first");
        kit.ok(&kit.at(""), &["clone", "-q", "-s", "first", "second"]);
        kit.ok(&kit.at(""), &["clone", "-q", "-s", "second", "third"]);
        let third = kit.at("third/.git/objects/info/alternates");
        fs::write(&third, "# a comment\n\n../../../second/.git/objects\n\"/gone\\n\"\n").unwrap();
        // A circle ends.
        write(&kit.at("first/.git/objects/info/alternates"), "../../../third/.git/objects\n");
        let found = kit.discover(&kit.at("third")).object_folders().unwrap();
        assert_eq!(found.own, kit.at("third/.git/objects"));
        let expected = ["second", "first"].map(|at| kit.at(at).join(".git/objects"));
        assert_eq!(found.borrowed, expected);
        assert_eq!(found.missing, [Path::new("/gone\n")]);
    });
}

#[test]
fn a_sparse_checkout_is_told_and_a_split_or_sparse_index_is_not_read() {
    with_every_git(|kit| {
        let folder = kit.repository("r");
        write(&folder.join("in/a"), "a");
        write(&folder.join("out/b"), "b");
        kit.commit(&folder, "c", "c");
        kit.ok(&folder, &["sparse-checkout", "set", "--cone", "--no-sparse-index", "in"]);
        let found = kit.discover(&folder);
        assert!(found.is_sparse());
        let index = Index::of(&found).unwrap();
        let skipped: Vec<_> = index.entries.iter().filter(|e| e.is_skipped).collect();
        assert_eq!(skipped.iter().map(|e| &*e.path).collect::<Vec<_>>(), [Path::new("out/b")]);
        let refused = |folder: &Path| match Index::of(&kit.discover(folder)) {
            Err(GitError::Index { source, .. }) => source,
            other => panic!("{other:?}"),
        };
        kit.ok(&folder, &["sparse-checkout", "set", "--cone", "--sparse-index", "in"]);
        assert_eq!(refused(&folder), IndexError::Sparse);
        let split = kit.repository("split");
        kit.ok(&split, &["update-index", "--split-index"]);
        kit.commit(&split, "file", "changed");
        assert_eq!(refused(&split), IndexError::Split);
    });
}

#[test]
fn operations_in_progress_are_told() {
    with_every_git(|kit| {
        let make = |name: &str| {
            let folder = kit.repository(name);
            kit.ok(&folder, &["checkout", "-q", "-b", "side"]);
            kit.commit(&folder, "file", "side\n");
            kit.ok(&folder, &["checkout", "-q", "main"]);
            kit.commit(&folder, "file", "main\n");
            folder
        };
        let cases: [(&str, &[&str], Operation); 6] = [
            ("merge", &["merge", "side"], Operation::Merge),
            ("rebase", &["rebase", "side"], Operation::Rebase),
            ("rebase-old", &["rebase", "--apply", "side"], Operation::Rebase),
            ("pick", &["cherry-pick", "side"], Operation::CherryPick),
            ("revert", &["revert", "--no-edit", "HEAD~1", "HEAD"], Operation::Revert),
            ("bisect", &["bisect", "start"], Operation::Bisect),
        ];
        for (name, arguments, expected) in cases {
            let folder = make(name);
            kit.run(&folder, arguments);
            let found = kit.discover(&folder);
            assert_eq!(found.operations().unwrap(), [expected], "{name}");
            let index = Index::of(&found).unwrap();
            let unmerged: Vec<_> = index.unmerged().collect();
            let has_conflict = expected != Operation::Bisect;
            assert_eq!(unmerged, if has_conflict { vec![Path::new("file")] } else { vec![] });
            if has_conflict && expected != Operation::Rebase {
                kit.ok(&folder, &[expected.command(), "--abort"]);
                assert!(kit.discover(&folder).operations().unwrap().is_empty());
            }
        }
        let folder = make("mail");
        kit.ok(&folder, &["format-patch", "-q", "-1", "side", "-o", "../patches"]);
        let patch = fs::read_dir(kit.at("patches")).unwrap().next().unwrap().unwrap().path();
        kit.run(&folder, &[OsStr::new("am"), patch.as_os_str()]);
        assert_eq!(kit.discover(&folder).operations().unwrap(), [Operation::ApplyMail]);
        if kit.version >= (2, 45) {
            let tables = kit.empty("tables", &["--ref-format=reftable"]);
            kit.commit(&tables, "file", "1\n");
            kit.commit(&tables, "file", "2\n");
            kit.commit(&tables, "file", "3\n");
            kit.run(&tables, &["cherry-pick", "HEAD~1"]);
            assert_eq!(kit.discover(&tables).operations().unwrap(), [Operation::CherryPick]);
        }
    });
}

#[test]
fn a_series_between_two_commits_is_in_progress() {
    with_every_git(|kit| {
        let folder = kit.repository("r");
        for text in ["2\n", "3\n", "4\n"] {
            kit.commit(&folder, "file", text);
        }
        kit.run(&folder, &["revert", "--no-edit", "HEAD~1", "HEAD~2"]);
        write(&folder.join("file"), "solved\n");
        kit.ok(&folder, &["commit", "-qam", "solved"]);
        assert!(!folder.join(".git/REVERT_HEAD").exists());
        assert_eq!(kit.discover(&folder).operations().unwrap(), [Operation::Revert]);
    });
}

#[test]
fn a_held_index_is_told() {
    with_every_git(|kit| {
        let folder = kit.repository("r");
        kit.ok(&folder, &["worktree", "add", "-q", "--detach", "../w"]);
        fs::write(kit.at("r/.git/worktrees/w/index.lock"), "").unwrap();
        assert!(kit.discover(&kit.at("w")).is_index_locked().unwrap());
        assert!(!kit.discover(&folder).is_index_locked().unwrap());
    });
}

#[test]
fn a_repository_of_another_owner_can_be_looked_at() {
    with_every_git(|kit| {
        let folder = kit.repository("r");
        if std::os::unix::fs::chown(&folder, Some(12_345), None).is_err() {
            let test = "a_repository_of_another_owner_can_be_looked_at";
            return stead_testkit::skip(test, "only root gives files away");
        }
        std::os::unix::fs::chown(folder.join(".git"), Some(12_345), None).unwrap();
        assert!(!kit.run(&folder, &["status"]).status.success());
        assert_eq!(kit.discover(&folder).top_level, Some(folder));
    });
}
