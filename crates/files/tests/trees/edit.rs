//! Single changes below an open root.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use stead_files::{
    RelPath, RootFolder, Staged, Target, TreeError, WalkOptions, is_temporary, walk,
};

use crate::kit::{mode, path, quick_folder, walked, write};

fn target(text: &str) -> Target {
    Target::new(path(text)).unwrap()
}

/// Both ways of resolving a path: by the kernel in one call, and component by component.
fn roots(at: &Path) -> [RootFolder; 2] {
    [RootFolder::open(at).unwrap(), RootFolder::open(at).unwrap().by_component()]
}

#[test]
fn files_links_and_folders_are_put_in_place() {
    for by_component in [false, true] {
        let base = tempfile::tempdir().unwrap();
        write(base.path(), "d/old", b"old", 0o644);
        let [whole, stepwise] = roots(base.path());
        let root = if by_component { stepwise } else { whole };
        let new = root.stage_file(&target("d/new"), &mut &b"new"[..], 0o4750).unwrap();
        assert!(is_temporary(Path::new(new.beside().as_os_str()).file_name().unwrap()));
        root.place_new(&new).unwrap();
        assert_eq!(fs::read(base.path().join("d/new")).unwrap(), b"new");
        assert_eq!(mode(&base.path().join("d/new")), 0o4750);

        let taken = root.stage_file(&target("d/old"), &mut &b"x"[..], 0o600).unwrap();
        assert!(matches!(root.place_new(&taken), Err(TreeError::Exists(_))));
        root.exchange(&taken).unwrap();
        assert_eq!(fs::read(base.path().join("d/old")).unwrap(), b"x");
        let (mut old, _) = root.open_file(taken.beside()).unwrap();
        assert_eq!(std::io::read_to_string(&mut old).unwrap(), "old");
        root.exchange(&taken).unwrap();
        assert_eq!(fs::read(base.path().join("d/old")).unwrap(), b"old");
        root.place_over(&taken).unwrap();
        assert!(!root.unstage(&taken).unwrap());
        assert_eq!(fs::read(base.path().join("d/old")).unwrap(), b"x");

        let link = root.stage_link(&target("d/link"), b"../\xff").unwrap();
        root.place_over(&link).unwrap();
        assert_eq!(root.read_link(&path("d/link")).unwrap(), b"../\xff");
        root.make_folder(&target("e"), 0o1711).unwrap();
        assert_eq!(mode(&base.path().join("e")), 0o1711);
        root.set_mode(&target("d/old"), 0o444).unwrap();
        assert_eq!(mode(&base.path().join("d/old")), 0o444);
        root.set_mode(&target("d/link"), 0o444).unwrap_err();
        root.remove_folder(&target("e")).unwrap();
        root.remove_folder(&target("d")).unwrap_err();
        root.remove_file(&target("d/link")).unwrap();
        assert_eq!(walked(base.path()), ["d", "d/new", "d/old"]);
        assert!(root.look(&path("d/old")).unwrap().is_some());
        assert!(root.look(&path("no/where")).unwrap().is_none());
        root.sync().unwrap();
    }
}

#[test]
fn a_planned_place_may_be_in_another_folder() {
    let base = tempfile::tempdir().unwrap();
    write(base.path(), "d/old", b"old", 0o644);
    for root in roots(base.path()) {
        let plan = |text: &str, number| {
            Staged::planned(target(text), &RelPath::root(), "tag", number).unwrap()
        };
        let (new, gone) = (plan("d/new", 1), plan("d/old", 2));
        assert!(is_temporary(new.beside().as_os_str()));
        std::io::Write::write_all(&mut root.create(&new).unwrap(), b"new").unwrap();
        assert!(matches!(root.create(&new), Err(TreeError::Exists(_))));
        assert!(matches!(root.create_link(&new, b"x"), Err(TreeError::Exists(_))));
        assert_eq!(mode(&base.path().join(new.beside().as_os_str())), 0o600);
        root.place_new(&new).unwrap();
        assert_eq!(fs::read(base.path().join("d/new")).unwrap(), b"new");
        root.set_aside(&gone).unwrap();
        assert!(root.look(gone.target().path()).unwrap().is_none());
        write(base.path(), "d/old", b"other", 0o644);
        assert!(matches!(root.set_aside(&gone), Err(TreeError::Exists(_))));
        root.exchange(&gone).unwrap();
        assert_eq!(fs::read(base.path().join("d/old")).unwrap(), b"old");
        assert!(root.unstage(&gone).unwrap());
        root.remove_file(&target("d/new")).unwrap();
        root.create_link(&new, b"text").unwrap();
        root.place_new(&Staged::at(new.target().clone(), new.beside().clone())).unwrap();
        assert_eq!(root.read_link(&path("d/new")).unwrap(), b"text");
        root.remove_file(&target("d/new")).unwrap();
    }
    assert!(Staged::planned(target("x"), &RelPath::root(), "a/b", 1).is_err());
}

#[test]
fn no_way_leads_over_a_link() {
    let base = tempfile::tempdir().unwrap();
    let (root, outside) = (base.path().join("root"), base.path().join("outside"));
    write(&outside, "passwd", b"secret", 0o644);
    write(&root, "real/x", b"x", 0o644);
    symlink(&outside, root.join("src")).unwrap();
    symlink("real", root.join("same")).unwrap();
    symlink("../outside", root.join("real/up")).unwrap();
    for root in roots(&root) {
        for way in ["src/passwd", "same/x", "real/up/passwd", "real/x/y"] {
            let target = target(way);
            let refused = [
                root.stage_file(&target, &mut &b""[..], 0o644).map(drop),
                root.stage_link(&target, b"x").map(drop),
                root.make_folder(&target, 0o755),
                root.remove_file(&target),
                root.remove_folder(&target),
                root.set_mode(&target, 0o777),
                root.open_file(target.path()).map(drop),
                root.look(target.path()).map(drop),
            ];
            for done in refused {
                let error = done.unwrap_err();
                assert!(matches!(error, TreeError::NotBeneath(_)), "{way}: {error}");
            }
        }
        // The link itself is a name like any other, but is not read through.
        assert!(matches!(root.open_file(&path("src")), Err(TreeError::NotBeneath(_))));
        assert_eq!(root.read_link(&path("same")).unwrap(), b"real");
    }
    assert_eq!(walked(&outside), ["passwd"]);
    assert_eq!(fs::read(outside.join("passwd")).unwrap(), b"secret");
    assert_eq!(mode(&outside.join("passwd")), 0o644);
}

#[test]
fn a_failed_write_leaves_nothing() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::UnexpectedEof.into())
        }
    }
    let base = tempfile::tempdir().unwrap();
    let root = RootFolder::open(base.path()).unwrap();
    root.stage_file(&target("x"), &mut Broken, 0o644).unwrap_err();
    assert!(walked(base.path()).is_empty());
}

#[test]
fn very_long_ways_are_taken_in_pieces() {
    let base = quick_folder();
    crate::remove::dig(base.path(), 2000);
    let deepest = vec![&b"a-level"[..]; 2000].join(&b'/');
    let listing = walk(base.path(), &WalkOptions::default()).unwrap();
    assert_eq!(listing.folders().last().unwrap().path, path(&deepest));
    for root in roots(base.path()) {
        let file = path(&deepest).join("file").unwrap();
        assert!(root.look(&file).unwrap().is_some());
        root.set_mode(&Target::new(file).unwrap(), 0o640).unwrap();
    }
    stead_files::remove_tree_at(&base.path().join("a-level")).unwrap();
}
