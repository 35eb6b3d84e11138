//! `stead task apply`: bring what was reviewed into the original, whole or not at all.

use clap::Args;
use stead_core::delegated::ApplyOutcome;
use stead_engine::api::{ApplyParams, ApplyResponse};

use super::program::{Chosen, Json};
use super::task::CopyOf;
use crate::clean;
use crate::context::{Context, block_on};
use crate::exit::{Done, Exit, Failure};
use crate::output::{answer, document, say};
use crate::render;

/// Bring what was reviewed into the original, whole or not at all
///
/// Writes exactly the reviewed snapshot; nothing is staged and nothing is committed. Files that you
/// changed yourself meanwhile are never overwritten: then nothing is written.
#[derive(Debug, Args)]
pub(crate) struct ApplyArguments {
    #[command(flatten)]
    copy: CopyOf,
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    json: Json,
}

/// Applies and tells the outcome.
pub(crate) fn apply(arguments: &ApplyArguments) -> Done {
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, arguments.chosen.session.as_deref()).await?;
        let (task, slot) = arguments.copy.find(&client, &session).await?;
        let told = client.apply(&session, task, &ApplyParams { slot }).await;
        let response =
            told.map_err(|refusal| match refusal.kind {
                // It may have begun: only the record can tell.
                stead_core::refusal::RefusalKind::Unavailable => Failure::Unknown(refusal.hint(
                    format!("`stead task show {task} --session {session}` says how it ended"),
                )),
                _ => Failure::from(refusal),
            })?;
        if arguments.json.json {
            document(&response)?;
        } else {
            tell(&response)?;
        }
        Ok(exit(&response.outcome))
    })
}

/// What helps when files of the person's are in the way.
const SETTLE: &str = "\
to go on, committing does not help: bring what you want of your versions into the copy, put these \
files back as it was made from them or as it was last applied (`git stash`, or `git checkout COMMIT \
-- FILE`), then review and apply again";

fn tell(response: &ApplyResponse) -> Result<(), Failure> {
    let ApplyResponse { task, slot, destination, outcome, before } = response;
    let before = if *before { " (before; nothing was done now)" } else { "" };
    answer(format_args!("task {task} {slot}: {}{before}\n", render::applied(outcome)))?;
    match outcome {
        ApplyOutcome::Applied { paths, .. } if *paths > 0 => {
            say(format_args!("written in {}", clean::path(destination.as_path())));
        }
        ApplyOutcome::Refused { paths, .. } => {
            for path in paths {
                say(format_args!("  {}", clean::line(path)));
            }
            // Only conflicts name paths. Committed or not, a file that differs stays one.
            if !paths.is_empty() {
                say(format_args!("{SETTLE}: `stead task show {task}` names the copy"));
            }
        }
        ApplyOutcome::RecoveryNeeded { .. } => say("`stead doctor` shows what is half-way"),
        ApplyOutcome::Applied { .. } | ApplyOutcome::RolledBack { .. } => {}
    }
    Ok(())
}

fn exit(outcome: &ApplyOutcome) -> Exit {
    match outcome {
        ApplyOutcome::Applied { .. } => Exit::DONE,
        ApplyOutcome::Refused { half_way: true, .. } | ApplyOutcome::RecoveryNeeded { .. } => {
            Exit::UNKNOWN
        }
        ApplyOutcome::Refused { conflict: true, .. }
        | ApplyOutcome::RolledBack { conflict: true, .. } => Exit::CONFLICT,
        ApplyOutcome::Refused { .. } | ApplyOutcome::RolledBack { .. } => Exit::REFUSED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_says_whose_move_it_is() {
        let refused = |conflict, half_way| ApplyOutcome::Refused {
            reason: String::new(),
            conflict,
            paths: Vec::new(),
            half_way,
        };
        let back = |conflict| ApplyOutcome::RolledBack {
            cause: String::new(),
            conflict,
            paths: Vec::new(),
            rescue: None,
        };
        let half_way = ApplyOutcome::RecoveryNeeded {
            cause: String::new(),
            paths: Vec::new(),
            rescue: String::new(),
        };
        for (outcome, status) in [
            (refused(false, false), 64),
            (refused(true, false), 65),
            (refused(false, true), 66),
            (back(false), 64),
            (back(true), 65),
            (half_way, 66),
        ] {
            assert_eq!(exit(&outcome).0, status, "{outcome:?}");
        }
    }
}
