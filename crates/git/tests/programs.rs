//! No question runs a program that a repository names, and no inherited variable leads astray.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use common::{Kit, picture, with_every_git, write};
use stead_git::index::Pair;
use stead_git::{Git, Index, Repository};

const HOOKS: [&str; 7] = [
    "post-index-change",
    "reference-transaction",
    "post-checkout",
    "pre-commit",
    "pre-auto-gc",
    "fsmonitor-watchman",
    "pre-push",
];

/// A program that leaves a mark, and fails.
fn canary(kit: &Kit) -> (PathBuf, PathBuf) {
    let (program, mark) = (kit.at("canary"), kit.at("mark"));
    fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\nfalse\n", mark.display()))
        .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    (program, mark)
}

/// Names the canary wherever Git's settings and attributes can name a program.
fn arm(kit: &Kit, folder: &Path, canary: &Path) {
    let program = canary.to_str().unwrap();
    let names = [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "core.alternateRefsCommand",
        "core.gitProxy",
        "credential.helper",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "merge.evil.driver",
        "gpg.program",
        "pager.config",
        "pager.ls-files",
        "uploadpack.packObjectsHook",
    ];
    for name in names {
        kit.ok(folder, &["config", name, program]);
    }
    for alias in ["rev-parse", "ls-files", "config", "check-ignore", "for-each-ref", "worktree"] {
        kit.ok(folder, &["config", &format!("alias.{alias}"), &format!("!{program}")]);
    }
    kit.ok(folder, &["config", "core.hooksPath", ".githooks"]);
    for hook in HOOKS {
        for at in [".githooks", ".git/hooks"] {
            let at = folder.join(at).join(hook);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::copy(canary, at).unwrap();
        }
    }
    write(&folder.join(".gitattributes"), "* filter=evil diff=evil merge=evil\n");
}

/// Every question that reads, and every change that makes a copy's Git directory.
fn ask_everything(kit: &Kit, folder: &Path) {
    let found = kit.discover(folder);
    found.is_partial().unwrap();
    found.git_path("hooks").unwrap();
    found.object_folders().unwrap();
    found.operations().unwrap();
    found.ignored().unwrap();
    found.ignored_among([Path::new("file"), Path::new("new"), Path::new("x.ignored")]).unwrap();
    found.carried_refs().unwrap();
    let head = found.head.commit().unwrap();
    found.tree(head).unwrap();
    found.count_commits(Some(head), head).unwrap();
    found.missing_objects([head]).unwrap();
    let mut index = Index::of(&found).unwrap();
    index.settle(|path| {
        let stat = (&fs::symlink_metadata(folder.join(path)).ok()?).into();
        Some(Pair { source: stat, copy: stat })
    });
    index.encode().unwrap();
    let to = kit.at("git-directory");
    fs::create_dir_all(to.join("objects/info")).unwrap();
    let own = format!("{}\n", found.object_folders().unwrap().own.display());
    fs::write(to.join("objects/info/alternates"), own).unwrap();
    found.write_config(&to, &kit.at("copy")).unwrap();
    found.write_refs(&to).unwrap();
    fs::remove_dir_all(&to).unwrap();
}

#[test]
fn field_gcx_01_no_question_runs_a_program_of_the_repository() {
    with_every_git(|kit| {
        let folder = kit.at("r");
        let tables: &[&str] = if kit.version >= (2, 45) { &["--ref-format=reftable"] } else { &[] };
        kit.empty("r", tables);
        kit.commit(&folder, "file", "one\n");
        write(&folder.join(".gitignore"), "*.ignored\n");
        kit.commit(&folder, "sub/file", "x");
        kit.ok(&folder, &["worktree", "add", "-q", "--detach", "../linked"]);
        let (program, mark) = canary(kit);
        arm(kit, &folder, &program);
        // Files whose times are not those of the index are what makes Git look at their bytes.
        for file in ["file", "sub/file", "new", "x.ignored"] {
            write(&folder.join(file), "changed");
        }
        let before = picture(&folder);
        ask_everything(kit, &folder);
        ask_everything(kit, &kit.at("linked"));
        assert!(!mark.exists(), "{}", fs::read_to_string(&mark).unwrap());
        assert!(before == picture(&folder), "a question changed the repository");

        // The canary can sing: what a person runs there would have run it.
        kit.run(&folder, &["status"]);
        assert!(mark.exists());
    });
}

#[test]
fn programs_of_a_repository_inside_do_not_run_either() {
    with_every_git(|kit| {
        let outer = kit.repository("outer");
        kit.repository("library");
        let add = ["submodule", "--quiet", "add", "../library", "sub"];
        kit.ok(&outer, &[&["-c", "protocol.file.allow=always"][..], &add[..]].concat());
        kit.ok(&outer, &["commit", "-qm", "with a submodule"]);
        kit.repository("outer/nested");
        let (program, mark) = canary(kit);
        for inner in ["sub", "nested"] {
            let inner = outer.join(inner);
            kit.ok(&inner, &["config", "core.fsmonitor", program.to_str().unwrap()]);
            write(&inner.join("file"), "changed");
        }
        ask_everything(kit, &outer);
        assert!(!mark.exists());
        assert!(kit.discover(&outer).ignored().unwrap().is_empty());
    });
}

#[test]
fn inherited_variables_lead_to_no_other_repository() {
    with_every_git(|kit| {
        let (victim, folder) = (kit.repository("victim"), kit.repository("r"));
        let mut environment = kit.environment();
        let mut lead = |name: &str, value: &Path| {
            environment.insert(name.into(), value.into());
        };
        lead("GIT_DIR", &victim.join(".git"));
        lead("GIT_COMMON_DIR", &victim.join(".git"));
        lead("GIT_WORK_TREE", &victim);
        lead("GIT_INDEX_FILE", &victim.join(".git/index"));
        lead("GIT_OBJECT_DIRECTORY", &victim.join(".git/objects"));
        lead("GIT_CONFIG_GLOBAL", &victim.join(".git/config"));
        lead("GIT_EXTERNAL_DIFF", Path::new("/bin/false"));
        lead("GIT_TRACE", &kit.at("trace"));
        lead("GIT_EXEC_PATH", Path::new("/nowhere"));
        let before = picture(&victim);
        let led = Git::find(&environment).unwrap();
        let found = Repository::discover(&led, &folder).unwrap().unwrap();
        assert_eq!(found.top_level, Some(folder.clone()));
        assert_eq!(found.index_file, folder.join(".git/index"));
        found.ignored().unwrap();
        fs::create_dir(kit.at("to")).unwrap();
        found.write_config(&kit.at("to"), &kit.at("copy")).unwrap();
        found.write_refs(&kit.at("to")).unwrap();
        assert!(before == picture(&victim));
        assert!(!kit.at("trace").exists());
    });
}

#[test]
fn a_question_takes_no_lock_and_leaves_the_index_alone() {
    with_every_git(|kit| {
        let folder = kit.repository("r");
        // A time that is not the one in the index is what a plain status would write back.
        let file = fs::File::options().write(true).open(folder.join("file")).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(5))
            .unwrap();
        fs::write(folder.join(".git/index.lock"), "somebody").unwrap();
        let before = picture(&folder);
        ask_everything(kit, &folder);
        assert!(before == picture(&folder));
        fs::remove_file(folder.join(".git/index.lock")).unwrap();
        let before = picture(&folder);
        ask_everything(kit, &folder);
        assert!(before == picture(&folder));
    });
}

#[test]
fn the_person_and_not_the_caller_chooses_settings() {
    with_every_git(|kit| {
        fs::write(kit.at("home/.gitconfig"), "[user]\n\tname = Person\n").unwrap();
        let found = kit.discover(&kit.repository("r"));
        assert_eq!(found.config.get("user.name"), Some("Person".as_ref()));
        // What stead itself says to Git is not mistaken for a setting of the repository.
        assert_eq!(found.config.get("core.hookspath"), None);
        assert_eq!(found.config.get("protocol.allow"), None);
    });
}

#[test]
fn a_missing_git_is_named() {
    let error = Git::find(&BTreeMap::from([(OsString::from("PATH"), "/nowhere".into())]));
    assert_eq!(error.unwrap_err().to_string(), "there is no git in PATH");
    assert!(Git::find(&BTreeMap::new()).is_err());
}
