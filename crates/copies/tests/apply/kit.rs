//! A person's folder, a private copy of it, and a home: made by hand, as admission would.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use stead_copies::{
    Apply, ApplyRefused, ApplyRequest, Base, Clash, Home, IndexedFile, Layout, Outcome, Review,
    RootKind, Slot, Snapshot, Written, checked_out,
};
use stead_core::id::{RequestId, RootId, SessionId, SlotName, TaskId, Timestamp};
use stead_core::layout::{AbsoluteDir, Access, RootIdentity};
use stead_files::{
    CaptureOptions, Choice, FileIdentity, Manifest, Node, RelPath, WalkOptions, capture,
};
use stead_git::{Git, Index, Repository};
use stead_store::Body;
use tempfile::TempDir;

/// A person's root and a task's copy of it.
pub(crate) struct World {
    pub(crate) folder: Rc<TempDir>,
    slot: SlotName,
    root_id: RootId,
    pub(crate) home: Home,
    pub(crate) git: Git,
    pub(crate) root: PathBuf,
    pub(crate) copy: PathBuf,
    pub(crate) layout: Layout,
    pub(crate) base: Base,
    environment: BTreeMap<OsString, OsString>,
    applies: u32,
}

pub(crate) fn slot() -> SlotName {
    SlotName::parse("app").unwrap()
}

pub(crate) fn root_id() -> RootId {
    RootId::parse("root-1").unwrap()
}

pub(crate) fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

/// Writes a file, with the folders it needs.
pub(crate) fn write(root: &Path, at: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let at = root.join(at);
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    fs::write(at, content).unwrap();
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A folder in memory, where a thousand syncs take no time.
pub(crate) fn quick_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

impl World {
    /// A plain folder.
    pub(crate) fn plain(build: impl Fn(&Path)) -> Self {
        Self::new(quick_folder(), false, build)
    }

    /// A repository; what `build` makes is committed.
    pub(crate) fn repository(build: impl Fn(&Path)) -> Self {
        Self::new(quick_folder(), true, build)
    }

    pub(crate) fn new(folder: TempDir, is_git: bool, build: impl Fn(&Path)) -> Self {
        let at = folder.path().canonicalize().unwrap();
        for made in ["root", "home", "user"] {
            fs::create_dir(at.join(made)).unwrap();
        }
        let mut world = Self::bare(Rc::new(folder), "root", slot(), root_id());
        if is_git {
            world.ok(&["init", "-q", "-b", "main"]);
        }
        build(&world.root);
        if is_git {
            world.ok(&["add", "-A"]);
            world.ok(&["commit", "-q", "--allow-empty", "-m", "first"]);
        }
        world.admit();
        world
    }

    /// A second root of the same task: a plain folder.
    pub(crate) fn beside(&mut self, build: impl Fn(&Path)) -> Self {
        fs::create_dir(self.folder.path().join("root-2")).unwrap();
        let (slot, root) = (SlotName::parse("library"), RootId::parse("root-2"));
        let mut other = Self::bare(Rc::clone(&self.folder), "root-2", slot.unwrap(), root.unwrap());
        build(&other.root);
        other.admit();
        other.layout.slots.extend(self.layout.slots.clone());
        self.layout.slots.clone_from(&other.layout.slots);
        other
    }

    fn bare(folder: Rc<TempDir>, root: &str, slot: SlotName, root_id: RootId) -> Self {
        let at = folder.path().canonicalize().unwrap();
        let (root, home) = (at.join(root), at.join("home"));
        let environment: BTreeMap<OsString, OsString> = BTreeMap::from(
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
        let home = Home::new(home);
        let session = SessionId::parse("session").unwrap();
        let copy = home.copy(&session, TaskId(1), &slot);
        let layout = Layout {
            version: 1,
            session,
            task: TaskId(1),
            admitted: Timestamp(0),
            primary: slot.clone(),
            slots: Vec::new(),
        };
        let base = Base {
            manifest: capture(&root, None, &CaptureOptions::default()).unwrap().manifest,
            index: Vec::new(),
            ignored: Vec::new(),
            nested: Vec::new(),
            left_out: Vec::new(),
            commit: None,
            rules: stead_copies::Rules::default(),
        };
        let applies = 0;
        Self { folder, slot, root_id, home, git, root, copy, layout, base, environment, applies }
    }

    /// Makes the copy and its base from what the root is now.
    pub(crate) fn admit(&mut self) {
        if self.copy.exists() {
            stead_files::remove_tree_at(&self.copy).unwrap();
        }
        fs::create_dir_all(self.copy.parent().unwrap()).unwrap();
        let done = Command::new("cp").arg("-a").args([&self.root, &self.copy]).status().unwrap();
        assert!(done.success());
        let identity = FileIdentity::of(&self.root).unwrap();
        let identity = RootIdentity {
            inode: identity.inode,
            birth: identity.birth.map(|birth| (birth.secs, birth.nanos)),
        };
        let repository = self.found();
        let kind = match &repository {
            None => RootKind::Plain,
            Some(found) => RootKind::Git {
                common_directory: found.common_directory.clone(),
                checkout: checked_out(&found.head),
            },
        };
        self.layout.slots = vec![Slot {
            slot: self.slot.clone(),
            root: self.root_id.clone(),
            access: Access::Write,
            source: AbsoluteDir::new(&self.root).unwrap(),
            identity,
            kind,
            base: Body::new("base").digest(),
        }];
        let index = repository.map_or_else(Vec::new, |found| Index::of(&found).unwrap().entries);
        self.base.index = index
            .into_iter()
            .map(|entry| IndexedFile {
                path: entry.path,
                mode: entry.kind.mode(),
                object: entry.id,
            })
            .collect();
        self.base.manifest = manifest(&self.copy);
    }

    fn found(&self) -> Option<Repository> {
        if !self.root.join(".git").exists() {
            return None;
        }
        Repository::discover(&self.git, &self.root).unwrap()
    }

    /// What a person runs in the root.
    pub(crate) fn ok<S: AsRef<OsStr>>(&self, arguments: &[S]) -> String {
        let output = Command::new(self.git.program())
            .args(arguments)
            .env_clear()
            .envs(&self.environment)
            .current_dir(&self.root)
            .output()
            .unwrap();
        let words: Vec<_> = arguments.iter().map(|word| word.as_ref().to_owned()).collect();
        assert!(output.status.success(), "git {words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A snapshot of the copy; the contents of what differs are blobs.
    pub(crate) fn freeze(&self) -> Snapshot {
        let manifest = manifest(&self.copy);
        for entry in manifest.entries() {
            let same = self.base.manifest.get(&entry.path).is_some_and(|b| b.node == entry.node);
            if let (Node::File { digest, .. }, false) = (&entry.node, same) {
                let body = Body::new(fs::read(self.copy.join(entry.path.as_os_str())).unwrap());
                assert_eq!(Some(body.digest()), *digest);
                self.home.blobs().put(&body).unwrap();
            }
        }
        Snapshot {
            digest: manifest.digest(),
            manifest,
            beside: Vec::new(),
            repositories: Vec::new(),
            commits: None,
        }
    }

    pub(crate) fn review(&self, snapshot: &Snapshot) -> Review {
        let checkout = self.found().map(|found| checked_out(&found.head));
        Review::new(&self.home, &self.layout, &self.slot, &self.base, snapshot, checkout).unwrap()
    }

    pub(crate) fn check(
        &mut self,
        snapshot: &Snapshot,
        review: &Review,
    ) -> Result<Apply, ApplyRefused> {
        self.applies += 1;
        let apply = format!("apply-{}-{}", self.slot.as_str(), self.applies);
        let apply = RequestId::parse(&apply).unwrap();
        Apply::check(&ApplyRequest {
            home: &self.home,
            git: &self.git,
            apply: &apply,
            layout: &self.layout,
            slot: &self.slot,
            base: &self.base,
            snapshot,
            review,
        })
    }

    /// Reviews and checks what the copy is now.
    pub(crate) fn ready(&mut self) -> Result<Apply, ApplyRefused> {
        let snapshot = self.freeze();
        let review = self.review(&snapshot);
        self.check(&snapshot, &review)
    }

    /// Reviews and applies what the copy is now, and takes it as the new base.
    pub(crate) fn apply(&mut self) -> Vec<String> {
        let snapshot = self.freeze();
        let review = self.review(&snapshot);
        let apply = self.check(&snapshot, &review).unwrap_or_else(|refused| panic!("{refused}"));
        let written = written(apply.write());
        let paths = written.paths().map(ToString::to_string).collect();
        assert!(written.clear().unwrap().rescue.paths.is_empty());
        self.base.manifest = snapshot.manifest;
        self.is_clean();
        paths
    }

    /// Demands that an apply is refused without any trace; gives the refusal.
    pub(crate) fn refused(&mut self) -> ApplyRefused {
        let before = everything(&self.root);
        let refused = self.ready().unwrap_err();
        assert_eq!(everything(&self.root), before, "{refused}");
        self.is_clean();
        refused
    }

    /// The conflicts of a refusal.
    pub(crate) fn conflicts(&mut self) -> Vec<(String, Clash)> {
        match self.refused() {
            ApplyRefused::Conflicts(found) => {
                found.into_iter().map(|one| (one.path.to_string(), one.clash)).collect()
            }
            other => panic!("{other}"),
        }
    }

    /// Nothing of an apply is left, in the root or in the home.
    pub(crate) fn is_clean(&self) {
        for line in everything(&self.root) {
            assert!(!line.contains(".stead-new-"), "{line}");
        }
        assert!(!self.root.join(".git/index.lock").exists());
        let left = stead_copies::leftovers(&self.home).unwrap();
        assert!(left.is_empty(), "{left:?}");
        let reserve = self.home.applies().join(format!("{}.reserve", self.root_id.as_str()));
        assert!(!reserve.exists(), "room is still held");
    }
}

pub(crate) fn written(outcome: Outcome) -> Written {
    match outcome {
        Outcome::Written(written) => written,
        other => panic!("{other:?}"),
    }
}

/// Everything but Git's, with every digest.
pub(crate) fn manifest(root: &Path) -> Manifest {
    let no_git = |path: &RelPath, _: &stead_files::Stat| {
        if path.names_git() { Choice::LeaveOut } else { Choice::Take }
    };
    let walk = WalkOptions { filter: Some(&no_git), ..WalkOptions::default() };
    capture(root, None, &CaptureOptions { walk, ..CaptureOptions::default() }).unwrap().manifest
}

fn find(root: &Path, script: &str) -> Vec<String> {
    let output = Command::new("sh").args(["-ec", script, "sh"]).arg(root).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut lines: Vec<String> =
        output.stdout.split(|b| *b == 0).map(|line| line.escape_ascii().to_string()).collect();
    lines.sort();
    lines
}

/// Everything that `find` and `sha256sum` say of a tree, Git's own files, inodes and times too.
pub(crate) fn everything(root: &Path) -> Vec<String> {
    find(
        root,
        r#"
        cd -- "$1" || exit 1
        find . -printf '%y %p %m %s %T@ %C@ %i %n %U %G %l\0'
        find . -type f -print0 | sort -z | xargs -0 -r sha256sum -z --
        "#,
    )
}

/// What apply brings, as `find` and `sha256sum` say it: kinds, bits, contents, targets.
pub(crate) fn content(root: &Path) -> Vec<String> {
    find(
        root,
        r#"
        cd -- "$1" || exit 1
        find . -path ./.git -prune -o -type f -printf 'f %p %m %s\0'
        find . -path ./.git -prune -o -mindepth 1 -type d -printf 'd %p %m\0'
        find . -path ./.git -prune -o -type l -printf 'l %p %l\0'
        find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 -r sha256sum -z --
        "#,
    )
}

/// Fails with the first difference that `find`, `sha256sum` or `rsync` sees.
pub(crate) fn assert_same(one: &Path, two: &Path) {
    let (a, b) = (content(one), content(two));
    for line in &a {
        assert!(b.contains(line), "missing: {line}");
    }
    for line in &b {
        assert!(a.contains(line), "extra: {line}");
    }
    let rsync = Command::new("rsync")
        .args(["-n", "-rlp", "--checksum", "--delete", "--itemize-changes", "--exclude=/.git"])
        .arg(one.join("."))
        .arg(two)
        .output();
    let Ok(output) = rsync else {
        return stead_testkit::skip("apply", "no rsync: only find and sha256sum compared");
    };
    // The roots' own bits are no part of an apply.
    let said = String::from_utf8_lossy(&output.stdout);
    let said: Vec<&str> = said.lines().filter(|line| !line.ends_with(" ./")).collect();
    assert!(said.is_empty(), "rsync: {said:?}");
}

pub(crate) fn text(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}

pub(crate) fn bytes_path(root: &Path, name: &[u8]) -> PathBuf {
    root.join(OsStr::from_bytes(name))
}
