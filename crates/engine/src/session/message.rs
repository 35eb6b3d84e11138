//! What is sent to a session's owner.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use stead_agent::TurnEnd;
use stead_core::event::Envelope;
use stead_core::id::{RequestId, SessionId, TurnId};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::roster::Settled;
use stead_core::session::{Command, Outcomes, State};
use stead_files::Progress;
use stead_store::Body;
use tokio::sync::{broadcast, mpsc, oneshot};

use super::actor::Actor;
use super::admission::Ready;
use super::hooks::Judged;
use crate::api::{
    Activity, Attendance, ClientEnvironment, InterruptResponse, TasksResponse, TreeResponse,
};

/// What is done with the outcome of a command, once it is durable.
pub(crate) type Then = Box<dyn FnOnce(&mut Actor, Result<Outcomes, Refusal>) + Send>;

/// A question to the state, which takes its answer away itself.
pub(crate) type Look = Box<dyn FnOnce(&State) + Send>;

/// A command on its way into the log.
pub(crate) struct Work {
    /// The command.
    pub(crate) command: Command,
    /// The bodies that its events refer to.
    pub(crate) bodies: Vec<Body>,
    /// Ids that it takes for ever.
    pub(crate) claims: Vec<SessionId>,
    /// The request that it answers.
    pub(crate) request: Option<RequestId>,
    /// What then.
    pub(crate) then: Then,
}

impl Work {
    /// A command whose outcome goes to `answer`.
    pub(crate) fn new(command: Command, then: Then) -> Self {
        Self { command, bodies: Vec::new(), claims: Vec::new(), request: None, then }
    }

    /// The same with a body.
    pub(crate) fn with(mut self, body: Body) -> Self {
        self.bodies.push(body);
        self
    }
}

/// The person's surroundings as the last client gave them; kept in memory only.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) environment: BTreeMap<OsString, OsString>,
    pub(crate) attendance: Attendance,
}

impl Surroundings {
    /// What a client gave, without what no process of a session gets.
    pub(crate) fn new(environment: ClientEnvironment, attendance: Attendance) -> Self {
        let environment =
            environment.into_iter().map(|(k, v)| (OsString::from(k), OsString::from(v)));
        Self { environment: stead_process::environment::scrubbed(environment), attendance }
    }
}

/// Whether a session is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Busy {
    /// Turns run.
    Working,
    /// Nothing runs.
    Quiet,
}

/// A message to a session's owner.
pub(crate) enum Message {
    /// Decide a command, in the surroundings of the client that sent it.
    Do(Box<Work>, Option<Surroundings>),
    /// End another agent's turn.
    Interrupt {
        caller: Option<AgentPath>,
        target: String,
        answer: oneshot::Sender<Result<InterruptResponse, Refusal>>,
    },
    /// A look at the state.
    Look(Look),
    /// The session as it is.
    Tree(oneshot::Sender<TreeResponse>),
    /// The task list.
    Tasks(oneshot::Sender<TasksResponse>),
    /// How an agent's last turn ended.
    LastResult { path: AgentPath, answer: oneshot::Sender<Result<Settled, Refusal>> },
    /// Whether anything runs.
    Busy(oneshot::Sender<Busy>),
    /// A reserved agent is ready, or cannot be.
    Prepared { path: AgentPath, outcome: Result<Ready, Refusal> },
    /// Prompt hooks have judged the task of an idle agent.
    Judged { path: AgentPath, item: Box<Work>, judged: Judged },
    /// The stop hooks of a turn are through.
    StopTold,
    /// A driver left a turn.
    Ended { turn: TurnId, end: TurnEnd },
    /// A wait's time is over.
    WaitOver { path: AgentPath, number: u64 },
    /// A client that can answer permission requests came.
    Attached,
    /// It went.
    Detached,
    /// Try again to store what could not be stored.
    Retry,
    /// End every turn, then answer.
    Stop { reason: String, done: oneshot::Sender<()> },
}

/// Something that happened, as subscribers get it.
#[derive(Debug, Clone)]
pub(crate) enum Published {
    /// A durable event, and whose conversation it stands in.
    Event(Arc<Envelope>, Option<AgentPath>),
    /// An agent began or ended waiting.
    Activity(AgentPath, Activity),
    /// How far the copies of a reserved agent are.
    Copying(AgentPath, Progress),
}

/// The way to a session's owner.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    pub(crate) sender: mpsc::Sender<Message>,
    pub(crate) published: broadcast::Sender<Published>,
}

impl Handle {
    /// Sends a message that is answered over `answer`.
    pub(crate) async fn ask<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> Message,
    ) -> Result<T, Refusal> {
        let gone = || Refusal::new(RefusalKind::Unavailable, "the session is being closed");
        let (answer, told) = oneshot::channel();
        self.sender.send(message(answer)).await.map_err(|_| gone())?;
        told.await.map_err(|_| gone())
    }

    /// Asks the state.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        question: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        self.ask(|answer| {
            Message::Look(Box::new(move |state| {
                let _ = answer.send(question(state));
            }))
        })
        .await
    }

    /// Has a command decided and stored.
    pub(crate) async fn run(
        &self,
        command: Command,
        bodies: Vec<Body>,
        request: Option<RequestId>,
        surroundings: Option<Surroundings>,
    ) -> Result<Outcomes, Refusal> {
        self.ask(|answer| {
            let work = Work {
                command,
                bodies,
                claims: Vec::new(),
                request,
                then: Box::new(|_, outcome| {
                    let _ = answer.send(outcome);
                }),
            };
            Message::Do(Box::new(work), surroundings)
        })
        .await?
    }

    /// Whether its owner has gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}
