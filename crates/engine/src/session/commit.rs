//! Decide what waits, append once, then answer, publish and act.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use stead_core::event::{BranchEvent, Envelope, Event, Stream};
use stead_core::id::{SessionId, Timestamp, TurnId};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Decision, Evolved, Outcomes, State, decide, replay};
use stead_store::{Append, Body};
use tokio::sync::oneshot;

use super::actor::{Actor, Backlog, Shared};
use super::message::{Published, Then, Work};
use crate::timing;

/// A command that was decided on the working state.
struct Decided {
    outcome: Result<Outcomes, Refusal>,
    then: Then,
    again: Again,
}

/// What it takes to decide it once more.
struct Again {
    command: stead_core::session::Command,
    bodies: Vec<Body>,
    claims: Vec<SessionId>,
    request: Option<stead_core::id::RequestId>,
}

impl Actor {
    /// Commits all of `work`: each command is decided on the state that those before it leave,
    /// one append makes them durable together, and only then is anybody answered or woken. When
    /// the append fails the working state is thrown away, and each command is tried alone once.
    pub(super) async fn commit(&mut self, work: Vec<Work>) {
        let mut backlog: Backlog = work.into();
        while !backlog.is_empty() {
            let (decided, envelopes) = self.decide_batch(&mut backlog);
            let batch = self.batch(envelopes, &decided);
            match self.append(&batch).await {
                Ok(()) => self.conclude(decided, batch.events).await,
                Err(error) if decided.len() > 1 && !batch.events.is_empty() => {
                    self.reload(&error).await;
                    for item in decided {
                        self.commit_alone(item).await;
                    }
                }
                Err(error) => {
                    self.reload(&error).await;
                    for item in decided {
                        // What was refused stays refused; what was not stored failed.
                        let outcome = item.outcome.and_then(|_| Err(error.clone()));
                        (item.then)(self, outcome);
                    }
                }
            }
        }
    }

    async fn commit_alone(&mut self, item: Decided) {
        let Again { command, bodies, claims, request } = item.again;
        let work = Work { command, bodies, claims, request, then: item.then };
        let (decided, envelopes) = self.decide_batch(&mut Backlog::from([work]));
        let batch = self.batch(envelopes, &decided);
        match self.append(&batch).await {
            Ok(()) => self.conclude(decided, batch.events).await,
            Err(error) => {
                self.reload(&error).await;
                for item in decided {
                    let outcome = item.outcome.and_then(|_| Err(error.clone()));
                    (item.then)(self, outcome);
                }
            }
        }
    }

    /// Decides from the front of the backlog, evolving the state as it goes.
    fn decide_batch(&mut self, backlog: &mut Backlog) -> (Vec<Decided>, Vec<Envelope>) {
        let mut decided = Vec::with_capacity(backlog.len());
        let mut envelopes: Vec<Envelope> = Vec::with_capacity(backlog.len());
        while let Some(Work { command, bodies, claims, request, then }) = backlog.pop_front() {
            let again = Again { command: command.clone(), bodies, claims, request };
            let mut evolved = Evolved::Whole;
            let outcome = decide(&self.state, command).map(|Decision { events, answer }| {
                let at = now();
                for (number, planned) in events.into_iter().enumerate() {
                    let envelope = Envelope {
                        seq: self.state.next_seq(&planned.stream),
                        stream: planned.stream,
                        position: self.state.tip + 1,
                        at,
                        request: again.request.clone().filter(|_| number == 0),
                        event: planned.event,
                    };
                    evolved = self.state.evolve(&envelope);
                    envelopes.push(envelope);
                }
                answer
            });
            decided.push(Decided { outcome, then, again });
            if evolved == Evolved::Replay {
                // The branch changed: what waits is decided on the state after it.
                break;
            }
        }
        (decided, envelopes)
    }

    /// What the decided commands come to, as one append.
    fn batch(&self, events: Vec<Envelope>, decided: &[Decided]) -> Append {
        let accepted = || decided.iter().filter(|d| d.outcome.is_ok()).map(|d| &d.again);
        Append {
            session: self.session.clone(),
            expect: events.first().map_or(self.state.tip, |first| first.position - 1),
            events,
            bodies: accepted().flat_map(|a| a.bodies.iter().cloned()).collect(),
            claims: accepted().flat_map(|a| a.claims.iter().cloned()).collect(),
        }
    }

    /// Stores the batch, if there is anything in it.
    async fn append(&mut self, append: &Append) -> Result<(), Refusal> {
        if append.events.is_empty() {
            return Ok(());
        }
        let asked = Instant::now();
        let (done, stored) = oneshot::channel();
        self.shared.store.submit(append, move |outcome| {
            let _ = done.send(outcome);
        });
        match stored.await {
            Ok(Ok(_)) => {
                timing::took("append", asked);
                Ok(())
            }
            Ok(Err(error)) => Err(error.refusal()),
            Err(_) => Err(Refusal::new(RefusalKind::Storage, "the store has been closed")),
        }
    }

    async fn conclude(&mut self, decided: Vec<Decided>, envelopes: Vec<Envelope>) {
        let rewound = envelopes.iter().any(|e| {
            matches!(e.event, Event::World(stead_core::event::WorldEvent::Rewound { .. }))
        });
        if rewound {
            self.reload(&Refusal::new(RefusalKind::Unreadable, "the branch changed")).await;
        }
        for Decided { outcome, then, .. } in decided {
            then(self, outcome);
        }
        for envelope in envelopes {
            self.act(&envelope);
            if !self.is_watched() {
                continue;
            }
            let agent = match &envelope.stream {
                Stream::Conversation(id) => {
                    self.state.branch.roster.with_id(id).map(|a| a.path.clone())
                }
                Stream::Control => None,
            };
            self.publish(Published::Event(Arc::new(envelope), agent));
        }
    }

    /// Acts on a durable event. Everything here may happen again after a crash without harm, or
    /// is settled by recovery.
    fn act(&mut self, envelope: &Envelope) {
        let Event::Branch(event) = &envelope.event else { return };
        match event {
            BranchEvent::AgentReserved { path, .. } => self.prepare(path),
            BranchEvent::TurnStarted { path, .. } => {
                self.dispatch(path, TurnId(envelope.position), envelope.at);
            }
            BranchEvent::MailStored { to, kind, wake, .. } => self.wake(to, *kind, *wake),
            BranchEvent::PermissionSettled { id, answer } => {
                if let Some(waiting) = self.permissions.remove(id) {
                    let _ = waiting.send(*answer);
                }
            }
            _ => {}
        }
    }

    /// Reads the state anew from the log, after an append failed.
    async fn reload(&mut self, why: &Refusal) {
        tracing::debug!(session = %self.session, why = %why.line, "the state is read anew");
        match load(&self.shared, &self.session).await {
            Ok(state) => self.state = state,
            Err(error) => {
                // The next append will be refused by the store, which compares positions.
                tracing::error!(session = %self.session, %error, "the log cannot be read");
            }
        }
    }
}

/// The state of a session as the log has it.
pub(crate) async fn load(shared: &Arc<Shared>, session: &SessionId) -> Result<State, Refusal> {
    let session = session.clone();
    let log = shared
        .read(move |reader| {
            let records = reader.read(&session, 1, usize::MAX)?;
            Ok(records.into_iter().map(|r| r.envelope).collect::<Vec<_>>())
        })
        .await?;
    Ok(replay(&log))
}

/// Now, in milliseconds since the epoch.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
