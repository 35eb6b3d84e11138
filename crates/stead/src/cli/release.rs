//! `stead release`: end what a place's runs left.

use std::path::{Component, Path, PathBuf};

use clap::Args;
use serde::Serialize;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_place::{ReleaseError, Released, Which, top_of};

use super::exec::host_refusal;
use super::program::Json;
use crate::clean;
use crate::context::{Context, current_dir};
use crate::exit::{Done, Exit};
use crate::output::{answer_line, document, say_refusal};

/// End what the runs in this worktree left, and free its ports and its scratch folder
///
/// The worktree itself is left as it is. Works by the recorded path when the folder is gone, waits
/// for no room, and in a folder finds nothing to do the second time. Exits with 76 when something could not be
/// ended: then the ports stay held.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArguments {
    /// The worktree or folder; left out, that of the current folder
    #[arg(long, value_name = "DIR", conflicts_with = "place")]
    worktree: Option<PathBuf>,
    /// A place by its name in `stead places`
    #[arg(long, value_name = "ID")]
    place: Option<String>,
    #[command(flatten)]
    json: Json,
}

#[derive(Serialize)]
struct Document {
    released: Vec<One>,
}

#[derive(Serialize)]
struct One {
    id: String,
    place: String,
    interrupted: usize,
    ended: usize,
    complete: bool,
    left: Vec<String>,
}

/// Releases and says what was ended.
pub(crate) fn release(arguments: &ReleaseArguments) -> Done {
    let context = Context::new()?;
    let which = match (&arguments.place, &arguments.worktree) {
        (Some(id), _) => Which::Named(id.clone()),
        (None, Some(directory)) => Which::At(place(directory)?),
        (None, None) => Which::At(place(&current_dir()?)?),
    };
    let released = match context.home.places().release(&which) {
        Ok(released) => released,
        Err(error) => return Ok(refuse(&error)),
    };
    let is_complete = released.iter().all(|one| one.left.is_empty());
    if arguments.json.json {
        document(&Document { released: released.into_iter().map(one).collect() })?;
    } else if released.is_empty() {
        answer_line("nothing to release")?;
    } else {
        for released in &released {
            tell(released)?;
        }
    }
    Ok(if is_complete { Exit::DONE } else { Exit(76) })
}

/// The place of a folder; of one that is gone, its path as it was recorded: canonical as far as it
/// still leads somewhere.
fn place(directory: &Path) -> Result<PathBuf, Refusal> {
    if let Ok(top) = top_of(directory) {
        return Ok(top.as_path().to_owned());
    }
    let absolute = current_dir().map(|here| here.join(directory)).or_else(|refusal| {
        if directory.is_absolute() { Ok(directory.to_owned()) } else { Err(refusal) }
    })?;
    let mut path = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    let there = path.ancestors().find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
    Ok(match there {
        Some((folder, canonical)) => {
            // Joining nothing would add a separator.
            match path.strip_prefix(folder) {
                Ok(rest) if rest.as_os_str().is_empty() => canonical,
                Ok(rest) => canonical.join(rest),
                Err(_) => path.clone(),
            }
        }
        None => path,
    })
}

fn tell(released: &Released) -> Result<(), crate::exit::Failure> {
    let hold = &released.hold;
    let place = clean::path(hold.directory.as_path());
    let ended = match (released.ended, released.interrupted) {
        (0, _) => "nothing ran".to_owned(),
        (ended, 0) => format!("ended {}", crate::render::counted(ended, "process", "processes")),
        (ended, runs) => format!(
            "ended {} and {}",
            crate::render::counted(runs, "run", "runs"),
            crate::render::counted(ended, "process", "processes"),
        ),
    };
    let ports = format!("ports {}-{}", hold.ports.first(), hold.ports.last());
    if released.left.is_empty() {
        return answer_line(format_args!("released {place}: {ended}, {ports} are free"));
    }
    answer_line(format_args!("not released {place}: {ended}, {ports} stay held"))?;
    for left in &released.left {
        answer_line(format_args!("  {}", clean::line(&left.to_string())))?;
    }
    let again = Refusal::new(RefusalKind::WrongState, format!("{place} is not released"))
        .hint(format!("end what is left, then `stead release --place {}`", hold.id));
    say_refusal(&again);
    Ok(())
}

fn one(released: Released) -> One {
    One {
        id: released.hold.id,
        place: released.hold.directory.as_path().to_string_lossy().into_owned(),
        interrupted: released.interrupted,
        ended: released.ended,
        complete: released.left.is_empty(),
        left: released.left.iter().map(ToString::to_string).collect(),
    }
}

fn refuse(error: &ReleaseError) -> Exit {
    let (exit, refusal) = match error {
        ReleaseError::FromWithin(_) => (
            Exit::of(RefusalKind::WrongState),
            Refusal::new(RefusalKind::WrongState, error.to_string())
                .hint("call `stead release` from outside its runs: it would end itself half-way"),
        ),
        ReleaseError::Busy { .. } => (
            Exit(75),
            Refusal::new(RefusalKind::WrongState, error.to_string())
                .hint("`stead places` shows when that one is through"),
        ),
        ReleaseError::Unknown(_) => (
            Exit::of(RefusalKind::NotFound),
            Refusal::new(RefusalKind::NotFound, error.to_string())
                .hint("`stead places` names those that hold something"),
        ),
        ReleaseError::Host(error) => (Exit(77), host_refusal(error)),
    };
    say_refusal(&refusal);
    exit
}
