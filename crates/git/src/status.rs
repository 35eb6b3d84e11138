//! What of a work tree is not tracked, by the ignore rules that hold now.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::error::GitError;
use crate::git::failed;
use crate::path::{path_of, paths};
use crate::repository::Repository;

/// This folder, as Git takes it at the beginning of a path.
const HERE: &[u8] = b"./";

/// Something that is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// Its path.
    pub path: PathBuf,
    /// Whether it is a folder, with everything in it.
    pub is_folder: bool,
}

impl Repository {
    /// What is ignored, by the topmost and in Git's order: folders that are ignored as a whole, with
    /// whatever may yet come into them, and single files. Together with the index this says what is
    /// eligible for review. One process, which reads folders and ignore files and no other file: no
    /// filter is run.
    ///
    /// # Errors
    /// Whatever kept Git from answering; there is no answer without a work tree.
    pub fn ignored(&self) -> Result<Vec<Ignored>, GitError> {
        let arguments =
            ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
        let answer = self.git.ask(self.folder(), "ls-files", &arguments)?;
        let mut ignored = Vec::new();
        // Git lists a folder too that is not ignored but holds nothing else, and what is in it
        // right behind it: a new file in it would not be ignored.
        let mut listed = paths(&answer).peekable();
        while let Some(path) = listed.next() {
            let folder = path.strip_suffix(b"/");
            if folder.is_none() || listed.peek().is_none_or(|next| !next.starts_with(path)) {
                let (is_folder, path) = (folder.is_some(), path_of(folder.unwrap_or(path)));
                ignored.push(Ignored { path, is_folder });
            }
        }
        Ok(ignored)
    }

    /// Which of `candidates`, paths below the top level, have a filter or an encoding of their own by
    /// the attributes that hold now, so that a file and its content in Git may differ in any way.
    /// Nothing is run for it. One process, none for no candidates.
    ///
    /// # Errors
    /// Whatever kept Git from answering.
    pub fn converted_among<'a>(
        &self,
        candidates: impl IntoIterator<Item = &'a Path>,
    ) -> Result<BTreeSet<PathBuf>, GitError> {
        let mut input = Vec::new();
        for candidate in candidates {
            input.extend_from_slice(candidate.as_os_str().as_bytes());
            input.push(0);
        }
        if input.is_empty() {
            return Ok(BTreeSet::new());
        }
        let arguments = ["check-attr", "-z", "--stdin", "filter", "working-tree-encoding"];
        let output = self.git.tool(self.folder(), &arguments).input(input).run()?;
        if !output.status.success() {
            return Err(failed("check-attr", self.folder(), &output));
        }
        // Path, attribute, value, each with a zero byte behind it.
        let mut words = output.stdout.split(|byte| *byte == 0);
        let mut converted = BTreeSet::new();
        while let (Some(path), Some(_), Some(value)) = (words.next(), words.next(), words.next()) {
            if !matches!(value, b"unspecified" | b"unset") {
                converted.insert(path_of(path));
            }
        }
        Ok(converted)
    }

    /// Which of `candidates`, paths below the top level, the rules ignore; a tracked one never is.
    /// A candidate need not exist; to be taken for a folder where none is, it ends with `/`. One
    /// process, none for no candidates.
    ///
    /// # Errors
    /// Git refuses a candidate that lies in a submodule or behind a symbolic link, and with it all.
    pub fn ignored_among<'a>(
        &self,
        candidates: impl IntoIterator<Item = &'a Path>,
    ) -> Result<BTreeSet<PathBuf>, GitError> {
        // With a folder before it a name has no meaning but itself.
        let mut input = Vec::new();
        for candidate in candidates {
            input.extend_from_slice(HERE);
            input.extend_from_slice(candidate.as_os_str().as_bytes());
            input.push(0);
        }
        if input.is_empty() {
            return Ok(BTreeSet::new());
        }
        let tool = self.git.tool(self.folder(), &["check-ignore", "-z", "--stdin"]);
        let output = tool.input(input).run()?;
        match output.status.code() {
            Some(0 | 1) => Ok(paths(&output.stdout)
                .map(|path| path_of(path.strip_prefix(HERE).unwrap_or(path)))
                .collect()),
            _ => Err(failed("check-ignore", self.folder(), &output)),
        }
    }
}
