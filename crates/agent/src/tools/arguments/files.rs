//! The arguments of the tools for files.

use schemars::JsonSchema;
use serde::Deserialize;

/// `read`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadArguments {
    /// The file, absolute or relative to your directory.
    #[schemars(length(min = 1, max = 4096))]
    pub path: String,
    /// The first line to show, counted from 1; default 1.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub offset: Option<u64>,
    /// The most lines to show; default 2000.
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: Option<u64>,
}

/// `write`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteArguments {
    /// The file, absolute or relative to your directory.
    #[schemars(length(min = 1, max = 4096))]
    pub path: String,
    /// The whole new content.
    #[schemars(length(max = 4_194_304))]
    pub content: String,
}

/// `edit`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditArguments {
    /// The file, absolute or relative to your directory.
    #[schemars(length(min = 1, max = 4096))]
    pub path: String,
    /// The exact text to replace, with enough around it to stand once in the file.
    #[schemars(length(min = 1, max = 1_048_576))]
    pub old: String,
    /// The text to put there.
    #[schemars(length(max = 1_048_576))]
    pub new: String,
    /// Replace every occurrence instead of exactly one.
    pub all: Option<bool>,
}

/// `list`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListArguments {
    /// The folder; default your directory.
    #[schemars(length(min = 1, max = 4096))]
    pub path: Option<String>,
    /// How many levels to go down; default 2.
    #[schemars(range(min = 1, max = 64))]
    pub depth: Option<u64>,
}

/// `search`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchArguments {
    /// A regular expression, matched within one line.
    #[schemars(length(min = 1, max = 4096))]
    pub pattern: String,
    /// The file or folder to search; default your directory.
    #[schemars(length(min = 1, max = 4096))]
    pub path: Option<String>,
    /// Only files whose path below that folder matches, as in `*.rs` or `src/**/*.toml`.
    #[schemars(length(min = 1, max = 1024))]
    pub glob: Option<String>,
    /// Take the pattern as plain text.
    pub literal: Option<bool>,
    /// Take upper and lower case as equal.
    pub ignore_case: Option<bool>,
    /// The most matching lines to show; default 200.
    #[schemars(range(min = 1, max = 2000))]
    pub limit: Option<u64>,
}
