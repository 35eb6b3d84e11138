//! A tree of processes: who descends from whom now, and signals to all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, pidfd_open, pidfd_send_signal,
};

use crate::identity::{ProcessIdentity, Stat, boot_id, to_pid};

/// How long killed processes are waited for before they are given up as unkillable: by a process
/// in the kernel's uninterruptible sleep, or one of another user.
pub(crate) const GIVE_UP: Duration = Duration::from_secs(5);

/// The shortest time between two walks of a tree that is being killed: every death wakes whoever
/// watches it, and a walk after each would cost the square of their number.
pub(crate) const BETWEEN_WALKS: Duration = Duration::from_millis(5);

/// The processes that descend from `roots`, the roots included, parents first. Processes that are
/// being started meanwhile may be missing, so callers repeat until nothing is left.
pub(crate) fn descendants(roots: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let scanned = (!has_children_files()).then(children_by_scan);
    let mut seen: BTreeSet<u32> = BTreeSet::new();
    let mut found: Vec<u32> = roots.into_iter().filter(|root| seen.insert(*root)).collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        let children = match &scanned {
            Some(all) => all.get(&parent).cloned().unwrap_or_default(),
            None => children(parent),
        };
        found.extend(children.into_iter().filter(|child| seen.insert(*child)));
    }
    found
}

/// The processes that descend from this one.
pub(crate) fn own() -> Vec<u32> {
    descendants(children(std::process::id()))
}

/// Signals the processes that descend from this one.
pub(crate) fn signal_own(signal: Signal) {
    signal_all(std::process::id(), &own(), signal);
}

/// Takes the status of every child of this process that has ended, and keeps that of `leader` in
/// `status`; says whether no child is left.
pub(crate) fn reap(leader: Pid, status: &mut Option<WaitStatus>) -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, ended))) if pid == leader => *status = Some(ended),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// The direct children of `pid`, by whichever of its threads they were started.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    if !has_children_files() {
        return children_by_scan().remove(&pid).unwrap_or_default();
    }
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    threads
        .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok())
        .flat_map(|text| {
            text.split_ascii_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<u32>>()
        })
        .collect()
}

/// Not every kernel is built with the files that list a thread's children.
fn has_children_files() -> bool {
    static HAS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *HAS.get_or_init(|| fs::exists("/proc/thread-self/children").unwrap_or(false))
}

fn children_by_scan() -> BTreeMap<u32, Vec<u32>> {
    let mut all: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some((pid, stat)) = number.and_then(|pid| Some((pid, Stat::of(pid).ok()?))) {
            all.entry(stat.parent).or_default().push(pid);
        }
    }
    all
}

/// Signals each of `members`, which were just found to descend from `root`, unless its number has
/// meanwhile passed to a process outside the tree.
pub(crate) fn signal_all(root: u32, members: &[u32], signal: Signal) {
    let inside: BTreeSet<u32> = members.iter().copied().chain([root]).collect();
    for member in members {
        signal_if(*member, signal, |stat| inside.contains(&stat.parent));
    }
}

/// The descriptor is opened before the check: whatever has the number later, the signal can only
/// reach the process that was checked or nobody.
fn signal_if(pid: u32, signal: Signal, belongs: impl Fn(&Stat) -> bool) {
    let Some(number) = to_pid(pid) else { return };
    let Ok(handle) = pidfd_open(number, PidfdFlags::empty()) else { return };
    if Stat::of(pid).is_ok_and(|stat| belongs(&stat)) {
        // It may have ended by itself, which is what was wanted.
        let _ = pidfd_send_signal(&handle, signal);
        if signal == Signal::TERM {
            // A stopped process does not see the signal until it goes on.
            let _ = pidfd_send_signal(&handle, Signal::CONT);
        }
    }
}

/// Ends a recorded process and everything that descends from it: TERM, at most `grace` for it to
/// end, then KILL until none is left. Gives how many processes were signalled; 0 when that very
/// process no longer runs, whoever has its number now.
///
/// For trees whose supervisor is gone, at recovery; a descendant that left the tree before (its
/// parent died) is not found. Blocks at most `grace` and 5 s.
///
/// # Errors
/// `TimedOut` when a process survives KILL for 5 s; else the system's, where `/proc` cannot be read.
pub fn end_tree(leader: &ProcessIdentity, grace: Duration) -> io::Result<usize> {
    if !leader.is_alive() {
        return Ok(0);
    }
    let mut members = BTreeMap::from([(leader.pid, leader.start_time)]);
    grow(&mut members)?;
    signal_known(&members, Signal::TERM);
    let killing = Instant::now() + grace;
    let given_up = killing + GIVE_UP;
    loop {
        grow(&mut members)?;
        if !members.iter().any(|(pid, start)| is_running(*pid, *start)) {
            return Ok(members.len());
        }
        let now = Instant::now();
        if now >= given_up {
            let text = format!("process {} and its tree survive KILL", leader.pid);
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        if now >= killing {
            signal_known(&members, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn grow(members: &mut BTreeMap<u32, u64>) -> io::Result<()> {
    boot_id()?;
    let alive: Vec<u32> = members
        .iter()
        .filter(|(pid, start)| is_running(**pid, **start))
        .map(|(pid, _)| *pid)
        .collect();
    for pid in descendants(alive) {
        if let Ok(stat) = Stat::of(pid)
            && members.contains_key(&stat.parent)
        {
            members.entry(pid).or_insert(stat.start_time);
        }
    }
    Ok(())
}

fn is_running(pid: u32, start_time: u64) -> bool {
    Stat::of(pid).is_ok_and(|stat| stat.start_time == start_time && !stat.is_dead())
}

fn signal_known(members: &BTreeMap<u32, u64>, signal: Signal) {
    for (pid, start) in members {
        signal_if(*pid, signal, |stat| stat.start_time == *start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_find_the_same_children() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let me = std::process::id();
        assert!(children(me).contains(&child.id()));
        assert!(children_by_scan()[&me].contains(&child.id()));
        assert_eq!(descendants([child.id()]), vec![child.id()]);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_recorded_tree_is_ended_and_a_stranger_with_its_number_is_not() {
        let script = "trap '' TERM; (trap '' TERM; exec sleep 30) & sleep 30";
        let mut child = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
        let leader = ProcessIdentity::of(child.id()).unwrap();
        let stranger = ProcessIdentity { start_time: leader.start_time + 1, ..leader.clone() };
        assert_eq!(end_tree(&stranger, Duration::ZERO).unwrap(), 0);
        assert!(leader.is_alive());
        let deadline = Instant::now() + Duration::from_secs(5);
        while descendants([leader.pid]).len() < 3 && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(end_tree(&leader, Duration::from_millis(50)).unwrap(), 3);
        assert!(!leader.is_alive());
        child.wait().unwrap();
        assert_eq!(end_tree(&leader, Duration::ZERO).unwrap(), 0);
    }
}
