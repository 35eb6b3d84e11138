//! Tools whose effect is the session's: agents, mail, tasks.

use std::collections::BTreeSet;

use serde_json::Value;
use stead_core::budget::Caps;
use stead_core::context::Context;
use stead_core::id::{SlotName, TaskId};
use stead_core::layout::Access;
use stead_core::refusal::Refusal;
use stead_core::task::{Owner, Status, TaskChange};

use super::{Tool, from, no_nul, unknown};
use crate::port::{Configuration, Proposal, Route, SessionTool, Source, Spawn};
use crate::tools::arguments::{
    AccessName, AgentArguments, BudgetArguments, InterruptArguments, ListAgentsArguments,
    NoArguments, ProposeArguments, ResultArguments, SendArguments, StatusName, TaskElement,
    TaskWriteArguments, WaitArguments, WorkspaceRoot, WorkspaceSet,
};
use crate::tools::schema::{self, invalid};

/// The tools, in the order in which they are shown.
pub(super) fn tools() -> Vec<Tool> {
    let tool = |name, schema, description| Tool { name, description, schema };
    vec![
        tool(
            "agent",
            schema::of::<AgentArguments>(),
            "Starts an agent below you and answers with its address. It works at the same \
             time as you; its result comes to you as a message. Active agents are limited: \
             yours that wait count too.",
        ),
        tool(
            "send_message",
            schema::of::<SendArguments>(),
            "Sends mail to an agent. It is read at the agent's next step or turn; with `wake` \
             an idle agent gets a turn. The answer says what happened.",
        ),
        tool(
            "wait_agent",
            schema::of::<WaitArguments>(),
            "Waits until there is mail or a result for you, or the time is over, which is no \
             error. The messages follow by themselves.",
        ),
        tool(
            "read_result",
            schema::of::<ResultArguments>(),
            "Shows the whole result of an agent's last turn, while it is idle. A long RESULT \
             reaches you cut.",
        ),
        tool(
            "list_agents",
            schema::of::<ListAgentsArguments>(),
            "Lists agents with address, role and activity.",
        ),
        tool(
            "interrupt_agent",
            schema::of::<InterruptArguments>(),
            "Ends another agent's turn. It keeps its conversation; its own agents go on.",
        ),
        tool(
            "task_write",
            schema::of::<TaskWriteArguments>(),
            "Writes tasks and notes of the shared list, all or none. A task of another agent \
             that is not below you cannot be changed. Owning a task starts nobody.",
        ),
        tool(
            "propose_task",
            schema::of::<ProposeArguments>(),
            "Delegates a task to a new agent in private copies of the roots, at the same time \
             as your own work. It begins when its copies are complete; its result comes to \
             you as a message. Only the person brings its changes into the originals. To have \
             help in your own copies use agent.",
        ),
        tool("task_list", schema::of::<NoArguments>(), "Lists every task and note."),
    ]
}

/// Reads a call of one of them; its arguments fit the schema.
pub(super) fn parse(name: &str, checked: Value) -> Result<SessionTool, Refusal> {
    Ok(match name {
        "agent" => {
            let spawn: AgentArguments = from(name, checked)?;
            if let Some(directory) = &spawn.working_directory {
                no_nul(name, "working_directory", directory)?;
            }
            SessionTool::Spawn(Spawn {
                task_name: spawn.task_name,
                message: spawn.message,
                configuration: Configuration {
                    role: spawn.role,
                    context: context(name, spawn.context.as_deref())?,
                    model: spawn.model,
                    effort: spawn.effort,
                    budget: budget(spawn.budget),
                },
                working_directory: spawn.working_directory,
            })
        }
        "send_message" => {
            let send: SendArguments = from(name, checked)?;
            let wake = send.wake.unwrap_or(false);
            SessionTool::Send { target: send.target, message: send.message, wake }
        }
        "wait_agent" => {
            SessionTool::Wait { timeout_ms: from::<WaitArguments>(name, checked)?.timeout_ms.0 }
        }
        "read_result" => {
            SessionTool::Result { target: from::<ResultArguments>(name, checked)?.target }
        }
        "list_agents" => {
            let list: ListAgentsArguments = from(name, checked)?;
            SessionTool::List { path_prefix: list.path_prefix }
        }
        "interrupt_agent" => {
            SessionTool::Interrupt { target: from::<InterruptArguments>(name, checked)?.target }
        }
        "task_write" => tasks(from(name, checked)?)?,
        "propose_task" => SessionTool::Propose(propose(from(name, checked)?)?),
        "task_list" => {
            let NoArguments {} = from(name, checked)?;
            SessionTool::ListTasks
        }
        other => return Err(unknown(other)),
    })
}

fn tasks(arguments: TaskWriteArguments) -> Result<SessionTool, Refusal> {
    let notes: Vec<_> =
        arguments.notes.into_iter().flatten().map(|note| (note.owner, note.note)).collect();
    if arguments.tasks.is_empty() && notes.is_empty() {
        return Err(invalid("`task_write` needs at least one task or note".to_owned()));
    }
    let tasks = arguments
        .tasks
        .into_iter()
        .enumerate()
        .map(|(number, task)| change(number, task))
        .collect::<Result<_, _>>()?;
    Ok(SessionTool::WriteTasks { tasks, notes })
}

fn change(number: usize, task: TaskElement) -> Result<TaskChange, Refusal> {
    let owner = task.owner.map(Owner::try_from).transpose().map_err(|reason| {
        invalid(format!("field `tasks[{number}].owner` of `task_write`: {reason}"))
    })?;
    if task.id.is_none() && task.subject.is_none() {
        return Err(invalid(format!("a new task needs the field `tasks[{number}].subject`"))
            .hint("with `id` it changes that task"));
    }
    Ok(TaskChange {
        id: task.id.map(TaskId),
        subject: task.subject,
        description: task.description,
        status: task.status.map(|status| match status {
            StatusName::Pending => Status::Pending,
            StatusName::InProgress => Status::InProgress,
            StatusName::Completed => Status::Completed,
        }),
        owner,
        blocked_by: task.blocked_by.map(|ids| ids.into_iter().map(TaskId).collect::<BTreeSet<_>>()),
    })
}

fn context(tool: &str, given: Option<&str>) -> Result<Context, Refusal> {
    let parsed = given.map_or(Ok(Context::None), str::parse);
    parsed.map_err(|error| invalid(format!("field `context` of `{tool}`: {error}")))
}

fn budget(given: Option<BudgetArguments>) -> Caps {
    given.map_or_else(Caps::default, |given| Caps {
        turns: given.turns,
        tokens: given.tokens,
        cost_micros: given.cost_micros,
        wall_seconds: given.wall_seconds,
    })
}

fn propose(arguments: ProposeArguments) -> Result<Proposal, Refusal> {
    Ok(Proposal {
        title: arguments.title,
        message: arguments.brief,
        configuration: Configuration {
            role: arguments.role,
            context: context("propose_task", arguments.context.as_deref())?,
            model: arguments.model,
            effort: arguments.effort,
            budget: budget(arguments.budget),
        },
        blocked_by: arguments.blocked_by.into_iter().flatten().map(TaskId).collect(),
        layout: arguments.workspace_set.map(layout).transpose()?,
    })
}

/// The routes of a layout, the primary first.
fn layout(set: WorkspaceSet) -> Result<Vec<Route>, Refusal> {
    let mut routes = set
        .roots
        .into_iter()
        .enumerate()
        .map(|(number, root)| route(number, root))
        .collect::<Result<Vec<_>, _>>()?;
    let primary = routes.iter().position(|route| route.slot.as_str() == set.primary);
    let Some(primary) = primary else {
        let slots: Vec<&str> = routes.iter().map(|route| route.slot.as_str()).collect();
        return Err(invalid("field `workspace_set.primary` names no slot".to_owned())
            .hint(format!("the slots are {}", slots.join(", "))));
    };
    let first = routes.remove(primary);
    routes.insert(0, first);
    Ok(routes)
}

fn route(number: usize, root: WorkspaceRoot) -> Result<Route, Refusal> {
    let field = |name: &str| format!("`workspace_set.roots[{number}].{name}`");
    let slot = SlotName::parse(&root.slot)
        .map_err(|error| invalid(format!("field {}: {error}", field("slot"))))?;
    let source = match (root.source, root.source_uri) {
        (Some(folder), None) => {
            no_nul("propose_task", "source", &folder)?;
            Source::Folder(folder)
        }
        (None, Some(uri)) => Source::Uri(uri),
        _ => {
            let line = format!("either {} or {} is needed", field("source"), field("source_uri"));
            return Err(invalid(line));
        }
    };
    let access = match root.access {
        AccessName::Read => Access::Read,
        AccessName::Write => Access::Write,
    };
    Ok(Route { source, slot, access })
}
