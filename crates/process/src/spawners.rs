//! The spawner process of an owner, and its successor when it dies.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::spawner::{SpawnError, Spawner};

/// Starts the spawner process, and another one when it is gone. The runs of a spawner that died
/// have ended with it.
#[derive(Debug)]
pub struct Spawners {
    program: PathBuf,
    arguments: Vec<OsString>,
    now: Mutex<Arc<Spawner>>,
}

impl Spawners {
    /// Starts the first; `program` and `arguments` as in [`Spawner::start`].
    ///
    /// # Errors
    /// [`SpawnError::Spawner`].
    pub fn start(program: PathBuf, arguments: Vec<OsString>) -> Result<Self, SpawnError> {
        let first = Mutex::new(Arc::new(spawn(&program, &arguments)?));
        Ok(Self { program, arguments, now: first })
    }

    /// One that lives, started now if need be. May block.
    ///
    /// # Errors
    /// [`SpawnError::Spawner`].
    pub fn living(&self) -> Result<Arc<Spawner>, SpawnError> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.is_gone() {
            *now = Arc::new(spawn(&self.program, &self.arguments)?);
        }
        Ok(now.clone())
    }

    /// The last one started, dead or alive.
    pub fn last(&self) -> Arc<Spawner> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn spawn(program: &std::path::Path, arguments: &[OsString]) -> Result<Spawner, SpawnError> {
    let arguments: Vec<_> = arguments.iter().map(OsString::as_os_str).collect();
    Spawner::start(program, &arguments)
}
