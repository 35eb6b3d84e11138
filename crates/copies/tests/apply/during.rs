//! A person who works on while an apply writes: their version is never overwritten.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Once;

use stead_copies::{
    Apply, ApplyRefused, Cause, Finished, Outcome, Recorded, RecoverError, Rescue, forget, give_up,
    kept_journal, leftovers, recover,
};
use stead_core::step::Moment;

use crate::kit::{World, assert_same, chmod, content, root_id, text, write, written};

type Act = Box<dyn FnMut(&str, Moment)>;

thread_local! {
    static ACT: RefCell<Option<Act>> = const { RefCell::new(None) };
}

/// Calls `act` at every step of this thread while `work` runs.
pub(crate) fn at_steps<T>(act: impl FnMut(&str, Moment) + 'static, work: impl FnOnce() -> T) -> T {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        stead_core::step::observe(|name, moment| {
            // Not while it acts itself.
            let act = ACT.with(|slot| slot.borrow_mut().take());
            if let Some(mut act) = act {
                act(name, moment);
                ACT.with(|slot| *slot.borrow_mut() = Some(act));
            }
        });
    });
    ACT.with(|slot| *slot.borrow_mut() = Some(Box::new(act)));
    let result = work();
    ACT.with(|slot| slot.borrow_mut().take());
    result
}

/// Calls `act` once, at the `number`-th passing of `name`.
fn once(
    name: &'static str,
    moment: Moment,
    number: usize,
    mut act: impl FnMut() + 'static,
) -> impl FnMut(&str, Moment) + 'static {
    let mut passed = 0;
    move |found, at| {
        if found == name && at == moment {
            passed += 1;
            if passed == number {
                act();
            }
        }
    }
}

fn build(root: &Path) {
    for name in ["a", "b", "c", "gone"] {
        write(root, name, format!("base {name}\n"));
    }
    write(root, "d/e", "base\n");
}

fn task(copy: &Path) {
    for name in ["a", "b", "c"] {
        write(copy, name, format!("task {name}\n"));
    }
    write(copy, "new/deep/file", "task\n");
    let _ = fs::remove_file(copy.join("gone"));
    let _ = fs::remove_dir_all(copy.join("d"));
}

fn ready(world: &mut World) -> Apply {
    task(&world.copy);
    world.ready().unwrap()
}

fn rolled_back(outcome: Outcome) -> (Cause, Rescue) {
    match outcome {
        Outcome::RolledBack { cause, rescue } => (cause, rescue),
        other => panic!("{other:?}"),
    }
}

/// The old tree, but for what the person did.
fn expect_old_but(world: &World, name: &str, now: Option<&str>) {
    let old = tempfile::tempdir().unwrap();
    build(old.path());
    match now {
        Some(now) => write(old.path(), name, now),
        None => fs::remove_file(old.path().join(name)).unwrap(),
    }
    assert_same(old.path(), &world.root);
    world.is_clean();
}

/// As an editor saves: a new file over the old one.
fn save(path: &Path, text: &str) {
    let beside = path.with_extension("editor");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, path).unwrap();
}

#[test]
fn copies_69_an_edit_before_the_first_rename_cancels_it() {
    for exchanges in [true, false] {
        let mut world = World::repository(build);
        let mut apply = ready(&mut world);
        if !exchanges {
            apply = apply.without_exchange();
        }
        let file = world.root.join("b");
        let act = once("copies.sync", Moment::After, 1, move || save(&file, "mine\n"));
        let (cause, rescue) = rolled_back(at_steps(act, || apply.write()));
        assert!(matches!(&cause, Cause::Edited(paths) if paths.len() == 1), "{cause}");
        assert_eq!(rescue.paths, [crate::kit::path("b")]);
        expect_old_but(&world, "b", Some("mine\n"));
    }
}

#[test]
fn copies_69_an_edit_at_any_rename_rolls_back_and_stays() {
    // Every rename of the apply, before and after it; the edit is of every affected file.
    for (name, in_place) in [("a", false), ("a", true), ("gone", false), ("d/e", true)] {
        let mut edits = 0;
        for number in 1_usize.. {
            // Without a repository, which is slow to make; what is tried here is the same.
            let mut world = World::plain(build);
            let apply = ready(&mut world);
            let file = world.root.join(name);
            let done = std::rc::Rc::new(std::cell::Cell::new(false));
            let saved = std::rc::Rc::new(std::cell::Cell::new(false));
            let (reached, wrote) = (std::rc::Rc::clone(&done), std::rc::Rc::clone(&saved));
            let moment = if number % 2 == 0 { Moment::After } else { Moment::Before };
            let act = once("files.place", moment, number.div_ceil(2), move || {
                reached.set(true);
                // A person whose folder was just removed cannot save into it.
                if in_place && file.exists() {
                    fs::write(&file, "mine\n").unwrap();
                    wrote.set(true);
                } else if !in_place && file.parent().unwrap().exists() {
                    save(&file, "mine\n");
                    wrote.set(true);
                }
            });
            let outcome = at_steps(act, || apply.write());
            if !done.get() {
                break;
            }
            edits += 1;
            match outcome {
                // The edit came when its path had been done and verified, or found nothing.
                Outcome::Written(written) => {
                    written.clear().unwrap();
                }
                Outcome::RolledBack { .. } => {
                    let all = content(&world.root);
                    assert!(!all.iter().any(|line| line.contains("new/deep")), "{all:?}");
                    if world.root.join(name).exists() && text(&world.root.join(name)) == "mine\n" {
                        expect_old_but(&world, name, Some("mine\n"));
                    } else {
                        let kept = rescue_of(&world);
                        assert!(!kept.is_empty() || all.iter().any(|l| l.contains(name)));
                    }
                }
                Outcome::RecoveryNeeded { failed, .. } => panic!("{failed}"),
            }
            // Wherever it came, the edit is somewhere.
            let somewhere = fs::read(world.root.join(name)).is_ok_and(|t| t == b"mine\n")
                || !rescue_of(&world).is_empty();
            assert!(somewhere || !saved.get(), "{name} {number}");
            world.is_clean();
        }
        assert!(edits > 10, "{edits}");
    }
}

fn rescue_of(world: &World) -> Vec<String> {
    let folder = world.home.applies().join("rescue");
    if folder.exists() { content(&folder) } else { Vec::new() }
}

#[test]
fn copies_69_a_file_written_through_an_old_handle_is_kept() {
    let mut world = World::repository(build);
    let apply = ready(&mut world);
    let open = fs::OpenOptions::new().write(true).open(world.root.join("a")).unwrap();
    let written = written(apply.write());
    assert_eq!(text(&world.root.join("a")), "task a\n");
    // An editor that had the old file open goes on writing into it.
    std::os::unix::fs::FileExt::write_all_at(&open, b"mine", 0).unwrap();
    let rescue = written.clear().unwrap().rescue;
    assert_eq!(rescue.paths, [crate::kit::path("a")]);
    assert_eq!(text(&rescue.folder.unwrap().as_path().join("a")), "mine a\n");
    assert_eq!(text(&world.root.join("a")), "task a\n");
    world.is_clean();
}

#[test]
fn copies_69_a_new_file_at_a_path_that_is_to_come_stays() {
    let mut world = World::plain(build);
    let apply = ready(&mut world);
    let file = world.root.join("new");
    let act = once("copies.sync", Moment::After, 1, move || fs::write(&file, "mine\n").unwrap());
    let (cause, rescue) = rolled_back(at_steps(act, || apply.write()));
    assert!(matches!(cause, Cause::Edited(_)), "{cause}");
    assert!(!rescue.paths.is_empty());
    assert_eq!(text(&world.root.join("new")), "mine\n");
    world.is_clean();
}

#[test]
fn an_index_or_checkout_that_changes_meanwhile_cancels_it() {
    // Staged in the very window between check and lock.
    let mut world = World::repository(build);
    let apply = ready(&mut world);
    write(&world.root, "a", "staged\n");
    world.ok(&["add", "a"]);
    write(&world.root, "a", "base a\n");
    let (cause, _) = rolled_back(apply.write());
    assert!(matches!(cause, Cause::Edited(_)), "{cause}");
    world.is_clean();
    world.ok(&["reset", "-q", "--hard"]);
    // A mere refresh of the index is nothing.
    let apply = ready(&mut world);
    world.ok(&["update-index", "-q", "--refresh"]);
    world.ok(&["update-index", "--force-write-index"]);
    written(apply.write()).clear().unwrap();

    let mut world = World::repository(build);
    let apply = ready(&mut world);
    world.ok(&["checkout", "-q", "-b", "other"]);
    let (cause, _) = rolled_back(apply.write());
    assert!(matches!(cause, Cause::DestinationChanged("the checkout")), "{cause}");
    world.is_clean();
}

#[test]
fn copies_63_a_lock_that_comes_meanwhile_is_respected() {
    let mut world = World::repository(build);
    let apply = ready(&mut world);
    let lock = world.root.join(".git/index.lock");
    fs::write(&lock, "somebody").unwrap();
    let (cause, _) = rolled_back(apply.write());
    assert!(matches!(cause, Cause::IndexLocked(_)), "{cause}");
    assert_eq!(text(&lock), "somebody", "only its own is removed");
    fs::remove_file(&lock).unwrap();
    world.is_clean();
    assert_same(&world.root, &{
        let old = tempfile::tempdir().unwrap();
        build(old.path());
        old.keep()
    });
}

#[test]
fn an_index_lock_that_was_taken_away_rolls_back() {
    let mut world = World::repository(build);
    let apply = ready(&mut world);
    let lock = world.root.join(".git/index.lock");
    let act = once("files.place", Moment::After, 2, move || {
        assert!(text(&lock).contains("stead doctor"));
        // As people do whom Git tells to; then Git takes it.
        fs::remove_file(&lock).unwrap();
        fs::write(&lock, "git").unwrap();
    });
    let (cause, rescue) = rolled_back(at_steps(act, || apply.write()));
    assert!(matches!(cause, Cause::IndexLockLost(_)), "{cause}");
    assert!(rescue.paths.is_empty());
    let lock = world.root.join(".git/index.lock");
    assert_eq!(text(&lock), "git");
    fs::remove_file(lock).unwrap();
    expect_old_but(&world, "a", Some("base a\n"));
}

#[test]
fn copies_70_when_going_back_fails_everything_is_kept_and_named() {
    let mut world = World::repository(build);
    let apply = ready(&mut world);
    // A disk that fails under it: the folder of the root cannot be changed any more.
    let (root, file) = (world.root.clone(), world.root.join("b"));
    let flag = |root: &Path, way: &str| {
        let done = std::process::Command::new("chattr").arg(way).arg(root).output();
        done.is_ok_and(|done| done.status.success())
    };
    if !flag(&root, "+a") {
        chmod(&root, 0o755);
        return stead_testkit::skip("copies_70", "no append-only folders here");
    }
    assert!(flag(&root, "-a"));
    let act = once("files.place", Moment::After, 2, move || {
        save(&file, "mine\n");
        assert!(flag(&root, "+a"));
    });
    let outcome = at_steps(act, || apply.write());
    assert!(flag(&world.root, "-a"));
    let Outcome::RecoveryNeeded { journal, .. } = outcome else { panic!("{outcome:?}") };
    assert!(journal.exists());
    // Once the disk is well again, it is led back, and what is the person's is named.
    let finished = recover(&world.home, &root_id(), Recorded::Nothing).unwrap().unwrap();
    let stead_copies::Finished::Neither { rescue } = finished else { panic!("{finished:?}") };
    assert_eq!(rescue.paths, [crate::kit::path("b")]);
    stead_copies::forget(&world.home, &root_id()).unwrap();
    expect_old_but(&world, "b", Some("mine\n"));
    assert_eq!(fs::metadata(&world.root).unwrap().permissions().mode() & 0o777, 0o755);
}

/// An apply that is cut short between its last rename and the record of its outcome, and a person
/// who edits a file before anything is recovered.
fn cut_short_and_edited() -> World {
    let mut world = World::repository(build);
    let apply = ready(&mut world);
    drop(written(apply.write()));
    save(&world.root.join("a"), "mine\n");
    let refused = world.ready().unwrap_err();
    assert!(matches!(refused, ApplyRefused::Unfinished(_)), "{refused}");
    world
}

#[test]
fn copies_69_an_edit_after_a_crash_stays_when_the_rest_goes_back() {
    let world = cut_short_and_edited();
    let finished = recover(&world.home, &root_id(), Recorded::Nothing).unwrap().unwrap();
    let Finished::Neither { rescue } = finished else { panic!("{finished:?}") };
    assert_eq!(rescue.paths, [crate::kit::path("a")]);
    let folder = rescue.folder.clone().unwrap();
    assert_eq!(text(&folder.as_path().join("a")), "base a\n", "what stead had put aside");
    // Without the engine the journal says how it ended, until the engine has recorded it.
    let left = leftovers(&world.home).unwrap();
    let header = left[0].header.as_ref().unwrap();
    assert_eq!(header.finished, Some(Finished::Neither { rescue }));
    // Then it is kept as evidence: what an outcome names is there.
    let kept = kept_journal(&world.home, header);
    forget(&world.home, &root_id()).unwrap();
    assert!(kept.is_file());
    expect_old_but(&world, "a", Some("mine\n"));
}

#[test]
fn an_apply_whose_root_is_gone_can_be_given_up_and_no_other() {
    for is_another in [false, true] {
        let mut world = World::plain(build);
        drop(written(ready(&mut world).write()));
        assert_eq!(give_up(&world.home, &root_id()).unwrap(), None, "it can be finished");
        let away = world.folder.path().join("away");
        fs::rename(&world.root, &away).unwrap();
        if is_another {
            fs::create_dir(&world.root).unwrap();
        }
        let gone = recover(&world.home, &root_id(), Recorded::Nothing).unwrap_err();
        assert!(matches!(gone, RecoverError::Destination(_)), "{gone}");
        forget(&world.home, &root_id()).unwrap();
        assert_eq!(leftovers(&world.home).unwrap().len(), 1, "it may come back");
        let kept = give_up(&world.home, &root_id()).unwrap().unwrap();
        assert!(kept.is_file());
        assert!(leftovers(&world.home).unwrap().is_empty());
        assert_eq!(give_up(&world.home, &root_id()).unwrap(), None);
    }
}

#[test]
fn an_edit_after_a_recorded_apply_is_an_edit_like_any_other() {
    let world = cut_short_and_edited();
    let finished = recover(&world.home, &root_id(), Recorded::Applied).unwrap().unwrap();
    assert_eq!(finished, Finished::Forward);
    forget(&world.home, &root_id()).unwrap();
    assert_eq!(text(&world.root.join("a")), "mine\n");
    assert_eq!(text(&world.root.join("b")), "task b\n");
    world.is_clean();
}

#[test]
fn a_journal_that_is_being_written_is_not_finished_by_another() {
    let mut world = World::repository(build);
    let written = written(ready(&mut world).write());
    let busy = recover(&world.home, &root_id(), Recorded::Nothing).unwrap_err();
    assert!(matches!(busy, RecoverError::Busy(Some(_))), "{busy}");
    assert!(matches!(forget(&world.home, &root_id()), Err(RecoverError::Busy(_))));
    written.clear().unwrap();
    assert_eq!(recover(&world.home, &root_id(), Recorded::Nothing).unwrap(), None);
}
