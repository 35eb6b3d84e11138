//! A repository, found from a folder in it.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use stead_files::FileIdentity;

use crate::config::Config;
use crate::entry::GitEntry;
use crate::error::GitError;
use crate::git::{Git, last_line, unreadable};
use crate::head::Head;
use crate::object::{ObjectFormat, ObjectId};
use crate::path::{line, path_of};
use crate::worktree::{self, Worktree};

/// How a repository and its work tree belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The Git directory is the folder `.git` of the work tree.
    Plain,
    /// The Git directory was put elsewhere; a file or link `.git` names it.
    Separate,
    /// A further work tree of a repository.
    Linked,
    /// A submodule, whose Git directory is in the one of the repository around it.
    Submodule {
        /// The work tree around it.
        superproject: PathBuf,
    },
    /// A repository without a work tree of its own; others may be linked to it.
    Bare,
}

/// How a repository keeps its refs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefFormat {
    /// Loose files and `packed-refs`.
    Files,
    /// Tables in the folder `reftable`.
    Reftable,
}

/// A repository as it was when it was looked for, and further questions to it.
#[derive(Debug, Clone)]
pub struct Repository {
    pub(crate) git: Git,
    /// How Git directory and work tree belong together.
    pub kind: Kind,
    /// The work tree's folder, canonical; none when bare.
    pub top_level: Option<PathBuf>,
    /// The Git directory of this work tree, absolute.
    pub git_directory: PathBuf,
    /// The Git directory that all work trees of the repository share, absolute; the same as
    /// [`git_directory`](Self::git_directory) unless linked.
    pub common_directory: PathBuf,
    /// What the common directory is: two work trees are of one repository if these are the same.
    pub identity: FileIdentity,
    /// The index file, absolute; it need not exist.
    pub index_file: PathBuf,
    /// The hash of its objects.
    pub object_format: ObjectFormat,
    /// How its refs are kept.
    pub ref_format: RefFormat,
    /// What is checked out, or what a bare repository calls its HEAD.
    pub head: Head,
    /// Whether its history is cut off.
    pub is_shallow: bool,
    /// The settings that hold in it.
    pub config: Config,
    /// The registered work trees, the main one first.
    pub worktrees: Vec<Worktree>,
}

impl Repository {
    /// The repository that Git finds from `folder` upwards; none where there is none.
    ///
    /// Three processes; two more in a bare repository, one more in a submodule and where the Git
    /// directory was put elsewhere; up to four more where a path of the repository holds a line
    /// feed.
    ///
    /// # Errors
    /// [`GitError::InsideGitDirectory`]; [`GitError::Unusable`] when Git refuses what it found;
    /// else whatever kept Git from answering.
    pub fn discover(git: &Git, folder: &Path) -> Result<Option<Self>, GitError> {
        let Some(found) = Found::ask(git, folder)? else { return Ok(None) };
        if found.is_inside_git_directory && !found.is_bare {
            return Err(GitError::InsideGitDirectory(folder.to_owned()));
        }
        let config = Config::read(git, folder)?;
        let worktrees = worktree::list(git, folder)?;
        let kind = found.kind(git)?;
        let head = match &found.top_level {
            Some(top_level) if kind == Kind::Linked => {
                worktrees.iter().find(|tree| tree.is_at(top_level))
            }
            Some(_) => worktrees.first(),
            None => None,
        };
        let head = match head.and_then(|tree| tree.head.clone()) {
            Some(head) => head,
            None => ask_head(git, folder)?,
        };
        let identity = FileIdentity::of(&found.common_directory)
            .map_err(GitError::file("examine", &found.common_directory))?;
        let ref_format = match config.get("extensions.refstorage") {
            Some(format) if format.as_bytes().starts_with(b"reftable") => RefFormat::Reftable,
            _ => RefFormat::Files,
        };
        Ok(Some(Self {
            git: git.clone(),
            kind,
            top_level: found.top_level,
            git_directory: found.git_directory,
            common_directory: found.common_directory,
            identity,
            index_file: found.index_file,
            object_format: found.object_format,
            ref_format,
            head,
            is_shallow: found.is_shallow,
            config,
            worktrees,
        }))
    }

    /// The top level of the work tree that Git finds from `folder` upwards, canonical; none where it
    /// finds none. One process.
    ///
    /// # Errors
    /// [`GitError::Unusable`] when Git refuses what it found; else whatever kept Git from answering.
    pub fn top_level_of(git: &Git, folder: &Path) -> Result<Option<PathBuf>, GitError> {
        Ok(Found::ask(git, folder)?.and_then(|found| found.top_level))
    }

    /// Whether objects may be missing because a server still has them: a partial clone. Runs
    /// nothing.
    ///
    /// # Errors
    /// [`GitError::File`].
    pub fn is_partial(&self) -> Result<bool, GitError> {
        let is_promised = self.config.settings().iter().any(|setting| {
            let key = setting.key.as_bytes();
            key == b"extensions.partialclone"
                || (key.starts_with(b"remote.")
                    && key.ends_with(b".promisor")
                    && crate::config::is_true(setting.value.as_deref()))
        });
        let packs = self.common_directory.join("objects/pack");
        let failed = || GitError::file("read", &packs);
        let listed = match fs::read_dir(&packs) {
            Ok(listed) => listed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(is_promised),
            Err(error) => return Err(failed()(error)),
        };
        let mut found = is_promised;
        for entry in listed {
            let name = entry.map_err(failed())?.file_name();
            found |= Path::new(&name).extension().is_some_and(|kind| kind == "promisor");
        }
        Ok(found)
    }

    /// Whether only a part of the tree is meant to be checked out.
    pub fn is_sparse(&self) -> bool {
        self.config.is_true("core.sparsecheckout")
    }

    /// Where Git keeps `name` of this work tree: in its own Git directory or in the common one.
    /// One process.
    ///
    /// # Errors
    /// Whatever kept Git from answering.
    pub fn git_path(&self, name: &str) -> Result<PathBuf, GitError> {
        let folder = self.folder();
        let arguments = ["rev-parse", "--path-format=absolute", "--git-path", name];
        let answer = self.git.ask(folder, "rev-parse", &arguments)?;
        line(&answer).map(path_of).ok_or_else(|| unreadable("rev-parse", folder))
    }

    /// Whether `other` is a work tree of this very repository: it shares the common directory, and
    /// its top level is one of the work trees that are registered here and not gone. Equal names
    /// or paths prove nothing. Runs nothing.
    pub fn registers(&self, other: &Self) -> bool {
        let Some(top_level) = &other.top_level else { return false };
        let is_mine = self.top_level.as_ref().is_some_and(|mine| mine == top_level);
        self.identity.is_same(&other.identity, true)
            && (is_mine
                || self.worktrees.iter().any(|tree| !tree.prunable && tree.is_at(top_level)))
    }

    /// Where questions are asked.
    pub(crate) fn folder(&self) -> &Path {
        self.top_level.as_deref().unwrap_or(&self.git_directory)
    }
}

/// What `rev-parse` says of a folder.
struct Found {
    is_bare: bool,
    is_inside_git_directory: bool,
    object_format: ObjectFormat,
    is_shallow: bool,
    git_directory: PathBuf,
    common_directory: PathBuf,
    index_file: PathBuf,
    top_level: Option<PathBuf>,
}

impl Found {
    fn ask(git: &Git, folder: &Path) -> Result<Option<Self>, GitError> {
        // The last question has no answer without a work tree; the others are answered before it.
        let arguments = [
            "rev-parse",
            "--path-format=absolute",
            "--is-inside-work-tree",
            "--is-bare-repository",
            "--is-inside-git-dir",
            "--is-shallow-repository",
            "--show-object-format",
            "--git-dir",
            "--git-common-dir",
            "--git-path",
            "index",
            "--show-toplevel",
        ];
        let output = git.tool(folder, &arguments).run()?;
        if output.stdout.is_empty() {
            return match repository_above(folder)? {
                None => Ok(None),
                Some(path) => Err(GitError::Unusable { path, said: last_line(&output.stderr) }),
            };
        }
        let odd = || unreadable("rev-parse", folder);
        let text = output.stdout.strip_suffix(b"\n").ok_or_else(odd)?;
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        let [has_tree, is_bare, inside, shallow, format, paths @ ..] = lines.as_slice() else {
            return Err(odd());
        };
        let has_tree = *has_tree == b"true";
        let (git_directory, common_directory, index_file, top_level) = match paths {
            [own, common, index] if !has_tree => {
                (path_of(own), path_of(common), path_of(index), None)
            }
            [own, common, index, top] if has_tree => {
                (path_of(own), path_of(common), path_of(index), Some(path_of(top)))
            }
            // A line feed in a path: each alone is not to be mistaken.
            _ => (
                one_path(git, folder, &["--git-dir"])?,
                one_path(git, folder, &["--git-common-dir"])?,
                one_path(git, folder, &["--git-path", "index"])?,
                has_tree.then(|| one_path(git, folder, &["--show-toplevel"])).transpose()?,
            ),
        };
        Ok(Some(Self {
            is_bare: *is_bare == b"true",
            is_inside_git_directory: *inside == b"true",
            object_format: ObjectFormat::from_word(format).ok_or_else(odd)?,
            is_shallow: *shallow == b"true",
            git_directory,
            common_directory,
            index_file,
            top_level,
        }))
    }

    fn kind(&self, git: &Git) -> Result<Kind, GitError> {
        let Some(top_level) = &self.top_level else { return Ok(Kind::Bare) };
        if self.git_directory != self.common_directory {
            return Ok(Kind::Linked);
        }
        if GitEntry::of(top_level)? == Some(GitEntry::Folder) {
            return Ok(Kind::Plain);
        }
        let arguments = ["rev-parse", "--show-superproject-working-tree"];
        let answer = git.ask(top_level, "rev-parse", &arguments)?;
        Ok(match line(&answer).filter(|path| !path.is_empty()) {
            Some(path) => Kind::Submodule { superproject: path_of(path) },
            None => Kind::Separate,
        })
    }
}

fn one_path(git: &Git, folder: &Path, question: &[&str]) -> Result<PathBuf, GitError> {
    let arguments = [&["rev-parse", "--path-format=absolute"], question].concat();
    let answer = git.ask(folder, "rev-parse", &arguments)?;
    line(&answer).map(path_of).ok_or_else(|| unreadable("rev-parse", folder))
}

/// HEAD where no work tree has it. Two processes.
fn ask_head(git: &Git, folder: &Path) -> Result<Head, GitError> {
    let commit = git
        .ask_whether(folder, "rev-parse", &["rev-parse", "-q", "--verify", "HEAD^{commit}"])?
        .and_then(|answer| ObjectId::from_hex(line(&answer)?));
    let name = git.ask_whether(folder, "symbolic-ref", &["symbolic-ref", "-q", "HEAD"])?;
    match (name.as_deref().and_then(line), commit) {
        (Some(name), commit) => Ok(Head::Branch { name: path_of(name).into(), commit }),
        (None, Some(commit)) => Ok(Head::Detached(commit)),
        (None, None) => Err(unreadable("symbolic-ref", folder)),
    }
}

/// What looks like a repository from `folder` upwards within its file system, as Git looks for one:
/// tells "there is none" from "Git cannot use it".
fn repository_above(folder: &Path) -> Result<Option<PathBuf>, GitError> {
    let folder = folder.canonicalize().map_err(GitError::file("examine", folder))?;
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    let here = device(&folder);
    for above in folder.ancestors().take_while(|above| device(above) == here) {
        if GitEntry::of(above)?.is_some() {
            return Ok(Some(above.join(".git")));
        }
        let is_bare = above.join("HEAD").is_file()
            && above.join("objects").is_dir()
            && above.join("refs").is_dir();
        if is_bare {
            return Ok(Some(above.to_owned()));
        }
    }
    Ok(None)
}
