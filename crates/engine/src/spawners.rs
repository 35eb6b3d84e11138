//! The spawner process of an engine, and its successor when it dies.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use stead_process::{SpawnError, Spawner};

/// Starts the spawner process, and another one when it is gone. The runs of a spawner that died
/// have ended with it.
pub(crate) struct Spawners {
    program: PathBuf,
    arguments: Vec<OsString>,
    now: Mutex<Arc<Spawner>>,
}

impl Spawners {
    /// Starts the first.
    pub(crate) fn start(program: PathBuf, arguments: Vec<OsString>) -> Result<Self, SpawnError> {
        let first = Mutex::new(Arc::new(spawn(&program, &arguments)?));
        Ok(Self { program, arguments, now: first })
    }

    /// One that lives.
    pub(crate) fn living(&self) -> Result<Arc<Spawner>, SpawnError> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.is_gone() {
            tracing::warn!(pid = now.identity().pid, "the spawner is gone; starting another");
            *now = Arc::new(spawn(&self.program, &self.arguments)?);
        }
        Ok(now.clone())
    }

    /// The last one started, dead or alive.
    pub(crate) fn last(&self) -> Arc<Spawner> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn spawn(program: &std::path::Path, arguments: &[OsString]) -> Result<Spawner, SpawnError> {
    let arguments: Vec<_> = arguments.iter().map(OsString::as_os_str).collect();
    Spawner::start(program, &arguments)
}
