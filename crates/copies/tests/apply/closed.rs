//! Folders that nobody may write in, before or after an apply: seen as a plain user sees them.

use std::fs;
use std::path::Path;

use stead_copies::{Apply, ApplyRefused, Finished, Recorded, forget, recover};
use stead_testkit::as_a_plain_user;

use crate::kit::{World, chmod, content, root_id, text, write, written};

fn build(root: &Path) {
    write(root, "d/f", "base\n");
    write(root, "d/deep/g", "base\n");
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn copies_65_a_folder_that_a_task_closed_is_applied_with_nothing_left_over() {
    let mut world = World::repository(build);
    write(&world.copy, "d/f", "task\n");
    fs::remove_file(world.copy.join("d/deep/g")).unwrap();
    write(&world.copy, "d/deep/new", "task\n");
    chmod(&world.copy.join("d/deep"), 0o500);
    chmod(&world.copy.join("d"), 0o555);
    as_a_plain_user();
    world.apply();
    assert_eq!(text(&world.root.join("d/f")), "task\n");
    assert_eq!((mode(&world.root.join("d")), mode(&world.root.join("d/deep"))), (0o555, 0o500));
}

#[test]
fn copies_65_a_closed_folder_that_a_task_opened_is_applied_with_what_is_new_in_it() {
    let mut world = World::repository(build);
    chmod(&world.root.join("d/deep"), 0o500);
    chmod(&world.root.join("d"), 0o555);
    world.admit();
    as_a_plain_user();
    // Without its bits among the changes the folder stays the place's refusal.
    chmod(&world.copy.join("d"), 0o755);
    write(&world.copy, "d/f", "task\n");
    chmod(&world.copy.join("d"), 0o555);
    let refused = world.refused();
    assert!(matches!(refused, ApplyRefused::Place(_)), "{refused}");
    chmod(&world.copy.join("d"), 0o755);
    write(&world.copy, "d/new", "task\n");
    fs::remove_dir_all(world.copy.join("d/deep")).unwrap_err();
    chmod(&world.copy.join("d/deep"), 0o700);
    fs::remove_dir_all(world.copy.join("d/deep")).unwrap();
    world.apply();
    assert_eq!(
        (mode(&world.root.join("d")), text(&world.root.join("d/new"))),
        (0o755, "task\n".into())
    );
    assert!(!world.root.join("d/deep").exists());
}

/// As an earlier program left it: the old file waits in the very folder that was closed.
fn waits_inside(world: &World, apply: Apply) {
    let _ = written(apply.write());
    let journal = world.home.applies().join("root-1.journal");
    let old = fs::read_to_string(&journal).unwrap();
    let (header, steps) = old.split_once('\n').unwrap();
    let name = ".stead-new-apply-app-1-1";
    let moved = steps.replace(&format!("\"{name}\""), &format!("\"d/{name}\""));
    assert_ne!(steps, moved, "{steps}");
    let digest = |text: &str| blake3::hash(text.as_bytes()).to_string();
    let header = header.replace(&digest(steps), &digest(&moved));
    fs::write(&journal, format!("{header}\n{moved}")).unwrap();
    chmod(&world.root.join("d"), 0o755);
    fs::rename(world.root.join(name), world.root.join("d").join(name)).unwrap();
    chmod(&world.root.join("d"), 0o555);
}

#[test]
fn copies_70_what_waits_in_a_folder_that_was_closed_is_cleared_and_it_is_closed_again() {
    for recorded in [Recorded::Applied, Recorded::Nothing] {
        let mut world = World::plain(|root| write(root, "d/f", "base\n"));
        write(&world.copy, "d/f", "task\n");
        let before = content(&world.root);
        chmod(&world.copy.join("d"), 0o555);
        as_a_plain_user();
        let apply = world.ready().unwrap();
        waits_inside(&world, apply);
        let finished = recover(&world.home, &root_id(), recorded).unwrap().unwrap();
        forget(&world.home, &root_id()).unwrap();
        world.is_clean();
        match recorded {
            Recorded::Applied => {
                assert_eq!(finished, Finished::Forward);
                assert_eq!(content(&world.root), content(&world.copy));
            }
            Recorded::Nothing => {
                assert_eq!(finished, Finished::Back);
                assert_eq!(content(&world.root), before);
            }
        }
    }
}
