//! Room for a run: counted, waited for, taken.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stead_core::bound::{Admission, Bound, Kind, Live};
use stead_core::id::SessionId;
use stead_core::layout::AbsoluteDir;
use stead_files::{Lock, holder};
use stead_process::{ProcessIdentity, ancestors};

use crate::error::{ExecError, brief};
use crate::host::{Host, is_held, since};
use crate::line::{Ahead, Ticket};
use crate::registry::Hold;
use crate::run::{Run, RunRecord};

/// How often the first in the line looks whether there is room.
const LOOK: Duration = Duration::from_millis(50);

/// How often one that waits says so, so that nobody takes it for hung.
const SAY: Duration = Duration::from_mins(1);

/// The longest that the default patience waits.
pub const LONGEST_WAIT: Duration = Duration::from_mins(45);

/// What one does without room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Refuse at once.
    Refuse,
    /// Wait in the line, but no longer than this.
    Wait(Duration),
}

/// Who asks for room, and for what.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// The bound of this host.
    pub bound: Bound,
    /// What is done when there is no room.
    pub patience: Patience,
    /// What will run, for people.
    pub command: &'a str,
    /// The session it is for.
    pub session: Option<SessionId>,
    /// Set from elsewhere when nobody wants the room any more: it is not waited for longer.
    pub cancel: Option<&'a AtomicBool>,
}

impl Ask<'_> {
    fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }
}

/// What the caller may tell a person meanwhile.
#[derive(Debug)]
pub enum Notice<'a> {
    /// The place is adopted; a hold of another folder at its path goes on.
    Stale(&'a Hold),
    /// There is no room. Said at once and each minute.
    Waiting {
        /// Who holds the room.
        holders: &'a [Holding],
        /// How many wait before this one.
        ahead: usize,
        /// For how long it has waited.
        waited: Duration,
    },
    /// A record could not be read and was moved there.
    SetAside(&'a Path),
}

/// A run that holds room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// The run's name.
    pub run: String,
    /// Its place.
    pub place: PathBuf,
    /// What runs.
    pub command: String,
    /// The process to look at.
    pub pid: u32,
    /// For how long.
    pub age: Duration,
}

impl fmt::Display for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, command, pid, age, .. } = self;
        write!(f, "`{command}` in {} (process {pid}, for {})", place.display(), brief(*age))
    }
}

/// Room that was taken: it is held until it is dropped, or by the run that is started in it.
#[derive(Debug)]
pub struct Room {
    /// What the place holds.
    pub hold: Hold,
    /// The run's folder.
    pub run: Run,
    pub(crate) lock: Lock,
    pub(crate) record: RunRecord,
}

/// What came of asking for room.
#[derive(Debug)]
pub enum Entered {
    /// There was room.
    Room(Box<Room>),
    /// The caller is part of a run of this place, and goes on in that run's room.
    Enclosed {
        /// What the place holds.
        hold: Box<Hold>,
        /// The run it is part of.
        run: Run,
    },
}

/// One look whether there is room.
enum Look {
    Entered(Entered),
    /// The place was released since it was looked up.
    Forgotten,
    Full {
        holders: Vec<Holding>,
        before: Vec<u64>,
    },
}

impl Host {
    /// Adopts the folder as a place and takes room for a run in it, waiting in the line for it if
    /// that is wanted. `tell` hears what may interest a person.
    ///
    /// # Errors
    /// Every [`ExecError`] but [`ExecError::NoPlace`] and [`ExecError::Start`].
    pub fn enter(
        &self,
        directory: &AbsoluteDir,
        ask: &Ask<'_>,
        tell: &mut dyn FnMut(Notice<'_>),
    ) -> Result<Entered, ExecError> {
        let began = Instant::now();
        let mut ticket: Option<Ticket> = None;
        let mut ahead: Option<(u64, Ahead)> = None;
        let mut say: Option<Instant> = Some(began);
        let mut is_first = true;
        loop {
            let adopted = self.adopt(directory)?;
            if std::mem::take(&mut is_first) {
                adopted.stale.iter().for_each(|hold| tell(Notice::Stale(hold)));
            }
            let (holders, before) = match self.look(&adopted.hold, ask, &mut ticket, tell)? {
                Look::Entered(entered) => return Ok(entered),
                Look::Forgotten => continue,
                Look::Full { holders, before } => (holders, before),
            };
            let Patience::Wait(longest) = ask.patience else {
                return Err(ExecError::NoRoom(holders));
            };
            let waited = began.elapsed();
            if waited >= longest {
                return Err(ExecError::GaveUp { waited, holders });
            }
            if say.is_none_or(|at| at <= Instant::now()) {
                tell(Notice::Waiting { holders: &holders, ahead: before.len(), waited });
                say = Instant::now().checked_add(SAY);
            }
            let left = longest.saturating_sub(waited);
            let Some(nearest) = before.last().copied() else {
                ahead = None;
                std::thread::sleep(LOOK.min(left));
                continue;
            };
            let known = ahead.take().filter(|(number, _)| *number == nearest);
            let watched = known.map(|(_, one)| one).or_else(|| self.watch_ticket(nearest));
            let waits = watched.and_then(|one| one.wait(SAY.min(left), || ask.is_cancelled()));
            ahead = waits.map(|one| (nearest, one));
        }
    }

    fn look(
        &self,
        hold: &Hold,
        ask: &Ask<'_>,
        ticket: &mut Option<Ticket>,
        tell: &mut dyn FnMut(Notice<'_>),
    ) -> Result<Look, ExecError> {
        if ask.is_cancelled() {
            return Err(ExecError::Cancelled);
        }
        let _lock = self.lock_bound("look for room")?;
        let holds = self.holds()?;
        if !holds.iter().any(|other| other.id == hold.id) {
            return Ok(Look::Forgotten);
        }
        let release = self.release_of(&hold.id);
        if is_held(&release)? {
            let holder = holder(&release).unwrap_or_default();
            let place = hold.directory.as_path().to_owned();
            return Err(ExecError::Releasing { place, holder });
        }
        let runs = self.runs_now()?;
        let around = enclosing(&runs.live);
        if let Some(run) = around.iter().find(|run| run.is_of(&hold.id)) {
            let (hold, run) = (Box::new(hold.clone()), (*run).clone());
            return Ok(Look::Entered(Entered::Enclosed { hold, run }));
        }
        for path in self.prune(&runs, &holds)? {
            tell(Notice::SetAside(&path));
        }
        let live =
            Live { execs: u32::try_from(runs.live.len()).unwrap_or(u32::MAX), candidates: 0 };
        let admission = ask.bound.admit(Kind::Exec, live);
        if admission == Admission::Never {
            let Bound { runs, reserved } = ask.bound;
            return Err(ExecError::AllReserved { runs, reserved });
        }
        let before = self.tickets_before(ticket.as_ref())?;
        if admission == Admission::Start && before.is_empty() {
            let (run, lock, record) =
                self.make_run(hold, ask.command, ask.session.clone(), &runs)?;
            let room = Room { hold: hold.clone(), run, lock, record };
            return Ok(Look::Entered(Entered::Room(Box::new(room))));
        }
        let holders: Vec<Holding> = runs.live.iter().map(holding).collect();
        if admission == Admission::Wait && around.len() == runs.live.len() {
            return Err(ExecError::OwnRoom(holders));
        }
        if ticket.is_none() && ask.patience != Patience::Refuse {
            *ticket = Some(self.take_ticket()?);
        }
        Ok(Look::Full { holders, before })
    }
}

/// The live runs that this process is part of: their keepers are above it, whatever it was started
/// by, because they take over all orphans of their runs.
fn enclosing(live: &[Run]) -> Vec<&Run> {
    if live.is_empty() {
        return Vec::new();
    }
    let above: Vec<ProcessIdentity> = ancestors(std::process::id());
    live.iter().filter(|run| run.keeper().is_some_and(|one| above.contains(&one))).collect()
}

fn holding(run: &Run) -> Holding {
    let id = run.id.clone();
    let Some(record) = run.record() else {
        // It lives, so it counts, whatever its record is.
        let command = "a run without a readable record".to_owned();
        return Holding { run: id, place: PathBuf::new(), command, pid: 0, age: Duration::ZERO };
    };
    Holding {
        run: id,
        place: record.directory.as_path().to_owned(),
        pid: record.pid(),
        command: record.command,
        age: since(record.started),
    }
}
