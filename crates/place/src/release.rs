//! Ending what a place's runs left, and giving back what it holds.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stead_core::step::{self, Moment};
use stead_files::{FileIdentity, Lock, holder};
use stead_process::{ProcessIdentity, ancestors, end_keepers, end_marked, kept_by};

use crate::error::{HostError, ReleaseError};
use crate::exec::{GRACE, mark};
use crate::host::{Host, is_held};
use crate::registry::{Hold, Presence};
use crate::run::Run;
use crate::sockets::{self, Listener};

/// How long another release of the same place is waited for.
const TURN: Duration = Duration::from_mins(2);

/// How long a run that is just being started may take until its processes are known.
const STARTING: Duration = Duration::from_secs(30);

/// How long keepers may take: the grace of their runs, and the kernel's time for killing.
const ENDING: Duration = Duration::from_secs(20);

/// Which places to release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The one of this folder; when it holds nothing or is gone, all that were at this path.
    At(PathBuf),
    /// The one with this name.
    Named(String),
}

/// What a release came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Released {
    /// What the place held.
    pub hold: Hold,
    /// How many runs were ended while they lived.
    pub interrupted: usize,
    /// How many processes were ended.
    pub ended: usize,
    /// Why the place holds its ports still; empty when it does not.
    pub left: Vec<Left>,
}

/// Why a release is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// Somebody still listens on one of its ports.
    Listener(Listener),
    /// What a keeper keeps survives KILL.
    Keeper(ProcessIdentity),
    /// Something else could not be done.
    Failure(String),
}

impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listener(listener) => write!(f, "{listener} still listens"),
            Self::Keeper(keeper) => write!(f, "processes below {} survive KILL", keeper.pid),
            Self::Failure(why) => f.write_str(why),
        }
    }
}

impl Host {
    /// Releases places; a folder that holds nothing is none. Counts against no bound and waits for no
    /// room. A release of the same place that goes on is waited for, and then nothing is left to
    /// do.
    ///
    /// # Errors
    /// [`ReleaseError`]; what could not be ended is no error but [`Released::left`].
    pub fn release(&self, which: &Which) -> Result<Vec<Released>, ReleaseError> {
        let mut released = Vec::new();
        for hold in self.chosen(which)? {
            released.extend(self.release_one(&hold)?);
        }
        Ok(released)
    }

    /// Ends the runs that were started for a session by a process that has died: nobody waits for
    /// their ends any more. What runs left that had ended goes on. Gives what could not be ended.
    ///
    /// # Errors
    /// The host's.
    pub fn end_abandoned(&self) -> Result<Vec<ProcessIdentity>, HostError> {
        let records = self.runs_now()?.live.into_iter().filter_map(|run| run.record());
        let abandoned = records.filter(|run| run.session.is_some() && !run.starter.is_alive());
        // A supervisor ends its own run, as a keeper does that has none yet.
        let ending: Vec<ProcessIdentity> = abandoned
            .filter_map(|run| run.processes)
            .map(|processes| processes.supervisor.unwrap_or(processes.keeper))
            .collect();
        Ok(end_keepers(&ending, ENDING))
    }

    fn chosen(&self, which: &Which) -> Result<Vec<Hold>, ReleaseError> {
        let mut holds = self.holds()?;
        match which {
            Which::Named(id) => {
                holds.retain(|hold| hold.id == *id);
                if holds.is_empty() {
                    return Err(ReleaseError::Unknown(id.clone()));
                }
            }
            Which::At(path) => {
                holds.retain(|hold| hold.directory.as_path() == path);
                if holds.iter().any(|hold| hold.presence() == Presence::There) {
                    holds.retain(|hold| hold.presence() == Presence::There);
                }
            }
        }
        Ok(holds)
    }

    fn release_one(&self, hold: &Hold) -> Result<Option<Released>, ReleaseError> {
        let place = || hold.directory.as_path().to_owned();
        let path = self.release_of(&hold.id);
        self.prepare()?;
        let turn = Lock::exclusive_within(&path, "release", TURN).map_err(HostError::from)?;
        let Some(turn) = turn else {
            let holder = holder(&path).unwrap_or_default();
            return Err(ReleaseError::Busy { place: place(), holder });
        };
        if !self.holds()?.iter().any(|other| other.id == hold.id) {
            // Somebody has released it while we waited.
            remove_file(turn.path())?;
            return Ok(None);
        }
        let above = ancestors(std::process::id());
        let runs = self.runs_of(hold)?;
        let (keepers, mut left) = keepers(&runs);
        if keepers.iter().any(|keeper| above.contains(keeper)) {
            return Err(ReleaseError::FromWithin(place()));
        }
        let interrupted = runs.iter().filter(|run| run.is_live().unwrap_or(false)).count();
        let mut ended: usize = keepers.iter().map(|keeper| kept_by(keeper).len()).sum();
        step::pass("place.end", Moment::Before);
        left.extend(end_keepers(&keepers, ENDING).into_iter().map(Left::Keeper));
        let mut spared: Vec<u32> = above.iter().map(|process| process.pid).collect();
        spared.push(std::process::id());
        match end_marked(&mark(hold), &spared, GRACE) {
            Ok(count) => ended += count,
            Err(error) => left.push(Left::Failure(error.to_string())),
        }
        step::pass("place.end", Moment::After);
        if let Err(error) = remove_scratch(hold) {
            left.push(Left::Failure(error.to_string()));
        }
        if sockets::is_listened_on(hold.ports) {
            left.extend(sockets::listeners(hold.ports).into_iter().map(Left::Listener));
        }
        if left.is_empty() {
            // Last, so that a release that is killed here can be done again from the record.
            for run in &runs {
                run.remove()?;
            }
            self.forget(&hold.id)?;
            remove_file(turn.path())?;
        } else {
            let why: Vec<String> = left.iter().map(ToString::to_string).collect();
            self.hold_back(&hold.id, &why.join("; "))?;
        }
        Ok(Some(Released { hold: hold.clone(), interrupted, ended, left }))
    }

    /// The runs of the place. Whoever starts one later sees that the place is being released: the
    /// bound's lock is between the two.
    fn runs_of(&self, hold: &Hold) -> Result<Vec<Run>, HostError> {
        let _lock = self.lock_bound("list what is to be released")?;
        let runs = self.runs_now()?;
        Ok(runs.live.into_iter().chain(runs.ended).filter(|run| run.is_of(&hold.id)).collect())
    }

    /// Whether the place is being released now.
    pub(crate) fn is_being_released(&self, hold: &Hold) -> Result<bool, HostError> {
        is_held(&self.release_of(&hold.id))
    }
}

/// The keepers of the runs. One that is just being started is waited for: its starter writes them
/// down, or dies and ends it.
fn keepers(runs: &[Run]) -> (Vec<ProcessIdentity>, Vec<Left>) {
    let (mut keepers, mut left) = (Vec::new(), Vec::new());
    let deadline = Instant::now() + STARTING;
    for run in runs {
        loop {
            let keeper = run.keeper();
            let is_live = run.is_live().unwrap_or(false);
            match keeper {
                Some(keeper) => keepers.push(keeper),
                None if is_live && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
                None if is_live => {
                    left.push(Left::Failure(format!("the run {} does not say who it is", run.id)));
                }
                None => {}
            }
            break;
        }
    }
    (keepers, left)
}

/// Removes the scratch folder, if it is the one that was made for the place.
fn remove_scratch(hold: &Hold) -> Result<(), HostError> {
    let path = hold.scratch.as_path();
    match FileIdentity::of(path) {
        Ok(found) if hold.scratch_folder.is_same(&found, false) => {}
        Ok(_) => return Err(HostError::ForeignScratch(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(HostError::system("examine", path)(error)),
    }
    step::pass("place.scratch-remove", Moment::Before);
    let removed = fs::remove_dir_all(path).or_else(|_| {
        // Tools leave folders without the right to write in them.
        open_up(path);
        fs::remove_dir_all(path)
    });
    step::pass("place.scratch-remove", Moment::After);
    removed.map_err(HostError::system("remove", path))
}

/// Gives this user every right on all folders below, following no link.
fn open_up(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

fn remove_file(path: &Path) -> Result<(), HostError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.map_err(HostError::system("remove", path)),
    }
}
