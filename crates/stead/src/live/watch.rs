//! Following a session until nobody in it is at work, or the person leaves.

use std::time::{Duration, Instant};

use stead_core::id::{Position, SessionId};
use stead_core::permission::Answer;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_engine::Client;
use stead_engine::api::{EventsParams, InterruptParams, PermitParams};
use tokio::signal::unix::{SignalKind, signal};

use super::ending::{Ending, ending};
use super::face::Face;
use super::fold::Fold;
use super::follow::{Follower, Step};
use super::keys::{Key, Keys};
use crate::context::{Context, ask};
use crate::exit::{Done, Exit, Failure};
use crate::render;

/// How often the view is looked at.
const TICK: Duration = Duration::from_millis(100);
/// How long a second Ctrl-C is waited for.
const SECOND: Duration = Duration::from_secs(2);
/// How long turns may take to end when they were told to.
const STOPPING: Duration = Duration::from_secs(20);
/// How long a request must have been on the screen before a key answers it: who types something
/// else just then has not read it.
const READ: Duration = Duration::from_millis(400);

/// What is followed, from where, and how.
pub(crate) struct Start<'a> {
    /// The context.
    pub(crate) context: &'a Context,
    /// The client.
    pub(crate) client: Client,
    /// The session.
    pub(crate) session: SessionId,
    /// The position after which events are shown.
    pub(crate) after: Position,
    /// How.
    pub(crate) face: Face,
    /// Whether agents may go on without the person: then the first Ctrl-C only offers to leave.
    pub(crate) outlives: bool,
    /// How long.
    pub(crate) until: Until,
}

/// When a session has been followed for long enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Nobody is at work any more.
    Settled,
    /// `/root` can begin, or was refused.
    Admitted,
}

/// What is known when nobody is followed any more.
pub(crate) struct Followed {
    /// How following ended.
    pub(crate) left: Left,
    /// The client of the engine that served the session last.
    pub(crate) client: Client,
    /// The session as it was then.
    pub(super) fold: Fold,
}

impl Followed {
    /// Why the session did not come to be, if it did not.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.fold.refusal()
    }
}

/// How following ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// What was waited for came about.
    Settled,
    /// The person left; the agents go on.
    Leaving(Exit),
    /// The person stopped the turns.
    Stopped,
}

/// Follows a session to its end, tells how it ended, and gives the exit status.
pub(crate) async fn watch(start: Start<'_>) -> Done {
    let (context, session, json) = (start.context, start.session.clone(), start.face.is_json());
    let Followed { left, client, fold } = follow(start).await?;
    ending(Ending { context, client, session, fold, left, json }).await
}

/// Follows a session to its end, or until the person leaves.
pub(crate) async fn follow(start: Start<'_>) -> Result<Followed, Failure> {
    let Start { context, mut client, session, after, face, outlives, until } = start;
    let (tree, tasks) = ask(context, &mut client, |client| {
        let session = session.clone();
        async move { Ok((client.tree(&session).await?, client.tasks(&session).await?)) }
    })
    .await?;
    let fold = Fold::new(&tree, &tasks);
    let params = EventsParams { after, follow: true, attached: face.is_live() };
    let follower = Follower::new(context, client, session.clone(), params);
    let mut watch = Watch {
        follower,
        session,
        fold,
        face,
        outlives,
        until,
        caught_up: false,
        leaving: None,
        stopping: None,
        shown: None,
    };
    let left = watch.until_left().await;
    let Watch { follower, fold, face, .. } = watch;
    face.close();
    Ok(Followed { left: left?, client: follower.client, fold })
}

struct Watch<'a> {
    follower: Follower<'a>,
    session: SessionId,
    fold: Fold,
    face: Face,
    outlives: bool,
    until: Until,
    /// Whether all that was stored has been seen: before that nobody knows who is at work.
    caught_up: bool,
    leaving: Option<Instant>,
    stopping: Option<Instant>,
    /// The request on the screen, and since when it is there.
    shown: Option<(stead_core::id::PermissionId, Instant)>,
}

impl Watch<'_> {
    async fn until_left(&mut self) -> Result<Left, Failure> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let mut tick = tokio::time::interval(TICK);
        let mut keys = self.face.is_live().then(Keys::new);
        loop {
            tokio::select! {
                step = self.follower.next() => self.step(step?).await?,
                key = next_key(&mut keys) => {
                    if let Some(left) = self.key(key).await? {
                        return Ok(left);
                    }
                }
                _ = interrupt.recv() => {
                    if let Some(left) = self.interrupt().await? {
                        return Ok(left);
                    }
                }
                _ = terminate.recv() => return Ok(Left::Leaving(Exit::TERMINATED)),
                _ = hangup.recv() => return Ok(Left::Leaving(Exit(129))),
                _ = tick.tick() => {
                    if let Some(left) = self.overdue() {
                        return Ok(left);
                    }
                    self.show()?;
                }
            }
            let is_over = match self.until {
                Until::Settled => self.fold.is_idle(),
                Until::Admitted => self.fold.is_admitted(),
            };
            if self.caught_up && is_over {
                return Ok(if self.stopping.is_some() { Left::Stopped } else { Left::Settled });
            }
        }
    }

    async fn step(&mut self, step: Step) -> Result<(), Failure> {
        match step {
            Step::Event(event) => {
                let known = self.fold.apply(&event);
                self.face.event(event)?;
                if !known {
                    self.look_again().await?;
                }
            }
            Step::Activity(path, activity) => {
                self.fold.activity(&path, activity);
                self.face.changed();
            }
            Step::Copying(path, files, bytes, of) => {
                self.fold.copying(&path, &render::copying(files, bytes, of));
                self.face.changed();
            }
            Step::CaughtUp => self.caught_up = true,
            Step::Restarted(after) => {
                self.caught_up = false;
                let line = format!("the engine had ended; a new one goes on after event {after}");
                self.face.tell(&line);
            }
            Step::End => {}
        }
        Ok(())
    }

    async fn look_again(&mut self) -> Result<(), Failure> {
        let client = &self.follower.client;
        let tree = client.tree(&self.session).await?;
        self.fold.reset(&tree, &client.tasks(&self.session).await?);
        Ok(())
    }

    async fn key(&mut self, key: Key) -> Result<Option<Left>, Failure> {
        match key {
            Key::Interrupt => return self.interrupt().await,
            Key::Suspend => self.face.suspend(),
            Key::Resized => self.face.changed(),
            Key::Answer(answer) => self.answer(answer).await?,
        }
        Ok(None)
    }

    /// Answers the request on the screen.
    async fn answer(&mut self, answer: Answer) -> Result<(), Failure> {
        let Some((id, since)) = self.shown else { return Ok(()) };
        if since.elapsed() < READ || !self.fold.permissions.contains_key(&id) {
            return Ok(());
        }
        let params = PermitParams { id, answer };
        match self.follower.client.permit(&self.session, &params).await {
            Ok(_) => self.face.notice(None),
            // Somebody else was faster, its turn ended, or the engine is going: events will tell.
            Err(refusal) => self.face.notice(Some(&refusal.line)),
        }
        Ok(())
    }

    /// Ctrl-C: the first leaves after a moment, the second stops all turns, the third leaves now.
    async fn interrupt(&mut self) -> Result<Option<Left>, Failure> {
        if self.stopping.is_some() || !self.outlives {
            return Ok(Some(Left::Leaving(Exit::INTERRUPTED)));
        }
        if self.leaving.take().is_none() {
            self.leaving = Some(Instant::now() + SECOND);
            self.face.notice(Some("leaving; Ctrl-C again now stops the agents instead"));
            return Ok(None);
        }
        self.stopping = Some(Instant::now() + STOPPING);
        self.face.notice(Some("stopping the agents"));
        for path in self.fold.to_stop() {
            let params = InterruptParams { target: path.to_string() };
            match self.follower.client.interrupt(&self.session, &params).await {
                Ok(_) => {}
                Err(refusal) if refusal.kind == RefusalKind::Unavailable => break,
                Err(refusal) => self.face.tell(&refusal.line),
            }
        }
        Ok(None)
    }

    fn overdue(&self) -> Option<Left> {
        let over = |deadline: Option<Instant>| deadline.is_some_and(|d| Instant::now() >= d);
        (over(self.leaving) || over(self.stopping)).then_some(Left::Leaving(Exit::INTERRUPTED))
    }

    fn show(&mut self) -> Result<(), Failure> {
        self.face.draw(&self.fold, self.outlives)?;
        let first = self.fold.permissions.keys().next().copied();
        if self.shown.map(|(id, _)| id) != first {
            self.shown = first.map(|id| (id, Instant::now()));
        }
        Ok(())
    }
}

async fn next_key(keys: &mut Option<Keys>) -> Key {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}
