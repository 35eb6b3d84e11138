//! The arguments of the tools whose effect is the session's.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

/// `agent`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct AgentArguments {
    /// A free-form name; the new agent's address is made from it.
    #[schemars(length(min = 1, max = 1000))]
    pub task_name: String,
    /// The whole assignment; without `context` the new agent knows nothing else of what you know.
    #[schemars(length(min = 1, max = 1_048_576))]
    pub message: String,
    /// `worker`, `explorer`, `reviewer`, `verifier` or a configured role; default yours. Reviewers
    /// and verifiers start no agents.
    #[schemars(length(min = 1, max = 64))]
    pub role: Option<String>,
    /// What it is given of your conversation as you see it now: `none` (default), `all`, or
    /// how many of your last turns, such as `3`. It is not kept up to date.
    #[schemars(length(min = 1, max = 10))]
    pub context: Option<String>,
    /// A configured model; default the role's, else yours.
    #[schemars(length(min = 1, max = 64))]
    pub model: Option<String>,
    /// How hard it thinks, in the model's own word; default the role's, else yours.
    #[schemars(length(min = 1, max = 64))]
    pub effort: Option<String>,
    /// What it and all agents below it may use together; it ends there.
    pub budget: Option<BudgetArguments>,
    /// Its directory, absolute or relative to yours; default yours.
    #[schemars(length(min = 1, max = 4096))]
    pub working_directory: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct BudgetArguments {
    /// Turns that may begin.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub turns: Option<u64>,
    /// Tokens read and written.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub tokens: Option<u64>,
    /// Cost in millionths of the provider's currency.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub cost_micros: Option<u64>,
    /// Seconds of work; waits for the person do not count.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub wall_seconds: Option<u64>,
}

/// `send_message`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct SendArguments {
    /// The agent's address: `/root/…`, or the names below yours.
    #[schemars(length(min = 1, max = 4096))]
    pub target: String,
    /// The text.
    #[schemars(length(min = 1, max = 1_048_576))]
    pub message: String,
    /// Also give an idle agent a turn to act on it.
    pub wake: Option<bool>,
}

/// `wait_agent`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct WaitArguments {
    /// How long to wait at most, in milliseconds: 10000 to 3600000, default 30000.
    #[serde(default)]
    pub timeout_ms: Timeout,
}

/// `interrupt_agent`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct InterruptArguments {
    /// The agent's address: `/root/…`, or the names below yours.
    #[schemars(length(min = 1, max = 4096))]
    pub target: String,
}

/// `read_result`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct ResultArguments {
    /// The agent's address: `/root/…`, or the names below yours.
    #[schemars(length(min = 1, max = 4096))]
    pub target: String,
}

/// `list_agents`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct ListAgentsArguments {
    /// Only this canonical address and what is below it.
    #[schemars(length(min = 1, max = 4096))]
    pub path_prefix: Option<String>,
}

/// `task_write`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct TaskWriteArguments {
    /// The tasks to make (without `id`) or to change (with it), all or none.
    #[schemars(length(max = 256))]
    pub tasks: Vec<TaskElement>,
    /// Short status notes beside an owner's open tasks.
    #[schemars(length(max = 256))]
    pub notes: Option<Vec<NoteElement>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct TaskElement {
    /// Which task to change; leave it out to make one.
    #[schemars(range(min = 1, max = 4_294_967_295_u64))]
    pub id: Option<u32>,
    /// One line; needed for a new task.
    #[schemars(length(min = 1, max = 1000))]
    pub subject: Option<String>,
    /// More about it.
    #[schemars(length(max = 16_384))]
    pub description: Option<String>,
    /// How far it is.
    pub status: Option<StatusName>,
    /// Whose it is: an agent's address, a free label, or empty for the shared list; default you.
    #[schemars(length(max = 4096))]
    pub owner: Option<String>,
    /// The numbers of the tasks that must be completed first.
    #[schemars(length(max = 256), inner(range(min = 1, max = 4_294_967_295_u64)))]
    pub blocked_by: Option<Vec<u32>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::tools) enum StatusName {
    Pending,
    InProgress,
    Completed,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct NoteElement {
    /// Whose tasks it speaks of: an agent's address, a label, or empty for the shared list; default you.
    #[schemars(length(max = 4096))]
    pub owner: Option<String>,
    /// The note; empty clears it.
    #[schemars(length(max = 16_384))]
    pub note: String,
}

/// `propose_task`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct ProposeArguments {
    /// One line; the new agent's address comes from it.
    #[schemars(length(min = 1, max = 200))]
    pub title: String,
    /// The whole assignment: what to do and when it is done. Without `context` it is all that the
    /// agent knows.
    #[schemars(length(min = 1, max = 1_000_000))]
    pub brief: String,
    /// `worker`, `explorer`, `reviewer`, `verifier` or a configured role; default yours. Reviewers
    /// and verifiers start no agents.
    #[schemars(length(min = 1, max = 64))]
    pub role: Option<String>,
    /// What it is given of your conversation as you see it now: `none` (default), `all`, or
    /// how many of your last turns, such as `3`. It is not kept up to date.
    #[schemars(length(min = 1, max = 10))]
    pub context: Option<String>,
    /// A configured model; default the role's, else yours.
    #[schemars(length(min = 1, max = 64))]
    pub model: Option<String>,
    /// How hard it thinks, in the model's own word; default the role's, else yours.
    #[schemars(length(min = 1, max = 64))]
    pub effort: Option<String>,
    /// What it and all agents below it may use together; it ends there.
    pub budget: Option<BudgetArguments>,
    /// The numbers of the tasks that must be completed first.
    #[schemars(length(max = 256), inner(range(min = 1, max = 4_294_967_295_u64)))]
    pub blocked_by: Option<Vec<u32>>,
    /// Which folders it gets; default all of the session's.
    pub workspace_set: Option<WorkspaceSet>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct WorkspaceSet {
    /// The slot whose folder is the agent's directory.
    #[schemars(length(min = 1, max = 64))]
    pub primary: String,
    /// The folders, 1 to 64.
    #[schemars(length(max = 64))]
    pub roots: Vec<WorkspaceRoot>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct WorkspaceRoot {
    /// One of the session's roots, or a folder inside one: absolute, not through a link.
    #[schemars(length(min = 1, max = 4096))]
    pub source: Option<String>,
    /// The same by the URI of the root map, instead of `source`.
    #[schemars(length(min = 1, max = 128))]
    pub source_uri: Option<String>,
    /// Its name in this task: letters, digits, `.`, `_` and `-`.
    #[schemars(length(min = 1, max = 64))]
    pub slot: String,
    /// What the task may do in it.
    pub access: AccessName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::tools) enum AccessName {
    Read,
    Write,
}

/// A waiting time as models write it: a number, digits in a string, an integral float. What cannot
/// be read as one is the default (A6); the session clamps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::tools) struct Timeout(pub Option<u64>);

impl JsonSchema for Timeout {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timeout".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["number", "string", "null"], "maxLength": 32 })
    }
}

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Value::deserialize(deserializer)? {
            Value::Number(number) => whole(&number),
            Value::String(text) => text.trim().parse().ok().and_then(|number| whole(&number)),
            _ => None,
        }))
    }
}

/// A whole number of milliseconds; below zero is zero, and out of range the largest there is.
fn whole(number: &Number) -> Option<u64> {
    let float = number.as_f64().filter(|f| f.fract() == 0.0)?;
    // Decimal digits instead of a cast.
    let digits = || format!("{float:.0}").parse().unwrap_or(u64::MAX);
    Some(if float <= 0.0 { 0 } else { number.as_u64().unwrap_or_else(digits) })
}
