//! Tools for files.

use serde_json::Value;
use stead_core::refusal::Refusal;

use super::{Tool, ToolCallParsed, from, no_nul, unknown};
use crate::tools::arguments::{
    EditArguments, ListArguments, ReadArguments, SearchArguments, WriteArguments,
};
use crate::tools::schema::{self, invalid};

/// The tools, in the order in which they are shown.
pub(super) fn tools() -> Vec<Tool> {
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
    ]
}

/// Reads a call of one of them; its arguments fit the schema.
pub(super) fn parse(name: &str, checked: Value) -> Result<ToolCallParsed, Refusal> {
    Ok(match name {
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
        other => return Err(unknown(other)),
    })
}

fn path(tool: &str, text: &str) -> Result<(), Refusal> {
    no_nul(tool, "path", text)
}
