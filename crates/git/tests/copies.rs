//! Settings and refs of a copy: what it has of its source, and what it has not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use common::{Kit, picture, with_every_git, write};
use stead_git::{Head, Kind, PUSH_ADDRESS, RefFormat};

/// A copy as it is made: files, and a Git directory that has only what was written here and the
/// objects of the source.
fn copy(kit: &Kit, source: &Path) -> PathBuf {
    let found = kit.discover(source);
    let copy = kit.at("copy");
    let _ = fs::remove_dir_all(&copy);
    let git_directory = copy.join(".git");
    fs::create_dir_all(git_directory.join("objects/info")).unwrap();
    let own = found.object_folders().unwrap().own;
    let alternates = [own.as_os_str().as_bytes(), b"\n"].concat();
    fs::write(git_directory.join("objects/info/alternates"), alternates).unwrap();
    found.write_config(&git_directory, &copy).unwrap();
    found.write_refs(&git_directory).unwrap();
    copy
}

fn refs(kit: &Kit, folder: &Path) -> Vec<String> {
    let format = "--format=%(refname) %(objectname) %(symref)";
    let all = kit.text(folder, &["for-each-ref", format]);
    all.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn every_trap_in_the_settings_is_removed_or_mapped() {
    with_every_git(|kit| {
        let source = kit.repository("source");
        let hooks = source.join("tools/hooks");
        let set = |key: &str, value: &str| {
            kit.ok(&source, &["config", "--add", key, value]);
        };
        set("core.fsmonitor", "true");
        set("core.untrackedCache", "true");
        set("core.splitIndex", "true");
        set("core.autocrlf", "true");
        set("core.hooksPath", hooks.to_str().unwrap());
        set("include.path", "../shared.config");
        set("include.path", "~/person.config");
        set("includeIf.onbranch:main.path", "only-main.config");
        set("remote.origin.url", "https://example.org/x.git");
        set("remote.origin.pushurl", "https://example.org/one.git");
        set("remote.origin.pushurl", "https://example.org/two.git");
        set("remote.a.b \"c\".url", "/some/where");
        set("gc.auto", "100");
        fs::write(source.join("shared.config"), "[shared]\n\tvalue = yes\n").unwrap();
        fs::write(source.join(".git/only-main.config"), "[branchy]\n\tvalue = yes\n").unwrap();
        let config = source.join(".git/config");
        fs::set_permissions(&config, fs::Permissions::from_mode(0o640)).unwrap();
        let before = fs::read(&config).unwrap();
        let copy = copy(kit, &source);
        assert_eq!(fs::read(&config).unwrap(), before);
        let get = |key: &str| {
            let answer = kit.run(&copy, &["config", "--includes", "--get-all", key]);
            String::from_utf8(answer.stdout).unwrap().trim_end().to_owned()
        };
        for gone in ["core.fsmonitor", "core.untrackedCache", "core.splitIndex", "core.bare"] {
            assert_eq!(get(gone), "", "{gone}");
        }
        assert_eq!(get("core.autocrlf"), "true");
        assert_eq!(get("core.hooksPath"), copy.join("tools/hooks").to_str().unwrap());
        assert_eq!((get("shared.value").as_str(), get("branchy.value").as_str()), ("yes", "yes"));
        assert!(get("include.path").contains("~/person.config"));
        assert_eq!(get("remote.origin.url"), "https://example.org/x.git");
        assert_eq!(get("remote.origin.pushurl"), PUSH_ADDRESS);
        assert_eq!(get("remote.a.b \"c\".pushurl"), PUSH_ADDRESS);
        assert_eq!((get("gc.auto").as_str(), get("maintenance.auto").as_str()), ("0", "false"));
        let mode = fs::metadata(copy.join(".git/config")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(kit.discover(&copy).kind, Kind::Plain);
    });
}

#[test]
fn a_copy_of_few_settings_gets_no_others() {
    with_every_git(|kit| {
        let source = kit.repository("source");
        let to = kit.at("to");
        fs::create_dir(&to).unwrap();
        let changed = kit.discover(&source).write_config(&to, &kit.at("copy")).unwrap();
        let keys: Vec<_> = changed.iter().map(|setting| setting.key.to_str().unwrap()).collect();
        assert_eq!(keys, ["core.bare", "gc.auto", "maintenance.auto"]);
    });
}

#[test]
fn a_push_from_a_copy_is_refused_without_a_network() {
    with_every_git(|kit| {
        let remote = kit.empty("remote", &["--bare"]);
        let source = kit.repository("source");
        kit.ok(&source, &["remote", "add", "origin", remote.to_str().unwrap()]);
        kit.ok(&source, &["push", "-q", "origin", "main"]);
        let ssh = kit.at("ssh");
        fs::write(&ssh, format!("#!/bin/sh\ntouch '{}'\n", kit.at("called").display())).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        kit.ok(&source, &["config", "core.sshCommand", ssh.to_str().unwrap()]);
        let copy = copy(kit, &source);
        let before = picture(&remote);
        for arguments in [&["push", "origin", "main"][..], &["push", "-f", "origin", "HEAD:new"]] {
            // Git may also die of writing to the helper that has refused.
            let status = kit.run(&copy, arguments).status;
            assert!(matches!(status.code(), Some(128) | None), "{status}");
        }
        assert!(before == picture(&remote));
        assert!(!kit.at("called").exists());
        kit.ok(&copy, &["fetch", "-q", "origin"]);
    });
}

#[test]
fn refs_are_carried_by_the_list_and_nothing_that_is_in_progress() {
    with_every_git(|kit| {
        let source = kit.repository("source");
        kit.ok(&source, &["branch", "topic/one"]);
        kit.ok(&source, &["tag", "light"]);
        kit.ok(&source, &["tag", "-a", "-m", "x", "heavy"]);
        kit.ok(&source, &["pack-refs", "--all"]);
        kit.ok(&source, &["branch", "loose"]);
        kit.ok(&source, &["notes", "add", "-m", "note"]);
        kit.ok(&source, &["update-ref", "refs/remotes/origin/main", "HEAD"]);
        kit.ok(&source, &["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"]);
        kit.ok(&source, &["update-ref", "refs/tool/secret", "HEAD"]);
        kit.ok(&source, &["update-ref", "refs/replace/x", "HEAD"]);
        write(&source.join("file"), "stashed");
        kit.ok(&source, &["stash", "-q"]);
        kit.ok(&source, &["bisect", "start", "HEAD"]);
        kit.ok(&source, &["bisect", "bad"]);
        let before = picture(&source.join(".git"));
        let copy = copy(kit, &source);
        assert!(before == picture(&source.join(".git")));
        let expected: Vec<_> = refs(kit, &source)
            .into_iter()
            .filter(|line| {
                !["stash", "bisect", "tool", "replace"]
                    .iter()
                    .any(|no| line.starts_with(&format!("refs/{no}")))
            })
            .collect();
        assert_eq!(refs(kit, &copy), expected);
        assert!(expected.len() >= 8, "{expected:?}");
        assert_eq!(kit.discover(&copy).head, kit.discover(&source).head);
        assert!(kit.discover(&copy).operations().unwrap().is_empty());
        assert_eq!(kit.text(&copy, &["stash", "list"]), "");
        assert_eq!(kit.text(&copy, &["notes", "show"]), "note");
        kit.ok(&copy, &["fsck", "--no-dangling"]);
        // And it can be worked with.
        kit.ok(&copy, &["reset", "-q", "--hard"]);
        kit.commit(&copy, "new", "x");
        kit.ok(&copy, &["checkout", "-q", "-b", "topic/two"]);
        kit.ok(&copy, &["branch", "-D", "loose"]);
    });
}

#[test]
fn a_linked_worktree_gives_a_copy_of_its_own_head_and_settings() {
    with_every_git(|kit| {
        let main = kit.repository("main");
        kit.ok(&main, &["config", "extensions.worktreeConfig", "true"]);
        kit.ok(&main, &["worktree", "add", "-q", "-b", "feature", "../linked"]);
        let linked = kit.at("linked");
        kit.commit(&linked, "more", "x");
        kit.ok(
            &linked,
            &["config", "--worktree", "core.hooksPath", linked.join("hooks").to_str().unwrap()],
        );
        kit.ok(&linked, &["config", "--worktree", "include.path", "own.config"]);
        write(&kit.at("main/.git/worktrees/linked/own.config"), "[own]\n\tvalue = yes\n");
        kit.ok(&linked, &["config", "--worktree", "core.worktree", linked.to_str().unwrap()]);
        let copy = copy(kit, &linked);
        let found = kit.discover(&copy);
        assert_eq!(
            (found.kind.clone(), found.top_level.clone()),
            (Kind::Plain, Some(copy.clone()))
        );
        assert_eq!(found.head, kit.discover(&linked).head);
        assert_eq!(found.config.get("own.value"), Some(OsStr::new("yes")));
        assert_eq!(found.config.get("core.hookspath"), Some(copy.join("hooks").as_os_str()));
        assert_eq!(found.config.get("extensions.worktreeconfig"), None);
        assert_eq!(found.worktrees.len(), 1);
        assert!(!kit.discover(&linked).registers(&found));
    });
}

#[test]
fn a_submodule_and_a_worktree_of_a_bare_layout_give_copies_of_their_own() {
    with_every_git(|kit| {
        kit.repository("library");
        let outer = kit.repository("outer");
        let add = ["submodule", "--quiet", "add", "../library", "sub"];
        kit.ok(&outer, &[&["-c", "protocol.file.allow=always"][..], &add[..]].concat());
        kit.ok(&kit.at(""), &["clone", "-q", "--bare", "library", "layout/.bare"]);
        fs::write(kit.at("layout/.git"), "gitdir: ./.bare\n").unwrap();
        kit.ok(&kit.at("layout"), &["worktree", "add", "-q", "main"]);
        for source in [outer.join("sub"), kit.at("layout/main")] {
            let before = picture(&kit.discover(&source).common_directory);
            let copy = copy(kit, &source);
            let found = kit.discover(&copy);
            assert_eq!(found.top_level, Some(copy.clone()));
            assert_eq!(found.kind, Kind::Plain);
            assert_eq!(found.head, kit.discover(&source).head);
            kit.ok(&copy, &["reset", "-q", "--hard"]);
            kit.commit(&copy, "file", "changed in the copy\n");
            assert!(before == picture(&kit.discover(&source).common_directory));
            assert_eq!(fs::read(source.join("file")).unwrap(), b"one\n");
        }
    });
}

#[test]
fn heads_without_commit_and_without_branch_are_carried() {
    with_every_git(|kit| {
        let new = kit.empty("new", &[]);
        let first = copy(kit, &new);
        assert_eq!(kit.discover(&first).head, kit.discover(&new).head);
        kit.commit(&first, "file", "x");
        let detached = kit.repository("detached");
        kit.commit(&detached, "file", "two\n");
        kit.ok(&detached, &["checkout", "-q", "--detach", "HEAD~1"]);
        let second = copy(kit, &detached);
        assert_eq!(kit.discover(&second).head, kit.discover(&detached).head);
        // A branch outside the list is carried when it is checked out.
        kit.ok(&detached, &["update-ref", "refs/odd/branch", "HEAD"]);
        kit.ok(&detached, &["symbolic-ref", "HEAD", "refs/odd/branch"]);
        let third = copy(kit, &detached);
        assert_eq!(kit.discover(&third).head, kit.discover(&detached).head);
        assert_eq!(
            kit.text(&third, &["rev-parse", "HEAD"]),
            kit.text(&detached, &["rev-parse", "HEAD"])
        );
    });
}

#[test]
fn reftables_and_long_hashes_are_carried() {
    with_every_git(|kit| {
        let long = kit.empty("long", &["--object-format=sha256"]);
        kit.commit(&long, "file", "x");
        let copied = copy(kit, &long);
        assert_eq!(refs(kit, &copied), refs(kit, &long));
        kit.ok(&copied, &["fsck"]);
        if kit.version < (2, 45) {
            return;
        }
        let source = kit.empty("tables", &["--ref-format=reftable"]);
        kit.commit(&source, "file", "one\n");
        kit.ok(&source, &["branch", "topic/one"]);
        kit.ok(&source, &["tag", "-a", "-m", "x", "heavy"]);
        write(&source.join("file"), "stashed");
        kit.ok(&source, &["stash", "-q"]);
        kit.ok(&source, &["update-ref", "ORIG_HEAD", "HEAD"]);
        kit.ok(&source, &["worktree", "add", "-q", "-b", "feature", "../linked"]);
        kit.commit(&kit.at("linked"), "more", "x");
        for source in [source, kit.at("linked")] {
            let before = picture(&kit.at("tables/.git"));
            let copied = copy(kit, &source);
            assert!(before == picture(&kit.at("tables/.git")));
            let found = kit.discover(&copied);
            assert_eq!(found.ref_format, RefFormat::Reftable);
            assert_eq!(found.head, kit.discover(&source).head);
            assert!(matches!(found.head, Head::Branch { commit: Some(_), .. }));
            let mut expected = refs(kit, &source);
            expected.retain(|line| !line.starts_with("refs/stash"));
            assert_eq!(refs(kit, &copied), expected);
            assert_eq!(kit.text(&copied, &["stash", "list"]), "");
            assert!(
                !kit.run(&copied, &["rev-parse", "-q", "--verify", "ORIG_HEAD"]).status.success()
            );
            kit.ok(&copied, &["reset", "-q", "--hard"]);
            kit.commit(&copied, "file", "two\n");
            kit.ok(&copied, &["fsck"]);
        }
    });
}
