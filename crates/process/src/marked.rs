//! Processes known by a mark in their environment: how the remains of runs are found when nothing
//! else leads to them any more.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::group::{GIVE_UP, descendants};
use crate::identity::{ProcessIdentity, Stat, to_pid};

/// What the environment of a process must have.
#[derive(Debug, Clone, Default)]
pub struct Mark {
    whole: Vec<Vec<u8>>,
    beginnings: Vec<Vec<u8>>,
}

impl Mark {
    /// Asks for the variable with exactly this value.
    #[must_use]
    pub fn with(mut self, name: &str, value: &OsStr) -> Self {
        self.whole.push(pair(name, value));
        self
    }

    /// Asks for the variable with a value that begins so.
    #[must_use]
    pub fn with_beginning(mut self, name: &str, beginning: &OsStr) -> Self {
        self.beginnings.push(pair(name, beginning));
        self
    }

    /// Whether the process has it. Only those of this user can be read.
    pub fn is_on(&self, pid: u32) -> bool {
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
        let has = |fits: &dyn Fn(&[u8]) -> bool| environment.split(|byte| *byte == 0).any(fits);
        self.whole.iter().all(|wanted| has(&|pair| pair == wanted))
            && self.beginnings.iter().all(|wanted| has(&|pair| pair.starts_with(wanted)))
    }

    /// The living processes that have it, but for `spared` ones.
    pub fn holders(&self, spared: &[u32]) -> Vec<ProcessIdentity> {
        fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid| !spared.contains(pid))
            .filter_map(|pid| {
                // Known before its environment is read: the number may pass on between.
                let identity = ProcessIdentity::of(pid).ok()?;
                (self.is_on(pid) && identity.is_alive()).then_some(identity)
            })
            .collect()
    }
}

fn pair(name: &str, value: &OsStr) -> Vec<u8> {
    [name.as_bytes(), b"=", value.as_bytes()].concat()
}

/// Ends all processes that have the mark, and what descends from them: TERM, at most `grace`, KILL until
/// none is found. Gives how many were signalled.
///
/// # Errors
/// `TimedOut` when one survives KILL for 5 s.
pub fn end_marked(mark: &Mark, spared: &[u32], grace: Duration) -> io::Result<usize> {
    let mut seen: BTreeMap<u32, u64> = BTreeMap::new();
    let killing = Instant::now() + grace;
    let given_up = killing + GIVE_UP;
    let mut count = 0;
    loop {
        let mut members: BTreeMap<u32, u64> = BTreeMap::new();
        for root in mark.holders(spared) {
            members.insert(root.pid, root.start_time);
            for pid in descendants([root.pid]).into_iter().filter(|pid| !spared.contains(pid)) {
                if let Ok(stat) = Stat::of(pid)
                    && !stat.is_dead()
                    // The list may be older than the number's present owner.
                    && (pid == root.pid || members.contains_key(&stat.parent))
                {
                    members.entry(pid).or_insert(stat.start_time);
                }
            }
        }
        // What was told to end and lost its parent since is found by what it was.
        seen.retain(|pid, start| is_running(*pid, *start));
        members.extend(seen.iter().map(|(pid, start)| (*pid, *start)));
        let now = Instant::now();
        if members.is_empty() {
            return Ok(count);
        }
        if now >= given_up {
            let text = format!("{} marked processes survive KILL", members.len());
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        for (pid, start) in &members {
            let is_new = seen.insert(*pid, *start).is_none();
            count += usize::from(is_new);
            if now >= killing {
                signal(*pid, *start, Signal::KILL);
            } else if is_new {
                signal(*pid, *start, Signal::TERM);
                signal(*pid, *start, Signal::CONT);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_running(pid: u32, start_time: u64) -> bool {
    Stat::of(pid).is_ok_and(|stat| stat.start_time == start_time && !stat.is_dead())
}

fn signal(pid: u32, start_time: u64, signal: Signal) {
    let Some(number) = to_pid(pid) else { return };
    // Opened before the look: the signal reaches the process that was looked at, or nobody.
    let Ok(handle) = pidfd_open(number, PidfdFlags::empty()) else { return };
    if is_running(pid, start_time) {
        // It may have ended by itself, which is what was wanted.
        let _ = pidfd_send_signal(&handle, signal);
    }
}
