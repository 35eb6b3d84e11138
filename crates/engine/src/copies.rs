//! Review, apply and discard: a person's, each judged, recorded, then done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stead_copies::{
    Apply, ApplyRequest, Base, Contents, CopyError, DiffOptions, Layout, MakeError, Outcome,
    Rescue, Side, Snapshot, Written, checkout, diff, freeze, unapplied,
};
use stead_core::delegated::{ApplyOutcome, PrivateCopy, Review};
use stead_core::id::{ApplyId, Digest, RequestId, SessionId, SlotName, TaskId};
use stead_core::layout::Root;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Command, Outcomes, State, applicable, reviewable};
use stead_files::{RelPath, Watch};
use stead_git::Git;
use stead_place::Which;

use crate::api::{
    ApplyParams, ApplyResponse, DiscardParams, DiscardResponse, ReviewParams, ReviewResponse,
};
use crate::applies::{finish_recorded, give_up_of};
use crate::engine::Engine;
use crate::session::{Handle, Shared, now};
use crate::shown;
use crate::unrecorded::{self, Ended};

/// How often the end of an apply is tried to be stored, and how long between.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(200);

impl Engine {
    /// Freezes a copy, shows it against its base and records that it was shown.
    pub(crate) async fn review(
        &self,
        session: &SessionId,
        task: TaskId,
        params: ReviewParams,
    ) -> Result<ReviewResponse, Refusal> {
        let handle = self.session(session).await?;
        unrecorded::settle(&self.shared, &handle, session).await?;
        let slot = params.slot;
        let wanted = slot.clone();
        let (copy, since) = handle
            .look(move |state| Ok((reviewable(state, task, &wanted)?.clone(), state.tip)))
            .await??;
        let cancel = Cancelled::default();
        // What is frozen is named by the log only when it is recorded.
        let _keeping = self.shared.keeping.read().await;
        let facts = Facts { shared: self.shared.clone(), session: session.clone(), task, slot };
        let (seen, flag, base) = (facts.clone(), cancel.flag(), copy.base);
        let (review, response) =
            beside(move || seen.freeze(&base, params.most_lines, &flag)).await?;
        let Facts { slot, .. } = facts;
        let command = Command::Review { task, slot, review, since };
        handle.run(command, Vec::new(), None, None).await?;
        Ok(response)
    }

    /// Applies what was reviewed, whole or not at all. Begun, it is ended, whether or not anybody
    /// still waits for the answer.
    pub(crate) async fn apply(
        self: &Arc<Self>,
        session: &SessionId,
        task: TaskId,
        params: ApplyParams,
    ) -> Result<ApplyResponse, Refusal> {
        let (engine, session) = (self.clone(), session.clone());
        tokio::spawn(async move {
            let handle = engine.session(&session).await?;
            unrecorded::settle(&engine.shared, &handle, &session).await?;
            let _keeping = engine.shared.keeping.read().await;
            let facts = Facts { shared: engine.shared.clone(), session, task, slot: params.slot };
            facts.apply(&handle).await
        })
        .await
        .map_err(|e| Refusal::new(RefusalKind::Failed, e.to_string()))?
    }

    /// Moves copies to the trash, and releases what their places hold.
    pub(crate) async fn discard(
        &self,
        session: &SessionId,
        task: TaskId,
        params: DiscardParams,
    ) -> Result<DiscardResponse, Refusal> {
        let handle = self.session(session).await?;
        unrecorded::settle(&self.shared, &handle, session).await?;
        let command = Command::Discard { task, slot: params.slot };
        let Outcomes::Discarded(given_up) = handle.run(command, Vec::new(), None, None).await?
        else {
            return Ok(DiscardResponse { task, slots: Vec::new(), gone: Vec::new() });
        };
        let (shared, session) = (self.shared.clone(), session.clone());
        let (slots, gone) = beside(move || {
            let (mut moved, mut gone) = (Vec::new(), Vec::new());
            for slot in given_up {
                let was_there = to_trash(&shared, &session, task, &slot)?;
                if was_there { moved.push(slot) } else { gone.push(slot) }
            }
            Ok((moved, gone))
        })
        .await?;
        Ok(DiscardResponse { task, slots, gone })
    }
}

/// Moves one copy to the trash; false when it was removed by hand. What a killed engine did not
/// come to is done by the next.
pub(crate) fn to_trash(
    shared: &Shared,
    session: &SessionId,
    task: TaskId,
    slot: &SlotName,
) -> Result<bool, Refusal> {
    let copy = shared.copies.copy(session, task, slot);
    if let Err(error) = shared.home.places().release(&Which::At(copy)) {
        tracing::warn!(%session, %task, %slot, %error, "a discarded copy holds its place still");
    }
    stead_copies::discard(&shared.copies, session, task, Some(slot), now())
        .map_err(|e| Refusal::new(RefusalKind::Storage, e.to_string()))
        .and_then(|trashed| {
            give_up_of(&shared.copies, session, task, slot)?;
            Ok(trashed.is_some())
        })
}

/// Why a copy that was applied holds more than what was; nothing is recorded.
pub(crate) async fn holds_more(
    shared: &Arc<Shared>,
    session: &SessionId,
    task: TaskId,
    slot: &SlotName,
    copy: &PrivateCopy,
) -> Result<(), String> {
    let (shared, session, slot) = (shared.clone(), session.clone(), slot.clone());
    let base = copy.base;
    let more = beside(move || Facts { shared, session, task, slot }.more_than(&base));
    match more.await {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(why),
        Err(refusal) => Err(refusal.line),
    }
}

/// Which copy.
#[derive(Clone)]
struct Facts {
    shared: Arc<Shared>,
    session: SessionId,
    task: TaskId,
    slot: SlotName,
}

impl Facts {
    /// The layout, its slot leading to the folder that the person last bound the root to.
    fn layout(&self, git: &Git) -> Result<Layout, Refusal> {
        let layout = Layout::load(&self.shared.copies, &self.session, self.task);
        let mut layout = layout.map_err(|error| unusable(&error))?.ok_or_else(|| {
            let line = format!("the copies of task {} are gone", self.task);
            Refusal::new(RefusalKind::NotFound, line)
                .hint("`stead doctor` says what this home holds")
        })?;
        for slot in layout.slots.iter_mut().filter(|slot| slot.slot == self.slot) {
            if let Some((directory, identity)) = self.shared.registry.identity(&slot.root)? {
                *slot = slot.clone().bound_to(git, &directory, identity).map_err(unreadable)?;
            }
        }
        Ok(layout)
    }

    fn freeze(
        &self,
        base: &Digest,
        most_lines: Option<usize>,
        cancel: &AtomicBool,
    ) -> Result<(Review, ReviewResponse), Refusal> {
        let (home, git) = (&self.shared.copies, self.shared.git()?);
        let layout = self.layout(&git)?;
        let slot = layout.slot(&self.slot).ok_or_else(|| unreadable("the layout lost a slot"))?;
        let watch = Watch { cancel: Some(cancel), report: None };
        let snapshot =
            freeze(home, &git, &layout, &self.slot, base, watch).map_err(|error| unmade(&error))?;
        let old = Base::load(home, base).map_err(unreadable)?;
        let checkout = checkout(&git, slot).map_err(|refused| refused.refusal())?;
        let shown =
            stead_copies::Review::new(home, &layout, &self.slot, &old, &snapshot, checkout.clone())
                .map_err(unreadable)?;
        let contents = Contents::of(home, &git, &slot.root, &old).map_err(unreadable)?;
        let mut read = |side: Side, path: &RelPath| {
            let manifest = match side {
                Side::Before => &old.manifest,
                Side::After => &snapshot.manifest,
            };
            let bytes = manifest.get(path).map(|entry| contents.read(entry)).transpose();
            bytes.map_err(std::io::Error::other)
        };
        let all = format!("stead task review {} {} --whole", self.task, self.slot);
        let options = DiffOptions { context: 3, for_terminal: true, most_lines, all: &all };
        let mut text = Vec::new();
        let done = diff(&shown.changes, &mut read, &options, &mut text).map_err(unreadable)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let response = shown::review(self.task, &self.slot, &shown, text, done.left_out > 0);
        let review = Review { snapshot: snapshot.digest, base: *base, checkout };
        Ok((review, response))
    }

    /// What the copy holds that was not applied and would be lost with it; none: nothing.
    fn more_than(&self, base: &Digest) -> Result<Option<String>, Refusal> {
        let (_, response) = self.freeze(base, Some(0), &AtomicBool::new(false))?;
        let changes = response.changes.len();
        if changes > 0 {
            return Ok(Some(format!("{changes} changes in it were not applied")));
        }
        if let Some((folder, files)) = response.beside.first() {
            return Ok(Some(format!(
                "files that no apply brings changed in it: {files} in {folder}"
            )));
        }
        let (home, git) = (&self.shared.copies, self.shared.git()?);
        let old = Base::load(home, base).map_err(unreadable)?;
        let more = unapplied(home, &git, &self.layout(&git)?, &self.slot, &old);
        Ok(more.map_err(unreadable)?.map(|more| more.to_string()))
    }

    async fn apply(self, handle: &Handle) -> Result<ApplyResponse, Refusal> {
        let (task, slot) = (self.task, self.slot.clone());
        let wanted = slot.clone();
        // Looked at before it is begun, so that a refusal begins nothing.
        let root = handle.look(move |state| applicable_root(state, task, &wanted)).await??;
        let shared = self.shared.clone();
        let bound = beside(move || Ok((shared.registry.identity(&root.id)?, root.directory)));
        let destination = match bound.await? {
            (Some((bound, _)), _) => bound,
            (None, admitted) => admitted,
        };
        let command = Command::BeginApply { task, slot: slot.clone() };
        let respond = |outcome, before| {
            let (slot, destination) = (slot.clone(), destination.clone());
            Ok(ApplyResponse { task, slot, destination, outcome, before })
        };
        let (apply, review) = match handle.run(command, Vec::new(), None, None).await? {
            Outcomes::Applying { apply, review } => (apply, review),
            Outcomes::AppliedBefore(outcome) => return respond(outcome, true),
            other => {
                let line = format!("an apply came to {other:?}");
                return Err(Refusal::new(RefusalKind::Failed, line));
            }
        };
        let facts = self.clone();
        let (outcome, written) = beside(move || Ok(facts.write(apply, &review))).await?;
        let (session, task) = (self.session.clone(), self.task);
        let ended = Ended { session, task, slot: self.slot.clone(), apply, outcome };
        let outcome = match record(handle, &ended).await {
            Ok(()) => {
                self.clear(written).await?;
                ended.outcome
            }
            Err(why) => self.take_back(handle, ended, written, &why).await?,
        };
        respond(outcome, false)
    }

    /// Removes what a recorded apply still holds.
    async fn clear(&self, written: Option<Written>) -> Result<(), Refusal> {
        let Some(written) = written else { return Ok(()) };
        let (session, task) = (&self.session, self.task);
        match beside(move || Ok(written.clear())).await? {
            Ok(cleared) if cleared.rescue.paths.is_empty() => {}
            Ok(cleared) => {
                let folder = cleared.rescue.folder.map(|f| f.as_path().display().to_string());
                tracing::warn!(%session, %task, ?folder, "files written late were kept");
            }
            // The journal is still there, and the next apply or engine goes on with it.
            Err(error) => {
                tracing::warn!(%session, %task, %error, "an apply is not cleared yet");
            }
        }
        Ok(())
    }

    /// Takes back what was written and cannot be recorded: nobody was promised anything yet. What
    /// then cannot be recorded either is kept, and told as it is.
    async fn take_back(
        &self,
        handle: &Handle,
        mut ended: Ended,
        written: Option<Written>,
        why: &Refusal,
    ) -> Result<ApplyOutcome, Refusal> {
        if let Some(written) = written {
            let (task, slot, apply) = (self.task, self.slot.clone(), ended.apply);
            let has = move |state: &State| {
                let own = state.world.delegated.get(&task);
                own.and_then(|own| own.copies.get(&slot)).is_some_and(|c| c.applied == Some(apply))
            };
            // A store that failed may have kept it nevertheless; only the log can tell.
            if handle.look(has).await? {
                self.clear(Some(written)).await?;
                return Ok(ended.outcome);
            }
            let why = format!("how it ended could not be recorded: {}", why.line);
            ended.outcome = beside(move || Ok(taken_back(written, why))).await?;
        }
        match record(handle, &ended).await {
            Ok(()) => Ok(ended.outcome),
            Err(why) => Err(unrecorded::keep(&self.shared, handle, ended, &why)),
        }
    }

    /// Checks and writes; what is written stays held until its outcome is stored.
    fn write(&self, apply: ApplyId, review: &Review) -> (ApplyOutcome, Option<Written>) {
        match self.try_write(apply, review) {
            Ok(ended) => ended,
            Err(refusal) => {
                let outcome = ApplyOutcome::Refused {
                    reason: refusal.line,
                    conflict: false,
                    paths: Vec::new(),
                    half_way: false,
                };
                (outcome, None)
            }
        }
    }

    fn try_write(
        &self,
        apply: ApplyId,
        review: &Review,
    ) -> Result<(ApplyOutcome, Option<Written>), Refusal> {
        let (home, git) = (&self.shared.copies, self.shared.git()?);
        let layout = self.layout(&git)?;
        let base = Base::load(home, &review.base).map_err(unreadable)?;
        let snapshot = Snapshot::load(home, &review.snapshot).map_err(unreadable)?;
        let shown = stead_copies::Review::new(
            home,
            &layout,
            &self.slot,
            &base,
            &snapshot,
            review.checkout.clone(),
        )
        .map_err(unreadable)?;
        if let Some(found) = layout.slot(&self.slot) {
            finish_recorded(&self.shared.home, home, &found.root)?;
        }
        let request = ApplyRequest {
            home,
            git: &git,
            apply: &name_of(&self.session, apply)?,
            layout: &layout,
            slot: &self.slot,
            base: &base,
            snapshot: &snapshot,
            review: &shown,
        };
        let checked = match Apply::check(&request) {
            Ok(checked) => checked,
            Err(refused) => return Ok((shown::refused(&refused), None)),
        };
        // Before anything is written: afterwards nothing may fail but the record.
        let next = base.after(&snapshot).and_then(|next| next.save(home)).map_err(unreadable)?;
        Ok(match checked.write() {
            Outcome::Written(written) => {
                let paths = u64::try_from(written.paths().count()).unwrap_or(u64::MAX);
                (ApplyOutcome::Applied { base: next, paths }, Some(written))
            }
            Outcome::RolledBack { cause, rescue } => (shown::rolled_back(&cause, &rescue), None),
            Outcome::RecoveryNeeded { journal, cause, failed } => {
                let paths = cause.edited().iter().map(ToString::to_string).collect();
                let cause = format!("{cause}; going back failed: {failed}");
                let rescue = journal.display().to_string();
                (ApplyOutcome::RecoveryNeeded { cause, paths, rescue }, None)
            }
        })
    }
}

/// Stores how an apply ended, trying a few times.
async fn record(handle: &Handle, ended: &Ended) -> Result<(), Refusal> {
    let mut tries = 0;
    loop {
        match ended.record(handle).await {
            Err(refusal) if refusal.kind == RefusalKind::Storage && tries < TRIES => {
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            told => return told,
        }
    }
}

/// Leads back what was written, because of `why`.
fn taken_back(written: Written, why: String) -> ApplyOutcome {
    match written.undo() {
        Outcome::RolledBack { rescue, .. } => shown::led_back(&why, &rescue),
        Outcome::RecoveryNeeded { journal, failed, .. } => {
            let cause = format!("{why}; going back failed: {failed}");
            let (paths, rescue) = (Vec::new(), journal.display().to_string());
            ApplyOutcome::RecoveryNeeded { cause, paths, rescue }
        }
        // As its documentation has it, never.
        Outcome::Written(_) => shown::led_back(&why, &Rescue::default()),
    }
}

fn applicable_root(state: &State, task: TaskId, slot: &SlotName) -> Result<Root, Refusal> {
    let _: Result<&Review, &ApplyOutcome> = applicable(state, task, slot)?;
    let delegated = state.world.delegated.get(&task);
    delegated.and_then(|own| own.root(slot)).cloned().ok_or_else(|| {
        Refusal::new(RefusalKind::NotFound, format!("task {task} has no slot {slot}"))
    })
}

/// The name of an apply beside the log: in journals, in `index.lock`, in names of staged files.
pub(crate) fn name_of(session: &SessionId, apply: ApplyId) -> Result<RequestId, Refusal> {
    let digest = stead_store::Body::new(format!("{session} {apply}")).digest().to_string();
    let name: String = digest.chars().take(32).collect();
    RequestId::parse(&name).map_err(|e| Refusal::new(RefusalKind::Failed, e.to_string()))
}

fn unreadable(error: impl std::fmt::Display) -> Refusal {
    Refusal::new(RefusalKind::Unreadable, error.to_string())
        .hint("`stead doctor` looks at the home")
}

/// Why copies were not made.
pub(crate) fn unmade(error: &MakeError) -> Refusal {
    let kind = match error {
        MakeError::Refused(_) => RefusalKind::WrongState,
        MakeError::Failed(_) => RefusalKind::Storage,
    };
    let refusal = Refusal::new(kind, error.to_string());
    match error.hint() {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}

/// Why a task's copies cannot be used.
pub(crate) fn unusable(error: &CopyError) -> Refusal {
    match error.hint() {
        Some(hint) => Refusal::new(RefusalKind::Unreadable, error.to_string()).hint(hint),
        None => unreadable(error),
    }
}

/// Runs blocking work beside the runtime.
pub(crate) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| Refusal::new(RefusalKind::Failed, e.to_string()))?
}

/// Tells work to stop when nobody waits for it any more.
#[derive(Default)]
struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
