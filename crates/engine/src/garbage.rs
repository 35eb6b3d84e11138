//! Collecting garbage: a person's command, and the only thing that removes what a home keeps.
//!
//! What the log, a layout, the trash or a journal names stays; what cannot be read may name
//! anything, so that it keeps all. Bodies and depots are looked at only while nothing is being
//! copied, reviewed or applied.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use stead_copies::{
    Found, FoundTask, clear_staging, empty_trash, forget_depot, forget_layout, found, live_blobs,
};
use stead_core::delegated::{ApplyOutcome, PrivateCopy};
use stead_core::event::{Event, WorldEvent};
use stead_core::id::{Digest, RootId, SessionId, SlotName, TaskId, Timestamp};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{State, idle_layout, replay};
use stead_store::{Garbage, Reader, Store, Sweep};

use crate::api::{
    CopyState, DiscardParams, GarbageKind, GarbageParams, GarbageResponse, KeptView, RemovedView,
    RootState, RootView,
};
use crate::copies::{beside, holds_more};
use crate::engine::Engine;
use crate::home::Home;
use crate::session::{Shared, copy_state, now};

/// How long something stays in the trash.
const IN_TRASH: Duration = Duration::from_hours(30 * 24);
/// How old a body must be that nothing names.
const OLD: Duration = IN_TRASH;

impl Engine {
    /// Collects what nothing needs any more.
    pub(crate) async fn collect(&self, params: GarbageParams) -> Result<GarbageResponse, Refusal> {
        // What a damaged log names is not known, and may be anything.
        if let Some(damage) = self.shared.read(Reader::damage).await?.first() {
            let line = format!("nothing is collected: the database is damaged: {damage}");
            return Err(Refusal::new(RefusalKind::Unreadable, line)
                .hint("`stead doctor` shows what is damaged"));
        }
        let mut told = GarbageResponse { dry_run: params.dry_run, ..GarbageResponse::default() };
        if params.copies {
            self.collect_copies(&mut told).await?;
        }
        let shared = self.shared.clone();
        let quiet = shared.keeping.clone().try_write_owned();
        beside(move || {
            let (old, half_made) = ("what is in it", "what was left half made");
            let done = trash(&shared, &mut told);
            told.unless_done(GarbageKind::Trash, old, done);
            let done = staging(&shared, &mut told);
            told.unless_done(GarbageKind::Staging, half_made, done);
            match quiet {
                Ok(_quiet) => {
                    layouts(&shared, &mut told)?;
                    unnamed(&shared, &mut told)?;
                    gone_roots(&shared, &mut told)?;
                }
                Err(_) => told.keep(
                    GarbageKind::Bodies,
                    "depots and bodies",
                    "copies are being made, reviewed or applied just now: try again later",
                ),
            }
            Ok(told)
        })
        .await
    }

    /// Moves copies to the trash that hold nothing but what was applied, or whose session is gone.
    async fn collect_copies(&self, told: &mut GarbageResponse) -> Result<(), Refusal> {
        let shared = self.shared.clone();
        let tasks = beside(move || stead_copies::tasks(&shared.copies).map_err(|e| failed(&e)));
        for FoundTask { session, task, layout, .. } in tasks.await? {
            let whole = format!("task {task} of {session}");
            if layout.is_err() {
                told.keep(GarbageKind::Copy, whole, "its layout cannot be read");
                continue;
            }
            let id = session.clone();
            if self.shared.read(move |reader| reader.tip(&id)).await?.is_none() {
                self.collect_stray(&session, task, told).await?;
                continue;
            }
            let handle = self.session(&session).await?;
            let slots: Vec<(SlotName, Result<PrivateCopy, &'static str>)> =
                handle.look(move |state| judged(state, task)).await?;
            for (slot, judged) in slots {
                let name = format!("{whole}, {slot}");
                let judged = match judged {
                    Ok(copy) => holds_more(&self.shared, &session, task, &slot, &copy).await,
                    Err(why) => Err(why.to_owned()),
                };
                match judged {
                    Ok(()) => {
                        if !told.dry_run {
                            let params = DiscardParams { slot: Some(slot) };
                            self.discard(&session, task, params).await?;
                        }
                        told.remove(GarbageKind::Copy, name, None);
                    }
                    Err(why) => told.keep(GarbageKind::Copy, name, why),
                }
            }
        }
        Ok(())
    }

    /// A copy whose session is gone.
    async fn collect_stray(
        &self,
        session: &SessionId,
        task: TaskId,
        told: &mut GarbageResponse,
    ) -> Result<(), Refusal> {
        if !told.dry_run {
            let (shared, session) = (self.shared.clone(), session.clone());
            beside(move || {
                stead_copies::discard(&shared.copies, &session, task, None, now())
                    .map_err(|e| failed(&e))
            })
            .await?;
        }
        let name = format!("task {task} of {session}, which is gone");
        told.remove(GarbageKind::Copy, name, None);
        Ok(())
    }
}

/// The copies of a task that are there, and why one may not go, as far as the log knows.
fn judged(state: &State, task: TaskId) -> Vec<(SlotName, Result<PrivateCopy, &'static str>)> {
    let copies = state.world.delegated.get(&task).into_iter().flat_map(|own| &own.copies);
    let is_idle = idle_layout(state, task).is_ok();
    copies
        .filter(|(_, copy)| !copy.discarded)
        .map(|(slot, copy)| {
            let judged = match copy_state(copy) {
                CopyState::Applied if is_idle => Ok(copy.clone()),
                _ if !is_idle => Err("an agent still works in it"),
                _ => Err("it was not applied"),
            };
            (slot.clone(), judged)
        })
        .collect()
}

/// Empties what has been in the trash for long.
fn trash(shared: &Shared, told: &mut GarbageResponse) -> Result<(), Refusal> {
    let long = i64::try_from(IN_TRASH.as_millis()).unwrap_or(i64::MAX);
    let before = Timestamp(now().0.saturating_sub(long));
    let Found { trash, .. } = found(&shared.copies).map_err(|e| failed(&e))?;
    let gone = if told.dry_run {
        None
    } else {
        Some(empty_trash(&shared.copies, before).map_err(|e| failed(&e))?)
    };
    for (entry, bytes) in trash {
        let of = &entry.record;
        let slot = of.slot.as_ref().map(|slot| format!(", {slot}")).unwrap_or_default();
        let name = format!("task {} of {}{slot}", of.task, of.session);
        let goes = gone.as_ref().map_or(of.at < before, |gone| gone.contains(&entry));
        if goes {
            told.remove(GarbageKind::Trash, name, Some(bytes));
        } else {
            let came = match now().0.saturating_sub(of.at.0) / (24 * 60 * 60 * 1000) {
                ..=0 => "it came today".to_owned(),
                1 => "it came yesterday".to_owned(),
                days => format!("it came {days} days ago"),
            };
            let why = format!("it goes after 30 days; {came}");
            told.kept.push(KeptView { kind: GarbageKind::Trash, name, bytes: Some(bytes), why });
        }
    }
    Ok(())
}

/// Removes what killed processes left half made.
fn staging(shared: &Shared, told: &mut GarbageResponse) -> Result<(), Refusal> {
    let staged = stead_copies::staged(&shared.copies).map_err(|e| failed(&e))?;
    if !told.dry_run {
        clear_staging(&shared.copies).map_err(|e| failed(&e))?;
    }
    for folder in staged {
        let name = folder.path.display().to_string();
        if folder.is_alive {
            told.keep(GarbageKind::Staging, name, "a living process is at work in it");
        } else {
            told.remove(GarbageKind::Staging, name, None);
        }
    }
    Ok(())
}

/// Removes what is left of tasks whose copies are all gone for good, so that it names no depot.
fn layouts(shared: &Shared, told: &mut GarbageResponse) -> Result<(), Refusal> {
    let tasks = stead_copies::tasks(&shared.copies).map_err(|e| failed(&e))?;
    for FoundTask { session, task, layout, missing, .. } in tasks {
        let are_gone = layout.is_ok_and(|layout| layout.slots.len() == missing.len());
        if !are_gone || told.dry_run || !were_discarded(shared, &session, task)? {
            continue;
        }
        if forget_layout(&shared.copies, &session, task).map_err(|e| failed(&e))? {
            told.remove(GarbageKind::Layout, format!("task {task} of {session}"), None);
        }
    }
    Ok(())
}

/// Whether the log has all copies of a task as discarded.
fn were_discarded(shared: &Shared, session: &SessionId, task: TaskId) -> Result<bool, Refusal> {
    let records = shared.store.reader().read(session, 1, usize::MAX).map_err(|e| e.refusal())?;
    let log: Vec<_> = records.into_iter().map(|record| record.envelope).collect();
    let state = replay(&log);
    let own = state.world.delegated.get(&task);
    Ok(own.is_some_and(|own| own.copies.values().all(|copy| copy.discarded)))
}

/// Removes depots and bodies that nothing names.
fn unnamed(shared: &Arc<Shared>, told: &mut GarbageResponse) -> Result<(), Refusal> {
    let Found { tasks, depots, .. } = found(&shared.copies).map_err(|e| failed(&e))?;
    let journals = stead_copies::leftovers(&shared.copies).map_err(|e| failed(&e))?;
    let is_unknown = tasks.iter().any(|task| task.layout.is_err())
        || journals.iter().any(|left| left.header.is_err());
    let named = match named(shared.store.reader()) {
        Ok(named) if !is_unknown => named,
        Ok(_) => {
            let why = "a layout or a journal cannot be read, and may name any of them";
            told.keep(GarbageKind::Bodies, "depots and bodies", why);
            return Ok(());
        }
        Err(refusal) => {
            let why = format!("the log cannot be read: {}", refusal.line);
            told.keep(GarbageKind::Bodies, "depots and bodies", why);
            return Ok(());
        }
    };
    for depot in depots {
        let is_free = depot.named_by == 0 && !named.roots.contains(&depot.root);
        let name = depot.root.to_string();
        let goes = is_free
            && (told.dry_run
                || forget_depot(&shared.copies, &depot.root, &named.roots)
                    .map_err(|e| failed(&e))?);
        if goes {
            told.remove(GarbageKind::Depot, name, Some(depot.bytes));
        } else {
            let (kind, bytes) = (GarbageKind::Depot, Some(depot.bytes));
            let why = "copies, the trash or a review need it".to_owned();
            told.kept.push(KeptView { kind, name, bytes, why });
        }
    }
    let snapshots = journals.iter().flat_map(|left| left.header.iter().map(|h| h.snapshot));
    let digests: Vec<Digest> = named.digests.into_iter().chain(snapshots).collect();
    let live = live_blobs(&shared.copies, digests).map_err(|e| failed(&e))?;
    let sweep = if told.dry_run { Sweep::List } else { Sweep::Remove };
    let gone = shared.store.collect(sweep, OLD, |digest| live.contains(digest));
    let gone: Vec<Garbage> = gone.map_err(|e| e.refusal())?;
    if !gone.is_empty() {
        let bytes = gone.iter().fold(0_u64, |sum, one| sum.saturating_add(one.bytes));
        told.remove(GarbageKind::Bodies, format!("{} without an owner", gone.len()), Some(bytes));
    }
    Ok(())
}

/// Forgets the roots whose folders are gone and of which no copy is left outside the trash.
fn gone_roots(shared: &Shared, told: &mut GarbageResponse) -> Result<(), Refusal> {
    let mut needed = named(shared.store.reader())?.copied;
    for found in stead_copies::tasks(&shared.copies).map_err(|e| failed(&e))? {
        let Ok(layout) = found.layout else {
            let why = "a layout cannot be read, and may name any";
            told.keep(GarbageKind::Root, "roots whose folders are gone", why);
            return Ok(());
        };
        let there = layout.slots.into_iter().filter(|slot| !found.missing.contains(&slot.slot));
        needed.extend(there.map(|slot| slot.root));
    }
    let goes = |root: &RootView| root.state != RootState::Same && !needed.contains(&root.id);
    let forgotten = if told.dry_run {
        shared.registry.list()?.into_iter().filter(goes).collect()
    } else {
        shared.registry.forget(goes)?
    };
    for root in forgotten {
        let name = format!("{} of {}", root.id, root.directory.as_path().display());
        told.remove(GarbageKind::Root, name, None);
    }
    Ok(())
}

/// The bodies that copies keep beside the log, without the engine.
///
/// # Errors
/// The log or the home cannot be read.
pub fn kept_bodies(home: &Home) -> Result<BTreeSet<Digest>, Refusal> {
    let named = named(&Store::open_reader(home.data()).map_err(|e| e.refusal())?)?;
    live_blobs(&stead_copies::Home::new(home.data()), named.digests).map_err(|e| failed(&e))
}

/// What the log names of copies.
#[derive(Default)]
struct Named {
    /// Every base and snapshot.
    digests: BTreeSet<Digest>,
    /// The roots of copies that were not discarded, or may just be made.
    roots: BTreeSet<RootId>,
    /// Those of them whose copies were made.
    copied: BTreeSet<RootId>,
}

fn named(reader: &Reader) -> Result<Named, Refusal> {
    let mut named = Named::default();
    for summary in reader.sessions().map_err(|e| e.refusal())? {
        let records = reader.read(&summary.id, 1, usize::MAX).map_err(|e| e.refusal())?;
        let log: Vec<_> = records.into_iter().map(|record| record.envelope).collect();
        for envelope in &log {
            named.digests.extend(of_event(&envelope.event));
        }
        for own in replay(&log).world.delegated.into_values() {
            let is_kept = |slot: &SlotName| own.copies.get(slot).is_none_or(|copy| !copy.discarded);
            let roots = own.roots.iter().filter(|root| is_kept(&root.slot));
            let roots: Vec<RootId> = roots.map(|root| root.id.clone()).collect();
            if own.admitted {
                named.copied.extend(roots.iter().cloned());
            }
            named.roots.extend(roots);
        }
    }
    Ok(named)
}

/// The bases and snapshots that an event names.
fn of_event(event: &Event) -> Vec<Digest> {
    let Event::World(event) = event else { return Vec::new() };
    match event {
        WorldEvent::TaskAdmitted { copies, .. } => copies.iter().map(|copy| copy.base).collect(),
        WorldEvent::CopyReviewed { review, .. } => vec![review.base, review.snapshot],
        WorldEvent::ApplyBegun { snapshot, .. } | WorldEvent::Captured { snapshot, .. } => {
            vec![*snapshot]
        }
        WorldEvent::Restored { from, to, .. } => vec![*from, *to],
        WorldEvent::ApplyEnded { snapshot, outcome, .. } => match outcome {
            ApplyOutcome::Applied { base, .. } => vec![*snapshot, *base],
            _ => vec![*snapshot],
        },
        _ => Vec::new(),
    }
}

impl GarbageResponse {
    fn remove(&mut self, kind: GarbageKind, name: impl Into<String>, bytes: Option<u64>) {
        self.removed.push(RemovedView { kind, name: name.into(), bytes });
    }

    /// What one part could not do keeps no other part from its work.
    fn unless_done(&mut self, kind: GarbageKind, name: &str, done: Result<(), Refusal>) {
        if let Err(refusal) = done {
            self.keep(kind, name, refusal.line);
        }
    }

    fn keep(&mut self, kind: GarbageKind, name: impl Into<String>, why: impl Into<String>) {
        self.kept.push(KeptView { kind, name: name.into(), bytes: None, why: why.into() });
    }
}

fn failed(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(RefusalKind::Storage, error.to_string()).hint("`stead doctor` looks at the home")
}
