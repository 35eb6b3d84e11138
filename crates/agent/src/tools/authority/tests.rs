//! Where paths lead, and what lies where.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

struct World {
    _folder: tempfile::TempDir,
    base: PathBuf,
}

/// `app` (write) with `src/a.rs`, `lib` (read), `app-evil` and `outside.txt` beside them.
fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    for name in ["app/src", "app/.git", "lib", "app-evil", "scratch"] {
        fs::create_dir_all(base.join(name)).unwrap();
    }
    for name in ["app/src/a.rs", "lib/b.rs", "app-evil/c", "outside.txt"] {
        fs::write(base.join(name), "x").unwrap();
    }
    World { _folder: folder, base }
}

fn authority(world: &World) -> Authority {
    let roots = [("app", Access::Write), ("lib", Access::Read)]
        .map(|(name, access)| (world.base.join(name), access));
    let roots = roots.iter().map(|(path, access)| (path.as_path(), *access));
    Authority::new(&world.base.join("app"), roots, Some(&world.base.join("scratch")))
}

#[test]
fn field_pth_04_a_sibling_with_the_same_beginning_is_outside() {
    let world = world();
    let authority = authority(&world);
    for text in ["../app-evil/c", "../outside.txt", "/etc/passwd", "..", "src/../../lib2"] {
        let found = authority.reading(text).unwrap();
        assert_eq!(found.zone, Zone::Outside, "{text}");
        assert!(found.subject("read").ends_with("outside the working roots"));
        assert!(found.hint(&authority).unwrap().contains("app (write)"));
    }
    assert_eq!(authority.reading("src/../src/a.rs").unwrap().shown, "src/a.rs");
    assert_eq!(authority.reading(".").unwrap().shown, ".");
}

#[test]
fn field_sbx_03_a_link_that_leads_out_is_outside_and_its_target_named() {
    let world = world();
    let app = world.base.join("app");
    symlink("../outside.txt", app.join("l")).unwrap();
    symlink("/", app.join("up")).unwrap();
    symlink("../nothing-yet", app.join("dangling")).unwrap();
    symlink("dangling", app.join("twice")).unwrap();
    symlink("loop", app.join("loop")).unwrap();
    let authority = authority(&world);
    for text in ["l", "up/etc/passwd", "dangling", "twice", "dangling/below", "up/new/file"] {
        for found in [authority.reading(text), authority.writing(text)] {
            let found = found.unwrap();
            assert_eq!(found.zone, Zone::Outside, "{text}");
            assert!(!found.real.starts_with(&app) && found.shown.starts_with('/'), "{text}");
        }
    }
    assert!(authority.reading("loop").is_err());
}

#[test]
fn field_sbx_04_a_root_behind_a_link_works_by_both_names() {
    let world = world();
    let link = world.base.join("link");
    symlink("app", &link).unwrap();
    let authority =
        Authority::new(&link.join("src"), std::iter::once((link.as_path(), Access::Write)), None);
    for text in ["a.rs".to_owned(), link.join("src/a.rs").display().to_string()] {
        let found = authority.writing(&text).unwrap();
        assert_eq!((found.shown.as_str(), found.zone), ("a.rs", Zone::Root));
    }
    let direct = world.base.join("app/src/new.rs").display().to_string();
    assert_eq!(authority.writing(&direct).unwrap().shown, "new.rs");
}

#[test]
fn field_sbx_03_a_root_that_became_a_link_or_is_gone_holds_nothing() {
    let world = world();
    let authority = authority(&world);
    fs::rename(world.base.join("app"), world.base.join("moved")).unwrap();
    symlink("app-evil", world.base.join("app")).unwrap();
    for found in [authority.reading("c"), authority.writing("c"), authority.reading(".")] {
        let found = found.unwrap();
        assert_eq!(found.zone, Zone::Outside);
        assert!(found.shown.contains("app-evil"), "{}", found.shown);
    }
    fs::remove_file(world.base.join("app")).unwrap();
    for text in ["new", "src/new"] {
        assert!(authority.writing(text).unwrap_err().line.contains("is gone"), "{text}");
    }
}

#[test]
fn read_roots_git_and_strange_texts_are_not_written() {
    let world = world();
    let authority = authority(&world);
    let lib = world.base.join("lib/b.rs").display().to_string();
    assert!(authority.reading(&lib).is_ok());
    assert!(authority.writing(&lib).unwrap_err().line.contains("may only be read"));
    for text in [".git/config", ".git", "src/.git/hooks/x", ".GIT/config"] {
        let hint = authority.writing(text).unwrap().hint(&authority).unwrap();
        assert!(hint.contains("Git's own"), "{text}");
    }
    for text in ["", "a\0b", "~/x", "new/", "none/../x", "src/a.rs/below"] {
        assert!(authority.writing(text).is_err(), "{text:?}");
    }
    let scratch = world.base.join("scratch/t").display().to_string();
    assert!(authority.writing(&scratch).is_ok());
}

#[test]
fn only_regular_files_are_opened() {
    let world = world();
    let pipe = world.base.join("app/pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let authority = authority(&world);
    for (text, says) in [("pipe", "not a regular file"), ("src", "is a folder")] {
        let found = authority.reading(text).unwrap();
        assert!(found.open().unwrap_err().line.contains(says));
    }
    let found = authority.reading("src/a.rs").unwrap();
    fs::rename(world.base.join("app/src"), world.base.join("moved")).unwrap();
    symlink("../moved", world.base.join("app/src")).unwrap();
    assert_eq!(found.open().unwrap_err().kind, RefusalKind::Conflict);
}

#[test]
fn a_deed_names_one_file_and_begins_as_its_path_does() {
    let name = |bytes: &[u8]| super::name(Path::new(OsStr::from_bytes(bytes)));
    assert_eq!(name(b"/w/a b.rs"), "/w/a b.rs");
    assert_eq!(name(b"/w/caf\xe9/x"), "/w/caf\u{fffd}E9/x");
    assert_eq!(name(b"/w/a\nb"), "/w/a\u{fffd}0Ab");
    assert_ne!(name("/w/\u{fffd}E9".as_bytes()), name(b"/w/\xe9"));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig {
        failure_persistence: None, ..Default::default()
    })]
    #[test]
    fn no_two_paths_have_one_name(
        a in proptest::collection::vec(proptest::sample::select(vec![b'a', b'E', b'9', 0xe9, 0xef, 0xbf, 0xbd, b'\n', b'0', b'A']), 0..8),
        b in proptest::collection::vec(proptest::sample::select(vec![b'a', b'E', b'9', 0xe9, 0xef, 0xbf, 0xbd, b'\n', b'0', b'A']), 0..8),
    ) {
        let named = |bytes: &[u8]| super::name(Path::new(OsStr::from_bytes(bytes)));
        proptest::prop_assert_eq!(a == b, named(&a) == named(&b));
    }
}

#[test]
fn field_cwd_02_the_original_of_a_copy_is_refused_and_the_copy_named() {
    let world = world();
    let mut authority = authority(&world);
    authority.originals = vec![(world.base.join("app-evil"), world.base.join("app"))];
    symlink("../app-evil", world.base.join("app/to")).unwrap();
    let original = world.base.join("app-evil/c").display().to_string();
    for text in [original.as_str(), "../app-evil/c", "to/c"] {
        for refusal in [authority.reading(text), authority.writing(text)] {
            let refusal = refusal.unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::NotAllowed);
            assert_eq!(refusal.hint.as_deref(), Some("in your copy it is c"), "{text}");
        }
    }
    assert_eq!(authority.reading("../app-evil").unwrap_err().hint.unwrap(), "in your copy it is .");
}
