//! What a person did meanwhile is theirs: then nothing is written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use stead_copies::Clash;

use crate::kit::{World, chmod, text, write};

fn small(root: &Path) {
    write(root, "a.txt", "one\n");
    write(root, "d/b.txt", "two\n");
    write(root, "d/c.txt", "three\n");
}

fn only(path: &str, clash: Clash) -> Vec<(String, Clash)> {
    vec![(path.to_owned(), clash)]
}

#[test]
fn copies_60_a_persons_change_to_an_affected_file_is_a_conflict() {
    // In the tree.
    let mut world = World::repository(small);
    write(&world.copy, "a.txt", "task\n");
    write(&world.root, "a.txt", "mine\n");
    assert_eq!(world.conflicts(), only("a.txt", Clash::BothChanged));
    // Staged.
    world.ok(&["add", "a.txt"]);
    assert_eq!(world.conflicts(), only("a.txt", Clash::BothChanged));
    // Staged, and reverted in the tree.
    write(&world.root, "a.txt", "one\n");
    assert_eq!(world.conflicts(), only("a.txt", Clash::Staged));
    // Taken out of the index, and still in the tree.
    world.ok(&["reset", "-q"]);
    world.ok(&["rm", "-q", "--cached", "a.txt"]);
    assert_eq!(world.conflicts(), only("a.txt", Clash::Staged));
    world.ok(&["reset", "-q"]);
    // Only the mode.
    chmod(&world.root.join("a.txt"), 0o755);
    assert_eq!(world.conflicts(), only("a.txt", Clash::BothChanged));
    world.ok(&["add", "a.txt"]);
    chmod(&world.root.join("a.txt"), 0o644);
    assert_eq!(world.conflicts(), only("a.txt", Clash::Staged));
    world.ok(&["reset", "-q"]);
    assert_eq!(world.apply(), ["a.txt"]);
}

#[test]
fn copies_60_an_intended_or_unmerged_entry_is_a_conflict() {
    let mut world = World::repository(small);
    write(&world.copy, "new", "task\n");
    write(&world.root, "new", "");
    world.ok(&["add", "-N", "new"]);
    fs::remove_file(world.root.join("new")).unwrap();
    assert_eq!(world.conflicts(), only("new", Clash::Staged));
    world.ok(&["rm", "-q", "--cached", "new"]);
    // Sides of a conflict without an operation, as a popped stash leaves them.
    write(&world.copy, "a.txt", "task\n");
    write(&world.root, "a.txt", "stashed\n");
    world.ok(&["stash", "-q"]);
    write(&world.root, "a.txt", "other\n");
    world.ok(&["commit", "-qam", "other"]);
    let popped = std::process::Command::new("git")
        .args(["stash", "pop", "-q"])
        .current_dir(&world.root)
        .output()
        .unwrap();
    assert!(!popped.status.success());
    write(&world.root, "a.txt", "one\n");
    assert_eq!(world.conflicts(), only("a.txt", Clash::Staged));
}

#[test]
fn copies_61_an_untracked_file_where_the_task_makes_one_is_a_conflict() {
    let mut world = World::repository(small);
    write(&world.copy, "new", "task\n");
    write(&world.root, "new", "mine\n");
    assert_eq!(world.conflicts(), only("new", Clash::BothChanged));
    fs::remove_file(world.root.join("new")).unwrap();
    symlink("elsewhere", world.root.join("new")).unwrap();
    assert_eq!(world.conflicts(), only("new", Clash::Kind));
    fs::remove_file(world.root.join("new")).unwrap();
    fs::create_dir(world.root.join("new")).unwrap();
    assert_eq!(world.conflicts(), only("new", Clash::Kind));
}

#[test]
fn copies_62_deleted_and_replaced_paths_are_conflicts_of_their_own() {
    let mut world = World::repository(small);
    write(&world.copy, "a.txt", "task\n");
    write(&world.copy, "d/new", "task\n");
    fs::remove_file(world.copy.join("d/b.txt")).unwrap();
    fs::remove_file(world.root.join("a.txt")).unwrap();
    assert_eq!(world.conflicts(), only("a.txt", Clash::DeletedHere));
    write(&world.root, "a.txt", "one\n");
    write(&world.root, "d/b.txt", "mine\n");
    assert_eq!(world.conflicts(), only("d/b.txt", Clash::DeletedByTask));
    // A file where the folder was.
    fs::remove_dir_all(world.root.join("d")).unwrap();
    write(&world.root, "d", "a file now");
    assert_eq!(world.conflicts(), only("d/new", Clash::Ancestor), "`d/b.txt` is gone on both");
    // No folder at all: what was deleted on both sides is no conflict, what is new has no place.
    fs::remove_file(world.root.join("d")).unwrap();
    assert_eq!(world.conflicts(), only("d/new", Clash::Ancestor));
}

#[test]
fn a_folder_that_is_to_become_a_file_and_holds_more_is_a_conflict() {
    let mut world = World::plain(small);
    fs::remove_dir_all(world.copy.join("d")).unwrap();
    write(&world.copy, "d", "a file now");
    write(&world.root, "d/mine", "mine");
    assert_eq!(world.conflicts(), only("d", Clash::Ancestor));
    fs::remove_file(world.root.join("d/mine")).unwrap();
    assert_eq!(world.apply(), ["d", "d/b.txt", "d/c.txt"]);
}

#[test]
fn copies_74_nothing_is_written_through_a_link() {
    let mut world = World::plain(small);
    let outside = world.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    write(&outside, "passwd", "secret");
    write(&world.copy, "src/passwd", "task");
    write(&world.copy, "d/b.txt", "task");
    symlink(&outside, world.root.join("src")).unwrap();
    let expected = [("src", Clash::Kind), ("src/passwd", Clash::Ancestor)];
    assert_eq!(world.conflicts(), expected.map(|(path, clash)| (path.to_owned(), clash)));
    fs::remove_file(world.root.join("src")).unwrap();
    // The folder that was admitted, moved away, with a link to it in its place.
    fs::rename(world.root.join("d"), world.root.join("real")).unwrap();
    symlink("real", world.root.join("d")).unwrap();
    assert_eq!(world.conflicts(), only("d/b.txt", Clash::Ancestor));
    assert_eq!(text(&outside.join("passwd")), "secret");
}

#[test]
fn a_file_below_a_new_submodule_is_a_conflict() {
    let mut world = World::repository(small);
    write(&world.copy, "sub/x", "task");
    let id = world.ok(&["rev-parse", "HEAD"]);
    let cache = format!("160000,{},sub", id.trim());
    world.ok(&["update-index", "--add", "--cacheinfo", &cache]);
    assert_eq!(world.conflicts(), only("sub/x", Clash::Ancestor));
}

#[test]
fn a_file_in_what_became_a_repository_of_its_own_is_a_conflict() {
    let mut world = World::repository(small);
    write(&world.copy, "d/b.txt", "task");
    world.ok(&["init", "-q", "d"]);
    assert_eq!(world.conflicts(), only("d/b.txt", Clash::Ancestor));
}

#[test]
fn field_apl_07_a_refused_apply_leaves_root_and_copy_as_they_were() {
    let mut world = World::repository(small);
    write(&world.copy, "a.txt", "task\n");
    write(&world.copy, "new", "task\n");
    write(&world.root, "a.txt", "mine\n");
    let copy = crate::kit::everything(&world.copy);
    world.refused();
    assert_eq!(crate::kit::everything(&world.copy), copy);
    assert!(!world.root.join("new").exists(), "not one path of it");
}
