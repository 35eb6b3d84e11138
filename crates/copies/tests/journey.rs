//! The whole way of a task's work: admitted, frozen, reviewed, applied, and on again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::fs;
use std::io;
use std::path::Path;

use common::{Kit, slot, write};
use stead_copies::{
    Admitted, Apply, ApplyRefused, ApplyRequest, Base, Clash, Contents, DiffOptions, Outcome,
    Review, Side, Snapshot, checked_out, diff, freeze, leftovers,
};
use stead_core::id::{Digest, RequestId};
use stead_files::Watch;
use stead_git::Repository;

/// A review of what the copy is now, as a person sees it.
fn review(kit: &Kit, admitted: &Admitted, base: &Digest) -> (Snapshot, Base, Review, String) {
    let (layout, app) = (&admitted.layout, slot("app"));
    let snapshot = freeze(&kit.home, &kit.git, layout, &app, base, Watch::default()).unwrap();
    let base = Base::load(&kit.home, base).unwrap();
    let root = &layout.slots[0];
    let repository = Repository::discover(&kit.git, root.source.as_path()).unwrap();
    let checkout = repository.map(|found| checked_out(&found.head));
    let review = Review::new(&kit.home, layout, &app, &base, &snapshot, checkout).unwrap();
    let contents = Contents::of(&kit.home, &kit.git, &root.root, &base).unwrap();
    let mut read = |side, path: &stead_files::RelPath| {
        let manifest = if side == Side::Before { &base.manifest } else { &snapshot.manifest };
        let entry = manifest.get(path).unwrap();
        contents.read(entry).map(Some).map_err(io::Error::other)
    };
    let options = DiffOptions { context: 3, for_terminal: true, most_lines: None, all: "unused" };
    let mut text = Vec::new();
    diff(&review.changes, &mut read, &options, &mut text).unwrap();
    (snapshot, base, review, String::from_utf8(text).unwrap())
}

fn check(
    kit: &Kit,
    admitted: &Admitted,
    number: u32,
    (snapshot, base, review): (&Snapshot, &Base, &Review),
) -> Result<Apply, ApplyRefused> {
    Apply::check(&ApplyRequest {
        home: &kit.home,
        git: &kit.git,
        apply: &RequestId::parse(&format!("apply-{number}")).unwrap(),
        layout: &admitted.layout,
        slot: &slot("app"),
        base,
        snapshot,
        review,
    })
}

/// Applies a review; gives the paths and the next base.
fn apply(
    kit: &Kit,
    admitted: &Admitted,
    number: u32,
    (snapshot, base, review): (&Snapshot, &Base, &Review),
) -> (Vec<String>, Digest) {
    let checked = check(kit, admitted, number, (snapshot, base, review));
    let checked = checked.unwrap_or_else(|refused| panic!("{refused}"));
    let Outcome::Written(written) = checked.write() else { panic!("not written") };
    let paths = written.paths().map(ToString::to_string).collect();
    written.clear().unwrap();
    assert!(leftovers(&kit.home).unwrap().is_empty());
    (paths, base.after(snapshot).unwrap().save(&kit.home).unwrap())
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_tasks_work_is_reviewed_and_applied_again_and_again() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join("target/built"), "old build");
    write(&app.join("notes"), "the person's notes\n");
    let (admitted, copy) = kit.copy(&app);
    write(&copy.join("a.txt"), "one\ntask\n");
    write(&copy.join("new/file"), "task\n");
    write(&copy.join("target/built"), "new build");
    fs::remove_file(copy.join("dir/b.txt")).unwrap();
    kit.ok(&copy, &["add", "a.txt"]);
    kit.ok(&copy, &["commit", "-qm", "in the copy"]);
    // Meanwhile the person works on.
    write(&app.join("notes"), "more notes\n");
    write(&app.join("staged"), "mine\n");
    kit.ok(&app, &["add", "staged"]);
    let (status, index) = (kit.status(&app), fs::read(app.join(".git/index")).unwrap());

    let base = admitted.layout.slots[0].base;
    let (snapshot, base, first, said) = review(&kit, &admitted, &base);
    assert_eq!(
        said,
        "\
changed file a.txt
--- a/a.txt
+++ b/a.txt
@@ -1 +1,2 @@
 one
+task
removed file dir/b.txt (mode 644)
--- a/dir/b.txt
+++ /dev/null
@@ -1 +0,0 @@
-two
new folder new (mode 755)
new file new/file (mode 644)
--- /dev/null
+++ b/new/file
@@ -0,0 +1 @@
+task
"
    );
    assert_eq!(first.commits, Some(1));
    assert_eq!(first.beside.len(), 1, "{:?}", first.beside);
    let (paths, base) = apply(&kit, &admitted, 1, (&snapshot, &base, &first));
    assert_eq!(paths, ["a.txt", "dir/b.txt", "new", "new/file"]);
    assert_eq!(text(&app.join("a.txt")), "one\ntask\n");
    assert_eq!(text(&app.join("notes")), "more notes\n");
    assert_eq!(text(&app.join("target/built")), "old build");
    assert_eq!(fs::read(app.join(".git/index")).unwrap(), index);
    assert_ne!(kit.status(&app), status, "the task's changes are there, unstaged");

    // On from there, over a commit of the person's.
    kit.commit_all(&app, "applied");
    write(&copy.join("a.txt"), "one\ntask\nmore\n");
    let (snapshot, base, second, said) = review(&kit, &admitted, &base);
    assert!(said.ends_with("@@ -1,2 +1,3 @@\n one\n task\n+more\n"), "{said}");
    let (paths, base) = apply(&kit, &admitted, 2, (&snapshot, &base, &second));
    assert_eq!(paths, ["a.txt"]);
    let (_, _, third, said) = review(&kit, &admitted, &base);
    assert_eq!((third.changes.len(), said.as_str()), (0, ""));
}

#[test]
fn a_plain_folder_is_reviewed_and_applied() {
    let kit = Kit::new();
    let folder = kit.at("plain");
    write(&folder.join("a"), "one\n");
    write(&folder.join("b/c"), "two\n");
    let (admitted, copy) = kit.copy(&folder);
    write(&copy.join("a"), "task\n");
    fs::remove_dir_all(copy.join("b")).unwrap();
    let base = admitted.layout.slots[0].base;
    let (snapshot, base, first, _) = review(&kit, &admitted, &base);
    let (paths, _) = apply(&kit, &admitted, 1, (&snapshot, &base, &first));
    assert_eq!(paths, ["a", "b", "b/c"]);
    assert!(!folder.join("b").exists());
}

#[test]
fn an_apply_that_was_taken_back_is_told_from_an_edit_and_goes_on_from_the_copys_files() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let (admitted, copy) = kit.copy(&app);
    write(&copy.join("a.txt"), "one\ntask\n");
    write(&copy.join("new"), "task\n");
    write(&copy.join("dir/b.txt"), "task\n");
    let base = admitted.layout.slots[0].base;
    let (snapshot, base, first, _) = review(&kit, &admitted, &base);
    let (_, base) = apply(&kit, &admitted, 1, (&snapshot, &base, &first));
    kit.ok(&app, &["reset", "-q", "--hard"]);
    fs::remove_file(app.join("new")).unwrap();
    write(&app.join("dir/b.txt"), "mine\n");
    for file in ["a.txt", "new", "dir/b.txt"] {
        write(&copy.join(file), "more\n");
    }
    let (snapshot, base, second, _) = review(&kit, &admitted, &base);
    let refused = check(&kit, &admitted, 2, (&snapshot, &base, &second)).unwrap_err();
    let hint = refused.refusal().hint.unwrap();
    assert!(hint.contains("from the private copy"), "{hint}");
    let ApplyRefused::Conflicts(found) = refused else { panic!("{refused}") };
    let found: Vec<_> = found.iter().map(|one| (one.path.to_string(), one.clash)).collect();
    let expected =
        [("a.txt", Clash::TakenBack), ("dir/b.txt", Clash::BothChanged), ("new", Clash::TakenBack)];
    assert_eq!(found, expected.map(|(path, clash)| (path.to_owned(), clash)));
    for file in ["a.txt", "new", "dir/b.txt"] {
        fs::copy(copy.join(file), app.join(file)).unwrap();
    }
    let (paths, _) = apply(&kit, &admitted, 3, (&snapshot, &base, &second));
    assert!(paths.is_empty(), "they are there: {paths:?}");
}
