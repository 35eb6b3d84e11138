//! Real repositories, made by every Git of the machine.
#![allow(dead_code, unreachable_pub, unused_imports)] // each test program uses a part of it
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use stead_git::{Git, Repository};
use tempfile::TempDir;

/// A folder of its own and one of the machine's Gits.
pub struct Kit {
    pub git: Git,
    pub version: (u32, u32),
    folder: TempDir,
    environment: BTreeMap<OsString, OsString>,
}

/// Runs a test with every Git in `PATH`.
pub fn with_every_git(test: impl Fn(&Kit)) {
    let path = std::env::var_os("PATH").unwrap();
    let mut seen = Vec::new();
    for folder in std::env::split_paths(&path) {
        let program = folder.join("git");
        if !program.is_file() || seen.contains(&program.canonicalize().unwrap()) {
            continue;
        }
        seen.push(program.canonicalize().unwrap());
        let kit = Kit::new(&folder, &path);
        test(&kit);
    }
    assert!(!seen.is_empty(), "no git in PATH");
}

impl Kit {
    fn new(first: &Path, path: &OsStr) -> Self {
        // A failure then names the Git by the paths that it shows.
        let named = Command::new(first.join("git")).arg("--version").output().unwrap().stdout;
        let named = String::from_utf8(named).unwrap();
        let prefix = named.trim().replace(' ', "-");
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap().join("home");
        fs::create_dir(&home).unwrap();
        let path = std::env::join_paths(
            std::iter::once(first.to_owned()).chain(std::env::split_paths(path)),
        );
        let environment = BTreeMap::from(
            [
                ("PATH", path.unwrap()),
                ("HOME", home.clone().into()),
                ("GIT_AUTHOR_NAME", "Author".into()),
                ("GIT_AUTHOR_EMAIL", "author@example.org".into()),
                ("GIT_COMMITTER_NAME", "Committer".into()),
                ("GIT_COMMITTER_EMAIL", "committer@example.org".into()),
                ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ]
            .map(|(name, value)| (name.into(), value)),
        );
        let git = Git::find(&environment).unwrap();
        assert_eq!(git.program(), first.join("git"));
        let version = git.version().unwrap();
        Self { git, version, folder, environment }
    }

    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub fn environment(&self) -> BTreeMap<OsString, OsString> {
        self.environment.clone()
    }

    /// What a person runs: nothing of the library's care.
    pub fn run<S: AsRef<OsStr>>(&self, folder: &Path, arguments: &[S]) -> Output {
        Command::new(self.git.program())
            .args(arguments)
            .env_clear()
            .envs(&self.environment)
            .current_dir(folder)
            .output()
            .unwrap()
    }

    pub fn ok<S: AsRef<OsStr>>(&self, folder: &Path, arguments: &[S]) -> Vec<u8> {
        let output = self.run(folder, arguments);
        let words: Vec<_> = arguments.iter().map(|a| a.as_ref().to_owned()).collect();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {words:?} in {}: {errors}", folder.display());
        output.stdout
    }

    pub fn text<S: AsRef<OsStr>>(&self, folder: &Path, arguments: &[S]) -> String {
        String::from_utf8(self.ok(folder, arguments)).unwrap().trim_end().to_owned()
    }

    /// A repository without a commit.
    pub fn empty(&self, name: impl AsRef<Path>, options: &[&str]) -> PathBuf {
        let folder = self.at(name);
        fs::create_dir_all(&folder).unwrap();
        self.ok(&folder, &[&["init", "-q", "-b", "main"], options].concat());
        folder
    }

    /// A repository with one commit of one file.
    pub fn repository(&self, name: impl AsRef<Path>) -> PathBuf {
        let folder = self.empty(name, &[]);
        self.commit(&folder, "file", "one\n");
        folder
    }

    pub fn commit(&self, folder: &Path, name: impl AsRef<Path>, text: &str) {
        write(&folder.join(name.as_ref()), text);
        self.ok(folder, &["add", "-A", "--", "."]);
        self.ok(folder, &["commit", "-q", "--no-verify", "-m", "a commit"]);
    }

    pub fn discover(&self, folder: &Path) -> Repository {
        Repository::discover(&self.git, folder).unwrap().unwrap()
    }
}

pub fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub fn name(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Everything of a tree with its bytes, links and modes, and when it was last changed.
pub fn picture(folder: &Path) -> Vec<u8> {
    let script = "find . -printf '%p %y %m %l %T@ %s\\0' | sort -z; \
        find . -type f -print0 | sort -z | xargs -0r sha256sum -z";
    let output = Command::new("sh").args(["-c", script]).current_dir(folder).output().unwrap();
    assert!(output.status.success());
    output.stdout
}
