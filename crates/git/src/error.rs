//! Why a question to Git has no answer.

use std::io;
use std::path::{Path, PathBuf};

use stead_process::tool::ToolError;

use crate::index::IndexError;

/// Why a question to Git has no answer, or a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// No executable `git` in the folders of `PATH`.
    #[error("there is no git in PATH")]
    NoProgram,
    /// Git could not be run to its end.
    #[error("{0}")]
    Tool(#[from] ToolError),
    /// Git ended with a code that is no answer to the question.
    #[error("git {question} in {} failed with {}: {said}", directory.display(), code_or_signal(*code))]
    Failed {
        /// Git's command.
        question: &'static str,
        /// Where it was asked.
        directory: PathBuf,
        /// The exit code; none when a signal ended it.
        code: Option<i32>,
        /// The last line of what Git said: for people, never to be understood by a program.
        said: String,
    },
    /// Git answered in a form that is not the documented one.
    #[error("git {question} in {} gave an answer that cannot be read", directory.display())]
    Answer {
        /// Git's command.
        question: &'static str,
        /// Where it was asked.
        directory: PathBuf,
    },
    /// There is a Git directory, but Git cannot use it: damaged, or of a format that this Git does
    /// not know.
    #[error("git cannot use the repository at {}: {said}", path.display())]
    Unusable {
        /// The `.git` entry, or the bare repository.
        path: PathBuf,
        /// The last line of what Git said.
        said: String,
    },
    /// The folder is inside a Git directory, where no work tree is.
    #[error("{} is inside a Git directory", .0.display())]
    InsideGitDirectory(PathBuf),
    /// The system refused to read or write a file of a repository.
    #[error("cannot {act} {}: {source}", path.display())]
    File {
        /// `read`, `write`, `examine` or `create`.
        act: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The index cannot be read.
    #[error("the index {}: {source}", path.display())]
    Index {
        /// The index file.
        path: PathBuf,
        /// What is wrong with it.
        source: IndexError,
    },
}

impl GitError {
    pub(crate) fn file(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { act, path, source }
    }
}

fn code_or_signal(code: Option<i32>) -> String {
    code.map_or_else(|| "a signal".to_owned(), |code| format!("code {code}"))
}
