//! Tools that run commands.

use std::time::Duration;

use serde_json::Value;
use stead_core::refusal::Refusal;
use stead_core::shell::ShellId;

use super::{Tool, ToolCallParsed, from, no_nul, unknown};
use crate::tools::arguments::{BashArguments, ExecArguments, NoArguments};
use crate::tools::schema::{self, invalid};
use crate::tools::shells::USUAL_LIMIT;

/// The longest command line in bytes: the system takes no single argument of 128 KiB.
const LONGEST_COMMAND: usize = 131_000;

/// What `bash` was called for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BashCall {
    /// Start a command.
    Start {
        /// The command line.
        command: String,
        /// Its time limit.
        limit: Duration,
        /// Whether its standard input is left open, to be written to.
        open_input: bool,
    },
    /// Wait for a running shell and see what is new.
    Watch(ShellId),
    /// Write to the standard input of a running shell.
    Write {
        /// Which.
        shell: ShellId,
        /// What; may be empty.
        text: String,
        /// Whether the input ends with it.
        last: bool,
    },
    /// End a running shell.
    Stop(ShellId),
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

/// The tools, in the order in which they are shown.
pub(super) fn tools() -> Vec<Tool> {
    let tool = |name, schema, description| Tool { name, description, schema };
    vec![
        tool(
            "bash",
            schema::of::<BashArguments>(),
            "Runs a command line in your directory, its input closed; `cd` lasts for this call \
             only. After 10 seconds it goes on in the background and answers with a shell number: \
             call bash with `shell` to wait and see new output, with `stop` to end it; when it \
             ends you get mail. With `open_input` it answers after a second and you write to it \
             with `input`. Your turn does not end before your shells have: use exec for checks, \
             builds and servers.",
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
    ]
}

/// Reads a call of one of them; its arguments fit the schema.
pub(super) fn parse(name: &str, checked: Value) -> Result<ToolCallParsed, Refusal> {
    Ok(match name {
        "bash" => ToolCallParsed::Bash(bash(from(name, checked)?)?),
        "exec" => ToolCallParsed::Exec(exec(from(name, checked)?)?),
        "release" => {
            let NoArguments {} = from(name, checked)?;
            ToolCallParsed::Release
        }
        other => return Err(unknown(other)),
    })
}

fn bash(arguments: BashArguments) -> Result<BashCall, Refusal> {
    match (arguments.command.is_some(), arguments.shell.is_some()) {
        (true, false) => bash_start(arguments),
        (false, true) => bash_shell(arguments),
        (true, true) | (false, false) => {
            Err(invalid("`bash` needs either the field `command` or the field `shell`".to_owned())
                .hint("command starts one; shell waits for one that is still running"))
        }
    }
}

fn bash_start(arguments: BashArguments) -> Result<BashCall, Refusal> {
    let BashArguments { command, timeout_ms, shell: _, stop, open_input, input, end_input } =
        arguments;
    let misplaced = [("stop", stop.is_some()), ("input", input.is_some())];
    let misplaced = misplaced.into_iter().chain([("end_input", end_input.is_some())]);
    if let Some((field, _)) = misplaced.into_iter().find(|(_, given)| *given) {
        return Err(invalid(format!("field `{field}` of `bash` goes with `shell`"))
            .hint("with `command`, \"open_input\": true gives a shell that you can write to"));
    }
    let command = command.unwrap_or_default();
    command_line("bash", &command)?;
    let limit = timeout_ms.map_or(USUAL_LIMIT, Duration::from_millis);
    Ok(BashCall::Start { command, limit, open_input: open_input == Some(true) })
}

fn bash_shell(arguments: BashArguments) -> Result<BashCall, Refusal> {
    let BashArguments { command: _, timeout_ms, shell, stop, open_input, input, end_input } =
        arguments;
    if timeout_ms.is_some() {
        return Err(invalid("field `timeout_ms` of `bash` goes with `command`".to_owned())
            .hint("a running shell keeps the limit it was started with"));
    }
    if open_input.is_some() {
        return Err(invalid("field `open_input` of `bash` goes with `command`".to_owned())
            .hint("the input of a running shell is as it was started"));
    }
    let shell = ShellId(shell.unwrap_or_default());
    let last = end_input == Some(true);
    match (stop == Some(true), input) {
        (true, Some(_)) => {
            Err(invalid("`bash` takes either the field `input` or `stop`".to_owned())
                .hint("write first, then stop it"))
        }
        (true, None) => Ok(BashCall::Stop(shell)),
        (false, Some(text)) => Ok(BashCall::Write { shell, text, last }),
        (false, None) if last => Ok(BashCall::Write { shell, text: String::new(), last }),
        (false, None) => Ok(BashCall::Watch(shell)),
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
