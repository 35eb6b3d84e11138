//! The actor: one task that owns a root session's state and is the only one to append to it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stead_agent::{Answering, Asked, Done, TurnEnd};
use stead_core::bound::Bound;
use stead_core::id::{PermissionId, SessionId, Timestamp, TurnId};
use stead_core::path::AgentPath;
use stead_core::permission::Answer;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::rule::Rule;
use stead_core::session::{Command, State};
use stead_core::settings::Settings;
use stead_files::Lock;
use stead_git::Git;
use stead_place::Host;
use stead_process::Spawners;
use stead_store::{Reader, Store, StoreError};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::admission::Reserved;
use super::message::{Busy, Handle, Message, Published, Surroundings, Work};
use crate::api::Attendance;
use crate::door::Doors;
use crate::drivers::Drivers;
use crate::home::Home;
use crate::presence::Served;
use crate::registry::Registry;
use crate::unrecorded::Unrecorded;

/// How many commands are decided before one append at most.
const LARGEST_BATCH: usize = 256;
/// How many messages may wait before senders do.
const INBOX: usize = 1024;
/// How many notifications a slow subscriber may be behind before it reads them from the log.
const NOTIFICATIONS: usize = 1024;
/// How long a session that nothing needs is kept in memory.
const QUIET: Duration = Duration::from_secs(30);
/// How long the engine waits before it tries again to store a turn's end.
const RETRY: Duration = Duration::from_millis(500);

/// What all sessions of an engine share.
pub(crate) struct Shared {
    pub(crate) home: Home,
    /// The person's settings, as they were when the engine started.
    pub(crate) settings: Settings,
    pub(crate) copies: stead_copies::Home,
    pub(crate) served: Served,
    pub(crate) store: Store,
    pub(crate) spawners: Arc<Spawners>,
    pub(crate) runs: Arc<Lock>,
    /// The places of this host.
    pub(crate) host: Host,
    /// How many runs there may be in them at once.
    pub(crate) bound: Bound,
    /// The program and arguments that become the keeper of one run.
    pub(crate) keeper: (PathBuf, Vec<OsString>),
    /// The engine's own environment, in which Git is found and called.
    pub(crate) environment: BTreeMap<OsString, OsString>,
    /// `[permissions]` of the settings.
    pub(crate) rules: Vec<Rule>,
    pub(crate) registry: Registry,
    pub(crate) drivers: Drivers,
    pub(crate) doors: Doors,
    /// Ends of applies that could not be stored yet.
    pub(crate) unrecorded: Unrecorded,
    /// Held while something is kept that nothing names yet; wholly, by who collects garbage.
    pub(crate) keeping: Arc<tokio::sync::RwLock<()>>,
}

impl Shared {
    /// Git, as it is found now: it may be installed while an engine runs.
    pub(crate) fn git(&self) -> Result<Git, Refusal> {
        Git::find(&self.environment).map_err(|e| {
            Refusal::new(RefusalKind::Failed, e.to_string()).hint("install git, or mend PATH")
        })
    }

    /// Reads the store beside the caller.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let shared = self.clone();
        tokio::task::spawn_blocking(move || read(shared.store.reader()).map_err(|e| e.refusal()))
            .await
            .map_err(|e| Refusal::new(RefusalKind::Failed, format!("reading failed: {e}")))?
    }
}

/// A turn that runs.
pub(super) struct Live {
    pub(super) path: AgentPath,
    pub(super) cancel: CancellationToken,
    /// Who asked that it end now.
    pub(super) interrupted: Option<String>,
    /// When the turn was last told that what it said is durable: its calls run since then.
    pub(super) told: Instant,
    /// When the turn began.
    pub(super) since: Timestamp,
}

/// An agent that waits for mail.
pub(super) struct Waiter {
    pub(super) number: u64,
    pub(super) turn: TurnId,
    pub(super) used_ms: u64,
    pub(super) answer: Answering<Done>,
}

/// The owner of one root session.
pub(crate) struct Actor {
    pub(super) session: SessionId,
    pub(super) shared: Arc<Shared>,
    pub(super) state: State,
    pub(super) inbox: mpsc::Receiver<Message>,
    pub(super) asks: mpsc::Receiver<Asked>,
    pub(super) handle: Handle,
    pub(super) ask: mpsc::Sender<Asked>,
    pub(super) live: HashMap<TurnId, Live>,
    pub(super) waiting: BTreeMap<AgentPath, Waiter>,
    /// The agents between reservation and publication.
    pub(super) reserved: BTreeMap<AgentPath, Reserved>,
    pub(super) permissions: HashMap<PermissionId, oneshot::Sender<Answer>>,
    /// Ends of turns that could not be stored yet: nothing of them runs any more.
    pub(super) unstored: Vec<(TurnId, TurnEnd)>,
    pub(super) environment: BTreeMap<OsString, OsString>,
    pub(super) attendance: Attendance,
    pub(super) attached: usize,
    pub(super) waits: u64,
    /// How many rounds of hooks are under way for agents that are published.
    pub(super) hooking: usize,
    stopping: Option<(String, Vec<oneshot::Sender<()>>)>,
}

impl Actor {
    /// The owner of `session` in `state`, and the way to it. The session begins to be served with
    /// [`run`](Self::run).
    pub(crate) fn new(shared: Arc<Shared>, session: SessionId, state: State) -> (Self, Handle) {
        let (sender, inbox) = mpsc::channel(INBOX);
        let (ask, asks) = mpsc::channel(INBOX);
        let (published, _) = broadcast::channel(NOTIFICATIONS);
        let handle = Handle { sender, published };
        let actor = Self {
            session,
            shared,
            state,
            inbox,
            asks,
            handle: handle.clone(),
            ask,
            live: HashMap::new(),
            waiting: BTreeMap::new(),
            reserved: BTreeMap::new(),
            permissions: HashMap::new(),
            unstored: Vec::new(),
            environment: BTreeMap::new(),
            attendance: Attendance::Headless,
            attached: 0,
            waits: 0,
            hooking: 0,
            stopping: None,
        };
        (actor, handle)
    }

    /// Serves the session until nothing needs it.
    pub(crate) async fn run(mut self) {
        let mut work = Vec::new();
        loop {
            match timeout(QUIET, self.next()).await {
                Ok(Some(Incoming::Message(message))) => self.take(message, &mut work),
                Ok(Some(Incoming::Asked(asked))) => self.take_ask(asked, &mut work),
                Ok(None) => return,
                Err(_) if self.is_needed() => {}
                Err(_) => self.inbox.close(),
            }
            // Whoever was answered together asks again together, in one batch.
            tokio::task::yield_now().await;
            work.reserve(self.asks.len());
            while work.len() < LARGEST_BATCH {
                if let Ok(asked) = self.asks.try_recv() {
                    self.take_ask(asked, &mut work);
                } else if let Ok(message) = self.inbox.try_recv() {
                    self.take(message, &mut work);
                } else {
                    break;
                }
            }
            if !work.is_empty() {
                self.commit(std::mem::take(&mut work)).await;
            }
            self.finish_stop();
        }
    }

    async fn next(&mut self) -> Option<Incoming> {
        tokio::select! {
            biased;
            Some(asked) = self.asks.recv() => Some(Incoming::Asked(asked)),
            message = self.inbox.recv() => message.map(Incoming::Message),
        }
    }

    /// Whether anybody would miss this owner: a turn, a subscriber, a promise not kept yet.
    fn is_needed(&self) -> bool {
        !self.live.is_empty()
            || !self.reserved.is_empty()
            || self.applies()
            || self.hooking > 0
            || !self.unstored.is_empty()
            || self.is_watched()
    }

    /// Whether anybody subscribes. Who does so later reads from the log what was durable before.
    pub(super) fn is_watched(&self) -> bool {
        self.handle.published.receiver_count() > 0
    }

    /// Whether an apply is under way.
    fn applies(&self) -> bool {
        let mut copies = self.state.world.delegated.values().flat_map(|own| own.copies.values());
        copies.any(|copy| copy.applying.is_some())
    }

    fn take(&mut self, message: Message, work: &mut Vec<Work>) {
        match message {
            Message::Do(item, surroundings) => {
                if let Some(Surroundings { environment, attendance }) = surroundings {
                    self.environment = environment;
                    self.attendance = attendance;
                }
                match &self.stopping {
                    Some((reason, _)) if !is_ending(&item.command) => {
                        let refusal = closing(reason);
                        (item.then)(self, Err(refusal));
                    }
                    _ => self.accept(*item, work),
                }
            }
            Message::Interrupt { caller, target, answer } => {
                let _ = answer.send(self.interrupt(caller.as_ref(), &target));
            }
            Message::Look(look) => look(&self.state),
            Message::Tree(answer) => {
                let _ = answer.send(self.tree());
            }
            Message::Tasks(answer) => {
                let _ = answer.send(self.tasks());
            }
            Message::LastResult { path, answer } => {
                let _ = answer.send(self.last_result(&path));
            }
            Message::Busy(answer) => {
                let busy = self.live.is_empty() && self.reserved.is_empty() && !self.applies();
                let _ = answer.send(if busy { Busy::Quiet } else { Busy::Working });
            }
            Message::Prepared { path, outcome } => self.prepared(&path, outcome, work),
            Message::Judged { path, item, judged } => self.judged(&path, *item, judged, work),
            Message::StopTold => self.hooking = self.hooking.saturating_sub(1),
            Message::Ended { turn, end } => self.ended(turn, end, work),
            Message::WaitOver { path, number } => self.wait_over(&path, number),
            Message::Attached => self.attached = self.attached.saturating_add(1),
            Message::Detached => {
                self.attached = self.attached.saturating_sub(1);
                self.leave_unattended(work);
            }
            Message::Retry => {
                for (turn, end) in std::mem::take(&mut self.unstored) {
                    self.ended(turn, end, work);
                }
            }
            Message::Stop { reason, done } => {
                self.reserved.values().for_each(Reserved::give_up);
                for turn in self.live.values_mut() {
                    turn.interrupted.get_or_insert_with(|| reason.clone());
                    turn.cancel.cancel();
                }
                match &mut self.stopping {
                    Some((_, waiting)) => waiting.push(done),
                    None => self.stopping = Some((reason, vec![done])),
                }
            }
        }
    }

    /// Tells those who wait for the end that there is nothing left to end.
    fn finish_stop(&mut self) {
        if self.live.is_empty()
            && self.reserved.is_empty()
            && !self.applies()
            && self.hooking == 0
            && let Some((_, waiting)) = &mut self.stopping
        {
            for done in waiting.drain(..) {
                let _ = done.send(());
            }
        }
    }

    /// Why nothing new may start, if so.
    pub(super) fn check_open(&self) -> Result<(), Refusal> {
        match &self.stopping {
            Some((reason, _)) => Err(closing(reason)),
            None => Ok(()),
        }
    }

    /// Sends itself `message` after a while.
    pub(super) fn later(&self, message: Message, after: Duration) {
        let sender = self.handle.sender.clone();
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let _ = sender.send(message).await;
        });
    }

    /// Keeps the end of a turn that could not be stored, and tries again soon.
    pub(super) fn keep_unstored(&mut self, turn: TurnId, end: TurnEnd) {
        if self.unstored.is_empty() {
            self.later(Message::Retry, RETRY);
        }
        self.unstored.push((turn, end));
    }

    /// Publishes what is not stored.
    pub(super) fn publish(&self, published: Published) {
        // Nobody listening is no fault.
        let _ = self.handle.published.send(published);
    }
}

enum Incoming {
    Message(Message),
    Asked(Asked),
}

/// Commands that only end things are decided even while the engine stops.
fn is_ending(command: &Command) -> bool {
    matches!(
        command,
        Command::Settle { .. }
            | Command::Refuse { .. }
            | Command::Permit { .. }
            | Command::EndApply { .. }
    )
}

fn closing(reason: &str) -> Refusal {
    Refusal::new(RefusalKind::Unavailable, reason.to_owned())
        .hint("the same command again starts a new engine")
}

/// Work that waits for the next batch.
pub(super) type Backlog = VecDeque<Work>;
