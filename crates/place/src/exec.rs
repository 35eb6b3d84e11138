//! Starting a run in the room that was taken for it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use stead_core::env;
use stead_core::env::STEAD_SCRATCH;
use stead_process::{Errand, KeepError, Kept, Mark, Output, Poised, ancestors, kept_by};

use crate::admission::Room;
use crate::environment::Identity;
use crate::error::{ExecError, HostError};
use crate::host::Host;
use crate::registry::Hold;
use crate::run::{Processes, Run};
use crate::sockets::{self, Listener};

/// How long a run may take unless somebody chose otherwise.
pub const TIME_LIMIT: Duration = Duration::from_mins(30);

/// How long processes may take to end before they are killed, unless somebody chose otherwise.
pub const GRACE: Duration = Duration::from_secs(5);

/// What to run in a place.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The program: a name looked up in the client's `PATH`, or a path.
    pub program: OsString,
    /// The arguments after the program's name.
    pub arguments: Vec<OsString>,
    /// The client's environment, of which the allow-listed part is passed on.
    pub client: &'a BTreeMap<OsString, OsString>,
    /// Whose processes these are, when it is an agent's run.
    pub identity: Option<Identity<'a>>,
    /// The working directory, inside the place.
    pub directory: PathBuf,
    /// How long it may take.
    pub time_limit: Duration,
    /// How long its processes may take to end.
    pub grace: Duration,
}

/// A run that was started.
#[derive(Debug)]
pub struct Started {
    /// What its place holds.
    pub hold: Hold,
    /// Its folder, where its outcome will be.
    pub run: Run,
    /// Its processes.
    pub kept: Kept,
}

impl Room {
    /// Starts the run with a keeper forked from this process, which must have one thread. Its
    /// output comes to this process, which relays it, and it ends with this process.
    ///
    /// # Errors
    /// [`ExecError::Start`], [`ExecError::Host`].
    pub fn start_here(self, request: Request<'_>) -> Result<Started, ExecError> {
        self.start(request, Output::Streams, stead_process::keep_here)
    }

    /// Starts the run with a keeper that is started as `program`, its output going to the run's
    /// log of at most `limit` bytes. It outlives this process.
    ///
    /// # Errors
    /// [`ExecError::Start`], [`ExecError::Host`].
    pub fn start_by(
        self,
        program: &Path,
        arguments: &[&OsStr],
        request: Request<'_>,
        limit: u64,
    ) -> Result<Started, ExecError> {
        let output = Output::Log { path: self.run.log(), limit };
        self.start(request, output, |errand| stead_process::keep_by(program, arguments, &errand))
    }

    fn start(
        self,
        request: Request<'_>,
        output: Output,
        keep: impl FnOnce(Errand) -> Result<Poised, KeepError>,
    ) -> Result<Started, ExecError> {
        let Self { hold, run, lock, mut record } = self;
        let started = keep(Errand {
            environment: hold.environment(&run, request.client, request.identity),
            program: request.program,
            arguments: request.arguments,
            directory: request.directory,
            time_limit: request.time_limit,
            grace: request.grace,
            output,
            held: lock.into_fd(),
            outcome: run.outcome_file(),
        })
        .map_err(ExecError::from)
        .and_then(|poised| {
            // Before anything of the command runs: a release and a run inside it must know it.
            let keeper = poised.keeper.clone();
            record.processes = Some(Processes { keeper, supervisor: None, leader: None });
            run.write(&record)?;
            Ok(poised.go()?)
        });
        let kept = match started {
            Ok(kept) => kept,
            Err(error) => {
                // It was no run; the first error is the one to tell.
                let _ = run.remove();
                return Err(error);
            }
        };
        if let Some(processes) = &mut record.processes {
            processes.supervisor = Some(kept.supervisor.clone());
            processes.leader = Some(kept.leader.clone());
        }
        // A release that was quicker has taken the folder away.
        let _ = run.write(&record);
        Ok(Started { hold, run, kept })
    }
}

impl Hold {
    /// The complete environment of what runs in the place: the allow-listed part of the client's,
    /// then stead's own.
    pub fn environment(
        &self,
        run: &Run,
        client: &BTreeMap<OsString, OsString>,
        identity: Option<Identity<'_>>,
    ) -> BTreeMap<OsString, OsString> {
        crate::environment::of_run(self, run, client, identity)
    }
}

impl Host {
    /// Who listens on the ports of the place without being one of its own processes.
    ///
    /// # Errors
    /// The host's.
    pub fn strangers(&self, hold: &Hold) -> Result<Vec<Listener>, HostError> {
        if !sockets::is_listened_on(hold.ports) {
            return Ok(Vec::new());
        }
        let mut found = sockets::listeners(hold.ports);
        let runs = self.runs_now()?;
        let keepers: Vec<_> = runs
            .live
            .iter()
            .chain(&runs.ended)
            .filter(|run| run.is_of(&hold.id))
            .filter_map(Run::keeper)
            .collect();
        let own: Vec<u32> = keepers.iter().flat_map(kept_by).map(|(pid, _)| pid).collect();
        let mark = mark(hold);
        found.retain(|listener| match listener.process {
            Some((pid, _)) => {
                let descends = || ancestors(pid).iter().any(|above| own.contains(&above.pid));
                !(own.contains(&pid) || mark.is_on(pid) || descends())
            }
            None => true,
        });
        Ok(found)
    }
}

/// What all processes of the place's runs have in their environment. The names of holds begin at
/// `p1` on every host folder of this machine; the scratch folder is this one's.
pub(crate) fn mark(hold: &Hold) -> Mark {
    Mark::default()
        .with(STEAD_SCRATCH, hold.scratch.as_path().as_os_str())
        .with_beginning(env::STEAD_RUN, OsStr::new(&format!("{}.", hold.id)))
}
