//! Real folders, real repositories and a home for their copies.
#![allow(dead_code, unreachable_pub)] // each test program uses a part of it
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use stead_copies::{Admitted, Home, MakeError, NoteKind, Obstruction, Request, admit};
use stead_core::id::{RootId, SessionId, SlotName, TaskId, Timestamp};
use stead_core::layout::{AbsoluteDir, Access, Root, RootIdentity};
use stead_files::{FileIdentity, RelPath, Watch};
use stead_git::Git;
use tempfile::TempDir;

/// A folder with a person's home, stead's home and whatever a test makes.
pub struct Kit {
    pub git: Git,
    pub home: Home,
    at: PathBuf,
    /// None when another process made the folder.
    _folder: Option<TempDir>,
    environment: BTreeMap<OsString, OsString>,
}

impl Kit {
    pub fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    pub fn below(base: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("copies-").tempdir_in(base).unwrap();
        let at = folder.path().canonicalize().unwrap();
        fs::create_dir(at.join("user")).unwrap();
        Self { _folder: Some(folder), ..Self::at_folder(&at) }
    }

    /// The same in a folder that is there.
    pub fn at_folder(at: &Path) -> Self {
        let environment = BTreeMap::from(
            [
                ("PATH", std::env::var_os("PATH").unwrap()),
                ("HOME", at.join("user").into()),
                ("GIT_AUTHOR_NAME", "Author".into()),
                ("GIT_AUTHOR_EMAIL", "author@example.org".into()),
                ("GIT_COMMITTER_NAME", "Committer".into()),
                ("GIT_COMMITTER_EMAIL", "committer@example.org".into()),
                ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ]
            .map(|(name, value)| (name.into(), value)),
        );
        let git = Git::find(&environment).unwrap();
        let home = Home::new(at.join("stead"));
        Self { git, home, at: at.to_owned(), _folder: None, environment }
    }

    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.at.join(name)
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

    pub fn ok<S: AsRef<OsStr>>(&self, folder: &Path, arguments: &[S]) -> String {
        let output = self.run(folder, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", output.status);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A repository without a commit.
    pub fn empty(&self, name: &str) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(&path).unwrap();
        self.ok(&path, &["init", "-q", "-b", "main"]);
        path
    }

    /// A repository with one commit of `a.txt`, `dir/b.txt` and `.gitignore`, and an index that is
    /// older than nothing: its stat data prove the files.
    pub fn repository(&self, name: &str) -> PathBuf {
        let path = self.empty(name);
        write(&path.join("a.txt"), "one\n");
        write(&path.join("dir/b.txt"), "two\n");
        write(&path.join(".gitignore"), "target/\n*.log\n");
        self.commit_all(&path, "first");
        path
    }

    pub fn commit_all(&self, path: &Path, message: &str) {
        self.ok(path, &["add", "-A"]);
        self.ok(path, &["commit", "-q", "-m", message]);
        self.settle(path);
    }

    /// Gives all tracked files an old time, so that no entry of the index is racy. Those that have
    /// it are left alone: some Gits do not compare fractions of seconds and would keep the entry.
    pub fn settle(&self, path: &Path) {
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30);
        for file in self.ok(path, &["ls-files", "-z"]).split('\0').filter(|f| !f.is_empty()) {
            let file = path.join(file);
            let found = fs::symlink_metadata(&file);
            if found.is_ok_and(|found| found.is_file() && found.modified().unwrap() != old) {
                let opened = fs::File::options().write(true).open(&file).unwrap();
                opened.set_times(fs::FileTimes::new().set_modified(old)).unwrap();
            }
        }
        self.run(path, &["status", "--porcelain"]);
    }

    pub fn status(&self, path: &Path) -> String {
        self.ok(path, &["status", "--porcelain", "--untracked-files=all"])
    }

    pub fn try_admit(&self, request: &Request) -> Result<Admitted, MakeError> {
        admit(&self.home, &self.git, request, Watch::default())
    }

    /// Admits one writable root as task 1, slot `app`; where the copy is.
    pub fn copy(&self, root: &Path) -> (Admitted, PathBuf) {
        self.copy_as(1, root)
    }

    pub fn copy_as(&self, task: u32, root: &Path) -> (Admitted, PathBuf) {
        let request = request_for(task, &[("app", root, Access::Write)]);
        let admitted = self.try_admit(&request).unwrap_or_else(|e| panic!("{e}"));
        let copy = self.home.copy(&session(), TaskId(task), &slot("app"));
        (admitted, copy)
    }

    /// Demands that one root is refused and nothing is left; why.
    pub fn refusal(&self, root: &Path) -> (Obstruction, Option<String>) {
        let request = request_for(1, &[("app", root, Access::Write)]);
        self.refusal_of(&request)
    }

    pub fn refusal_of(&self, request: &Request) -> (Obstruction, Option<String>) {
        let before = picture_if_there(request);
        let error = self.try_admit(request).expect_err("it was admitted");
        let hint = error.hint();
        let MakeError::Refused(refused) = error else { panic!("{error}") };
        self.assert_nothing_left();
        assert!(before == picture_if_there(request), "an original was changed");
        assert!(!refused.to_string().is_empty());
        (refused.why, hint)
    }

    /// Nothing in staging, and no task's folder.
    pub fn assert_nothing_left(&self) {
        let left = Command::new("find").arg(self.home.path().join("copies")).output().unwrap();
        let left = String::from_utf8_lossy(&left.stdout).into_owned();
        let own = [self.home.copies(), self.home.staging()];
        let more: Vec<&str> =
            left.lines().filter(|line| !own.contains(&PathBuf::from(line))).collect();
        assert!(more.is_empty(), "{more:?}");
    }
}

fn picture_if_there(request: &Request) -> Vec<String> {
    request.roots.iter().map(|root| picture(root.directory.as_path())).collect()
}

pub fn request_for(task: u32, roots: &[(&str, &Path, Access)]) -> Request {
    let roots: Vec<Root> = roots
        .iter()
        .map(|(slot, path, access)| {
            let found =
                FileIdentity::of(path).unwrap_or(FileIdentity { device: 0, inode: 0, birth: None });
            Root {
                id: RootId::parse(&format!("root-{slot}")).unwrap(),
                slot: SlotName::parse(slot).unwrap(),
                directory: AbsoluteDir::new(*path).unwrap(),
                access: *access,
                identity: RootIdentity {
                    inode: found.inode,
                    birth: found.birth.map(|birth| (birth.secs, birth.nanos)),
                },
            }
        })
        .collect();
    Request {
        session: session(),
        task: TaskId(task),
        at: Timestamp(1),
        primary: roots.first().map_or(SlotName::parse("none").unwrap(), |r| r.slot.clone()),
        roots,
    }
}

pub fn session() -> SessionId {
    SessionId::parse("s1").unwrap()
}

pub fn slot(name: &str) -> SlotName {
    SlotName::parse(name).unwrap()
}

pub fn rel(path: &str) -> RelPath {
    RelPath::parse(path).unwrap()
}

pub fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// The paths of a kind of note.
pub fn noted(admitted: &Admitted, kind: NoteKind) -> Option<Vec<String>> {
    let notes = admitted.slots.iter().flat_map(|slot| &slot.notes);
    let mut found = notes.filter(|note| note.kind == kind);
    let found = found.next()?;
    Some(found.paths.iter().map(ToString::to_string).collect())
}

/// Everything of a tree but times of access and counts of names, by programs of the system: kinds,
/// modes, times, inodes, link targets and contents. One line, so that a failure is short.
pub fn picture(folder: &Path) -> String {
    let names = Command::new("find")
        .arg(folder)
        .args(["-printf", "%P\\0%y %m %T@ %i %l\\0"])
        .output()
        .unwrap();
    let sums = Command::new("sh")
        .args(["-c", "find . -type f -print0 | sort -z | xargs -0 -r sha256sum"])
        .current_dir(folder)
        .output();
    let sums = sums.map(|output| output.stdout).unwrap_or_default();
    blake3::hash(&[names.stdout, sums].concat()).to_string()
}

/// Kinds, modes, link targets and contents of a tree but for the Git directory at its top.
pub fn contents(folder: &Path) -> Vec<String> {
    let script = "find . -mindepth 1 -path ./.git -prune -o -printf '%P\\0%y %m %l\\0' | tr '\\n\\0' '\\001\\n' | paste - - | sort; \
                  find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 -r sha256sum";
    let output = Command::new("sh").args(["-c", script]).current_dir(folder).output().unwrap();
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout).lines().map(ToOwned::to_owned).collect()
}
