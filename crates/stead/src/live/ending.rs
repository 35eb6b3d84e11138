//! What a run says when it is over: the result, what holds, and the command that goes on.

use std::path::Path;

use serde::Serialize;
use stead_core::event::Outcome;
use stead_core::id::SessionId;
use stead_core::layout::{Access, Placement};
use stead_core::path::AgentPath;
use stead_core::permission::Mode;
use stead_core::refusal::RefusalKind;
use stead_core::task::{Owner, Status, Task};
use stead_engine::Client;
use stead_engine::api::{CopyState, DelegatedView, ResultResponse, TreeResponse};

use super::fold::Fold;
use super::watch::Left;
use crate::clean;
use crate::context::{Context, ask};
use crate::exit::{Done, Exit};
use crate::output::{answer, answer_json, say, style, styled};
use crate::render;

/// What is said when a person stopped a session before it came to be.
pub(crate) const NOT_STARTED: &str = "stopped before it was ready: nothing was started";

/// What is known when following ends.
pub(super) struct Ending<'a> {
    pub(super) context: &'a Context,
    pub(super) client: Client,
    pub(super) session: SessionId,
    pub(super) fold: Fold,
    pub(super) left: Left,
    pub(super) json: bool,
}

/// The last object of `stead run --json`.
#[derive(Serialize)]
#[serde(tag = "type", rename = "end")]
struct End<'a> {
    version: u32,
    session: &'a SessionId,
    /// How /root's turn ended; none: it goes on, or that is not known.
    outcome: Option<Outcome>,
    reason: Option<&'a str>,
    result: Option<&'a str>,
    unread: usize,
    /// The tasks in private copies, and how far each copy is.
    copies: &'a [DelegatedView],
}

/// Tells how it ended.
pub(super) async fn ending(ending: Ending<'_>) -> Done {
    let Ending { context, mut client, session, fold, left, json } = ending;
    if let Left::Leaving(exit) = left {
        say("the agents go on without you:");
        say(format_args!("  stead log --follow --session {session}  shows what they do"));
        say(format_args!("  stead stop /root --session {session}    ends a turn"));
        if fold.mode != Mode::FullAuto {
            say(format_args!(
                "  stead permit list --session {session}   shows what waits for your leave"
            ));
        }
        return Ok(exit);
    }
    match fold.refusal() {
        Some(_) if left == Left::Stopped => {
            say(NOT_STARTED);
            return Ok(Exit::INTERRUPTED);
        }
        Some(refusal) => return Err(refusal.into()),
        None => {}
    }
    let (tree, result) = ask(context, &mut client, |client| {
        let session = session.clone();
        async move {
            let tree = client.tree(&session).await?;
            match client.result(&session, &AgentPath::root()).await {
                Ok(result) => Ok((tree, Some(result))),
                Err(refusal) if refusal.kind == RefusalKind::Unavailable => Err(refusal),
                // Something began again meanwhile.
                Err(_) => Ok((tree, None)),
            }
        }
    })
    .await?;
    let tasks = client.tasks(&session).await?;
    if json {
        answer_json(&End {
            version: 1,
            session: &session,
            outcome: result.as_ref().map(|r| r.outcome),
            reason: result.as_ref().and_then(|r| r.reason.as_deref()),
            result: result.as_ref().map(|r| r.text.as_str()),
            unread: unread(&tree),
            copies: &tasks.delegated,
        })?;
    } else {
        tell(&tree, &fold, &tasks.delegated, result.as_ref())?;
    }
    Ok(match left {
        Left::Stopped => Exit::INTERRUPTED,
        _ => Exit::of_outcome(result.map(|r| r.outcome)),
    })
}

fn unread(tree: &TreeResponse) -> usize {
    tree.agents.iter().filter(|a| a.path.is_root()).map(|a| a.unread).sum()
}

fn tell(
    tree: &TreeResponse,
    fold: &Fold,
    delegated: &[DelegatedView],
    result: Option<&ResultResponse>,
) -> Result<(), crate::exit::Failure> {
    for agent in tree.agents.iter().filter(|a| !a.path.is_root()) {
        if let (Some(how @ (Outcome::Errored | Outcome::Interrupted)), reason) =
            (agent.outcome, &agent.reason)
        {
            let (_, shade) = render::outcome(how);
            let told = styled(shade, render::ended(how, reason.as_deref(), 300));
            say(format_args!("{} {told}", agent.path));
        }
    }
    if let Some(result) = result {
        let (_, shade) = render::outcome(result.outcome);
        let told = render::ended(result.outcome, result.reason.as_deref(), 1000);
        say(styled(shade.bold(), format_args!("{} {told}", result.path)));
        if !result.text.is_empty() {
            answer(format_args!("{}\n", clean::block(&result.text).trim_end()))?;
        }
    }
    for line in held(tree, fold, delegated) {
        say(line);
    }
    for line in reviewable(tree, delegated) {
        say(line);
    }
    let go_on = format!("stead run --session {} \"…\"", tree.session);
    match unread(tree) {
        0 => say(styled(style::DIM, format_args!("go on: {go_on}"))),
        n => say(format_args!(
            "{} came for /root after it was done; go on: {go_on}",
            render::counted(n, "message", "messages")
        )),
    }
    Ok(())
}

/// What is still open or was changed, each with the command that helps.
fn held(tree: &TreeResponse, fold: &Fold, delegated: &[DelegatedView]) -> Vec<String> {
    let mut lines = Vec::new();
    let session = &tree.session;
    // The session's own task is never completed: work on it can always go on.
    let is_own = |task: &Task| {
        task.owner == Owner::of(Some(&AgentPath::root()))
            && delegated.iter().any(|own| own.task == task.id)
    };
    let is_open = |task: &&Task| task.status != Status::Completed && !is_own(task);
    let open = fold.tasks.values().filter(is_open).count();
    if open > 0 {
        let open = render::counted(open, "task is", "tasks are");
        lines.push(format!("{open} open: `stead task list --session {session}`"));
    }
    if !tree.permissions.is_empty() {
        lines.push(format!("requests wait: `stead permit list --session {session}`"));
    }
    let in_place = tree.placement == Placement::InPlace;
    for root in tree.roots.iter().filter(|_| in_place) {
        let folder = root.directory.as_path();
        if root.access == Access::Write && is_git(folder) {
            let folder = clean::path(folder);
            lines.push(styled(style::DIM, format_args!("what changed: git -C {folder} status")));
        }
    }
    lines
}

/// What can be reviewed, each with its command.
fn reviewable(tree: &TreeResponse, delegated: &[DelegatedView]) -> Vec<String> {
    let mut lines = Vec::new();
    for own in delegated {
        for slot in &own.slots {
            if slot.access == Access::Write && slot.state == CopyState::NotReviewed {
                let session = &tree.session;
                lines.push(format!(
                    "to review: `stead task review {} {} --session {session}`  {}",
                    own.task,
                    slot.slot,
                    styled(style::DIM, clean::line(&own.title)),
                ));
            }
        }
    }
    lines
}

fn is_git(folder: &Path) -> bool {
    folder.join(".git").exists()
}
