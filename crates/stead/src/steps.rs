//! Crash steps (feature `steps`): what the walks of the tests do at each of them.
//!
//! `STEAD_STEPS` holds settings, separated by commas:
//!
//! - `record=FILE`: each step appends `name before` or `name after` and a line feed to FILE.
//! - `kill=N`: the process kills itself with SIGKILL at the N-th step that it passes, counted from 1.
//! - `counter=FILE`, with `kill`: steps are counted in FILE over all processes that have the same
//!   setting, under a lock, so that an engine that is started again goes on counting and is killed
//!   once only.
//!
//! A step is recorded before it kills. A setting that cannot be understood, and a file that cannot
//! be written, ends the process at the first step: a walk must not pass because nothing happened.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Signal, getpid, kill_process};
use stead_core::env::STEAD_STEPS;
use stead_core::step::Moment;

static SETTING: OnceLock<Option<Setting>> = OnceLock::new();
static PASSED: AtomicU64 = AtomicU64::new(0);

#[derive(Debug, Default, PartialEq, Eq)]
struct Setting {
    record: Option<PathBuf>,
    kill: Option<u64>,
    counter: Option<PathBuf>,
}

/// The observer of all steps of this program.
pub(crate) fn observe(name: &str, moment: Moment) {
    let setting = SETTING.get_or_init(|| {
        let text = std::env::var(STEAD_STEPS).ok().filter(|text| !text.is_empty())?;
        let setting = parse(&text);
        if setting.is_none() {
            die();
        }
        setting
    });
    if let Some(setting) = setting
        && act(setting, name, moment).is_err()
    {
        die();
    }
}

fn parse(text: &str) -> Option<Setting> {
    let mut setting = Setting::default();
    for part in text.split(',') {
        match part.split_once('=')? {
            ("record", file) => setting.record = Some(file.into()),
            ("kill", number) => setting.kill = Some(number.parse().ok()?),
            ("counter", file) => setting.counter = Some(file.into()),
            _ => return None,
        }
    }
    Some(setting)
}

fn act(setting: &Setting, name: &str, moment: Moment) -> io::Result<()> {
    if let Some(file) = &setting.record {
        let moment = match moment {
            Moment::Before => "before",
            Moment::After => "after",
        };
        // One write of a short line to a file opened for appending is one line, whoever else writes.
        let mut file = OpenOptions::new().append(true).create(true).open(file)?;
        file.write_all(format!("{name} {moment}\n").as_bytes())?;
    }
    let Some(last) = setting.kill else { return Ok(()) };
    let passed = match &setting.counter {
        Some(file) => counted(file)?,
        None => PASSED.fetch_add(1, Ordering::SeqCst) + 1,
    };
    if passed == last {
        die();
    }
    Ok(())
}

/// Counts one more in the file, and gives the new number.
fn counted(file: &PathBuf) -> io::Result<u64> {
    let mut file: File =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(file)?;
    flock(&file, FlockOperation::LockExclusive)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let number = text.trim().parse().unwrap_or(0_u64) + 1;
    file.rewind()?;
    // Numbers only grow, so nothing of the old one is left behind the new one.
    file.write_all(number.to_string().as_bytes())?;
    Ok(number)
}

fn die() {
    let _ = kill_process(getpid(), Signal::KILL);
    // The signal may be on its way yet.
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_whole_or_not_at_all() {
        let setting = parse("kill=3,counter=/c,record=/r").unwrap();
        assert_eq!(setting.kill, Some(3));
        assert_eq!(setting.counter, Some("/c".into()));
        assert_eq!(setting.record, Some("/r".into()));
        for bad in ["kill", "kill=x", "kil=3", "kill=3,"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn steps_are_recorded_and_counted_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let (record, counter) = (folder.path().join("record"), folder.path().join("counter"));
        let setting = Setting {
            record: Some(record.clone()),
            kill: Some(1000),
            counter: Some(counter.clone()),
        };
        for _ in 0..12 {
            act(&setting, "store.append", Moment::Before).unwrap();
        }
        act(&setting, "store.append", Moment::After).unwrap();
        let lines = std::fs::read_to_string(record).unwrap();
        assert_eq!(lines.lines().count(), 13);
        assert!(lines.ends_with("store.append before\nstore.append after\n"));
        assert_eq!(std::fs::read_to_string(counter).unwrap(), "13");
    }
}
