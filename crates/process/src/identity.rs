//! Which process a number means: the number alone is given again, so the start time and the boot
//! go with it.

use std::fs;
use std::io;
use std::sync::OnceLock;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

/// A process, told apart from every other one that has had or will have its number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The process number.
    pub pid: u32,
    /// When it started: clock ticks after the machine's start (field 22 of `/proc/PID/stat`).
    pub start_time: u64,
    /// The boot it started in (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
}

impl ProcessIdentity {
    /// The process that has the number `pid` now.
    ///
    /// # Errors
    /// `NotFound` when there is none; else the system's.
    pub fn of(pid: u32) -> io::Result<Self> {
        Ok(Self { pid, start_time: Stat::of(pid)?.start_time, boot_id: boot_id()?.to_owned() })
    }

    /// This process.
    ///
    /// # Errors
    /// The system's, where `/proc` cannot be read.
    pub fn of_self() -> io::Result<Self> {
        Self::of(std::process::id())
    }

    /// Whether this very process still runs: a zombie, a stranger with its number and a process of
    /// an earlier boot do not count.
    pub fn is_alive(&self) -> bool {
        boot_id().is_ok_and(|now| now == self.boot_id)
            && Stat::of(self.pid).is_ok_and(|stat| self.is(&stat) && !stat.is_dead())
    }

    pub(crate) fn is(&self, stat: &Stat) -> bool {
        stat.start_time == self.start_time
    }
}

/// The parent of `pid`, its parent, and so on up to the first process; empty when there is no such
/// process. A process that dies during the walk ends it early.
pub fn ancestors(pid: u32) -> Vec<ProcessIdentity> {
    let mut found: Vec<ProcessIdentity> = Vec::new();
    let mut current = pid;
    while let Ok(stat) = Stat::of(current) {
        // A number that was given again during the walk could lead round in a circle.
        if stat.parent == 0 || found.iter().any(|known| known.pid == stat.parent) {
            break;
        }
        let Ok(parent) = ProcessIdentity::of(stat.parent) else { break };
        current = parent.pid;
        found.push(parent);
    }
    found
}

/// The session that `pid` belongs to, by the process number of its first leader.
///
/// # Errors
/// `NotFound` when there is no such process; else the system's.
pub fn session(pid: u32) -> io::Result<u32> {
    Ok(Stat::of(pid)?.session)
}

/// What `/proc/PID/stat` says.
pub(crate) struct Stat {
    pub(crate) name: String,
    pub(crate) state: char,
    pub(crate) parent: u32,
    pub(crate) session: u32,
    pub(crate) start_time: u64,
}

impl Stat {
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let bytes = match fs::read(format!("/proc/{pid}/stat")) {
            // What the kernel says when the process is reaped between open and read.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                return Err(io::ErrorKind::NotFound.into());
            }
            other => other?,
        };
        Self::parse(&String::from_utf8_lossy(&bytes))
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a strange /proc/PID/stat"))
    }

    fn parse(text: &str) -> Option<Self> {
        // The name may hold spaces and parentheses itself.
        let (start, rest) = text.rsplit_once(')')?;
        let (_, name) = start.split_once('(')?;
        let mut fields = rest.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        let start_time = fields.nth(15)?.parse().ok()?;
        let name = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        Some(Self { name, state, parent, session, start_time })
    }

    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

pub(crate) fn boot_id() -> io::Result<&'static str> {
    static BOOT: OnceLock<String> = OnceLock::new();
    if let Some(known) = BOOT.get() {
        return Ok(known);
    }
    let read = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(BOOT.get_or_init(|| read.trim().to_owned()))
}

/// The kernel's form of a process number; `None` for 0 and for what is too large to be one.
pub(crate) fn to_pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

pub(crate) fn from_pid(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let text = "7 (a) b (c)) S 3 4 5 0 -1 1 2 3 4 5 6 7 8 9 20 0 1 0 4242 1 1\n";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.name.as_str(), stat.state, stat.parent), ("a) b (c)", 'S', 3));
        assert_eq!((stat.session, stat.start_time), (5, 4242));
        assert!(Stat::parse("7 (half) S 3").is_none());
    }

    #[test]
    fn this_process_is_alive_and_its_double_of_another_time_is_not() {
        let me = ProcessIdentity::of_self().unwrap();
        assert!(me.is_alive());
        assert!(!ProcessIdentity { start_time: me.start_time + 1, ..me.clone() }.is_alive());
        assert!(!ProcessIdentity { boot_id: "other".to_owned(), ..me.clone() }.is_alive());
        let parent = rustix::process::getppid().map(from_pid);
        assert_eq!(ancestors(me.pid).first().map(|found| found.pid), parent);
    }

    #[test]
    fn a_process_that_leads_a_session_is_in_its_own() {
        let mut leader =
            std::process::Command::new("setsid").args(["sleep", "600"]).spawn().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while session(leader.id()).unwrap() != leader.id() {
            assert!(std::time::Instant::now() < deadline, "setsid led no session in 20 s");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        leader.kill().unwrap();
        leader.wait().unwrap();
    }
}
