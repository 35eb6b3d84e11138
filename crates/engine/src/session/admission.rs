//! Admission: what a reserved agent needs is made beside the actor; then it is published, or
//! refused and nothing of it remains.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use stead_agent::{Answering, Done};
use stead_copies::{Admitted, Request};
use stead_core::delegated::{Admission, AdmittedCopy, Delegated};
use stead_core::id::{TaskId, TurnId};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::roster::Agent;
use stead_core::session::{Command, Outcomes};
use stead_files::{Progress, Watch};
use stead_place::Place;
use stead_store::Body;
use tokio::sync::broadcast;

use super::actor::{Actor, Shared};
use super::commit::now;
use super::conversation::body_text;
use super::hooks::{Cancel, Judged, Subject, noted};
use super::message::{Message, Published, Work};
use super::tools::told_path;
use crate::api::{Activity, InterruptResponse};
use crate::copies::unmade;
use crate::forget::forget_roots_of;
use crate::timing;

/// What a reserved agent needs is there.
#[derive(Debug)]
pub(crate) struct Ready {
    /// What was made for it.
    admission: Admission,
    /// What its start and prompt hooks added, oldest first.
    notes: Vec<Body>,
}

/// A reservation whose agent is being made ready.
pub(super) struct Reserved {
    /// The turn that asked for it; none: the person did.
    pub(super) turn: Option<TurnId>,
    asked: Instant,
    /// Who waits to hear its address.
    answer: Option<Answering<Done>>,
    /// Work on it stops soon after this becomes true.
    cancel: Arc<AtomicBool>,
}

impl Reserved {
    /// By a turn that waits for the answer.
    pub(super) fn by(turn: TurnId, asked: Instant, answer: Answering<Done>) -> Self {
        Self { turn: Some(turn), asked, answer: Some(answer), cancel: Arc::default() }
    }

    fn by_the_person() -> Self {
        Self { turn: None, asked: Instant::now(), answer: None, cancel: Arc::default() }
    }

    /// Nobody wants it any more: it is refused as soon as the work on it has stopped.
    pub(super) fn give_up(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }
}

impl Actor {
    /// Makes ready what a reserved agent needs: its copies if it has a layout of its own, a look at
    /// its directory and its driver, and what its hooks say.
    pub(super) fn prepare(&mut self, path: &AgentPath) {
        let roster = &self.state.branch.roster;
        let Some(agent) = roster.at(path).filter(|agent| !agent.is_published()).cloned() else {
            return;
        };
        let request = self.own_task(&agent).and_then(|own| {
            Some(Request {
                session: self.session.clone(),
                task: own.task,
                at: now(),
                primary: own.roots.first()?.slot.clone(),
                roots: own.roots.clone(),
            })
        });
        let reserved = self.reserved.entry(path.clone()).or_insert_with(Reserved::by_the_person);
        let cancel = reserved.cancel.clone();
        let (shared, sender) = (self.shared.clone(), self.handle.sender.clone());
        let published = self.handle.published.clone();
        let (path, session) = (path.clone(), self.session.clone());
        let task = request.as_ref().map(|request| request.task);
        let subject = self.subject(&agent);
        tokio::task::spawn_blocking(move || {
            let outcome = make_ready(&shared, &agent, request, &cancel, &published)
                .and_then(|admission| ask_hooks(&shared, &agent, subject, admission, &cancel));
            let made = task.filter(|_| outcome.is_ok());
            let _ = sender.blocking_send(Message::Prepared { path, outcome });
            // The agent begins while the disk gets what it works in.
            if let Some(task) = made
                && let Err(error) = stead_copies::flush(&shared.copies, &session, task)
            {
                tracing::error!(%session, %task, %error, "copies are not on the disk");
            }
        });
    }

    /// The task that `agent` was reserved for, if it has one of its own.
    fn own_task(&self, agent: &Agent) -> Option<&Delegated> {
        let task = self.state.world.delegated.get(&agent.task?)?;
        (task.owner == agent.path).then_some(task)
    }

    /// A reserved agent is ready or cannot be: publish it, or refuse it and free its path.
    pub(super) fn prepared(
        &mut self,
        path: &AgentPath,
        outcome: Result<Ready, Refusal>,
        work: &mut Vec<Work>,
    ) {
        let Some(reserved) = self.reserved.get(path) else { return };
        let made = self.state.branch.roster.at(path).and_then(|agent| self.own_task(agent));
        let made = made.map(|own| own.task);
        let given_up = reserved.cancel.load(Ordering::Relaxed);
        let outcome = if given_up { Err(stopped()) } else { outcome };
        let outcome = outcome.and_then(|ready| {
            self.check_open()?;
            match reserved.turn {
                Some(turn) if !self.live.contains_key(&turn) => {
                    Err(Refusal::new(RefusalKind::WrongState, "the spawning turn has ended"))
                }
                _ => Ok(ready),
            }
        });
        let path = path.clone();
        let (command, refusal) = match outcome {
            Ok(Ready { admission, notes }) => {
                work.extend(notes.into_iter().map(|note| noted(&path, note)));
                (Command::Publish { path: path.clone(), admission }, None)
            }
            Err(refusal) => {
                let reason = match &refusal.hint {
                    Some(hint) => format!("{} ({hint})", refusal.line),
                    None => refusal.line.clone(),
                };
                (Command::Refuse { path: path.clone(), reason }, Some(refusal))
            }
        };
        let then = Box::new(move |actor: &mut Self, stored: Result<Outcomes, Refusal>| {
            let Some(reserved) = actor.reserved.remove(&path) else { return };
            let told = match refusal {
                Some(refusal) => Err(refusal),
                None => stored,
            };
            if let (Err(_), Some(task)) = (&told, made) {
                actor.withdraw(task);
            }
            if told.is_err() && path.is_root() {
                actor.forget_roots();
            }
            timing::took("spawn", reserved.asked);
            if let Some(answer) = reserved.answer {
                let _ = answer.send(told.map(|_| told_path(&path)));
            }
        });
        work.push(Work::new(command, then));
    }

    /// Removes copies that were made and not admitted. What it leaves is removed by the next
    /// engine: nothing in the log names it.
    fn withdraw(&self, task: TaskId) {
        let (shared, session) = (self.shared.clone(), self.session.clone());
        tokio::task::spawn_blocking(move || {
            if let Err(error) = stead_copies::withdraw(&shared.copies, &session, task) {
                tracing::warn!(%session, %task, %error, "copies of a refused task are left");
            }
        });
    }

    /// The session never came to be: what only it has selected is no root any more.
    fn forget_roots(&self) {
        let (shared, session) = (self.shared.clone(), self.session.clone());
        tokio::task::spawn_blocking(move || {
            if let Err(error) = forget_roots_of(&shared, &session) {
                tracing::warn!(%session, %error, "the roots of a refused session are left");
            }
        });
    }

    /// Removes what an engine that died made and did not admit.
    pub(super) async fn withdraw_unknown(&self) {
        let (shared, session) = (self.shared.clone(), self.session.clone());
        let known: Vec<TaskId> = self.state.world.delegated.keys().copied().collect();
        let removed = tokio::task::spawn_blocking(move || {
            stead_copies::withdraw_others(&shared.copies, &session, &known)
        });
        if let Ok(Err(error)) = removed.await {
            tracing::warn!(session = %self.session, %error, "copies of unknown tasks are left");
        }
    }

    /// The person stops a reservation that is being made ready; none: there is none at `target`.
    pub(super) fn stop_reserved(&self, target: &str) -> Option<InterruptResponse> {
        let path = AgentPath::resolve(&AgentPath::root(), target).ok()?;
        self.reserved.get(&path)?.give_up();
        Some(InterruptResponse { path, was: Activity::Preparing })
    }
}

fn stopped() -> Refusal {
    Refusal::new(RefusalKind::WrongState, "it was stopped while it was being made ready")
}

fn make_ready(
    shared: &Shared,
    agent: &Agent,
    request: Option<Request>,
    cancel: &AtomicBool,
    published: &broadcast::Sender<Published>,
) -> Result<Admission, Refusal> {
    shared.drivers.check(shared.store.reader(), &agent.driver)?;
    let admission = match request {
        Some(request) => admit(shared, &agent.path, &request, cancel, published)?,
        None => Admission::default(),
    };
    let directory = admission.copies.first().map_or(&agent.directory, |copy| &copy.directory);
    Place::adopt(&shared.home.host(), directory, &agent.id)
        .map_err(|e| Refusal::new(RefusalKind::Failed, e.to_string()))?;
    Ok(admission)
}

/// Start hooks and prompt hooks, once, before anybody sees the agent (A4, A18).
fn ask_hooks(
    shared: &Shared,
    agent: &Agent,
    mut subject: Subject,
    admission: Admission,
    cancel: &Cancel,
) -> Result<Ready, Refusal> {
    let hooks = &shared.settings.hooks;
    if hooks.start.is_empty() && hooks.prompt.is_empty() {
        return Ok(Ready { admission, notes: Vec::new() });
    }
    if let Some(primary) = admission.copies.first() {
        subject.directory = primary.directory.clone();
    }
    let task = agent.message.map(|body| body_text(shared.store.reader(), body)).transpose()?;
    let Judged { refusal, notes } = subject.start(hooks, task.as_deref(), cancel);
    match refusal {
        Some(refusal) => Err(refusal),
        None => Ok(Ready { admission, notes }),
    }
}

fn admit(
    shared: &Shared,
    path: &AgentPath,
    request: &Request,
    cancel: &AtomicBool,
    published: &broadcast::Sender<Published>,
) -> Result<Admission, Refusal> {
    let report = |progress: Progress| {
        // Nobody looking on is no fault.
        let _ = published.send(Published::Copying(path.clone(), progress));
    };
    let watch = Watch { cancel: Some(cancel), report: Some(&report) };
    // Its bases and its depots are named once the copies are where they belong.
    let _keeping = shared.keeping.blocking_read();
    let Admitted { layout, slots } =
        stead_copies::admit(&shared.copies, &shared.git()?, request, watch)
            .map_err(|error| unmade(&error))?;
    let copies = layout
        .slots
        .iter()
        .map(|made| {
            let directory = shared.copies.copy(&layout.session, layout.task, &made.slot);
            let directory = stead_core::layout::AbsoluteDir::new(directory)
                .map_err(|e| Refusal::new(RefusalKind::Failed, e.to_string()))?;
            Ok(AdmittedCopy { slot: made.slot.clone(), directory, base: made.base })
        })
        .collect::<Result<_, Refusal>>()?;
    let notes = slots
        .iter()
        .flat_map(|made| made.notes.iter().map(move |note| format!("{}: {note}", made.slot)))
        .collect();
    Ok(Admission { copies, notes })
}
