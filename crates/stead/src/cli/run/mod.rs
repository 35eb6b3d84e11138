//! `stead run`: starts a session or continues one, and shows it until nobody is at work.

mod agent;

use std::ffi::OsString;
use std::io::Read as _;

use clap::Args;
use serde::Serialize;
use stead_core::id::{Label, SessionId};
use stead_core::layout::Placement;
use stead_core::permission::Mode;
use stead_core::refusal::Refusal;
use stead_engine::Client;
use stead_engine::api::{Attendance, ModeParams, SendParams, StartParams};

use super::mode::ModeName;
use super::program::Json;
use super::root_option;
use crate::context::{Context, block_on, current_dir, new_request, send_safely};
use crate::exit::{Done, Exit, Failure, usage};
use crate::live::{Face, Left, NOT_STARTED, Start, Until, follow, watch};
use crate::output::{answer_line, document, is_interactive, say, style, styled};

/// A playbook to begin with.
const EXAMPLE: &str = "\
A small playbook to begin with, for `--agent playbook:FILE`:

  [[agent]]
  path = \"**\"

  [[agent.turn]]
  step = [
    { call = { tool = \"bash\", as = \"files\", with = { command = \"ls\" } } },
    { say = \"You asked: {{message}}\\n{{files}}\" },
  ]
";

/// Start a session over some folders, or continue one
///
/// On a terminal a live tree shows the agents, and keys answer what they ask; elsewhere a plain log
/// goes to standard error. The result of /root goes to standard output. Ctrl-C leaves and lets the
/// agents go on; twice stops them.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLE)]
pub(crate) struct RunArguments {
    /// A working root: a folder, and what may be done in it. Only `:read` and `:write` at the end
    /// are cut off the path; write is the default. The first is the primary. Left out, it is the
    /// current folder
    #[arg(long = "root", value_name = "[SLOT=]PATH[:read|:write]")]
    roots: Vec<OsString>,
    /// What runs the agents: `playbook:FILE`
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// How much is asked: edits and commands (the default), commands only, or nothing; a session
    /// that is continued changes to it
    #[arg(long, value_enum)]
    mode: Option<ModeName>,
    /// Plan only: edits and commands are refused
    #[arg(long)]
    plan: bool,
    /// Work in the folders themselves, not in private copies
    #[arg(long)]
    in_place: bool,
    /// Return as soon as /root can begin; requests wait for `stead permit`
    #[arg(long)]
    detach: bool,
    /// A name for the session; if one has it already, that one is continued
    #[arg(long, value_name = "LABEL", conflicts_with = "session")]
    label: Option<String>,
    /// Continue this session: an id, the beginning of one, or a label
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["roots", "agent", "in_place"])]
    session: Option<String>,
    #[command(flatten)]
    json: Json,
    /// The message to /root; `-` reads standard input
    message: String,
}

#[derive(Serialize)]
struct Detached<'a> {
    session: &'a SessionId,
}

/// Starts or continues, then shows.
pub(crate) fn run(arguments: RunArguments) -> Done {
    let message = message_of(&arguments.message)?;
    let context = Context::new()?;
    let label = arguments.label.as_deref().map(Label::parse).transpose();
    let label = label.map_err(|e| usage(e.to_string()))?;
    block_on(async {
        let known = match (&arguments.session, &label) {
            (Some(name), _) => {
                let client = context.connect().await?;
                let session = context.session(&client, Some(name)).await?;
                Some((client, session))
            }
            (None, Some(label)) => labelled(&context, label).await?,
            (None, None) => None,
        };
        let face = Watching::of(&arguments);
        if let Some((client, session)) = known {
            change_mode(&client, &session, &arguments).await?;
            return resume(&context, client, session, message, face).await;
        }
        let params = new_session(&context, &arguments, label, message, face.attendance())?;
        let mut client = context.connect().await?;
        let started = send_safely(&context, &mut client, |client| {
            let params = params.clone();
            async move { client.start(&params).await }
        })
        .await?;
        face.warn(params.mode);
        face.show(&context, client, started.session, 0).await
    })
}

/// The message as it was given, or what standard input has.
pub(crate) fn message_of(given: &str) -> Result<String, Refusal> {
    let mut message = given.to_owned();
    if given == "-" {
        message.clear();
        std::io::stdin()
            .read_to_string(&mut message)
            .map_err(|error| usage(format!("the message cannot be read: {error}")))?;
    }
    if message.trim().is_empty() {
        return Err(usage("the message is empty").hint("say what is to be done"));
    }
    Ok(message)
}

/// How a run is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watching {
    Not { json: bool },
    Json,
    Plain,
    Live,
}

impl Watching {
    fn of(arguments: &RunArguments) -> Self {
        match (arguments.detach, arguments.json.json) {
            (true, json) => Self::Not { json },
            (false, true) => Self::Json,
            (false, false) if is_interactive() => Self::Live,
            (false, false) => Self::Plain,
        }
    }

    fn attendance(self) -> Attendance {
        match self {
            // In the live view too: what agents ask waits for a key, and for `stead permit` when
            // the person has left.
            Self::Not { .. } | Self::Live => Attendance::Detached,
            Self::Json | Self::Plain => Attendance::Headless,
        }
    }

    /// Says what nobody can answer here, when anything is asked.
    fn warn(self, mode: Mode) {
        if self.attendance() == Attendance::Headless && mode != Mode::FullAuto {
            say(format_args!(
                "mode {}: what agents have to ask for is refused, because nobody can answer here \
                 (`--mode full-auto` asks nothing, `--detach` lets it wait for `stead permit`)",
                crate::render::mode(mode)
            ));
        }
    }

    async fn show(self, context: &Context, client: Client, session: SessionId, after: u64) -> Done {
        let face = match self {
            Self::Not { json } => return detached(context, client, session, after, json).await,
            Self::Json => Face::json(),
            Self::Plain => Face::plain(),
            Self::Live => Face::live()?,
        };
        let until = Until::Settled;
        watch(Start { context, client, session, after, face, outlives: true, until }).await
    }
}

/// Waits until `/root` can begin, so that a start that is refused is no success.
async fn detached(
    context: &Context,
    client: Client,
    session: SessionId,
    after: u64,
    json: bool,
) -> Done {
    let face = if !json && is_interactive() { Face::live()? } else { Face::brief() };
    let until = Until::Admitted;
    let named = session.clone();
    let followed =
        follow(Start { context, client, session, after, face, outlives: true, until }).await?;
    match (followed.left, followed.refusal()) {
        (Left::Stopped, _) => {
            say(if followed.refusal().is_some() { NOT_STARTED } else { "stopped" });
            return Ok(Exit::INTERRUPTED);
        }
        (_, Some(refusal)) => return Err(refusal.into()),
        (_, None) => {}
    }
    if json {
        document(&Detached { session: &named })?;
    } else {
        answer_line(&named)?;
    }
    say(styled(
        style::DIM,
        "`stead log --follow` shows what happens, `stead permit list` what waits for you, \
         `stead tree` who is at work",
    ));
    match followed.left {
        Left::Leaving(exit) => Ok(exit),
        Left::Settled | Left::Stopped => Ok(Exit::DONE),
    }
}

/// The session that has this label, if any.
async fn labelled(
    context: &Context,
    label: &Label,
) -> Result<Option<(Client, SessionId)>, Failure> {
    let client = context.connect().await?;
    let sessions = client.sessions().await?;
    let found = sessions.into_iter().find(|s| s.label.as_ref() == Some(label));
    Ok(found.map(|found| (client, found.session)))
}

/// A session that is continued asks as this call says; its folders and its agent stay.
async fn change_mode(
    client: &Client,
    session: &SessionId,
    arguments: &RunArguments,
) -> Result<(), Failure> {
    if !arguments.roots.is_empty() || arguments.agent.is_some() {
        say(format_args!(
            "session {session} keeps the folders and the agent that it was started with"
        ));
    }
    let params = ModeParams {
        mode: arguments.mode.map(Mode::from),
        plan_ceiling: arguments.plan.then_some(true),
    };
    if params != ModeParams::default() {
        client.mode(session, &params).await?;
    }
    Ok(())
}

/// Sends a message to `/root` of a session that is there.
async fn resume(
    context: &Context,
    mut client: Client,
    session: SessionId,
    message: String,
    watching: Watching,
) -> Done {
    let tree = client.tree(&session).await?;
    let params = SendParams {
        request: new_request()?,
        target: "/root".to_owned(),
        message,
        wake: true,
        attendance: watching.attendance(),
        environment: context.for_commands(),
    };
    let sent = send_safely(context, &mut client, |client| {
        let (session, params) = (session.clone(), params.clone());
        async move { client.send(&session, &params).await }
    })
    .await?;
    let told = super::send::told(&sent.receipt);
    say(styled(style::DIM, format_args!("session {session} goes on: {told}")));
    watching.warn(tree.mode);
    watching.show(context, client, session, tree.tip).await
}

fn new_session(
    context: &Context,
    arguments: &RunArguments,
    label: Option<Label>,
    message: String,
    attendance: Attendance,
) -> Result<StartParams, Refusal> {
    let driver = agent::driver(context, arguments.agent.as_deref())?;
    Ok(StartParams {
        request: new_request()?,
        roots: root_option::parse(&arguments.roots, &current_dir()?)?,
        placement: if arguments.in_place { Placement::InPlace } else { Placement::PrivateCopies },
        mode: arguments.mode.map_or(Mode::Ask, Mode::from),
        plan_ceiling: arguments.plan,
        label,
        driver,
        message,
        attendance,
        environment: context.for_commands(),
    })
}
