//! Who serves the home.

use std::os::unix::net::UnixStream;
use std::path::Path;

use stead_engine::{BUILD, Home, read_record};
use stead_process::ProcessIdentity;

use super::finding::Finding;

const WHAT: &str = "engine";

/// What is known of the engine, and whether one is alive.
pub(super) fn engine(home: &Home) -> (Vec<Finding>, bool) {
    let Some(record) = read_record(home) else {
        return match holder(&home.engine_lock()) {
            Some(holder) => (
                vec![Finding::warning(
                    WHAT,
                    format!("{holder} holds the home, but does not say where it listens"),
                    "it may just be starting or ending: look again",
                )],
                true,
            ),
            None => (vec![Finding::ok(WHAT, "not running; every command starts it")], false),
        };
    };
    let pid = record.process.pid;
    if !record.process.is_alive() {
        let line = format!("process {pid} served the home and ended without saying so");
        let help = "nothing has to be done: the next stead command starts a new one, which settles \
                    what was running";
        return (vec![Finding::warning(WHAT, line, help)], false);
    }
    if UnixStream::connect(&record.socket).is_err() {
        let line = format!("process {pid} serves the home but does not answer");
        let help = format!("`kill {pid}` ends it; nothing that is stored is lost");
        return (vec![Finding::fault(WHAT, line, help)], true);
    }
    let line = format!("process {pid} serves the home, stead {}", record.version);
    let finding = if record.build == BUILD {
        Finding::ok(WHAT, line)
    } else {
        Finding::warning(
            WHAT,
            format!("{line}, of another build ({})", record.build),
            "nothing has to be done: it is replaced as soon as it is idle",
        )
    };
    (vec![finding], true)
}

/// Commands of agents that outlived their engine.
pub(super) fn runs(home: &Home, engine_alive: bool) -> Option<Finding> {
    let holder = holder(&home.runs_lock()).filter(|_| !engine_alive)?;
    Some(Finding::warning(
        "runs",
        format!("{holder} still ends what an agent ran under an engine that is gone"),
        "the next engine waits for it",
    ))
}

/// The live process that says it holds a lock.
fn holder(lock: &Path) -> Option<String> {
    let holder = stead_files::holder(lock).ok().flatten()?;
    let process = ProcessIdentity::of(holder.pid).ok()?;
    // A dead one that nobody has waited for yet holds nothing.
    let holds = process.start_time == holder.start_time && process.is_alive();
    holds.then(|| format!("process {}", holder.pid))
}
