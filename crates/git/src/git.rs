//! The `git` program, asked so that nothing of a repository runs a program.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use stead_core::env;
use stead_process::tool::{self, Output, Tool};

use crate::error::GitError;

/// How long one question may take: a listing of a large tree on a cold disk takes minutes.
const TIME_LIMIT: Duration = Duration::from_mins(10);

/// The most bytes of one answer: the listing of some ten million files.
const OUTPUT_LIMIT: usize = 1 << 30;

/// What Git gets of the caller's environment: whose settings count and where temporary files go.
const PASSED: [&str; 6] = ["PATH", env::HOME, env::XDG_CONFIG_HOME, "USER", "LOGNAME", "TMPDIR"];

/// What Git is told by its environment.
const TOLD: [(&str, &str); 7] = [
    ("LC_ALL", "C"),
    // A plain question may rewrite the index otherwise, under a lock that a person then meets.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", ":"),
];

/// Settings that outrank those of repository, person and system.
const SET: [(&str, &str); 12] = [
    // Whoever owns the repository: nothing of it is run here, and the caller looks at owners.
    ("safe.directory", "*"),
    ("safe.bareRepository", "all"),
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.askPass", ""),
    ("credential.helper", ""),
    // No question reaches another machine, also in versions that know no GIT_NO_LAZY_FETCH.
    ("protocol.allow", "never"),
    ("submodule.recurse", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("log.showSignature", "false"),
];

/// The `git` program and the whole environment of every call.
///
/// The person's and the system's settings count, the repository's too, but none of them runs a
/// program: no hook, file system monitor, pager, editor, credential helper or transport; aliases
/// cannot stand for Git's own commands. *Filters* (clean, smudge, process), external diffs and
/// text conversions cannot be switched off from outside, so the questions that would run them are
/// not asked here: this crate asks `rev-parse`, `symbolic-ref`, `config`, `worktree list`,
/// `ls-files` (never `-m`), `check-ignore`, `check-attr`, `for-each-ref`, `cat-file --batch` and
/// `--batch-check`, `ls-tree` and `rev-list`, and in a copy `update-ref`, none of which looks into a
/// file of the work tree but for the rules and attributes.
/// `status`, `diff`, `diff-files`, `add`, `checkout`, `hash-object PATH`,
/// `update-index --refresh`, `stash` and `archive` may run filters.
///
/// Each call is one process, without a shell and without `PATH` being searched again.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    environment: BTreeMap<OsString, OsString>,
}

impl Git {
    /// The first `git` in the `PATH` of `environment`, which is the environment of whom Git is
    /// asked for: `HOME` and `XDG_CONFIG_HOME` say whose settings count. Runs nothing.
    ///
    /// # Errors
    /// [`GitError::NoProgram`].
    pub fn find(environment: &BTreeMap<OsString, OsString>) -> Result<Self, GitError> {
        let path = environment.get(OsStr::new("PATH"));
        let program = path.and_then(|path| tool::find("git", path)).ok_or(GitError::NoProgram)?;
        Ok(Self::at(program, environment))
    }

    /// The program at an absolute path.
    pub fn at(program: PathBuf, environment: &BTreeMap<OsString, OsString>) -> Self {
        let passed = PASSED
            .into_iter()
            .filter_map(|name| environment.get_key_value(OsStr::new(name)))
            .map(|(name, value)| (name.clone(), value.clone()));
        let told = TOLD.into_iter().map(|(name, value)| (name.into(), value.into()));
        let set = SET.into_iter().zip(0..).flat_map(|((key, value), number)| {
            [
                (format!("GIT_CONFIG_KEY_{number}").into(), key.into()),
                (format!("GIT_CONFIG_VALUE_{number}").into(), value.into()),
            ]
        });
        let count = ("GIT_CONFIG_COUNT".into(), SET.len().to_string().into());
        Self { program, environment: passed.chain(told).chain(set).chain([count]).collect() }
    }

    /// The program's path.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The environment of every call.
    pub fn environment(&self) -> &BTreeMap<OsString, OsString> {
        &self.environment
    }

    /// The first two numbers of Git's version. One process.
    ///
    /// # Errors
    /// Git cannot be run, or says no version.
    pub fn version(&self) -> Result<(u32, u32), GitError> {
        let directory = Path::new("/");
        let said = self.ask(directory, "version", &["version"])?;
        let numbers = std::str::from_utf8(&said).ok().and_then(|text| {
            let mut numbers = text.split_whitespace().nth(2)?.split('.');
            Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
        });
        numbers.ok_or_else(|| unreadable("version", directory))
    }

    /// Standard output of a question that has an answer: any other exit code than 0 is an error.
    pub(crate) fn ask<S: AsRef<OsStr>>(
        &self,
        directory: &Path,
        question: &'static str,
        arguments: &[S],
    ) -> Result<Vec<u8>, GitError> {
        let output = self.tool(directory, arguments).run()?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(failed(question, directory, &output))
        }
    }

    /// Standard output of a question that Git may answer with exit code 1 for "there is none".
    pub(crate) fn ask_whether<S: AsRef<OsStr>>(
        &self,
        directory: &Path,
        question: &'static str,
        arguments: &[S],
    ) -> Result<Option<Vec<u8>>, GitError> {
        let output = self.tool(directory, arguments).run()?;
        match output.status.code() {
            Some(0) => Ok(Some(output.stdout)),
            Some(1) => Ok(None),
            _ => Err(failed(question, directory, &output)),
        }
    }

    pub(crate) fn tool<S: AsRef<OsStr>>(&self, directory: &Path, arguments: &[S]) -> Tool {
        Tool::new(&self.program)
            .args(arguments)
            .env(self.environment.clone())
            .directory(directory)
            .time_limit(TIME_LIMIT)
            .output_limit(OUTPUT_LIMIT)
    }
}

pub(crate) fn failed(question: &'static str, directory: &Path, output: &Output) -> GitError {
    GitError::Failed {
        question,
        directory: directory.to_owned(),
        code: output.status.code(),
        said: last_line(&output.stderr),
    }
}

pub(crate) fn unreadable(question: &'static str, directory: &Path) -> GitError {
    GitError::Answer { question, directory: directory.to_owned() }
}

/// What a person reads of Git's reason.
pub(crate) fn last_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason given").to_owned()
}
