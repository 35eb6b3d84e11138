//! What went wrong for others when they made copies.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use common::{
    Kit, contents, mode, noted, picture, rel, request_for, session, set_mode, slot, write,
};
use stead_copies::{
    Base, Checkout, NoteKind, Obstruction, RootKind, admit, clear_staging, discard, freeze,
};
use stead_core::id::{TaskId, Timestamp};
use stead_core::layout::Access;
use stead_files::Watch;
use stead_git::Git;

#[test]
fn field_wt_10_a_repository_without_a_commit_gets_a_working_copy() {
    let kit = Kit::new();
    let app = kit.at("trunk");
    fs::create_dir(&app).unwrap();
    kit.ok(&app, &["init", "-q", "-b", "trunk"]);
    write(&app.join("staged"), "one");
    kit.ok(&app, &["add", "staged"]);
    write(&app.join("untracked"), "two");
    let (admitted, copy) = kit.copy(&app);
    assert_eq!(contents(&copy), contents(&app));
    assert_eq!(kit.status(&copy), "A  staged\n?? untracked\n");
    let RootKind::Git { checkout, .. } = &admitted.layout.slots[0].kind else { panic!() };
    assert_eq!(*checkout, Checkout::Branch("refs/heads/trunk".to_owned()));
    let base = Base::load(&kit.home, &admitted.layout.slots[0].base).unwrap();
    assert_eq!(base.commit, None);
    kit.ok(&copy, &["commit", "-q", "-m", "first in the copy"]);
    let snapshot = freeze(
        &kit.home,
        &kit.git,
        &admitted.layout,
        &slot("app"),
        &admitted.layout.slots[0].base,
        Watch::default(),
    )
    .unwrap();
    assert_eq!(snapshot.commits, Some(1));
    // Not even an index.
    let bare = kit.empty("nothing");
    let request = request_for(2, &[("nothing", &bare, Access::Write)]);
    kit.try_admit(&request).unwrap();
    let copy = kit.home.copy(&session(), TaskId(2), &slot("nothing"));
    assert_eq!(kit.status(&copy), "");
}

#[test]
fn a_detached_head_stays_detached() {
    let kit = Kit::new();
    let app = kit.repository("app");
    kit.ok(&app, &["checkout", "-q", "--detach"]);
    let (admitted, copy) = kit.copy(&app);
    let head = kit.ok(&app, &["rev-parse", "HEAD"]).trim().to_owned();
    let RootKind::Git { checkout, .. } = &admitted.layout.slots[0].kind else { panic!() };
    assert_eq!(*checkout, Checkout::Detached(head.clone()));
    assert_eq!(kit.ok(&copy, &["rev-parse", "HEAD"]).trim(), head);
    assert_eq!(kit.ok(&copy, &["branch", "--show-current"]), "");
}

#[test]
fn field_wt_13_field_wt_14_a_bare_layout_is_left_as_it_was() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let around = kit.at("layout");
    fs::create_dir(&around).unwrap();
    kit.ok(&around, &["clone", "-q", "--bare", app.to_str().unwrap(), ".bare"]);
    write(&around.join(".git"), "gitdir: ./.bare\n");
    kit.ok(&around, &["config", "core.bare", "true"]);
    kit.ok(&around, &["worktree", "add", "-q", "main", "main"]);
    kit.ok(&around, &["worktree", "add", "-q", "-b", "feat", "feat"]);
    let before = picture(&around);
    let (why, hint) = kit.refusal(&around);
    assert!(matches!(why, Obstruction::Bare(_)), "{why}");
    let hint = hint.unwrap();
    assert!(hint.contains(around.join("feat").to_str().unwrap()), "{hint}");
    let (_, copy) = kit.copy(&around.join("main"));
    assert_eq!(kit.status(&copy), "");
    discard(&kit.home, &session(), TaskId(1), None, Timestamp(1)).unwrap().unwrap();
    assert!(picture(&around) == before);
    for tree in ["main", "feat"] {
        assert_eq!(kit.status(&around.join(tree)), "");
    }
}

#[test]
fn the_sources_settings_stay_byte_for_byte() {
    let kit = Kit::new();
    let app = kit.repository("app");
    kit.ok(&app, &["config", "core.hooksPath", ".githooks"]);
    let hook = app.join(".githooks/pre-commit");
    write(&hook, "#!/bin/sh\nexit 3\n");
    set_mode(&hook, 0o755);
    kit.ok(&app, &["add", "-A"]);
    let before = picture(&app);
    let (_, copy) = kit.copy(&app);
    assert_eq!(kit.ok(&copy, &["config", "core.hooksPath"]), ".githooks\n");
    assert!(!kit.run(&copy, &["commit", "-q", "-m", "x"]).status.success());
    discard(&kit.home, &session(), TaskId(1), None, Timestamp(1)).unwrap().unwrap();
    assert!(picture(&app) == before);
}

#[test]
fn field_wt_19_thirty_admissions_at_once_all_succeed() {
    let kit = Kit::new();
    let app = kit.repository("app");
    kit.ok(&app, &["config", "branch.autoSetupMerge", "always"]);
    let before = picture(&app);
    std::thread::scope(|scope| {
        for task in 1..=30 {
            let (kit, app) = (&kit, &app);
            scope.spawn(move || {
                let request = request_for(task, &[("app", app, Access::Write)]);
                kit.try_admit(&request).unwrap();
            });
        }
    });
    for task in 1..=30 {
        let copy = kit.home.copy(&session(), TaskId(task), &slot("app"));
        assert_eq!(kit.status(&copy), "");
        assert_eq!(kit.ok(&copy, &["log", "--format=%s"]), "first\n");
    }
    assert!(picture(&app) == before);
    assert_eq!(clear_staging(&kit.home).unwrap().len(), 0);
}

#[test]
fn a_copy_starts_where_the_person_stands_and_makes_no_branch() {
    let kit = Kit::new();
    let app = kit.repository("app");
    kit.ok(&app, &["branch", "release"]);
    kit.ok(&app, &["checkout", "-q", "-b", "work"]);
    write(&app.join("a.txt"), "second\n");
    kit.commit_all(&app, "second");
    write(&app.join("a.txt"), "staged\n");
    kit.ok(&app, &["add", "a.txt"]);
    write(&app.join("a.txt"), "and edited\n");
    write(&app.join("untracked"), "");
    let (_, copy) = kit.copy(&app);
    assert_eq!(kit.status(&copy), "MM a.txt\n?? untracked\n");
    assert_eq!(kit.ok(&copy, &["rev-parse", "HEAD"]), kit.ok(&app, &["rev-parse", "HEAD"]));
    for words in [&["diff"][..], &["diff", "--cached"], &["branch"]] {
        assert_eq!(kit.ok(&copy, words), kit.ok(&app, words));
    }
}

#[test]
fn field_wt_27_copies_lie_outside_and_nothing_can_be_added_of_them() {
    let kit = Kit::new();
    let app = kit.repository("app");
    kit.copy(&app);
    assert_eq!(kit.status(&app), "");
    kit.ok(&app, &["add", "-A"]);
    assert_eq!(kit.ok(&app, &["diff", "--cached", "--stat"]), "");
    let inside = stead_copies::Home::new(app.join(".stead"));
    let request = request_for(2, &[("app", &app, Access::Write)]);
    let error = admit(&inside, &kit.git, &request, Watch::default()).unwrap_err();
    assert!(error.to_string().contains("overlaps stead's own home"), "{error}");
}

#[test]
fn field_wt_28_independent_repositories_in_a_plain_folder_are_carried_and_named() {
    let kit = Kit::new();
    let around = kit.at("around");
    kit.repository("around/one");
    kit.repository("around/deep/two");
    write(&around.join("notes"), "x");
    let (admitted, copy) = kit.copy(&around);
    assert_eq!(noted(&admitted, NoteKind::Nested).unwrap(), ["deep/two", "one"]);
    assert_eq!(contents(&copy), contents(&around));
    write(&copy.join("one/a.txt"), "changed\n");
    write(&copy.join("notes"), "y");
    let base = admitted.layout.slots[0].base;
    let snapshot =
        freeze(&kit.home, &kit.git, &admitted.layout, &slot("app"), &base, Watch::default());
    let snapshot = snapshot.unwrap();
    assert_eq!(snapshot.beside, [(rel("one"), 1)]);
    // It can be a root of its own.
    let request = request_for(2, &[("one", &around.join("one"), Access::Write)]);
    kit.try_admit(&request).unwrap();
}

#[test]
fn inherited_variables_of_git_reach_no_call() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let victim = kit.repository("victim");
    let own = victim.join(".git");
    let mut environment: BTreeMap<_, _> =
        kit.git.environment().iter().map(|(n, v)| (n.clone(), v.clone())).collect();
    environment.insert("GIT_DIR".into(), own.clone().into());
    environment.insert("GIT_INDEX_FILE".into(), own.join("index").into());
    environment.insert("GIT_WORK_TREE".into(), victim.clone().into());
    environment.insert("GIT_OBJECT_DIRECTORY".into(), own.join("objects").into());
    let git = Git::at(kit.git.program().to_owned(), &environment);
    let before = picture(&victim);
    let request = request_for(1, &[("app", &app, Access::Write)]);
    admit(&kit.home, &git, &request, Watch::default()).unwrap();
    let copy = kit.home.copy(&session(), TaskId(1), &slot("app"));
    write(&copy.join("n"), "x");
    kit.ok(&copy, &["add", "n"]);
    assert_eq!(contents(&app).len(), 7);
    assert!(picture(&victim) == before);
    kit.ok(&victim, &["fsck"]);
}

#[test]
fn field_cpy_03_nothing_is_written_through_a_linked_folder() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let out = kit.at("out");
    fs::create_dir(&out).unwrap();
    // What a link in the source leads to is no part of the copy, and nothing lands behind it.
    symlink(&out, app.join("target")).unwrap();
    symlink(&out, app.join("dir/l.log")).unwrap();
    let (_, copy) = kit.copy(&app);
    assert_eq!(fs::read_link(copy.join("target")).unwrap(), out);
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
    // Nor where the copies themselves go.
    let kit = Kit::new();
    let app = kit.repository("app");
    fs::create_dir_all(kit.home.path()).unwrap();
    set_mode(kit.home.path(), 0o700);
    symlink(&out, kit.home.copies()).unwrap();
    let request = request_for(1, &[("app", &app, Access::Write)]);
    let error = kit.try_admit(&request).unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
}

#[test]
fn field_cpy_05_special_files_among_ignored_ones_hang_nothing() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join(".git/info/exclude"), "nm/\n");
    write(&app.join("nm/x"), "x");
    assert!(Command::new("mkfifo").arg(app.join("nm/p")).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(app.join("nm/s")).unwrap();
    // An interrupted try before it leaves no "exists".
    write(&kit.home.staging().join("1-0/app/x"), "half");
    write(&kit.home.staging().join("1-0.lock"), "");
    for folder in [kit.home.path().to_owned(), kit.home.copies(), kit.home.staging()] {
        set_mode(&folder, 0o700);
    }
    let (admitted, copy) = kit.copy(&app);
    assert_eq!(noted(&admitted, NoteKind::Special).unwrap(), ["nm/p", "nm/s"]);
    assert!(copy.join("nm/x").exists() && !copy.join("nm/p").exists());
}

#[test]
fn field_cpy_09_dependencies_are_copied_never_linked() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join(".git/info/exclude"), "node_modules\n");
    write(&app.join("node_modules/x/index.js"), "one");
    let (_, copy) = kit.copy(&app);
    write(&copy.join("node_modules/x/index.js"), "installed");
    write(&copy.join("node_modules/y"), "new");
    assert_eq!(fs::read(app.join("node_modules/x/index.js")).unwrap(), b"one");
    assert!(!app.join("node_modules/y").exists());
}

#[test]
fn copies_46_modes_are_the_sources_whatever_the_umask() {
    let kit = Kit::new();
    let app = kit.repository("app");
    for (name, bits) in [
        ("s.sh", 0o755),
        ("k", 0o640),
        ("g", 0o664),
        ("all", 0o777),
        ("read", 0o444),
        ("u", 0o4711),
    ] {
        write(&app.join(name), "x");
        set_mode(&app.join(name), bits);
    }
    fs::create_dir(app.join("shared")).unwrap();
    set_mode(&app.join("shared"), 0o2775);
    // The umask is the whole process's, and every test of this program has a process of its own.
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let made = kit.copy(&app);
    rustix::process::umask(before);
    assert_eq!(contents(&made.1), contents(&app));
    assert_eq!(mode(&made.1.join("u")), 0o4711);
    assert_eq!(mode(&made.1.join("shared")), 0o2775);
    // An edit in place keeps what it finds; the snapshot says what is there.
    write(&made.1.join("s.sh"), "edited");
    let base = made.0.layout.slots[0].base;
    let snapshot =
        freeze(&kit.home, &kit.git, &made.0.layout, &slot("app"), &base, Watch::default()).unwrap();
    assert_eq!(snapshot.manifest.get(&rel("s.sh")).unwrap().mode, 0o755);
    assert_eq!(snapshot.manifest.get(&rel("k")).unwrap().mode, 0o640);
}

#[test]
fn copies_54_a_home_that_cannot_be_written_leaves_the_source_untouched() {
    if rustix::process::geteuid().is_root() {
        // Root may write everywhere; a folder where a file has to be is in the way of root too.
        let kit = Kit::new();
        let app = kit.repository("app");
        write(&kit.home.depots(), "a file where depots go");
        set_mode(kit.home.path(), 0o700);
        let before = picture(&app);
        let request = request_for(1, &[("app", &app, Access::Write)]);
        assert!(kit.try_admit(&request).is_err());
        kit.assert_nothing_left();
        assert!(picture(&app) == before);
        return;
    }
    let kit = Kit::new();
    let app = kit.repository("app");
    fs::create_dir_all(kit.home.path()).unwrap();
    set_mode(kit.home.path(), 0o500);
    let before = picture(&app);
    let request = request_for(1, &[("app", &app, Access::Write)]);
    assert!(kit.try_admit(&request).is_err());
    assert!(picture(&app) == before);
    set_mode(kit.home.path(), 0o700);
}

#[test]
fn a_home_behind_a_link_is_the_home_it_leads_to() {
    let mut kit = Kit::new();
    let app = kit.repository("app");
    fs::create_dir(kit.at("real")).unwrap();
    symlink(kit.at("real"), kit.at("link")).unwrap();
    kit.home = stead_copies::Home::new(kit.at("link/stead"));
    let (admitted, copy) = kit.copy(&app);
    assert_eq!(kit.status(&copy), "");
    let base = admitted.layout.slots[0].base;
    let snapshot =
        freeze(&kit.home, &kit.git, &admitted.layout, &slot("app"), &base, Watch::default());
    assert_eq!(snapshot.unwrap().commits, Some(0));
    fs::remove_file(kit.at("link")).unwrap();
    kit.ok(&kit.at("real/stead/copies/s1/1/app"), &["fsck", "--full"]);
}

#[test]
fn hostile_roots_are_copied_too() {
    let kit = Kit::new();
    for (task, name) in
        [(1, "new\nline"), (2, "-dash"), (3, "with \"quotes\" and spaces"), (4, "#")]
    {
        let app = kit.repository(name);
        let (_, copy) = kit.copy_as(task, &app);
        assert_eq!(kit.status(&copy), "");
        kit.ok(&copy, &["fsck", "--full"]);
    }
    // So may the home be.
    let odd = Kit::below(&{
        let folder = kit.at("ho\nme \"#");
        fs::create_dir(&folder).unwrap();
        folder
    });
    let app = odd.repository("app");
    let (_, copy) = odd.copy(&app);
    odd.ok(&copy, &["fsck", "--full"]);
    assert_eq!(odd.status(&copy), "");
    assert!(Path::new(&copy).starts_with(odd.home.path()));
}
