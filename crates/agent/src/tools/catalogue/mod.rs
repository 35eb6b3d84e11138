//! The catalogue: every tool by name, and a call of one read into values.

mod commands;
mod files;
mod session;

use std::sync::OnceLock;

use serde::de::DeserializeOwned;
use serde_json::Value;
use stead_core::profile::Profile;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_model::ToolSpec;

pub use self::commands::{BashCall, ExecCall};
use super::arguments::{
    EditArguments, ListArguments, ReadArguments, SearchArguments, WriteArguments,
};
use super::schema::{self, invalid};
use crate::port::SessionTool;

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

/// Every tool of the loop, in the order in which they are shown. The same at every call.
pub fn catalogue() -> &'static [Tool] {
    static CATALOGUE: OnceLock<Vec<Tool>> = OnceLock::new();
    CATALOGUE.get_or_init(|| [files::tools(), commands::tools(), session::tools()].concat())
}

/// The tools that an agent with this profile is offered (A6, *Who has which tool*).
pub(crate) fn offered(profile: &Profile) -> Vec<ToolSpec> {
    catalogue().iter().filter(|tool| profile.has_tool(tool.name)).map(Tool::spec).collect()
}

/// Refuses a tool that an agent with this profile is not offered; whether it exists is no matter
/// here.
pub(crate) fn check_offered(profile: &Profile, tool: &str) -> Result<(), Refusal> {
    if profile.has_tool(tool) || !catalogue().iter().any(|known| known.name == tool) {
        return Ok(());
    }
    Err(Refusal::new(RefusalKind::NotAllowed, format!("your role has no tool `{tool}`"))
        .hint("do it yourself, or say in your result what is left to do"))
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
        match name {
            "read" | "write" | "edit" | "list" | "search" => files::parse(name, arguments),
            "bash" | "exec" | "release" => commands::parse(name, arguments),
            _ => session::parse(name, arguments).map(ToolCallParsed::Session),
        }
    }
}

/// After the check this cannot fail; if schema and type ever part, it is a refusal, not a panic.
fn from<T: DeserializeOwned>(name: &str, checked: Value) -> Result<T, Refusal> {
    serde_json::from_value(checked)
        .map_err(|error| invalid(format!("the arguments of `{name}` cannot be read: {error}")))
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
