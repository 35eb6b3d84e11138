//! The settings of a copy: the source's, without those that would reach back to it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::config::setting;
use crate::error::GitError;
use crate::path::paths;
use crate::repository::Repository;

/// Where a push from a copy goes: to a transport that does not exist, so that Git refuses without
/// asking the network. With one colon it would be taken for a host, and `ssh` started.
pub const PUSH_ADDRESS: &str = "no-push://use-stead-submit";

/// Settings that a copy does not have: they lead to another work tree, say what kind of Git
/// directory the source is, or start daemons.
const REMOVED: [&str; 7] = [
    "core.worktree",
    "core.bare",
    "core.fsmonitor",
    "core.untrackedcache",
    "core.splitindex",
    "extensions.worktreeconfig",
    "extensions.relativeworktrees",
];

/// Settings that every copy has: nothing repacks its few objects, and no process outlives a run.
const ADDED: [(&str, &str); 2] = [("gc.auto", "0"), ("maintenance.auto", "false")];

/// A setting that a copy has otherwise than its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedSetting {
    /// Its name.
    pub key: OsString,
    /// Its value in the copy; none when the copy does not have it.
    pub value: Option<OsString>,
}

impl Repository {
    /// Writes `config` into `git_directory`, the Git directory of a copy whose work tree will be at
    /// `copy` when it is complete, and the directory itself at its `.git`: the bytes of this repository's own settings, those of this one worktree behind them, and
    /// then, through Git, what must differ:
    ///
    /// - what would lead Git to another work tree or start daemons is removed;
    /// - relative paths of included files become absolute;
    /// - a folder of hooks given by an absolute path into this work tree or its Git directory
    ///   becomes the copy's;
    /// - every remote gets [`PUSH_ADDRESS`] to push to; where it fetches from stays;
    /// - nothing is collected or maintained on Git's own account.
    ///
    /// Two processes, one more if this worktree has settings of its own, and one for each setting
    /// that differs. Gives those, for people.
    ///
    /// # Errors
    /// [`GitError::File`], also when there is a `config` already; or whatever kept Git from
    /// answering. What was written so far stays.
    pub fn write_config(
        &self,
        git_directory: &Path,
        copy: &Path,
    ) -> Result<Vec<ChangedSetting>, GitError> {
        let mut file =
            Edited { repository: self, path: git_directory.join("config"), changed: Vec::new() };
        file.take(&self.common_directory.join("config"), true)?;
        if self.config.is_true("extensions.worktreeconfig") {
            file.take(&self.git_directory.join("config.worktree"), false)?;
        }
        let settings = file.list()?;
        for key in REMOVED {
            if settings.iter().any(|(found, _)| found == key) {
                file.remove(OsStr::new(key))?;
            }
        }
        for (key, value) in &settings {
            let mapped = match value {
                Some(value) if key == "core.hookspath" => self.mapped(Path::new(value), copy),
                _ => None,
            };
            if let (Some(value), Some(mapped)) = (value, mapped) {
                file.replace(key, value, mapped.as_os_str())?;
            }
        }
        for remote in remotes(&settings) {
            let key = [b"remote.", remote.as_bytes(), b".pushurl"].concat();
            file.set(&OsString::from_vec(key), OsStr::new(PUSH_ADDRESS))?;
        }
        for (key, value) in ADDED {
            file.set(OsStr::new(key), OsStr::new(value))?;
        }
        Ok(file.changed)
    }

    /// An absolute path into this work tree or its Git directories, as the same path of the copy.
    fn mapped(&self, path: &Path, copy: &Path) -> Option<PathBuf> {
        let git_directory = copy.join(".git");
        let places = [
            (Some(&self.git_directory), git_directory.as_path()),
            (Some(&self.common_directory), &git_directory),
            (self.top_level.as_ref(), copy),
        ];
        places.into_iter().find_map(|(from, to)| Some(to.join(path.strip_prefix(from?).ok()?)))
    }
}

/// The copy's file while it is made.
struct Edited<'a> {
    repository: &'a Repository,
    path: PathBuf,
    changed: Vec<ChangedSetting>,
}

type Pairs = Vec<(OsString, Option<OsString>)>;

impl Edited<'_> {
    /// Adds the bytes of `source`, which need not exist, to the file, which the `first` ones make,
    /// and makes the paths in them absolute that Git takes from where `source` is.
    fn take(&mut self, source: &Path, first: bool) -> Result<(), GitError> {
        let read = |error| GitError::file("read", source)(error);
        let (bytes, mode) = match fs::read(source) {
            Ok(bytes) => (bytes, fs::metadata(source).map_err(read)?.permissions().mode()),
            Err(error) if error.kind() == ErrorKind::NotFound => (Vec::new(), 0o644),
            Err(error) => return Err(read(error)),
        };
        OpenOptions::new()
            .append(true)
            .create_new(first)
            // Addresses of remotes may hold secrets: as closed as the source, but ours to edit.
            .mode((mode & 0o777) | 0o600)
            .open(&self.path)
            .and_then(|mut file| file.write_all(&[&bytes, &b"\n"[..]].concat()))
            .map_err(GitError::file("write", &self.path))?;
        let base = source.parent().unwrap_or(source);
        for (key, value) in self.list()? {
            let is_include = key == "include.path"
                || (key.as_bytes().starts_with(b"includeif.")
                    && key.as_bytes().ends_with(b".path"));
            if let Some(value) = value.filter(|value| is_include && is_relative(value)) {
                self.replace(&key, &value, base.join(&value).as_os_str())?;
            }
        }
        Ok(())
    }

    fn list(&self) -> Result<Pairs, GitError> {
        let answer = self.ask(&["-z", "--list"])?;
        Ok(paths(&answer).map(setting).collect())
    }

    fn remove(&mut self, key: &OsStr) -> Result<(), GitError> {
        self.ask(&[OsStr::new("--unset-all"), key])?;
        self.changed.push(ChangedSetting { key: key.to_owned(), value: None });
        Ok(())
    }

    fn set(&mut self, key: &OsStr, value: &OsStr) -> Result<(), GitError> {
        self.ask(&[OsStr::new("--replace-all"), key, value])?;
        self.note(key, value);
        Ok(())
    }

    /// Only where it has the value `old`.
    fn replace(&mut self, key: &OsStr, old: &OsStr, new: &OsStr) -> Result<(), GitError> {
        self.ask(&[OsStr::new("--fixed-value"), OsStr::new("--replace-all"), key, new, old])?;
        self.note(key, new);
        Ok(())
    }

    fn note(&mut self, key: &OsStr, value: &OsStr) {
        self.changed.push(ChangedSetting { key: key.to_owned(), value: Some(value.to_owned()) });
    }

    /// Asked at `/`, so that nothing depends on the half-made Git directory around the file.
    fn ask<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<Vec<u8>, GitError> {
        let mut all = vec![OsStr::new("config"), OsStr::new("--file"), self.path.as_os_str()];
        all.extend(arguments.iter().map(AsRef::as_ref));
        self.repository.git.ask(Path::new("/"), "config", &all)
    }
}

/// Neither absolute, nor at a person's home, nor at Git's own installation.
fn is_relative(path: &OsStr) -> bool {
    let bytes = path.as_bytes();
    !bytes.is_empty() && ![&b"/"[..], b"~", b"%("].iter().any(|start| bytes.starts_with(start))
}

/// The names of the remotes that have an address, each once.
fn remotes(settings: &Pairs) -> Vec<OsString> {
    let mut names: Vec<OsString> = settings
        .iter()
        .filter_map(|(key, _)| {
            let rest = key.as_bytes().strip_prefix(b"remote.")?;
            let name = rest.strip_suffix(b".url").or_else(|| rest.strip_suffix(b".pushurl"))?;
            Some(OsStr::from_bytes(name).to_owned())
        })
        .collect();
    names.sort();
    names.dedup();
    names
}
