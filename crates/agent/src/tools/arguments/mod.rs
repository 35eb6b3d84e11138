//! The arguments of the tools, as types; their schemas are what a model is shown.

mod commands;
mod files;
mod session;

use schemars::JsonSchema;
use serde::Deserialize;

pub(super) use self::commands::{BashArguments, ExecArguments};
pub use self::files::{
    EditArguments, ListArguments, ReadArguments, SearchArguments, WriteArguments,
};
pub(super) use self::session::{
    AccessName, AgentArguments, BudgetArguments, InterruptArguments, ListAgentsArguments,
    ProposeArguments, ResultArguments, SendArguments, StatusName, TaskElement, TaskWriteArguments,
    WaitArguments, WorkspaceRoot, WorkspaceSet,
};

/// `release`, `task_list`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoArguments {}
