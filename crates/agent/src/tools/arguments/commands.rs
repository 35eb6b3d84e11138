//! The arguments of the tools that run commands.

use schemars::JsonSchema;
use serde::Deserialize;

/// `bash`, as a model writes it
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct BashArguments {
    /// The command line to start.
    #[schemars(length(min = 1, max = 100_000))]
    pub command: Option<String>,
    /// End the command after so many milliseconds; default 120000.
    #[schemars(range(min = 1, max = 600_000))]
    pub timeout_ms: Option<u64>,
    /// Instead of a command: the number of a shell that is still running.
    #[schemars(range(min = 1, max = 4_294_967_295_u64))]
    pub shell: Option<u32>,
    /// With `shell`: end it now.
    pub stop: Option<bool>,
    /// With `command`: keep its input open, so that you can write to it.
    pub open_input: Option<bool>,
    /// With `shell`: write this to its input; a line ends with a newline.
    #[schemars(length(min = 1, max = 100_000))]
    pub input: Option<String>,
    /// With `shell`: close its input, after `input`.
    pub end_input: Option<bool>,
}

/// `exec`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct ExecArguments {
    /// The command line.
    #[schemars(length(min = 1, max = 100_000))]
    pub command: String,
    /// End the command after so many milliseconds; default 1800000. Waiting for room does not count.
    #[schemars(range(min = 1, max = 14_400_000))]
    pub time_limit_ms: Option<u64>,
    /// Refuse at once when there is no room, instead of waiting for it, 45 minutes at most.
    pub no_wait: Option<bool>,
}
