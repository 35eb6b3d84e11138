//! What arrives, and what stays as it was.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use stead_copies::{Cause, Outcome, State};

use crate::kit::{World, assert_same, bytes_path, chmod, everything, path, text, write};

fn small(root: &Path) {
    write(root, "a.txt", "one\n");
    write(root, "d/b.txt", "two\n");
}

#[test]
fn copies_56_only_the_reviewed_snapshot_arrives() {
    let mut world = World::repository(small);
    write(&world.copy, "a.txt", "reviewed\n");
    let snapshot = world.freeze();
    let review = world.review(&snapshot);
    write(&world.copy, "a.txt", "later\n");
    write(&world.copy, "new", "later\n");
    let written = crate::kit::written(world.check(&snapshot, &review).unwrap().write());
    written.clear().unwrap();
    assert_eq!(text(&world.root.join("a.txt")), "reviewed\n");
    assert!(!world.root.join("new").exists());
    assert_eq!(text(&world.copy.join("a.txt")), "later\n");
    world.base.manifest = snapshot.manifest;
    assert_eq!(world.apply(), ["a.txt", "new"], "the next review has the rest");
}

#[test]
fn copies_59_unrelated_staged_paths_stay() {
    let build = |root: &Path| {
        small(root);
        for name in ["staged", "unstaged", "both"] {
            write(root, name, "base\n");
        }
        write(root, ".gitignore", "ignored\n");
    };
    let mut world = World::repository(build);
    let root = world.root.clone();
    write(&root, "staged", "staged\n");
    write(&root, "both", "staged\n");
    write(&root, "added-and-more", "staged\n");
    world.ok(&["add", "staged", "both", "added-and-more"]);
    write(&root, "both", "and more\n");
    write(&root, "added-and-more", "and more\n");
    write(&root, "unstaged", "unstaged\n");
    write(&root, "untracked", "mine\n");
    write(&root, "ignored", "mine\n");
    world.ok(&["status"]);
    let state = |world: &World| {
        let status = world.ok(&["status", "--porcelain"]);
        let status: Vec<String> = status
            .lines()
            .filter(|line| !line.contains("a.txt") && !line.contains("n1") && !line.contains("d/"))
            .map(str::to_owned)
            .collect();
        (status, world.ok(&["ls-files", "-s"]), world.ok(&["diff", "--cached"]))
    };
    let (before, index) = (state(&world), fs::read(root.join(".git/index")).unwrap());
    assert!(before.0.contains(&"MM both".to_owned()));
    assert!(before.0.contains(&"AM added-and-more".to_owned()));
    write(&world.copy, "a.txt", "task\n");
    write(&world.copy, "n1", "task\n");
    write(&world.copy, "d/n2", "task\n");
    assert_eq!(world.apply(), ["a.txt", "d/n2", "n1"]);
    assert_eq!(fs::read(root.join(".git/index")).unwrap(), index, "byte for byte");
    assert_eq!(state(&world), before);
    assert_eq!(text(&root.join("n1")), "task\n");
    assert_eq!(text(&root.join("both")), "and more\n");
}

#[test]
fn field_apl_01_uncommitted_edits_stay() {
    let mut world = World::repository(small);
    write(&world.root, "d/b.txt", "mine\n");
    write(&world.root, "mine", "mine\n");
    write(&world.copy, "a.txt", "task\n");
    world.apply();
    assert!(world.ok(&["diff"]).contains("+mine"));
    assert_eq!(text(&world.root.join("mine")), "mine\n");
    // Where both changed the same file, apply stops before touching anything.
    write(&world.copy, "d/b.txt", "task\n");
    world.refused();
    assert_eq!(text(&world.root.join("d/b.txt")), "mine\n");
}

#[test]
fn field_apl_02_new_files_arrive_and_nothing_is_stashed() {
    let mut world = World::repository(|root| {
        small(root);
        write(root, ".gitignore", "*.log\n");
    });
    let root = world.root.clone();
    write(&root, "a.txt", "staged\n");
    world.ok(&["add", "a.txt"]);
    write(&root, "d/b.txt", "unstaged\n");
    write(&root, "untracked", "x");
    write(&root, "x.log", "x");
    let staged = world.ok(&["diff", "--cached", "--stat"]);
    write(&world.copy, "n1", "n1");
    write(&world.copy, "d/n2", "n2");
    assert_eq!(world.apply(), ["d/n2", "n1"]);
    assert_eq!(world.ok(&["diff", "--cached", "--stat"]), staged);
    assert_eq!(world.ok(&["stash", "list"]), "");
    assert_eq!(text(&root.join("d/n2")), "n2");
}

#[test]
fn field_apl_05_files_in_hidden_and_deep_folders_arrive() {
    let mut world = World::repository(small);
    let paths = [".agents/skills/s/SKILL.md", ".github/w.yml", "empty.txt", "x/y/z/deep"];
    for at in paths {
        write(&world.copy, at, if at == "empty.txt" { "" } else { at });
    }
    let written = world.apply();
    for at in paths {
        assert!(written.contains(&at.to_owned()));
    }
    assert_same(&world.copy, &world.root);
}

#[test]
fn field_apl_08_binaries_modes_links_and_renames_all_arrive() {
    let build = |root: &Path| {
        small(root);
        write(root, "run.sh", "#!/bin/sh\n");
        write(root, "old", "moved\n");
        write(root, "img.bin", [0_u8, 1, 2, 255, 0, 10]);
    };
    let mut world = World::repository(build);
    let copy = world.copy.clone();
    chmod(&copy.join("run.sh"), 0o755);
    write(&copy, "img.bin", [255_u8, 0, 13, 10, 0, 7]);
    fs::rename(copy.join("old"), copy.join("new")).unwrap();
    symlink("t", copy.join("l")).unwrap();
    write(&copy, "zero", "");
    fs::create_dir(copy.join("emptydir")).unwrap();
    write(&copy, "a.txt", "edited\n");
    world.apply();
    assert_same(&copy, &world.root);
}

#[test]
fn field_apl_11_a_second_apply_of_the_same_task_brings_the_rest() {
    let mut world = World::repository(small);
    write(&world.copy, "a.txt", "first\n");
    write(&world.copy, "new", "first\n");
    assert_eq!(world.apply(), ["a.txt", "new"]);
    // Edited on without a commit, after a commit, and after a mere `add`.
    write(&world.copy, "a.txt", "second\n");
    write(&world.copy, "new", "second\n");
    assert_eq!(world.apply(), ["a.txt", "new"]);
    world.ok(&["add", "-A"]);
    world.ok(&["commit", "-qm", "applied"]);
    write(&world.copy, "a.txt", "third\n");
    write(&world.copy, "new", "third\n");
    assert_eq!(world.apply(), ["a.txt", "new"]);
    world.ok(&["add", "-A"]);
    write(&world.copy, "a.txt", "fourth\n");
    write(&world.copy, "new", "fourth\n");
    assert_eq!(world.apply(), ["a.txt", "new"]);
    assert_eq!(text(&world.root.join("new")), "fourth\n");
}

#[test]
fn copies_61_equal_content_is_no_conflict() {
    let mut world = World::repository(small);
    write(&world.copy, "new", "same\n");
    write(&world.copy, "other", "task\n");
    write(&world.root, "new", "same\n");
    let inode = fs::metadata(world.root.join("new")).unwrap().ino();
    assert_eq!(world.apply(), ["other"]);
    assert_eq!(fs::metadata(world.root.join("new")).unwrap().ino(), inode, "not written");
}

#[test]
fn copies_64_an_explicit_apply_may_go_to_main() {
    let mut world = World::repository(small);
    assert_eq!(world.ok(&["branch", "--show-current"]), "main\n");
    write(&world.copy, "a.txt", "task\n");
    assert_eq!(world.apply(), ["a.txt"]);
    world.ok(&["checkout", "-q", "--detach"]);
    world.admit();
    write(&world.copy, "a.txt", "task again\n");
    assert_eq!(world.apply(), ["a.txt"], "a detached commit is a checkout like any other");
}

#[test]
fn copies_66_of_two_roots_the_second_may_be_refused() {
    let mut app = World::repository(small);
    let mut library = app.beside(small);
    for world in [&app, &library] {
        write(&world.copy, "a.txt", "task\n");
        write(&world.copy, "new", "task\n");
    }
    write(&library.root, "a.txt", "mine\n");
    assert_eq!(app.apply(), ["a.txt", "new"]);
    let applied = everything(&app.root);
    assert_eq!(library.conflicts().len(), 1);
    assert_eq!(everything(&app.root), applied, "the first stays applied");
    write(&library.root, "a.txt", "one\n");
    assert_eq!(library.apply(), ["a.txt", "new"]);
}

#[test]
fn what_is_written_can_be_taken_back_until_it_is_recorded() {
    for is_git in [false, true] {
        let mut world = World::new(crate::kit::quick_folder(), is_git, many_kinds);
        let old = crate::kit::content(&world.root);
        change_many_kinds(&world.copy);
        let written = crate::kit::written(world.ready().unwrap().write());
        assert_eq!(text(&world.root.join("to-file")), "file now");
        // Beside it the person works on.
        write(&world.root, "d/b.txt", "mine\n");
        match written.undo() {
            Outcome::RolledBack { cause: Cause::Withdrawn, rescue } => {
                assert!(rescue.paths.is_empty(), "{rescue:?}");
            }
            other => panic!("{other:?}"),
        }
        write(&world.root, "d/b.txt", "two\n");
        assert_eq!(crate::kit::content(&world.root), old);
        world.is_clean();
    }
}

#[test]
fn a_replaced_file_keeps_its_group_in_a_folder_that_gives_another() {
    if !rustix::process::geteuid().is_root() {
        return stead_testkit::skip("a_replaced_file_keeps_its_group", "not root");
    }
    let mut world = World::plain(|root| {
        small(root);
        std::os::unix::fs::chown(root.join("d"), None, Some(12345)).unwrap();
        chmod(&root.join("d"), 0o2755);
    });
    write(&world.copy, "d/b.txt", "task\n");
    world.apply();
    let found = fs::metadata(world.root.join("d/b.txt")).unwrap();
    assert_eq!((found.uid(), found.gid()), (0, 0));
}

fn many_kinds(root: &Path) {
    small(root);
    write(root, "mode", "x");
    symlink("a.txt", root.join("link")).unwrap();
    write(root, "to-link", "x");
    symlink("gone", root.join("to-file")).unwrap();
    write(root, "to-folder", "x");
    write(root, "from-folder/deep/x", "x");
    write(root, "from-folder/y", "y");
    write(root, "gone/deep/x", "x");
    fs::create_dir(root.join("closed")).unwrap();
    write(root, "closed/in", "x");
    fs::create_dir(root.join("shared")).unwrap();
}

fn change_many_kinds(copy: &Path) {
    chmod(&copy.join("mode"), 0o4750);
    fs::remove_file(copy.join("link")).unwrap();
    symlink("d/b.txt", copy.join("link")).unwrap();
    fs::remove_file(copy.join("to-link")).unwrap();
    symlink("../outside", copy.join("to-link")).unwrap();
    fs::remove_file(copy.join("to-file")).unwrap();
    write(copy, "to-file", "file now");
    fs::remove_file(copy.join("to-folder")).unwrap();
    write(copy, "to-folder/deep/x", "in it");
    fs::remove_dir_all(copy.join("from-folder")).unwrap();
    write(copy, "from-folder", "file now");
    fs::remove_dir_all(copy.join("gone")).unwrap();
    fs::create_dir(copy.join("empty")).unwrap();
    write(copy, "closed/new", "x");
    chmod(&copy.join("closed"), 0o555);
    chmod(&copy.join("shared"), 0o3777);
    write(copy, "new/closed/x", "x");
    chmod(&copy.join("new/closed"), 0o500);
}

#[test]
fn copies_65_modes_links_kinds_and_folders_are_listed_and_applied() {
    for is_git in [false, true] {
        for exchanges in [true, false] {
            let mut world = World::new(crate::kit::quick_folder(), is_git, many_kinds);
            change_many_kinds(&world.copy);
            let snapshot = world.freeze();
            let review = world.review(&snapshot);
            let find = |at: &str| review.changes.iter().find(|change| change.path == path(at));
            let mode = find("mode").unwrap();
            assert!(mode.before.as_ref().unwrap().has_bytes_of(mode.after.as_ref().unwrap()));
            assert_eq!(find("empty").unwrap().after, Some(State::Folder { mode: 0o755 }));
            assert_eq!(find("gone/deep").unwrap().after, None);
            let retargeted = State::Link { target: (*b"d/b.txt").into() };
            assert_eq!(find("link").unwrap().after, Some(retargeted));
            let mut apply = world.check(&snapshot, &review).unwrap();
            if !exchanges {
                apply = apply.without_exchange();
            }
            crate::kit::written(apply.write()).clear().unwrap();
            assert_same(&world.copy, &world.root);
            world.is_clean();
        }
    }
}

#[test]
fn copies_72_a_second_apply_of_a_snapshot_writes_nothing() {
    let mut world = World::repository(many_kinds);
    change_many_kinds(&world.copy);
    let snapshot = world.freeze();
    let review = world.review(&snapshot);
    crate::kit::written(world.check(&snapshot, &review).unwrap().write()).clear().unwrap();
    let before = everything(&world.root);
    let again = world.check(&snapshot, &review).unwrap();
    assert_eq!(again.paths().count(), 0);
    crate::kit::written(again.write()).clear().unwrap();
    assert_eq!(everything(&world.root), before);
    world.is_clean();
}

#[test]
fn copies_77_in_a_plain_folder_only_the_tasks_changes_are_written() {
    let mut world = World::plain(|root| {
        small(root);
        write(root, "gone/x", "x");
    });
    write(&world.copy, "a.txt", "task\n");
    fs::remove_dir_all(world.copy.join("gone")).unwrap();
    write(&world.root, "build/out.o", "built meanwhile");
    write(&world.root, "d/b.o", "built meanwhile");
    write(&world.root, "gone/x.o", "built meanwhile");
    let built = |world: &World| {
        let all = everything(&world.root);
        let mut kept: Vec<String> = all.into_iter().filter(|line| line.contains(".o ")).collect();
        kept.sort();
        kept
    };
    let before = built(&world);
    let apply = world.ready().unwrap();
    assert_eq!(apply.kept(), [path("gone")], "it holds what the person built");
    crate::kit::written(apply.write()).clear().unwrap();
    assert_eq!(built(&world), before);
    assert_eq!(text(&world.root.join("a.txt")), "task\n");
    assert!(!world.root.join("gone/x").exists());
    world.is_clean();
}

#[test]
fn copies_51_names_of_any_bytes_are_applied() {
    let names: [&[u8]; 6] =
        [b"new\nline", b"bad\xff.bin", b"-rf", b"report[1].md", b" ", b"caf\xc3\xa9/d\xff/\\x"];
    let mut world = World::repository(|root| {
        for name in names {
            write(root, bytes_path(root, name), "before");
        }
    });
    for name in names {
        write(&world.copy, bytes_path(&world.copy, name), "after");
        let more = [name, b".new"].concat();
        write(&world.copy, bytes_path(&world.copy, &more), "new");
    }
    assert_eq!(world.apply().len(), 12);
    assert_same(&world.copy, &world.root);
}

#[test]
fn a_replaced_file_keeps_its_attributes_and_owner() {
    let mut world = World::repository(small);
    let file = world.root.join("a.txt");
    let value = rustix::fs::setxattr(&file, c"user.note", b"mine", rustix::fs::XattrFlags::empty());
    if value.is_err() {
        return stead_testkit::skip("a_replaced_file_keeps_its_attributes_and_owner", "no xattrs");
    }
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        std::os::unix::fs::chown(&file, Some(12345), Some(12346)).unwrap();
    }
    write(&world.copy, "a.txt", "task\n");
    world.apply();
    let mut kept = [0_u8; 16];
    let length = rustix::fs::getxattr(&file, c"user.note", &mut kept[..]).unwrap();
    assert_eq!(&kept[..length], b"mine");
    if is_root {
        let found = fs::metadata(&file).unwrap();
        assert_eq!((found.uid(), found.gid()), (12345, 12346));
    }
}

#[test]
fn applied_files_have_the_time_of_writing() {
    let mut world = World::plain(small);
    write(&world.copy, "a.txt", "task\n");
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::open(world.copy.join("a.txt")).unwrap().set_modified(old).unwrap();
    world.apply();
    let written = fs::metadata(world.root.join("a.txt")).unwrap().modified().unwrap();
    assert!(written.elapsed().unwrap().as_secs() < 600);
}
