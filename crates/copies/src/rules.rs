//! The ignore rules of a base: kept as they were at admission, so that no rule that is changed in
//! a copy takes anything out of its review, or into it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use stead_core::env;
use stead_files::{Listing, RelPath, RootFolder};
use stead_git::{Git, Repository};

use crate::error::{CopyError, failed};
use crate::home::Home;
use crate::scope::Scope;
use crate::staging::Staged;

/// The name of a file of rules in a work tree.
const IGNORE_FILE: &[u8] = b".gitignore";

/// What Git passes over at the beginning of a file of rules.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Ignore rules, from all the places where Git finds them. None for a plain folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// The `.gitignore` files and what was in them.
    pub files: Vec<(RelPath, Vec<u8>)>,
    /// The repository's own `info/exclude`.
    pub exclude: Vec<u8>,
    /// The person's `core.excludesFile`, or the file that stands for it.
    pub person: Vec<u8>,
    /// Whether names match without regard to case (`core.ignoreCase`).
    pub ignores_case: bool,
}

impl Rules {
    /// The rules that hold in `repository`. The files are read in `copy`, where they are as
    /// `listing` has them and nobody changes them.
    pub(crate) fn read(
        git: &Git,
        repository: &Repository,
        listing: &Listing,
        uncovered: &Scope,
        copy: &RootFolder,
    ) -> Result<Self, CopyError> {
        let mut files = Vec::new();
        for folder in listing.folders() {
            // A link of that name is not followed by Git either.
            let has = folder.entries.iter().any(|found| {
                *found.name == *IGNORE_FILE && found.stat.kind == stead_files::Kind::File
            });
            if !has {
                continue;
            }
            let Ok(path) = folder.path.join(IGNORE_FILE) else { continue };
            let is_below = folder.path.is_root() || !uncovered.holds(&folder.path);
            if is_below {
                files.push((path.clone(), crate::keep::read_beneath(copy, &path)?));
            }
        }
        let exclude = read_or_empty(&repository.common_directory.join("info/exclude"))?;
        let person = match excludes_file(git, repository) {
            Some(path) => read_or_empty(&path)?,
            None => Vec::new(),
        };
        let ignores_case = repository.config.is_true("core.ignorecase");
        Ok(Self { files, exclude, person, ignores_case })
    }

    /// Which of `candidates` the rules ignore, of what is not tracked: paths, and whether each is a
    /// folder. Git itself judges, in a scratch work tree that has the rules and nothing else. One
    /// process; none for no candidates or no rules.
    pub(crate) fn ignored(
        &self,
        home: &Home,
        git: &Git,
        candidates: &[(RelPath, bool)],
    ) -> Result<BTreeSet<RelPath>, CopyError> {
        if candidates.is_empty() || *self == Self::default() {
            return Ok(BTreeSet::new());
        }
        let scratch = Staged::begin(home, "judge what is ignored")?;
        let tree = scratch.path().join("tree");
        self.lay_out(&tree)?;
        let repository = Repository::discover(git, &tree)?;
        let Some(repository) = repository else { return Ok(BTreeSet::new()) };
        let paths: Vec<PathBuf> = candidates
            .iter()
            .map(|(path, is_folder)| {
                let end: &[u8] = if *is_folder { b"/" } else { b"" };
                PathBuf::from(OsStr::from_bytes(&[path.as_bytes(), end].concat()))
            })
            .collect();
        let ignored = repository.ignored_among(paths.iter().map(PathBuf::as_path))?;
        scratch.remove()?;
        let bare = |path: &PathBuf| {
            let bytes = path.as_os_str().as_bytes();
            RelPath::parse(bytes.strip_suffix(b"/").unwrap_or(bytes)).ok()
        };
        Ok(ignored.iter().filter_map(bare).collect())
    }

    fn lay_out(&self, tree: &Path) -> Result<(), CopyError> {
        let git_directory = tree.join(".git");
        for folder in ["objects", "refs", "info"] {
            create_folder(&git_directory.join(folder))?;
        }
        // The person's file would be found by a path in the settings, which are text and paths are
        // not. Rules of the repository count more, and in one file the later ones do.
        let exclude = self.exclude.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.exclude);
        let excluded = [&self.person, &b"\n"[..], exclude].concat();
        let config = format!(
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tignorecase = {}\n\t\
             excludesFile = /dev/null\n",
            self.ignores_case
        );
        write(&git_directory.join("HEAD"), b"ref: refs/heads/main\n")?;
        write(&git_directory.join("config"), config.as_bytes())?;
        write(&git_directory.join("info/exclude"), &excluded)?;
        for (path, rules) in &self.files {
            let file = tree.join(path.as_os_str());
            create_folder(file.parent().unwrap_or(tree))?;
            write(&file, rules)?;
        }
        Ok(())
    }
}

/// The person's file of rules, as Git finds it.
fn excludes_file(git: &Git, repository: &Repository) -> Option<PathBuf> {
    let variable = |name: &str| git.environment().get(OsStr::new(name)).filter(|v| !v.is_empty());
    let user = variable(env::HOME).map(PathBuf::from);
    let top = repository.top_level.as_deref().unwrap_or(&repository.git_directory);
    match repository.config.get("core.excludesfile") {
        Some(value) => match value.as_bytes().strip_prefix(b"~/") {
            Some(below) => Some(user?.join(OsStr::from_bytes(below))),
            None => Some(top.join(value)),
        },
        None => match variable(env::XDG_CONFIG_HOME) {
            Some(config) => Some(Path::new(config).join("git/ignore")),
            None => Some(user?.join(".config/git/ignore")),
        },
    }
}

fn read_or_empty(path: &Path) -> Result<Vec<u8>, CopyError> {
    match fs::read(path) {
        Ok(bytes) => Ok(bytes),
        // As Git has it: no rules from there.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory
            ) =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(CopyError::system("read", path, error)),
    }
}

fn create_folder(path: &Path) -> Result<(), CopyError> {
    fs::create_dir_all(path).map_err(failed("create", path))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), CopyError> {
    fs::write(path, bytes).map_err(failed("write", path))
}
