//! Everything that is checked before the first write at the destination (P1–P12).

use stead_core::id::{RequestId, SlotName};
use stead_core::layout::Access;
use stead_files::{Kind, Lock, RelPath, Stat, holder};
use stead_git::{Git, Index};

use super::conflict::{Conflict, mark_taken_back};
use super::destination::Destination;
use super::look::observe;
use super::plan::{Plan, Planner};
use super::refused::ApplyRefused;
use super::swap::is_astray;
use crate::bars::{Barred, barred};
use crate::changes::{Change, State, changes};
use crate::journal::{self, Header, Journal};
use crate::layout::{LAYOUT_VERSION, Slot};
use crate::review::digest;
use crate::{Base, Home, Layout, Review, Snapshot};

/// What is to be applied, and under which review.
#[derive(Debug, Clone, Copy)]
pub struct ApplyRequest<'a> {
    /// The home.
    pub home: &'a Home,
    /// Whose Git is asked.
    pub git: &'a Git,
    /// The request, which names the apply: in the journal, in `index.lock` and in the names of
    /// what is staged. Never used for two applies.
    pub apply: &'a RequestId,
    /// The task's layout.
    pub layout: &'a Layout,
    /// The slot of the root.
    pub slot: &'a SlotName,
    /// What the copy was made from, or what was applied last.
    pub base: &'a Base,
    /// What was reviewed.
    pub snapshot: &'a Snapshot,
    /// The review that the person saw.
    pub review: &'a Review,
}

/// An apply that nothing forbids. It holds the root's lock; nothing is written yet.
#[derive(Debug)]
pub struct Apply {
    pub(crate) home: Home,
    pub(crate) lock: Lock,
    pub(crate) destination: Destination,
    pub(crate) header: Header,
    pub(crate) plan: Plan,
    /// What the index file was when its entries were read.
    pub(crate) index_seen: Option<Stat>,
    /// What the file `HEAD` said then.
    pub(crate) head_seen: Vec<u8>,
    /// Whether two names may be exchanged in one rename.
    pub(crate) exchanges: bool,
}

impl Apply {
    /// Checks everything. On a refusal the destination is as it was, to the last time and byte.
    ///
    /// # Errors
    /// [`ApplyRefused`] names what is in the way: all conflicts at once, else the first thing.
    pub fn check(request: &ApplyRequest<'_>) -> Result<Self, ApplyRefused> {
        let slot = slot(request.layout, request.slot)?;
        let changes = reviewed(request)?;
        if slot.access != Access::Write {
            return Err(ApplyRefused::ReadOnly(slot.slot.clone()));
        }
        ours(request)?;
        if let Some(Barred { path, bar }) = barred(request.base, &changes).into_iter().next() {
            return Err(ApplyRefused::Barred { path, bar });
        }
        let home = request.home;
        let lock = lock(home, slot)?;
        let destination = Destination::open(home, request.git, slot, request.review)?;
        let repository = destination.repository.as_ref();
        let index_seen = repository.and_then(|found| Stat::of(&found.index_file).ok());
        let head_seen = destination.head_file();
        let index = repository.map(Index::of).transpose()?;
        let planner =
            Planner { root: &destination.root, home, changes: &changes, apply: request.apply };
        let plan = planner.plan(request.base, repository.zip(index.as_ref()));
        let plan = plan.map_err(|refused| explained(refused, &destination, request, slot))?;
        let header = header(request, slot, &destination);
        let home = home.clone();
        let exchanges = true;
        Ok(Self { home, lock, destination, header, plan, index_seen, head_seen, exchanges })
    }

    /// The paths that will be written, in their order: none when the destination is already as the
    /// snapshot has it, and writing is then nothing at all.
    pub fn paths(&self) -> impl Iterator<Item = &RelPath> {
        self.plan.planned.iter().map(|planned| &planned.step.path)
    }

    /// Folders that the task removed and that stay, because the person has something else in them.
    pub fn kept(&self) -> &[RelPath] {
        &self.plan.kept
    }

    /// Never exchanges two names in one rename, as where the file system cannot; the same, but for
    /// a moment in which a replaced file is not there.
    #[must_use]
    pub fn without_exchange(mut self) -> Self {
        self.exchanges = false;
        self
    }
}

/// The same refusal, its conflicts told apart by what the copy was made from at first.
fn explained(
    mut refused: ApplyRefused,
    destination: &Destination,
    request: &ApplyRequest<'_>,
    slot: &Slot,
) -> ApplyRefused {
    if let ApplyRefused::Conflicts(conflicts) = &mut refused
        && let Ok(first) = Base::load(request.home, &slot.base)
        && first.manifest != request.base.manifest
    {
        let now = |conflict: &Conflict| match observe(&destination.root, &conflict.path) {
            Ok(here) => Ok(here.map(|here| here.state)),
            Err(error) if is_astray(&error) => Ok(None),
            Err(error) => Err(error),
        };
        let was = |conflict: &Conflict| first.manifest.get(&conflict.path).and_then(State::of);
        if let Err(error) = mark_taken_back(conflicts, now, was) {
            return error.into();
        }
    }
    refused
}

fn slot<'a>(layout: &'a Layout, name: &SlotName) -> Result<&'a Slot, ApplyRefused> {
    layout.slots.iter().find(|slot| slot.slot == *name).ok_or_else(|| ApplyRefused::UnknownSlot {
        slot: name.clone(),
        valid: layout.slots.iter().map(|slot| slot.slot.clone()).collect(),
    })
}

/// The changes, if the review is of this very snapshot and base (P1).
fn reviewed(request: &ApplyRequest<'_>) -> Result<Vec<Change>, ApplyRefused> {
    let (base, snapshot, review) = (request.base, request.snapshot, request.review);
    let changes = changes(base, snapshot)?;
    let same =
        snapshot.digest == review.snapshot && digest(base, snapshot, &changes) == review.digest;
    if same { Ok(changes) } else { Err(ApplyRefused::NotReviewed(snapshot.digest)) }
}

/// The copy is this home's, and made in a way that is known (P3, P4).
fn ours(request: &ApplyRequest<'_>) -> Result<(), ApplyRefused> {
    let layout = request.layout;
    if layout.version != LAYOUT_VERSION {
        return Err(ApplyRefused::Version(layout.version));
    }
    let copy = request.home.copy(&layout.session, layout.task, request.slot);
    match Stat::of(&copy) {
        Ok(stat) if stat.kind == Kind::Folder && copy == request.review.copy => Ok(()),
        _ => Err(ApplyRefused::NotOurs(copy)),
    }
}

/// The root's lock, once no journal is left of an earlier apply.
fn lock(home: &Home, slot: &Slot) -> Result<Lock, ApplyRefused> {
    stead_files::private_dir(&home.applies())?;
    let path = journal::lock_of(home, &slot.root);
    let Some(lock) = Lock::try_exclusive(&path, "apply")? else {
        return Err(ApplyRefused::Busy(holder(&path)?));
    };
    let journal = journal::path_of(home, &slot.root);
    if journal.symlink_metadata().is_ok() {
        return Err(ApplyRefused::Unfinished(journal));
    }
    Ok(lock)
}

fn header(request: &ApplyRequest<'_>, slot: &Slot, destination: &Destination) -> Header {
    let layout = request.layout;
    let header = Header {
        version: journal::VERSION,
        apply: request.apply.clone(),
        session: layout.session.clone(),
        task: layout.task,
        slot: slot.slot.clone(),
        root: slot.root.clone(),
        source: slot.source.clone(),
        identity: slot.identity,
        snapshot: request.snapshot.digest,
        review: request.review.digest,
        index: destination.index_folder(),
        paths: 0,
        rest: request.review.digest,
        finished: None,
    };
    Journal::new(header, Vec::new()).header
}
