//! Directories that a spawn may choose, with real repositories.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use stead_core::id::{RootId, SlotName};
use stead_core::layout::Access;

use super::*;

struct World {
    _folder: tempfile::TempDir,
    base: PathBuf,
}

/// `app`, a repository with a commit, and beside it `wt`, a worktree of it.
fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let world = World { _folder: folder, base };
    world.repository("app");
    world.run("app", &["worktree", "add", "-q", "../wt"]);
    world
}

fn git() -> Git {
    Git::find(&std::env::vars_os().collect()).unwrap()
}

impl World {
    fn run(&self, at: &str, arguments: &[&str]) {
        let output = Command::new("git")
            .current_dir(self.base.join(at))
            .args(["-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main"])
            .args(["-c", "protocol.file.allow=always"])
            .args(arguments)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HOME", &self.base)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
    }

    fn repository(&self, at: &str) {
        fs::create_dir_all(self.base.join(at).join("sub")).unwrap();
        fs::write(self.base.join(at).join("sub/f"), at).unwrap();
        self.run(at, &["init", "-q"]);
        self.run(at, &["add", "-A"]);
        self.run(at, &["commit", "-qm", "first"]);
    }

    fn directory(&self, at: &str) -> AbsoluteDir {
        AbsoluteDir::new(self.base.join(at)).unwrap()
    }

    fn root(&self, at: &str) -> Root {
        Root {
            id: RootId::parse("root-1").unwrap(),
            slot: SlotName::parse("app").unwrap(),
            directory: self.directory(at),
            access: Access::Write,
            identity: identity(&self.base.join(at)).unwrap(),
        }
    }

    /// What an agent in `parent` whose only root is `app` gets for `chosen`.
    fn judge(&self, parent: &str, chosen: &str) -> Result<Chosen, Refusal> {
        judge(|| Ok(git()), Some(&self.directory(parent)), &[self.root("app")], Path::new(chosen))
    }

    fn refused(&self, parent: &str, chosen: &str) -> Refusal {
        let refusal = self.judge(parent, chosen).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::InvalidArgument, "{refusal}");
        refusal
    }
}

#[test]
fn agents_48_a_relative_directory_is_below_the_parents() {
    let world = world();
    let chosen = world.judge("wt", "sub").unwrap();
    assert_eq!(chosen.directory, world.directory("wt/sub"));
    assert_eq!(chosen.worktree.unwrap().top, world.directory("wt"));
    assert_eq!(world.judge("app/sub", "..").unwrap().directory, world.directory("app"));
    for bad in ["nothing", "f", ""] {
        let parent = if bad.is_empty() { "gone" } else { "app/sub" };
        world.refused(parent, bad);
    }
}

#[test]
fn agents_49_a_registered_worktree_is_taken_and_a_folder_in_its_place_is_not() {
    let world = world();
    let wt = world.base.join("wt").display().to_string();
    let chosen = world.judge("app", &wt).unwrap();
    let worktree = chosen.worktree.unwrap();
    assert_eq!(worktree.common, world.directory("app/.git"));
    let still = || still(&git(), &worktree, &chosen.directory);
    still().unwrap();

    world.run("app", &["worktree", "remove", "../wt"]);
    fs::create_dir(world.base.join("wt")).unwrap();
    world.refused("app", &wt);
    assert!(still().unwrap_err().line.contains("is no worktree any more"));
    // A repository of its own in that place.
    world.repository("wt");
    world.refused("app", &wt);
    assert!(still().unwrap_err().line.contains("another one"));
    fs::remove_dir_all(world.base.join("wt")).unwrap();
    // Registered again: the caller may choose it, but it is not where the agent's work was.
    world.run("app", &["worktree", "add", "-q", "-f", "../wt", "HEAD"]);
    world.judge("app", &wt).unwrap();
    assert!(still().unwrap_err().line.contains("another one"));
}

#[test]
fn agents_49_a_worktree_that_was_pruned_or_copied_is_refused() {
    let world = world();
    let wt = world.base.join("wt").display().to_string();
    let chosen = world.judge("app", &wt).unwrap();
    let worktree = chosen.worktree.unwrap();
    let copied = Command::new("cp").arg("-r").arg(&wt).arg(world.base.join("twin")).status();
    assert!(copied.unwrap().success());
    world.refused("app", &world.base.join("twin").display().to_string());
    fs::remove_dir_all(world.base.join("app/.git/worktrees/wt")).unwrap();
    world.refused("app", &wt);
    assert!(still(&git(), &worktree, &chosen.directory).is_err());
}

#[test]
fn agents_50_a_clone_with_the_same_name_and_branch_is_refused() {
    let world = world();
    fs::create_dir(world.base.join("other")).unwrap();
    world.run("other", &["clone", "-q", "../app", "app"]);
    let refusal = world.refused("app", &world.base.join("other/app").display().to_string());
    assert!(refusal.line.contains("none of the caller's folders"), "{refusal}");
}

#[test]
fn agents_51_submodules_and_nested_repositories_outside_are_refused_and_inside_taken() {
    let world = world();
    world.repository("lib");
    world.run("wt", &["submodule", "--quiet", "add", "../lib", "module"]);
    world.repository("wt/nested");
    world.repository("app/nested");
    for outside in ["wt/module", "wt/nested", "lib", "wt/nested/sub"] {
        world.refused("app", &world.base.join(outside).display().to_string());
    }
    let inside = world.judge("app", "nested/sub").unwrap();
    assert_eq!((inside.directory, inside.worktree), (world.directory("app/nested/sub"), None));
    // A workspace that is no repository: only containment.
    fs::create_dir_all(world.base.join("plain/a")).unwrap();
    let judge = |chosen: &str| {
        judge(
            || Ok(git()),
            Some(&world.directory("plain")),
            &[world.root("plain")],
            Path::new(chosen),
        )
    };
    assert!(judge("a").is_ok());
    assert!(judge("../wt").is_err() && judge("../app").is_err());
}

#[test]
fn agents_52_agents_53_names_prove_nothing_and_links_are_judged_by_their_targets() {
    let world = world();
    for outside in ["app-old", "tmp/x"] {
        fs::create_dir_all(world.base.join(outside)).unwrap();
    }
    symlink("../tmp/x", world.base.join("app/out")).unwrap();
    symlink("../wt/sub", world.base.join("app/to-wt")).unwrap();
    symlink("app/sub", world.base.join("in")).unwrap();
    for outside in ["../app-old", "out"] {
        world.refused("app", outside);
    }
    assert_eq!(world.judge("app", "../in").unwrap().directory, world.directory("app/sub"));
    assert_eq!(world.judge("app", "to-wt").unwrap().directory, world.directory("wt/sub"));
}
