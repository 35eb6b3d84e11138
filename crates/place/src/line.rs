//! The line for room: each ticket waits on the one before it, so that only the first one looks
//! whether there is room.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use stead_files::Lock;

use crate::error::HostError;
use crate::host::{Host, is_held, names};

/// How long a fresh ticket may look held because somebody looks at it.
const GLANCE: Duration = Duration::from_secs(5);

/// How often one that waits for the one before it looks whether it is still wanted.
const GLIMPSE: Duration = Duration::from_millis(100);

/// A place in the line, left by whatever ends this process.
#[derive(Debug)]
pub(crate) struct Ticket {
    number: u64,
    lock: Lock,
}

impl Host {
    /// Goes to the end of the line. The bound's lock is held.
    pub(crate) fn take_ticket(&self) -> Result<Ticket, HostError> {
        let mut last = 0;
        for number in self.tickets()? {
            if is_held(&self.ticket(number))? {
                last = last.max(number);
            } else {
                remove(self.ticket(number))?;
            }
        }
        let number = last.saturating_add(1);
        let path = self.ticket(number);
        let lock = Lock::exclusive_within(&path, "wait for room", GLANCE)?
            .ok_or(HostError::Stuck { path, holder: None })?;
        Ok(Ticket { number, lock })
    }

    /// The tickets before this one, the nearest last; without one, all.
    pub(crate) fn tickets_before(&self, mine: Option<&Ticket>) -> Result<Vec<u64>, HostError> {
        let mut before = Vec::new();
        for number in self.tickets()? {
            if mine.is_none_or(|mine| number < mine.number) && is_held(&self.ticket(number))? {
                before.push(number);
            }
        }
        before.sort_unstable();
        Ok(before)
    }

    /// Begins to wait for the owner of that ticket; `None` when it has left already.
    pub(crate) fn watch_ticket(&self, number: u64) -> Option<Ahead> {
        let file = File::open(self.ticket(number)).ok()?;
        let (done, through) = channel();
        // The kernel wakes it when the owner's lock goes, whatever ended the owner.
        let thread = std::thread::spawn(move || {
            let _ = file.lock_shared();
            let _ = done.send(());
        });
        Some(Ahead { through, thread })
    }

    fn tickets(&self) -> Result<Vec<u64>, HostError> {
        Ok(names(&self.line())?.iter().filter_map(|name| name.parse().ok()).collect())
    }

    fn ticket(&self, number: u64) -> PathBuf {
        self.line().join(number.to_string())
    }
}

/// Somebody before us in the line.
#[derive(Debug)]
pub(crate) struct Ahead {
    through: Receiver<()>,
    thread: JoinHandle<()>,
}

impl Ahead {
    /// Waits at most `limit`, and not much longer than until `is_cancelled`; gives itself back when
    /// the owner still waits.
    pub(crate) fn wait(self, limit: Duration, is_cancelled: impl Fn() -> bool) -> Option<Self> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.through.recv_timeout(left.min(GLIMPSE)) != Err(RecvTimeoutError::Timeout) {
                break;
            }
            if left <= GLIMPSE || is_cancelled() {
                return Some(self);
            }
        }
        // The caller may fork, for which it must be alone.
        let _ = self.thread.join();
        None
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Left behind, it would be removed by the next who takes one.
        let _ = fs::remove_file(self.lock.path());
    }
}

fn remove(path: PathBuf) -> Result<(), HostError> {
    match fs::remove_file(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(HostError::system("remove", &path)),
    }
}
