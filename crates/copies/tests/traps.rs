//! Each trap of a copy that has a Git directory of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::{
    Kit, contents, mode, noted, picture, rel, request_for, session, set_mode, slot, write,
};
use stead_copies::{Base, MakeError, NoteKind, Obstruction, RootKind};
use stead_core::id::{RootId, TaskId};
use stead_core::layout::Access;
use stead_files::ObstacleKind;
use stead_git::Operation;

fn every_inode(folder: &Path) -> Vec<u64> {
    let output = Command::new("find").arg(folder).args(["-printf", "%i\n"]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn a_copy_shares_no_inode_with_its_source_or_the_depot() {
    let kit = Kit::new();
    let app = kit.repository("app");
    kit.ok(&app, &["gc", "-q"]);
    let (_, copy) = kit.copy(&app);
    let depot = kit.home.depot(&RootId::parse("root-app").unwrap());
    let others = [every_inode(&app), every_inode(&depot)].concat();
    assert!(every_inode(&copy).iter().all(|inode| !others.contains(inode)));
    // So nothing done to the copy's files reaches them.
    let before = (picture(&app), contents(&depot));
    let status = Command::new("chmod").args(["-R", "777"]).arg(&copy).status().unwrap();
    assert!(status.success());
    assert!((picture(&app), contents(&depot)) == before);
}

#[test]
fn a_copy_outlives_gc_and_prune_in_the_source() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join("a.txt"), "second\n");
    kit.commit_all(&app, "second");
    let (_, copy) = kit.copy(&app);
    kit.ok(&app, &["reset", "-q", "--hard", "HEAD~1"]);
    kit.ok(&app, &["reflog", "expire", "--expire=now", "--all"]);
    kit.ok(&app, &["gc", "-q", "--prune=now"]);
    assert_eq!(kit.ok(&copy, &["log", "--format=%s"]), "second\nfirst\n");
    kit.ok(&copy, &["fsck", "--full"]);
    assert_eq!(kit.status(&copy), "");
    // A further copy is made of what there is now, from the same depot.
    let (_, copy) = kit.copy_as(2, &app);
    assert_eq!(kit.ok(&copy, &["log", "--format=%s"]), "first\n");
    kit.ok(&copy, &["fsck", "--full"]);
}

#[test]
fn packs_and_loose_objects_are_borrowed_and_the_copys_own_store_is_empty() {
    let kit = Kit::new();
    let app = kit.repository("app");
    kit.ok(&app, &["gc", "-q"]);
    write(&app.join("loose"), "x");
    kit.commit_all(&app, "loose");
    write(&app.join(".git/objects/pack/x.keep"), "");
    let (_, copy) = kit.copy(&app);
    let own = Command::new("find").arg(copy.join(".git/objects")).args(["-type", "f"]).output();
    let own = String::from_utf8(own.unwrap().stdout).unwrap();
    assert_eq!(own.trim(), copy.join(".git/objects/info/alternates").to_str().unwrap());
    kit.ok(&copy, &["fsck", "--full"]);
    let depot = kit.home.depot(&RootId::parse("root-app").unwrap());
    assert!(!depot.join("objects/pack/x.keep").exists());
    // One file on the disk, two names.
    let pack = fs::read_dir(depot.join("objects/pack")).unwrap().next().unwrap().unwrap();
    assert_eq!(pack.metadata().unwrap().nlink(), 2);
}

#[test]
fn missing_objects_are_refused_by_name() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let blob = kit.ok(&app, &["rev-parse", "HEAD:a.txt"]).trim().to_owned();
    fs::remove_file(app.join(format!(
        ".git/objects/{}/{}",
        blob.get(..2).unwrap(),
        blob.get(2..).unwrap()
    )))
    .unwrap();
    let (why, hint) = kit.refusal(&app);
    let Obstruction::NoObjects(ids) = why else { panic!("{why}") };
    assert_eq!(ids.iter().map(ToString::to_string).collect::<Vec<_>>(), [blob]);
    assert!(hint.unwrap().contains("fsck"));
}

#[test]
fn copies_49_alternates_are_linked_into_the_depot() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let borrower = kit.at("borrower");
    let words = ["clone", "-q", "--shared", app.to_str().unwrap(), borrower.to_str().unwrap()];
    kit.ok(&kit.at(""), &words);
    let (admitted, copy) = kit.copy(&borrower);
    assert_eq!(noted(&admitted, NoteKind::Borrows).unwrap(), [""; 0]);
    fs::remove_dir_all(&app).unwrap();
    fs::remove_dir_all(&borrower).unwrap();
    kit.ok(&copy, &["fsck", "--full"]);
}

#[test]
fn a_shallow_history_stays_shallow() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join("a.txt"), "second\n");
    kit.commit_all(&app, "second");
    let shallow = kit.at("shallow");
    let from = format!("file://{}", app.display());
    kit.ok(&kit.at(""), &["clone", "-q", "--depth=1", &from, shallow.to_str().unwrap()]);
    let (admitted, copy) = kit.copy(&shallow);
    assert!(noted(&admitted, NoteKind::Shallow).is_some());
    assert_eq!(kit.ok(&copy, &["log", "--format=%s"]), "second\n");
    kit.ok(&copy, &["fsck", "--full"]);
}

#[test]
fn a_partial_clone_is_refused() {
    let kit = Kit::new();
    let app = kit.repository("app");
    kit.ok(&app, &["config", "uploadpack.allowFilter", "true"]);
    let partial = kit.at("partial");
    let from = format!("file://{}", app.display());
    kit.ok(&kit.at(""), &["clone", "-q", "--filter=blob:none", &from, partial.to_str().unwrap()]);
    let (why, hint) = kit.refusal(&partial);
    assert_eq!(why, Obstruction::Partial);
    assert!(hint.unwrap().contains("--refetch"));
}

#[test]
fn reftables_and_sha_256_repositories_are_copied() {
    let kit = Kit::new();
    for (name, option) in [("reftable", "--ref-format=reftable"), ("sha", "--object-format=sha256")]
    {
        let app = kit.at(name);
        fs::create_dir(&app).unwrap();
        if !kit.run(&app, &["init", "-q", "-b", "main", option]).status.success() {
            stead_testkit::skip(name, "this Git cannot make such a repository");
            continue;
        }
        write(&app.join("a.txt"), "one\n");
        kit.commit_all(&app, "first");
        kit.ok(&app, &["branch", "other"]);
        let request = request_for(1, &[(name, &app, Access::Write)]);
        kit.try_admit(&request).unwrap();
        let copy = kit.home.copy(&session(), TaskId(1), &slot(name));
        assert_eq!(kit.status(&copy), "");
        assert_eq!(kit.ok(&copy, &["rev-parse", "other"]), kit.ok(&app, &["rev-parse", "other"]));
        kit.ok(&copy, &["fsck", "--full"]);
        kit.ok(&copy, &["commit", "-q", "--allow-empty", "-m", "in the copy"]);
        assert_eq!(kit.ok(&app, &["log", "--format=%s"]), "first\n");
        fs::remove_dir_all(copy.parent().unwrap()).unwrap();
    }
}

#[test]
fn copies_49_field_wt_20_a_linked_work_tree_gives_a_repository_of_its_own() {
    let kit = Kit::new();
    let main = kit.repository("main");
    let tree = kit.at("tree");
    kit.ok(&main, &["worktree", "add", "-q", "-b", "feat", tree.to_str().unwrap()]);
    write(&tree.join("only-here"), "x");
    kit.commit_all(&tree, "in the tree");
    kit.ok(&main, &["config", "extensions.worktreeConfig", "true"]);
    kit.ok(&tree, &["config", "--worktree", "tree.own", "yes"]);
    let (admitted, copy) = kit.copy(&tree);
    assert!(noted(&admitted, NoteKind::LinkedWorkTree).is_some());
    assert!(copy.join(".git").is_dir());
    assert_eq!(kit.status(&copy), "");
    assert_eq!(kit.ok(&copy, &["branch", "--show-current"]), "feat\n");
    assert_eq!(kit.ok(&copy, &["config", "tree.own"]), "yes\n");
    assert_eq!(kit.ok(&copy, &["worktree", "list"]).lines().count(), 1);
    // `feat` is checked out elsewhere, and the copy commits to its own.
    let before = kit.ok(&main, &["rev-parse", "feat"]);
    kit.ok(&copy, &["commit", "-q", "--allow-empty", "-m", "in the copy"]);
    assert_eq!(kit.ok(&main, &["rev-parse", "feat"]), before);
    let RootKind::Git { common_directory, .. } = &admitted.layout.slots[0].kind else { panic!() };
    assert_eq!(common_directory, &main.join(".git"));
}

#[test]
fn field_cpy_07_registered_work_trees_inside_the_root_are_left_out_by_name() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join(".git/info/exclude"), ".wt/\n");
    for name in [".wt/one", "two"] {
        kit.ok(&app, &["worktree", "add", "-q", "--detach", app.join(name).to_str().unwrap()]);
    }
    let mut sizes = Vec::new();
    for task in 1..=4 {
        let (admitted, copy) = kit.copy_as(task, &app);
        assert_eq!(noted(&admitted, NoteKind::WorkTree).unwrap(), [".wt/one", "two"]);
        assert!(copy.join(".wt").is_dir() && !copy.join(".wt/one").exists());
        assert!(!copy.join("two").exists());
        sizes.push(contents(&copy));
        let base = Base::load(&kit.home, &admitted.layout.slots[0].base).unwrap();
        assert_eq!(base.left_out, [rel(".wt/one"), rel("two")]);
    }
    assert!(sizes.iter().all(|size| *size == sizes[0]));
}

#[test]
fn copies_49_a_git_file_that_leads_outside_is_refused() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let other = kit.repository("other");
    let plain = kit.at("plain");
    for root in [&app, &plain] {
        write(&root.join("in/side/.git"), format!("gitdir: {}/.git\n", other.display()));
        write(&root.join("rel/.git"), "gitdir: ../../other/.git\n");
        let (why, _) = kit.refusal(root);
        assert_eq!(why, Obstruction::LeadsOutside(vec![rel("in/side"), rel("rel")]));
        fs::remove_dir_all(root.join("in")).unwrap();
        fs::remove_dir_all(root.join("rel")).unwrap();
    }
    // An absolute way into the root leads to the original too; so does a setting.
    kit.ok(&app, &["init", "-q", "nested"]);
    kit.ok(&app.join("nested"), &["config", "core.worktree", app.to_str().unwrap()]);
    assert_eq!(kit.refusal(&app).0, Obstruction::LeadsOutside(vec![rel("nested")]));
    // One that stays inside by a relative way is carried.
    fs::remove_dir_all(app.join("nested")).unwrap();
    kit.ok(&app, &["init", "-q", "--separate-git-dir=store", "work"]);
    write(&app.join("work/.git"), "gitdir: ../store\n");
    let (admitted, copy) = kit.copy(&app);
    assert_eq!(noted(&admitted, NoteKind::Nested).unwrap(), ["work"]);
    let inside = kit.ok(&copy.join("work"), &["rev-parse", "--absolute-git-dir"]);
    assert_eq!(inside.trim(), copy.join("store").to_str().unwrap());
}

#[test]
fn copies_49_field_wt_01_submodules_are_carried_without_a_network() {
    let kit = Kit::new();
    let sub = kit.repository("sub");
    let app = kit.repository("app");
    let add = |name: &str| {
        let from = sub.to_str().unwrap();
        kit.ok(&app, &["-c", "protocol.file.allow=always", "submodule", "-q", "add", from, name]);
    };
    add("one");
    add("deep/two");
    kit.commit_all(&app, "submodules");
    kit.ok(&app, &["config", "submodule.recurse", "true"]);
    kit.ok(&app, &["submodule", "-q", "deinit", "-f", "deep/two"]);
    write(&app.join("one/a.txt"), "dirty in the submodule\n");
    let before = picture(&app);
    let (admitted, copy) = kit.copy(&app);
    assert!(picture(&app) == before);
    assert_eq!(noted(&admitted, NoteKind::Nested).unwrap(), ["one"]);
    assert_eq!(noted(&admitted, NoteKind::NotInitialised).unwrap(), ["deep/two"]);
    assert_eq!(contents(&copy), contents(&app));
    assert_eq!(kit.status(&copy), " M one\n");
    // The submodule's repository is the copy's own.
    let own = kit.ok(&copy.join("one"), &["rev-parse", "--absolute-git-dir", "--show-toplevel"]);
    let expected = format!("{0}/.git/modules/one\n{0}/one\n", copy.display());
    assert_eq!(own, expected);
    kit.ok(&copy.join("one"), &["commit", "-q", "-a", "-m", "in the copy"]);
    assert!(picture(&app) == before);
    // A root that is itself a submodule is copied at its own HEAD.
    let request = request_for(2, &[("one", &app.join("one"), Access::Write)]);
    kit.try_admit(&request).unwrap();
    let copy = kit.home.copy(&session(), TaskId(2), &slot("one"));
    let top = kit.ok(&copy, &["rev-parse", "--show-toplevel"]);
    assert_eq!(top.trim(), copy.to_str().unwrap());
    assert_eq!(kit.ok(&copy, &["log", "--format=%s"]), "first\n");
    assert_eq!(kit.status(&copy), " M a.txt\n");
    assert!(picture(&app) == before);
}

#[test]
fn field_wt_02_a_root_that_is_a_submodule_is_a_repository_of_its_own() {
    let kit = Kit::new();
    let sub = kit.repository("sub");
    let app = kit.repository("app");
    let from = sub.to_str().unwrap();
    kit.ok(&app, &["-c", "protocol.file.allow=always", "submodule", "-q", "add", from, "sub"]);
    let (_, copy) = kit.copy(&app.join("sub"));
    assert!(copy.join(".git").is_dir());
    assert_eq!(kit.status(&copy), "");
    let top = kit.ok(&copy, &["rev-parse", "--show-toplevel"]);
    assert_eq!(top.trim(), copy.to_str().unwrap());
}

#[test]
fn nested_repositories_are_carried_whole_and_never_covered() {
    let kit = Kit::new();
    let app = kit.repository("app");
    kit.repository("app/vendor/inner");
    write(&app.join("vendor/inner/target/x"), "ignored within");
    let (admitted, copy) = kit.copy(&app);
    assert_eq!(noted(&admitted, NoteKind::Nested).unwrap(), ["vendor/inner"]);
    assert_eq!(contents(&copy), contents(&app));
    assert_eq!(kit.ok(&copy.join("vendor/inner"), &["log", "--format=%s"]), "first\n");
    let base = Base::load(&kit.home, &admitted.layout.slots[0].base).unwrap();
    assert!(!base.covers(&rel("vendor/inner/a.txt")) && base.covers(&rel("vendor")));
}

#[test]
fn settings_that_lead_back_are_removed_or_mapped_and_nothing_can_be_pushed() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let remote = kit.at("remote.git");
    kit.ok(&kit.at(""), &["clone", "-q", "--bare", app.to_str().unwrap(), "remote.git"]);
    let set = |key: &str, value: &str| kit.ok(&app, &["config", key, value]);
    set("core.worktree", app.to_str().unwrap());
    set("core.fsmonitor", "true");
    set("core.untrackedCache", "true");
    set("core.hooksPath", app.join(".git/hooks").to_str().unwrap());
    kit.ok(&app, &["remote", "add", "origin", remote.to_str().unwrap()]);
    let (_, copy) = kit.copy(&app);
    let top = kit.ok(&copy, &["rev-parse", "--show-toplevel"]);
    assert_eq!(top.trim(), copy.to_str().unwrap());
    for gone in ["core.worktree", "core.fsmonitor", "core.untrackedCache"] {
        assert!(!kit.run(&copy, &["config", gone]).status.success(), "{gone}");
    }
    let hooks = kit.ok(&copy, &["config", "core.hooksPath"]);
    assert_eq!(hooks.trim(), copy.join(".git/hooks").to_str().unwrap());
    kit.ok(&copy, &["commit", "-q", "--allow-empty", "-m", "x"]);
    let before = picture(&remote);
    assert!(!kit.run(&copy, &["push", "origin", "main"]).status.success());
    assert!(picture(&remote) == before);
    kit.ok(&copy, &["fetch", "-q", "origin"]);
    assert_eq!(kit.ok(&copy, &["config", "gc.auto"]), "0\n");
    assert_eq!(kit.ok(&copy, &["config", "maintenance.auto"]), "false\n");
}

#[test]
fn hooks_are_carried_and_none_runs_for_a_copy() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let ran = kit.at("ran");
    for hook in ["post-checkout", "post-index-change", "reference-transaction", "pre-commit"] {
        let path = app.join(".git/hooks").join(hook);
        write(&path, format!("#!/bin/sh\ntouch '{}'\nexit 7\n", ran.display()));
        set_mode(&path, 0o755);
    }
    let before = picture(&app);
    let (_, copy) = kit.copy(&app);
    assert!(!ran.exists() && picture(&app) == before);
    assert_eq!(mode(&copy.join(".git/hooks/pre-commit")), 0o755);
    assert!(!kit.run(&copy, &["commit", "--allow-empty", "-m", "x"]).status.success());
    assert!(ran.exists());
}

#[test]
fn a_linked_folder_of_hooks_never_leads_back_to_the_original() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let hook = app.join("tools/pre-commit");
    write(&hook, "#!/bin/sh\nexit 7\n");
    set_mode(&hook, 0o755);
    kit.commit_all(&app, "tools");
    fs::remove_dir_all(app.join(".git/hooks")).unwrap();
    for (task, target) in [(1, app.join("tools")), (2, "../tools".into())] {
        symlink(target, app.join(".git/hooks")).unwrap();
        let (_, copy) = kit.copy_as(task, &app);
        let carried = copy.join(".git/hooks/pre-commit").canonicalize().unwrap();
        assert!(carried.starts_with(&copy), "{}", carried.display());
        assert!(!kit.run(&copy, &["commit", "--allow-empty", "-m", "x"]).status.success());
        fs::remove_file(app.join(".git/hooks")).unwrap();
    }
}

#[test]
fn field_wt_17_hooks_that_fail_hang_or_read_do_not_touch_a_copy() {
    let kit = Kit::new();
    let app = kit.repository("app");
    for (task, body) in [(1, "exit 7"), (2, "sleep 130"), (3, "cat")] {
        for hook in ["post-checkout", "reference-transaction", "fsmonitor-watchman"] {
            let path = app.join(".git/hooks").join(hook);
            write(&path, format!("#!/bin/sh\n{body}\n"));
            set_mode(&path, 0o755);
        }
        let hook = app.join(".git/hooks/fsmonitor-watchman");
        kit.ok(&app, &["config", "core.fsmonitor", hook.to_str().unwrap()]);
        let began = std::time::Instant::now();
        kit.copy_as(task, &app);
        assert!(began.elapsed() < Duration::from_secs(100));
    }
}

#[test]
fn an_operation_in_progress_or_conflicts_are_refused_with_what_to_do() {
    let kit = Kit::new();
    let app = kit.repository("app");
    kit.ok(&app, &["checkout", "-q", "-b", "other"]);
    write(&app.join("a.txt"), "theirs\n");
    kit.commit_all(&app, "theirs");
    kit.ok(&app, &["checkout", "-q", "main"]);
    write(&app.join("a.txt"), "ours\n");
    kit.commit_all(&app, "ours");
    kit.run(&app, &["merge", "other"]);
    let (why, hint) = kit.refusal(&app);
    assert_eq!(why, Obstruction::InProgress(vec![Operation::Merge]));
    assert!(hint.unwrap().contains("merge --abort"));
    fs::remove_file(app.join(".git/MERGE_HEAD")).unwrap();
    let (why, _) = kit.refusal(&app);
    assert_eq!(why, Obstruction::Unmerged(vec![rel("a.txt")]));
}

#[test]
fn nothing_but_what_is_listed_is_in_the_git_directory() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join("a.txt"), "stashed\n");
    kit.ok(&app, &["stash", "-q"]);
    kit.ok(&app, &["update-ref", "refs/private/x", "HEAD"]);
    kit.ok(&app, &["update-ref", "ORIG_HEAD", "HEAD"]);
    kit.ok(&app, &["tag", "v1"]);
    write(&app.join(".git/config.lock"), "");
    write(&app.join(".git/rr-cache/x/preimage"), "");
    let (_, copy) = kit.copy(&app);
    let mut names: Vec<String> = fs::read_dir(copy.join(".git"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["HEAD", "config", "hooks", "index", "info", "objects", "packed-refs", "refs"]
    );
    let refs = kit.ok(&copy, &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(refs, "refs/heads/main\nrefs/tags/v1\n");
    assert_eq!(kit.ok(&copy, &["stash", "list"]), "");
}

#[test]
fn a_change_in_the_moment_of_the_index_is_not_lost() {
    let kit = Kit::new();
    let app = kit.empty("app");
    write(&app.join("a"), "one\n");
    kit.ok(&app, &["add", "a"]);
    let index = fs::metadata(app.join(".git/index")).unwrap().modified().unwrap();
    // The same size, and the times of the file and the index are one: only bytes tell.
    write(&app.join("a"), "two\n");
    fs::File::options().write(true).open(app.join("a")).unwrap().set_modified(index).unwrap();
    let (_, copy) = kit.copy(&app);
    assert_eq!(kit.ok(&copy, &["diff", "--name-only"]), "a\n");
}

#[test]
fn with_minimal_stat_checks_an_edit_with_its_old_time_is_seen_as_in_the_source() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let (_, copy) = kit.copy(&app);
    // The copy's index has true times and inodes, so the default checks see everything.
    let file = copy.join("a.txt");
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    write(&copy.join("new"), "two\n");
    fs::rename(copy.join("new"), &file).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(before).unwrap();
    assert_eq!(kit.status(&copy), " M a.txt\n");
    assert!(!kit.run(&copy, &["config", "core.checkStat"]).status.success());
}

#[test]
fn a_clean_copy_is_clean_without_reading_a_file() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let (_, copy) = kit.copy(&app);
    // `diff-files` compares stat data and names what it would have to read.
    assert_eq!(kit.ok(&copy, &["diff-files", "--name-only"]), "");
}

#[test]
fn a_split_index_is_refused_and_bits_are_kept() {
    let kit = Kit::new();
    let app = kit.repository("app");
    kit.ok(&app, &["update-index", "--assume-unchanged", "a.txt"]);
    kit.ok(&app, &["update-index", "--skip-worktree", "dir/b.txt"]);
    let (admitted, copy) = kit.copy(&app);
    assert!(noted(&admitted, NoteKind::Sparse).is_none());
    assert_eq!(kit.ok(&copy, &["ls-files", "-v"]), "H .gitignore\nh a.txt\nS dir/b.txt\n");
    let kit = Kit::new();
    let app = kit.repository("split");
    kit.ok(&app, &["update-index", "--split-index"]);
    write(&app.join("new"), "x");
    kit.ok(&app, &["add", "new"]);
    let (why, _) = kit.refusal(&app);
    assert!(matches!(why, Obstruction::Index(_)), "{why}");
}

#[test]
fn field_wt_09_a_sparse_root_is_copied_as_it_is() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join("other/c.txt"), "three\n");
    kit.commit_all(&app, "more");
    kit.ok(&app, &["sparse-checkout", "set", "--no-cone", "/dir/", "/a.txt"]);
    let (admitted, copy) = kit.copy(&app);
    assert!(noted(&admitted, NoteKind::Sparse).is_some());
    assert_eq!(kit.status(&copy), "");
    assert!(!copy.join("other").exists());
    assert_eq!(kit.ok(&copy, &["sparse-checkout", "list"]), "/dir/\n/a.txt\n");
}

#[test]
fn absolute_links_into_the_root_are_literal_and_named() {
    let kit = Kit::new();
    let app = kit.repository("app");
    fs::create_dir_all(app.join("target/venv")).unwrap();
    symlink(app.join("dir"), app.join("target/venv/lib")).unwrap();
    symlink("/nowhere", app.join("target/venv/other")).unwrap();
    let (admitted, copy) = kit.copy(&app);
    assert_eq!(noted(&admitted, NoteKind::AbsoluteLink).unwrap(), ["target/venv/lib"]);
    assert_eq!(fs::read_link(copy.join("target/venv/lib")).unwrap(), app.join("dir"));
}

#[test]
fn steads_own_files_are_beside_the_copy_never_in_it() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let (_, copy) = kit.copy(&app);
    assert_eq!(kit.ok(&copy, &["status", "--porcelain", "--ignored"]), "");
    let beside = || {
        let listed = fs::read_dir(copy.parent().unwrap()).unwrap();
        let mut names: Vec<_> = listed.map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(beside(), [".unflushed", "app", "layout.json"]);
    stead_copies::flush(&kit.home, &session(), TaskId(1)).unwrap();
    assert_eq!(beside(), ["app", "layout.json"]);
}

#[test]
fn copies_47_what_cannot_be_carried_is_refused_with_its_paths() {
    let kit = Kit::new();
    let app = kit.repository("app");
    fs::hard_link(app.join("a.txt"), app.join("z.txt")).unwrap();
    let pipe = |path: &Path| {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    pipe(&app.join("pipe"));
    let socket = std::os::unix::net::UnixListener::bind(app.join("socket")).unwrap();
    let (why, _) = kit.refusal(&app);
    let Obstruction::Unsupported(obstacles) = why else { panic!("{why}") };
    let paths: Vec<String> = obstacles.iter().map(|o| o.path.to_string()).collect();
    assert_eq!(paths, ["a.txt", "pipe", "socket", "z.txt"]);
    assert_eq!(obstacles[3].kind, ObstacleKind::HardLink { names: 2 });
    drop(socket);
    for name in ["pipe", "socket", "z.txt"] {
        fs::remove_file(app.join(name)).unwrap();
    }
    // Those among ignored files are left out, or become files of their own, and are named.
    write(&app.join("target/one"), "x");
    fs::hard_link(app.join("target/one"), app.join("target/two")).unwrap();
    pipe(&app.join("target/pipe"));
    pipe(&app.join("dir/x.log"));
    let (admitted, copy) = kit.copy(&app);
    assert_eq!(noted(&admitted, NoteKind::Special).unwrap(), ["dir/x.log", "target/pipe"]);
    assert_eq!(noted(&admitted, NoteKind::HardLinks).unwrap(), ["target/one", "target/two"]);
    assert_eq!(fs::metadata(copy.join("target/one")).unwrap().nlink(), 1);
    assert!(!copy.join("dir/x.log").exists());
}

/// An access control list that gives user 12345 the right to read, as the kernel stores it.
const LIST: [u8; 44] = [
    2, 0, 0, 0, // version
    1, 0, 6, 0, 255, 255, 255, 255, // the owner
    2, 0, 4, 0, 57, 48, 0, 0, // user 12345
    4, 0, 4, 0, 255, 255, 255, 255, // the group
    16, 0, 4, 0, 255, 255, 255, 255, // the mask
    32, 0, 4, 0, 255, 255, 255, 255, // others
];

#[test]
fn copies_47_lists_and_flags_are_refused_and_attributes_are_carried() {
    use rustix::fs::{XattrFlags, getxattr, removexattr, setxattr};
    let kit = Kit::new();
    let app = kit.repository("app");
    let file = app.join("a.txt");
    if setxattr(&file, "user.note", b"value", XattrFlags::empty()).is_err() {
        stead_testkit::skip("copies_47", "this file system has no attributes");
        return;
    }
    let (admitted, copy) = kit.copy(&app);
    assert_eq!(noted(&admitted, NoteKind::Attributes).unwrap(), ["a.txt"]);
    let mut value = [0; 16];
    let length = getxattr(copy.join("a.txt"), "user.note", value.as_mut_slice()).unwrap();
    assert_eq!(&value[..length], b"value");
    fs::remove_dir_all(kit.home.copies().join("s1")).unwrap();
    let only = |kind: ObstacleKind| {
        let (why, _) = kit.refusal(&app);
        let Obstruction::Unsupported(obstacles) = why else { panic!("{why}") };
        let found: Vec<_> = obstacles.iter().map(|o| (o.path.to_string(), &o.kind)).collect();
        assert_eq!(found, [("a.txt".to_owned(), &kind)]);
    };
    let acl = "system.posix_acl_access";
    if setxattr(&file, acl, &LIST, XattrFlags::empty()).is_ok() {
        only(ObstacleKind::Acl);
        removexattr(&file, acl).unwrap();
    } else {
        stead_testkit::skip("copies_47, lists", "this file system has none");
    }
    let flag = |sign: &str| Command::new("chattr").arg(sign).arg(&file).output();
    if flag("+i").is_ok_and(|output| output.status.success()) {
        only(ObstacleKind::Flagged);
        assert!(flag("-i").unwrap().status.success());
    } else {
        stead_testkit::skip("copies_47, flags", "only root may set them");
    }
}

#[test]
fn copies_48_field_wt_06_filters_never_run_and_their_files_are_named() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let ran = kit.at("ran");
    write(&app.join(".gitattributes"), "*.bin filter=lfs diff=lfs\n*.txt text eol=crlf\n");
    write(&app.join("a.bin"), "pointer\n");
    kit.commit_all(&app, "attributes");
    let touch = format!("touch {}", ran.display());
    for key in ["clean", "smudge", "process"] {
        kit.ok(&app, &["config", &format!("filter.lfs.{key}"), &touch]);
    }
    kit.ok(&app, &["config", "filter.lfs.required", "true"]);
    kit.ok(&app, &["config", "core.autocrlf", "true"]);
    kit.ok(&app, &["config", "diff.lfs.textconv", &touch]);
    write(&app.join(".git/lfs/objects/x"), "large");
    let before = picture(&app);
    let (admitted, copy) = kit.copy(&app);
    assert!(!ran.exists() && picture(&app) == before);
    assert_eq!(contents(&copy), contents(&app));
    assert_eq!(noted(&admitted, NoteKind::Filtered).unwrap(), ["a.bin"]);
    assert!(noted(&admitted, NoteKind::LargeFiles).is_some());
    assert!(!copy.join(".git/lfs").exists());
    assert_eq!(kit.ok(&app, &["branch"]).lines().count(), 1);
}

#[test]
fn copies_53_a_database_with_a_log_beside_it_is_named() {
    let kit = Kit::new();
    let app = kit.repository("app");
    write(&app.join("data/x.db"), "SQLite format 3\0");
    write(&app.join("data/x.db-wal"), "changes");
    write(&app.join("data/quiet.db"), "SQLite format 3\0");
    write(&app.join("data/quiet.db-wal"), "");
    let (admitted, _) = kit.copy(&app);
    assert_eq!(noted(&admitted, NoteKind::Database).unwrap(), ["data/x.db"]);
    let note = admitted.slots[0].notes.iter().find(|note| note.kind == NoteKind::Database);
    assert!(note.unwrap().to_string().contains("may not be consistent"));
}

#[test]
fn a_writable_repository_on_another_disk_than_the_home_is_refused_at_admission() {
    let memory = Path::new("/dev/shm");
    let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
    if device(memory).is_none() || device(memory) == device(&std::env::temp_dir()) {
        stead_testkit::skip("copies_58", "there is no second disk");
        return;
    }
    let kit = Kit::new();
    let elsewhere = Kit::below(memory);
    let app = elsewhere.repository("app");
    let (why, hint) = kit.refusal(&app);
    assert!(matches!(why, Obstruction::OtherDevice { .. }), "{why}");
    assert!(hint.unwrap().contains("STEAD_HOME"));
    // To be read it may be anywhere; its objects are copied then.
    let request = request_for(1, &[("app", &app, Access::Read)]);
    kit.try_admit(&request).unwrap();
    let copy = kit.home.copy(&session(), TaskId(1), &slot("app"));
    kit.ok(&copy, &["fsck", "--full"]);
    assert_eq!(kit.status(&copy), "");
}

#[test]
fn two_copies_of_one_root_at_once_are_independent() {
    let kit = Kit::new();
    let app = kit.repository("app");
    let request_of = |task| request_for(task, &[("app", &app, Access::Write)]);
    let results: Vec<Result<_, MakeError>> = std::thread::scope(|scope| {
        let making: Vec<_> = (1..=2)
            .map(|task| {
                let kit = &kit;
                let request = request_of(task);
                scope.spawn(move || kit.try_admit(&request))
            })
            .collect();
        making.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(results.iter().all(Result::is_ok));
    let copies = [1, 2].map(|task| kit.home.copy(&session(), TaskId(task), &slot("app")));
    write(&copies[0].join("a.txt"), "changed in one\n");
    kit.ok(&copies[0], &["commit", "-q", "-a", "-m", "one"]);
    assert_eq!(kit.status(&copies[1]), "");
    assert_eq!(kit.ok(&copies[1], &["log", "--format=%s"]), "first\n");
}
