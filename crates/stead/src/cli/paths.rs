//! `stead paths`: every file that stead uses.

use clap::Args;
use serde::Serialize;

use super::program::Json;
use crate::clean;
use crate::context::Context;
use crate::exit::{Done, Exit};
use crate::output::{answer, document, style, styled};

/// List every file that stead uses
#[derive(Debug, Args)]
pub(crate) struct PathsArguments {
    #[command(flatten)]
    json: Json,
}

#[derive(Serialize)]
struct Listing {
    paths: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    path: String,
    purpose: &'static str,
}

/// Prints the paths; looks at none of them.
pub(crate) fn paths(arguments: &PathsArguments) -> Done {
    let entries = Context::new()?.home.listing();
    if arguments.json.json {
        let paths = entries
            .into_iter()
            .map(|(name, path, purpose)| Entry {
                name,
                path: path.to_string_lossy().into_owned(),
                purpose,
            })
            .collect();
        document(&Listing { paths })?;
        return Ok(Exit::DONE);
    }
    let shown: Vec<_> =
        entries.iter().map(|(name, path, why)| (name, clean::path(path), why)).collect();
    let names = shown.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    let paths = shown.iter().map(|(_, path, _)| path.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, path, why) in shown {
        let why = styled(style::DIM, why);
        text.push_str(&format!("{name:<names$}  {path:<paths$}  {why}\n"));
    }
    answer(text)?;
    Ok(Exit::DONE)
}
