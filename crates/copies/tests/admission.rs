//! Which layouts are admitted, and that a refused one leaves nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::AtomicBool;

use common::{Kit, contents, picture, request_for, session, slot, write};
use stead_copies::{Base, Layout, Obstruction, RootKind, admit};
use stead_core::id::{SlotName, TaskId};
use stead_core::layout::Access;
use stead_files::Watch;

#[test]
fn a_layout_of_a_repository_and_a_folder_is_admitted_whole() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let lib = kit.at("lib");
    write(&lib.join("x/y"), "z");
    let before = (picture(&app), picture(&lib));
    let request = request_for(7, &[("app", &app, Access::Write), ("library", &lib, Access::Read)]);
    let admitted = kit.try_admit(&request).unwrap();
    assert_eq!((picture(&app), picture(&lib)), before);
    let stored = Layout::load(&kit.home, &session(), TaskId(7)).unwrap().unwrap();
    assert_eq!(stored, admitted.layout);
    assert_eq!(stored.primary, slot("app"));
    assert!(matches!(stored.slots[0].kind, RootKind::Git { .. }));
    assert_eq!(stored.slots[1].kind, RootKind::Plain);
    for (name, source) in [("app", &app), ("library", &lib)] {
        let copy = kit.home.copy(&session(), TaskId(7), &slot(name));
        assert_eq!(contents(&copy), contents(source));
    }
    let copy = kit.home.copy(&session(), TaskId(7), &slot("app"));
    assert_eq!(kit.status(&copy), "");
    assert_eq!(kit.ok(&copy, &["log", "--format=%s"]), "first\n");
    let base = Base::load(&kit.home, &stored.slots[0].base).unwrap();
    assert_eq!(base.index.len(), 3);
    assert!(base.eligible().is_complete());
    assert!(base.commit.is_some());
}

#[test]
fn copies_34_a_layout_has_1_to_64_roots() {
    let kit = Kit::new();
    assert_eq!(kit.refusal_of(&request_for(1, &[])).0, Obstruction::RootCount(0));
    let names: Vec<String> = (0..65).map(|n| format!("r{n}")).collect();
    let folders: Vec<_> = names.iter().map(|name| kit.at(name)).collect();
    for folder in &folders {
        fs::create_dir(folder).unwrap();
    }
    let all: Vec<_> =
        names.iter().zip(&folders).map(|(n, f)| (n.as_str(), f.as_path(), Access::Write)).collect();
    assert_eq!(kit.refusal_of(&request_for(1, &all)).0, Obstruction::RootCount(65));
    let admitted = kit.try_admit(&request_for(1, &all[..64])).unwrap();
    assert_eq!(admitted.layout.slots.len(), 64);
}

#[test]
fn copies_35_slots_are_portable_folder_names_that_differ_in_more_than_case() {
    let kit = Kit::new();
    let (one, two) = (kit.repository("one"), kit.repository("two"));
    let both = request_for(1, &[("App", &one, Access::Write), ("app", &two, Access::Write)]);
    assert_eq!(kit.refusal_of(&both).0, Obstruction::SlotTwice(slot("app")));
    for name in ["CON", "nul.txt", "Com1", "x.", "layout.json", "ünï", "a/b", "..", "", "-x", " x"]
    {
        assert!(SlotName::parse(name).is_err(), "{name}");
    }
    for name in ["console", "COM", "a.b"] {
        let request = request_for(1, &[(name, &one, Access::Write)]);
        kit.try_admit(&request).unwrap();
        fs::remove_dir_all(kit.home.copies().join("s1")).unwrap();
    }
}

#[test]
fn a_primary_that_is_no_slot_is_refused() {
    let kit = Kit::new();
    let one = kit.repository("one");
    let mut request = request_for(1, &[("app", &one, Access::Write)]);
    request.primary = slot("other");
    assert_eq!(kit.refusal_of(&request).0, Obstruction::NoPrimary(slot("other")));
}

#[test]
fn copies_37_a_source_behind_a_link_is_refused_with_its_real_path() {
    let kit = Kit::new();
    let app = kit.repository("real/app");
    symlink(kit.at("real"), kit.at("link")).unwrap();
    let (why, hint) = kit.refusal(&kit.at("link/app"));
    assert_eq!(why, Obstruction::Linked(app.clone()));
    assert_eq!(hint.unwrap(), format!("--root {}", app.display()));
}

#[test]
fn copies_38_one_missing_source_refuses_the_whole_layout() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let gone = kit.at("gone");
    let request = request_for(1, &[("app", &app, Access::Write), ("gone", &gone, Access::Read)]);
    assert_eq!(kit.refusal_of(&request).0, Obstruction::Missing);
    write(&gone, "a file");
    let request = request_for(1, &[("app", &app, Access::Write), ("gone", &gone, Access::Read)]);
    assert_eq!(kit.refusal_of(&request).0, Obstruction::NotAFolder);
}

#[test]
fn copies_38_another_folder_at_the_path_is_refused() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let request = request_for(1, &[("app", &app, Access::Write)]);
    fs::rename(&app, kit.at("moved")).unwrap();
    kit.repository("app");
    let (why, hint) = kit.refusal_of(&request);
    assert_eq!((why, hint.as_deref()), (Obstruction::Changed, Some("stead roots rebind")));
}

#[test]
fn copies_39_overlapping_roots_are_refused() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let dir = app.join("dir");
    for (one, two) in [(&app, &dir), (&dir, &app), (&app, &app)] {
        let request = request_for(1, &[("one", one, Access::Write), ("two", two, Access::Read)]);
        assert!(matches!(kit.refusal_of(&request).0, Obstruction::Overlap(_)));
    }
}

#[test]
fn a_persons_home_is_never_copied() {
    let kit = Kit::new();
    let (why, hint) = kit.refusal(&kit.at("user"));
    assert_eq!(why, Obstruction::PersonHome(kit.at("user")));
    assert!(hint.unwrap().contains("--root DIR"));
    assert!(matches!(kit.refusal(&kit.at("")).0, Obstruction::PersonHome(_)));
}

#[test]
fn copies_44_one_name_and_one_remote_are_two_roots() {
    let kit = Kit::new();
    let (one, two) = (kit.repository("1/app"), kit.repository("2/app"));
    for path in [&one, &two] {
        kit.ok(path, &["remote", "add", "origin", "https://example.org/app.git"]);
    }
    write(&two.join("only-two"), "");
    let request = request_for(1, &[("app", &one, Access::Write), ("app-2", &two, Access::Write)]);
    kit.try_admit(&request).unwrap();
    for (name, source) in [("app", &one), ("app-2", &two)] {
        let copy = kit.home.copy(&session(), TaskId(1), &slot(name));
        assert_eq!(contents(&copy), contents(source));
    }
}

#[test]
fn roots_of_steads_own_are_refused_with_what_to_take() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let (_, copy) = kit.copy(&app);
    let request = request_for(2, &[("again", &copy, Access::Write)]);
    let error = kit.try_admit(&request).unwrap_err();
    assert!(error.to_string().contains("in a private copy of"), "{error}");
    assert_eq!(error.hint().unwrap(), format!("--root {}", app.display()));
    let around = kit.home.path().to_owned();
    let request = request_for(2, &[("home", &around, Access::Write)]);
    assert!(kit.try_admit(&request).unwrap_err().to_string().contains("stead's own home"));
    // A copy of another home is one too.
    let other = stead_copies::Home::new(kit.at("other"));
    let request = request_for(2, &[("again", &copy.join("dir"), Access::Write)]);
    let error = admit(&other, &kit.git, &request, Watch::default()).unwrap_err();
    assert!(error.to_string().contains("in a private copy of"), "{error}");
    // The task has its copies already.
    let request = request_for(1, &[("app", &app, Access::Write)]);
    assert!(kit.try_admit(&request).unwrap_err().to_string().contains("already"));
}

#[test]
fn a_part_of_a_repository_is_a_root_only_when_nothing_in_it_is_tracked() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let (why, hint) = kit.refusal(&app.join("dir"));
    assert_eq!(why, Obstruction::InsideRepository(app.clone()));
    assert_eq!(hint.unwrap(), format!("--root {}", app.display()));
    assert_eq!(kit.refusal(&app.join(".git")).0, Obstruction::InsideGitDirectory);
    write(&app.join("target/out"), "built");
    let (admitted, copy) = kit.copy(&app.join("target"));
    assert_eq!(admitted.layout.slots[0].kind, RootKind::Plain);
    assert_eq!(contents(&copy), contents(&app.join("target")));
}

#[test]
fn copies_52_a_cancel_leaves_nothing() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let before = picture(&app);
    let request = request_for(1, &[("app", &app, Access::Write)]);
    let cancelled = AtomicBool::new(true);
    let watch = Watch { cancel: Some(&cancelled), report: None };
    let error = admit(&kit.home, &kit.git, &request, watch).unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    kit.assert_nothing_left();
    assert_eq!(picture(&app), before);
    kit.copy(&app);
}
