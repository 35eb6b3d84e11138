//! The folders of runs: one each, whose lock is the proof that the run lives.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stead_core::id::SessionId;
use stead_core::layout::AbsoluteDir;
use stead_core::step::{self, Moment};
use stead_files::{Lock, private_dir, replace_through};
use stead_process::{Outcome, ProcessIdentity};

use crate::error::HostError;
use crate::host::{Host, is_held, names, now, since, this_process};
use crate::registry::Hold;

/// The version of a record's form.
const VERSION: u32 = 1;

/// How folders begin that are not whole yet.
const UNFINISHED: &str = ".new-";

/// How long the record of a session's run stays when nobody has read its outcome.
const KEPT: Duration = Duration::from_hours(24);

/// What is known of a run: written whole by its starter, which nobody decides on but to find its
/// processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The version of this form: 1.
    pub version: u32,
    /// The hold of its place.
    pub hold: String,
    /// The place.
    pub directory: AbsoluteDir,
    /// What runs, for people.
    pub command: String,
    /// The session it was started for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// When, in milliseconds after 1970.
    pub started: u64,
    /// Who asked for it.
    pub starter: ProcessIdentity,
    /// Its processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<Processes>,
}

/// The processes of a run by which all others are found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processes {
    /// Takes over what the run leaves; written down before the command starts.
    pub keeper: ProcessIdentity,
    /// Holds the run's lock while the command runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<ProcessIdentity>,
    /// The command's first process, which leads a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<ProcessIdentity>,
}

/// A run's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its name: the hold and a number.
    pub id: String,
    folder: PathBuf,
}

impl RunRecord {
    /// The process to look at while the run lives: its supervisor, or who is about to be it.
    pub fn pid(&self) -> u32 {
        match &self.processes {
            Some(Processes { supervisor: Some(supervisor), .. }) => supervisor.pid,
            Some(processes) => processes.keeper.pid,
            None => self.starter.pid,
        }
    }
}

impl Run {
    /// What is known of it; `None` when its record cannot be read.
    pub fn record(&self) -> Option<RunRecord> {
        let bytes = fs::read(self.folder.join("record.json")).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// How it ended; `None` while it lives, and when its supervisor was killed.
    pub fn outcome(&self) -> Option<Outcome> {
        Outcome::read(&self.outcome_file())
    }

    /// Whether it lives.
    pub fn is_live(&self) -> Result<bool, HostError> {
        is_held(&self.folder.join("held"))
    }

    /// Where it is written how it ended.
    pub(crate) fn outcome_file(&self) -> PathBuf {
        self.folder.join("outcome.json")
    }

    /// Where its output goes when nobody relays it.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    pub(crate) fn write(&self, record: &RunRecord) -> Result<(), HostError> {
        write(&self.folder, record)
    }

    /// The hold and the number in a folder's name.
    fn parts(&self) -> Option<(&str, u64)> {
        let (hold, number) = self.id.split_once('.')?;
        Some((hold, number.parse().ok()?))
    }

    pub(crate) fn is_of(&self, hold: &str) -> bool {
        self.parts().is_some_and(|(of, _)| of == hold)
    }

    pub(crate) fn number(&self) -> u64 {
        self.parts().map_or(0, |(_, number)| number)
    }

    /// The keeper, once there is one.
    pub(crate) fn keeper(&self) -> Option<ProcessIdentity> {
        Some(self.record()?.processes?.keeper)
    }

    /// Whether the keeper of what it left lives.
    pub(crate) fn has_keeper(&self) -> bool {
        self.keeper().is_some_and(|keeper| keeper.is_alive())
    }

    pub(crate) fn remove(&self) -> Result<(), HostError> {
        remove(&self.folder)
    }
}

/// All runs on this host, as a count finds them.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    pub(crate) live: Vec<Run>,
    pub(crate) ended: Vec<Run>,
}

impl Host {
    /// Looks which runs live; changes nothing.
    pub(crate) fn runs_now(&self) -> Result<Runs, HostError> {
        let mut runs = Runs::default();
        let folder = self.runs();
        for id in names(&folder)? {
            if id.starts_with('.') {
                continue;
            }
            let run = Run { folder: folder.join(&id), id };
            if run.is_live()? { &mut runs.live } else { &mut runs.ended }.push(run);
        }
        Ok(runs)
    }

    /// How many runs live on this host now. Changes no file.
    pub fn live_runs(&self) -> Result<usize, HostError> {
        Ok(self.runs_now()?.live.len())
    }

    /// Makes a run's folder, whose lock is held before anybody can see it. The bound's lock is
    /// held. Passes the step `place.run`.
    pub(crate) fn make_run(
        &self,
        hold: &Hold,
        command: &str,
        session: Option<SessionId>,
        runs: &Runs,
    ) -> Result<(Run, Lock, RunRecord), HostError> {
        let of_hold = runs.live.iter().chain(&runs.ended).filter(|run| run.is_of(&hold.id));
        let number = of_hold.map(Run::number).max().unwrap_or(0).saturating_add(1);
        let id = format!("{}.{number}", hold.id);
        let new = self.runs().join(format!("{UNFINISHED}{id}"));
        private_dir(&new)?;
        let lock = Lock::try_exclusive(&new.join("held"), &id)?;
        // The folder is new and hidden, so that only a stranger could hold it.
        let lock = lock.ok_or_else(|| HostError::Stuck { path: new.join("held"), holder: None })?;
        let record = RunRecord {
            version: VERSION,
            hold: hold.id.clone(),
            directory: hold.directory.clone(),
            command: command.to_owned(),
            session,
            started: now(),
            starter: this_process()?,
            processes: None,
        };
        write(&new, &record)?;
        let folder = self.runs().join(&id);
        step::pass("place.run", Moment::Before);
        fs::rename(&new, &folder).map_err(HostError::system("rename", &new))?;
        step::pass("place.run", Moment::After);
        Ok((Run { id, folder }, lock, record))
    }

    /// Removes what no longer says anything: unfinished folders, and ended runs that are not the
    /// last of their place and left nothing. Sets records aside that cannot be read, and gives
    /// where to. The bound's lock is held.
    pub(crate) fn prune(&self, runs: &Runs, holds: &[Hold]) -> Result<Vec<PathBuf>, HostError> {
        let mut aside = Vec::new();
        for name in names(&self.runs())? {
            if name.starts_with(UNFINISHED) {
                remove(&self.runs().join(name))?;
            }
        }
        for run in &runs.ended {
            let Some(record) = run.record() else {
                aside.push(self.set_aside(run)?);
                continue;
            };
            let all = runs.live.iter().chain(&runs.ended);
            let is_last = !all
                .filter(|other| other.is_of(&record.hold))
                .any(|other| other.number() > run.number());
            let is_of_hold = holds.iter().any(|hold| hold.id == record.hold);
            let is_awaited = record.session.is_some() && since(record.started) < KEPT;
            if !(is_last && is_of_hold || is_awaited || run.has_keeper()) {
                run.remove()?;
            }
        }
        Ok(aside)
    }

    fn set_aside(&self, run: &Run) -> Result<PathBuf, HostError> {
        private_dir(&self.aside())?;
        let there = self.aside().join(format!("{}-{}", run.id.trim_start_matches('.'), now()));
        fs::rename(&run.folder, &there).map_err(HostError::system("set aside", &run.folder))?;
        Ok(there)
    }
}

/// A record needs no durability: after a power cut no run lives.
fn write(folder: &Path, record: &RunRecord) -> Result<(), HostError> {
    let path = folder.join("record.json");
    let bytes = serde_json::to_vec(record)
        .map_err(|error| HostError::Unreadable { path: path.clone(), why: error.to_string() })?;
    Ok(replace_through(&path, &bytes)?)
}

fn remove(folder: &Path) -> Result<(), HostError> {
    match fs::remove_dir_all(folder) {
        // A release and a count may meet here.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(HostError::system("remove", folder)),
    }
}
