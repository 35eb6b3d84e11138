//! Admission: all copies of a layout are made, or none.

mod copy;
mod git_directory;
mod links;
mod names;
mod place;
mod room;
mod survey;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use stead_core::id::{SessionId, SlotName, TaskId, Timestamp};
use stead_core::layout::{AbsoluteDir, Root, RootIdentity};
use stead_files::{Method, Totals, TreeError, Watch, private_dir};
use stead_git::Git;

use self::copy::Making;
use self::names::Sameness;
use self::survey::Survey;
use crate::error::{CopyError, failed};
use crate::flush::mark;
use crate::home::Home;
use crate::keep::Keeper;
use crate::layout::{LAYOUT_FILE, LAYOUT_VERSION, Layout, Slot};
use crate::note::Note;
use crate::refusal::{MakeError, Obstruction};
use crate::staging::Staged;

/// What is to be copied, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The root session that the copies belong to.
    pub session: SessionId,
    /// Its task.
    pub task: TaskId,
    /// Now.
    pub at: Timestamp,
    /// The slot whose copy is the agent's directory.
    pub primary: SlotName,
    /// The roots, as the person selected them and the task narrowed them.
    pub roots: Vec<Root>,
}

/// A layout whose copies are complete.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// The layout, as it is beside the copies.
    pub layout: Layout,
    /// What became of each slot, in the layout's order.
    pub slots: Vec<AdmittedSlot>,
}

/// One slot's copy, for people.
#[derive(Debug, Clone)]
pub struct AdmittedSlot {
    /// The slot.
    pub slot: SlotName,
    /// Sums over the copy, its Git directory aside.
    pub totals: Totals,
    /// How the contents were copied.
    pub method: Method,
    /// How often files that changed meanwhile were copied again.
    pub rounds: usize,
    /// What is worth knowing.
    pub notes: Vec<Note>,
}

/// Makes a private copy of every root of a request, and the layout file beside them.
///
/// All or nothing: every root is looked at before the first byte is copied, the copies are made
/// where nobody looks, and one rename makes them the task's. Nothing is written in an original.
/// No hook, filter or other program of a repository runs. A kill takes nothing of what was
/// admitted; a power cut may until [`flush`](crate::flush) is done, and that is then known. Passes
/// the steps `copies.depot`, `files.clone`, `copies.git` and `copies.publish`.
///
/// # Errors
/// [`MakeError::Refused`] names what is in the way; in every other case, a cancel included,
/// nothing is visible either. What a killed process leaves is for
/// [`clear_staging`](crate::clear_staging).
pub fn admit(
    home: &Home,
    git: &Git,
    request: &Request,
    watch: Watch<'_>,
) -> Result<Admitted, MakeError> {
    private_dir(home.path())?;
    // Git says and follows real paths only.
    let real = home.path().canonicalize().map_err(failed("examine", home.path()))?;
    let home = &Home::new(real);
    place::check_layout(home, request)?;
    for root in &request.roots {
        place::check_place(home, git, root.directory.as_path(), root.identity)?;
    }
    let mut surveys: Vec<(&Path, Survey)> = Vec::new();
    for root in &request.roots {
        let survey = Survey::of(home, git, root, watch).map_err(|e| told(e, root))?;
        surveys.push((root.directory.as_path(), survey));
    }
    let purpose = format!("copies of task {} of {}", request.task, request.session);
    let staged = Staged::begin(home, &purpose)?;
    let sameness = Sameness::probe(staged.path())?;
    for (root, survey) in &surveys {
        let met = sameness.collisions(&survey.listing);
        if !met.is_empty() {
            return Err(MakeError::refused(root, Obstruction::Collision(met)));
        }
    }
    room::check(staged.path(), &surveys)?;
    let mut keeper = Keeper::new(home);
    let mut slots = Vec::new();
    let mut layout = Layout {
        version: LAYOUT_VERSION,
        session: request.session.clone(),
        task: request.task,
        admitted: request.at,
        primary: request.primary.clone(),
        slots: Vec::new(),
    };
    for (root, (_, survey)) in request.roots.iter().zip(surveys) {
        let task = home.task(&request.session, request.task);
        let making = Making { home, git, root, staged: staged.path(), task: &task, watch };
        let (slot, made) = making.run(survey, &mut keeper).map_err(|e| told(e, root))?;
        layout.slots.push(slot);
        slots.push(made);
    }
    publish(home, staged, &layout)?;
    Ok(Admitted { layout, slots })
}

/// Whether a folder can be a root, by where and what it is: what admission asks before it reads
/// anything, for who selects the folder otherwise.
///
/// # Errors
/// As [`admit`]'s.
pub fn check_root(
    home: &Home,
    git: &Git,
    directory: &AbsoluteDir,
    identity: RootIdentity,
) -> Result<(), MakeError> {
    let real = home.path().canonicalize().map_err(failed("examine", home.path()))?;
    place::check_place(&Home::new(real), git, directory.as_path(), identity)?;
    place::repository(git, directory.as_path()).map(|_| ())
}

/// What a thread beside this one made of its work; its panic goes on here.
fn joined<T>(handle: std::thread::ScopedJoinHandle<'_, T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What keeps changing is a person's to stop.
fn told(error: MakeError, root: &Root) -> MakeError {
    match error {
        MakeError::Failed(CopyError::Tree(TreeError::Unstable(paths))) => {
            MakeError::refused(root.directory.as_path(), Obstruction::Unstable(paths))
        }
        other => other,
    }
}

fn publish(home: &Home, staged: Staged, layout: &Layout) -> Result<(), MakeError> {
    mark(staged.path())?;
    write_layout(staged.path(), layout)?;
    let task = home.task(&layout.session, layout.task);
    let session = task.parent().unwrap_or(&task);
    private_dir(session)?;
    let published = staged.publish(&task);
    if published.is_err() {
        // Only an empty one goes.
        let _ = fs::remove_dir(session);
    }
    Ok(published?)
}

fn write_layout(folder: &Path, layout: &Layout) -> Result<(), CopyError> {
    let path = folder.join(LAYOUT_FILE);
    let text = serde_json::to_vec_pretty(layout)
        .map_err(|error| CopyError::Layout { path: path.clone(), reason: error.to_string() })?;
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(&text))
        .map_err(failed("write", &path))
}

/// The slot as the layout names it.
fn slot_of(root: &Root, kind: crate::RootKind, base: stead_core::id::Digest) -> Slot {
    Slot {
        slot: root.slot.clone(),
        root: root.id.clone(),
        access: root.access,
        source: root.directory.clone(),
        identity: root.identity,
        kind,
        base,
    }
}
