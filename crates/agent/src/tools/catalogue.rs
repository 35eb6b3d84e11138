//! The catalogue: every tool by name, and a call of one read into values.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use stead_core::id::{SlotName, TaskId};
use stead_core::layout::Access;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::task::{Owner, Status, TaskChange};
use stead_model::ToolSpec;

use super::arguments::{
    AccessName, AgentArguments, BashArguments, EditArguments, ExecArguments, InterruptArguments,
    ListAgentsArguments, ListArguments, NoArguments, ProposeArguments, ReadArguments,
    SearchArguments, SendArguments, StatusName, TaskElement, TaskWriteArguments, WaitArguments,
    WorkspaceRoot, WorkspaceSet, WriteArguments,
};
use super::schema::{self, invalid};
use super::shells::USUAL_LIMIT;
use crate::port::{Proposal, Route, SessionTool, Source};

/// The longest command line in bytes: the system takes no single argument of 128 KiB.
const LONGEST_COMMAND: usize = 131_000;

/// One tool as models, faces and the reference are told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it does, for the model.
    pub description: &'static str,
    /// The JSON schema of its arguments.
    pub schema: Value,
}

/// A call whose arguments have been read.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolCallParsed {
    /// Show a file.
    Read(ReadArguments),
    /// Write a whole file.
    Write(WriteArguments),
    /// Replace a text in a file.
    Edit(EditArguments),
    /// List a folder.
    List(ListArguments),
    /// Search files.
    Search(SearchArguments),
    /// Start, watch or end a command.
    Bash(BashCall),
    /// Run a command in the agent's place.
    Exec(ExecCall),
    /// End what runs in the agent's place left.
    Release,
    /// A tool of the session.
    Session(SessionTool),
}

/// What `bash` was called for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BashCall {
    /// Start a command.
    Start {
        /// The command line.
        command: String,
        /// Its time limit.
        limit: Duration,
    },
    /// Wait for a running shell and see what is new.
    Watch(u32),
    /// End a running shell.
    Stop(u32),
}

/// What `exec` was called for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecCall {
    /// The command line.
    pub command: String,
    /// Its time limit.
    pub limit: Duration,
    /// Whether it waits when there is no room.
    pub waits: bool,
}

/// Every tool of the loop, in the order in which they are shown. The same at every call.
pub fn catalogue() -> &'static [Tool] {
    static CATALOGUE: OnceLock<Vec<Tool>> = OnceLock::new();
    CATALOGUE.get_or_init(|| {
        let tool = |name, schema, description| Tool { name, description, schema };
        vec![
            tool(
                "read",
                schema::of::<ReadArguments>(),
                "Shows a text file as it is, or some of its lines. Long files are cut; the answer \
                 says with which offset to read on.",
            ),
            tool(
                "write",
                schema::of::<WriteArguments>(),
                "Writes a whole file, with the folders it needs. An existing file keeps its mode. \
                 To change part of a file use edit.",
            ),
            tool(
                "edit",
                schema::of::<EditArguments>(),
                "Replaces exact text in a file. `old` must stand in it exactly once, unless `all` \
                 is true. Line endings, byte order mark and mode stay.",
            ),
            tool(
                "list",
                schema::of::<ListArguments>(),
                "Lists a folder, sorted. Hidden files are shown; .git and what .gitignore names \
                 are not.",
            ),
            tool(
                "search",
                schema::of::<SearchArguments>(),
                "Finds lines that match a regular expression. Skips binary files, .git and what \
                 .gitignore names; follows no links.",
            ),
            tool(
                "bash",
                schema::of::<BashArguments>(),
                "Runs a command line in your directory, its input closed; `cd` lasts for this call \
                 only. After 10 seconds it answers with a shell number: call bash with `shell` to \
                 wait and see new output, with `stop` to end it. It ends with your turn at the \
                 latest: use exec for checks, builds and servers.",
            ),
            tool(
                "exec",
                schema::of::<ExecArguments>(),
                "Runs a command line to its end in your place: your directory with ports of its \
                 own (STEAD_PORT, STEAD_PORT_0 to STEAD_PORT_15, the same at every run) and a \
                 scratch folder (TMPDIR). Few such runs go on at once on this machine; without \
                 room it waits and says so. For checks, builds and servers: what a command leaves \
                 running in the background (`server >server.log 2>&1 &`) lives on after the call \
                 and your turn, until release.",
            ),
            tool(
                "release",
                schema::of::<NoArguments>(),
                "Ends all that runs in your place have left running, and gives its ports and \
                 scratch folder back. Your files stay. Agents that work in the same copies share \
                 the place.",
            ),
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
    })
}

impl Tool {
    /// The tool as a model is told of it.
    pub fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            schema: self.schema.clone(),
        }
    }

    /// Reads a call: an unknown tool, and every argument that does not fit the schema, is refused
    /// with the field's name and what may stand there.
    pub fn parse(name: &str, mut arguments: Value) -> Result<ToolCallParsed, Refusal> {
        let Some(tool) = catalogue().iter().find(|tool| tool.name == name) else {
            return Err(unknown(name));
        };
        schema::check(tool.name, &tool.schema, &mut arguments)?;
        let checked = arguments;
        Ok(match tool.name {
            "read" => {
                let read: ReadArguments = from(name, checked)?;
                path(name, &read.path)?;
                ToolCallParsed::Read(read)
            }
            "write" => {
                let write: WriteArguments = from(name, checked)?;
                path(name, &write.path)?;
                ToolCallParsed::Write(write)
            }
            "edit" => {
                let edit: EditArguments = from(name, checked)?;
                path(name, &edit.path)?;
                if edit.old == edit.new {
                    return Err(invalid("fields `old` and `new` of `edit` are equal".to_owned()));
                }
                ToolCallParsed::Edit(edit)
            }
            "list" => {
                let list: ListArguments = from(name, checked)?;
                path(name, list.path.as_deref().unwrap_or("."))?;
                ToolCallParsed::List(list)
            }
            "search" => {
                let search: SearchArguments = from(name, checked)?;
                path(name, search.path.as_deref().unwrap_or("."))?;
                ToolCallParsed::Search(search)
            }
            "bash" => ToolCallParsed::Bash(bash(from(name, checked)?)?),
            "exec" => ToolCallParsed::Exec(exec(from(name, checked)?)?),
            "release" => {
                let NoArguments {} = from(name, checked)?;
                ToolCallParsed::Release
            }
            _ => ToolCallParsed::Session(session(tool.name, checked)?),
        })
    }
}

fn session(name: &str, checked: Value) -> Result<SessionTool, Refusal> {
    Ok(match name {
        "agent" => {
            let spawn: AgentArguments = from(name, checked)?;
            if let Some(directory) = &spawn.working_directory {
                no_nul(name, "working_directory", directory)?;
            }
            SessionTool::Spawn {
                task_name: spawn.task_name,
                message: spawn.message,
                role: spawn.role,
                working_directory: spawn.working_directory,
            }
        }
        "send_message" => {
            let send: SendArguments = from(name, checked)?;
            let wake = send.wake.unwrap_or(false);
            SessionTool::Send { target: send.target, message: send.message, wake }
        }
        "wait_agent" => {
            SessionTool::Wait { timeout_ms: from::<WaitArguments>(name, checked)?.timeout_ms.0 }
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

/// After the check this cannot fail; if schema and type ever part, it is a refusal, not a panic.
fn from<T: DeserializeOwned>(name: &str, checked: Value) -> Result<T, Refusal> {
    serde_json::from_value(checked)
        .map_err(|error| invalid(format!("the arguments of `{name}` cannot be read: {error}")))
}

fn bash(arguments: BashArguments) -> Result<BashCall, Refusal> {
    let BashArguments { command, timeout_ms, shell, stop } = arguments;
    match (command, shell) {
        (Some(command), None) => {
            if stop.is_some() {
                return Err(invalid("field `stop` of `bash` goes with `shell`".to_owned()));
            }
            command_line("bash", &command)?;
            let limit = timeout_ms.map_or(USUAL_LIMIT, Duration::from_millis);
            Ok(BashCall::Start { command, limit })
        }
        (None, Some(_)) if timeout_ms.is_some() => {
            Err(invalid("field `timeout_ms` of `bash` goes with `command`".to_owned())
                .hint("a running shell keeps the limit it was started with"))
        }
        (None, Some(shell)) if stop == Some(true) => Ok(BashCall::Stop(shell)),
        (None, Some(shell)) => Ok(BashCall::Watch(shell)),
        (Some(_), Some(_)) | (None, None) => {
            Err(invalid("`bash` needs either the field `command` or the field `shell`".to_owned())
                .hint("command starts one; shell waits for one that is still running"))
        }
    }
}

fn exec(arguments: ExecArguments) -> Result<ExecCall, Refusal> {
    let ExecArguments { command, time_limit_ms, no_wait } = arguments;
    command_line("exec", &command)?;
    let limit = time_limit_ms.map_or(stead_place::TIME_LIMIT, Duration::from_millis);
    Ok(ExecCall { command, limit, waits: no_wait != Some(true) })
}

fn command_line(tool: &str, command: &str) -> Result<(), Refusal> {
    no_nul(tool, "command", command)?;
    if command.len() > LONGEST_COMMAND {
        let line = format!("field `command` of `{tool}` has {} bytes", command.len());
        return Err(invalid(line).hint("write a script to a file and run that"));
    }
    Ok(())
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

fn propose(arguments: ProposeArguments) -> Result<Proposal, Refusal> {
    let ProposeArguments { title, brief, context, role, blocked_by, workspace_set } = arguments;
    let context = context.filter(|text| !text.trim().is_empty());
    Ok(Proposal {
        title,
        message: match context {
            Some(context) => format!("{brief}\n\nContext:\n{context}"),
            None => brief,
        },
        role,
        blocked_by: blocked_by.into_iter().flatten().map(TaskId).collect(),
        layout: workspace_set.map(layout).transpose()?,
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

fn path(tool: &str, text: &str) -> Result<(), Refusal> {
    no_nul(tool, "path", text)
}

fn no_nul(tool: &str, field: &str, text: &str) -> Result<(), Refusal> {
    if text.contains('\0') {
        return Err(invalid(format!("field `{field}` of `{tool}` may not hold a NUL")));
    }
    Ok(())
}

fn unknown(name: &str) -> Refusal {
    let short: String = name.chars().take(80).collect();
    let names: Vec<_> = catalogue().iter().map(|tool| tool.name).collect();
    let near = schema::nearest(&short, names.iter().copied());
    let near = near.map(|n| format!("did you mean `{n}`? ")).unwrap_or_default();
    let line = format!("there is no tool `{}`", short.escape_debug());
    Refusal::new(RefusalKind::NotFound, line).hint(format!("{near}the tools: {}", names.join(", ")))
}
