//! `stead log`: what happened in a session.

use clap::Args;
use stead_core::event::{BranchEvent, Event, Sender};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_engine::api::{EventNotification, EventsParams, Notification, TreeResponse};

use super::program::{Chosen, Json};
use crate::context::{Context, block_on};
use crate::exit::{Done, Exit, Failure, usage};
use crate::live::{Follower, Step};
use crate::output::{answer_json, answer_line, say};
use crate::render::{Teller, decoded};

/// Show what happened in a session, one line an event
#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    /// Only what this agent did or got: an address such as /root/fix-parser
    path: Option<String>,
    /// Go on with what happens from now on
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    json: Json,
}

/// Prints the events, oldest first.
pub(crate) fn log(arguments: &LogArguments) -> Done {
    let only = match &arguments.path {
        Some(text) => Some(AgentPath::resolve(&AgentPath::root(), text).map_err(|e| {
            usage(e.to_string()).hint("`stead tree` shows the addresses of a session's agents")
        })?),
        None => None,
    };
    let context = Context::new()?;
    block_on(async {
        let client = context.connect().await?;
        let session = context.session(&client, arguments.chosen.session.as_deref()).await?;
        if let Some(path) = &only {
            check_known(&client.tree(&session).await?, path)?;
        }
        let params = EventsParams { after: 0, follow: arguments.follow, attached: false };
        let mut follower = Follower::new(&context, client, session, params);
        let mut teller = Teller::default();
        loop {
            tokio::select! {
                step = follower.next() => match step? {
                    Step::Event(event) => {
                        let wanted = only.as_ref().is_none_or(|path| concerns(&event, path));
                        tell(&mut teller, event, wanted, arguments.json.json)?;
                    }
                    Step::Restarted(after) => say(format_args!(
                        "the engine had ended; a new one goes on after event {after}"
                    )),
                    Step::End => return Ok(Exit::DONE),
                    Step::Activity(..) | Step::Copying(..) | Step::CaughtUp => {}
                },
                // Nothing has to be tidied up: it ends as a signal would end it.
                _ = tokio::signal::ctrl_c() => return Ok(Exit::INTERRUPTED),
            }
        }
    })
}

/// An address that nobody has is a mistake, not an agent that did nothing.
fn check_known(tree: &TreeResponse, path: &AgentPath) -> Result<(), Refusal> {
    if tree.agents.iter().any(|agent| agent.path == *path) {
        return Ok(());
    }
    let known: Vec<&str> = tree.agents.iter().map(|agent| agent.path.as_str()).take(8).collect();
    Err(Refusal::new(RefusalKind::UnknownAgent, format!("there is no agent {path}"))
        .hint(format!("the session has {}", known.join(", "))))
}

fn tell(
    teller: &mut Teller,
    event: Box<EventNotification>,
    wanted: bool,
    json: bool,
) -> Result<(), Failure> {
    // The teller hears of everything: later lines name what earlier events began.
    let said = teller.tell(&event);
    match said {
        _ if !wanted => Ok(()),
        _ if json => answer_json(&Notification::Event(event)),
        Some(said) => answer_line(said.line()),
        None => Ok(()),
    }
}

/// Whether an event is of an agent's doing or reaches it.
fn concerns(event: &EventNotification, path: &AgentPath) -> bool {
    if event.conversation.is_some() {
        return event.conversation.as_ref() == Some(path);
    }
    let from = |sender: &Sender| matches!(sender, Sender::Agent(by) if by == path);
    match decoded(event) {
        Some(Event::Branch(branch)) => match &branch {
            BranchEvent::AgentReserved { path: who, .. }
            | BranchEvent::AgentPublished { path: who, .. }
            | BranchEvent::AgentRefused { path: who, .. }
            | BranchEvent::TurnStarted { path: who, .. }
            | BranchEvent::HookNoted { path: who, .. }
            | BranchEvent::StopNoted { path: who, .. }
            | BranchEvent::ShellStarted { path: who, .. }
            | BranchEvent::ShellEnded { path: who, .. }
            | BranchEvent::DriverNoted { path: who, .. }
            | BranchEvent::FileChanged { path: who, .. }
            | BranchEvent::TurnSettled { path: who, .. }
            | BranchEvent::MailDelivered { to: who, .. }
            | BranchEvent::PermissionAsked { path: who, .. } => who == path,
            BranchEvent::MailStored { from: by, to, .. } => to == path || from(by),
            BranchEvent::TasksWritten { by, .. } => from(by),
            _ => false,
        },
        _ => false,
    }
}
