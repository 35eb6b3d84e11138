//! Every hold on this host, for people and programs.

use std::path::PathBuf;
use std::time::Duration;

use stead_process::{How, kept_by};

use crate::error::HostError;
use crate::host::{Host, since};
use crate::ports::Block;
use crate::registry::{Hold, Presence};
use crate::run::{Run, Runs};

/// After how long without a run a hold counts as abandoned. It is only called so: nothing but a
/// release ends it.
const ABANDONED: Duration = Duration::from_hours(24);

/// What a place holds now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The hold's name.
    pub id: String,
    /// The place.
    pub place: PathBuf,
    /// Whether it is there.
    pub presence: Presence,
    /// Its ports.
    pub ports: Block,
    /// Its scratch folder.
    pub scratch: PathBuf,
    /// For how long it has been held.
    pub age: Duration,
    /// The runs that live.
    pub live: Vec<LastRun>,
    /// What ended runs left, by process number and name.
    pub left: Vec<(u32, String)>,
    /// The newest run, living or not.
    pub last: Option<LastRun>,
    /// Whether nobody seems to need it any more.
    pub is_abandoned: bool,
    /// Whether it is being released now.
    pub is_releasing: bool,
    /// Why the last release left it here.
    pub held_back: Option<String>,
}

/// A run of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastRun {
    /// Its name.
    pub run: String,
    /// What runs or ran.
    pub command: String,
    /// How long ago it was started.
    pub age: Duration,
    /// How it ended; `None` while it lives, and when its supervisor was killed.
    pub how: Option<How>,
    /// The number of its supervisor, or of whoever is about to start it, while it lives.
    pub pid: Option<u32>,
}

impl Listed {
    /// Whether its folder is there and no other one.
    pub fn is_there(&self) -> bool {
        self.presence == Presence::There
    }
}

impl Host {
    /// Every hold, the oldest first. Changes no file.
    ///
    /// # Errors
    /// The host's.
    pub fn list(&self) -> Result<Vec<Listed>, HostError> {
        let holds = self.holds()?;
        if holds.is_empty() {
            return Ok(Vec::new());
        }
        let runs = self.runs_now()?;
        holds.iter().map(|hold| self.listed(hold, &runs)).collect()
    }

    fn listed(&self, hold: &Hold, runs: &Runs) -> Result<Listed, HostError> {
        let of_hold = |run: &&Run| run.is_of(&hold.id);
        let live: Vec<LastRun> =
            runs.live.iter().filter(of_hold).filter_map(|run| run_of(run, true)).collect();
        let keepers = runs.ended.iter().filter(of_hold).filter_map(Run::keeper);
        let left: Vec<(u32, String)> = keepers.flat_map(|keeper| kept_by(&keeper)).collect();
        let last_live = runs.live.iter().filter(of_hold).max_by_key(|run| run.number());
        let last_ended = runs.ended.iter().filter(of_hold).max_by_key(|run| run.number());
        let last = match (last_live, last_ended) {
            (Some(live), Some(ended)) if ended.number() > live.number() => run_of(ended, false),
            (Some(live), _) => run_of(live, true),
            (None, ended) => ended.and_then(|run| run_of(run, false)),
        };
        let presence = hold.presence();
        let age = since(hold.adopted);
        let idle = last.as_ref().map_or(age, |run| run.age);
        let is_abandoned = live.is_empty() && (presence != Presence::There || idle >= ABANDONED);
        Ok(Listed {
            id: hold.id.clone(),
            place: hold.directory.as_path().to_owned(),
            presence,
            ports: hold.ports,
            scratch: hold.scratch.as_path().to_owned(),
            age,
            live,
            left,
            last,
            is_abandoned,
            is_releasing: self.is_being_released(hold)?,
            held_back: hold.held_back.clone(),
        })
    }
}

fn run_of(run: &Run, is_live: bool) -> Option<LastRun> {
    let record = run.record()?;
    Some(LastRun {
        run: run.id.clone(),
        pid: is_live.then(|| record.pid()),
        command: record.command,
        age: since(record.started),
        how: run.outcome().map(|outcome| outcome.how),
    })
}
