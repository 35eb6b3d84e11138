//! What an engine has in the file system while it serves, and whether it is still there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stead_files::{FileIdentity, private_dir};
use tokio::task::JoinHandle;

use crate::caller::Behind;
use crate::door::listen;
use crate::engine::Engine;
use crate::server;

/// The database that an engine opened. A home that was removed, or another one at its path, has
/// not that one: what is stored then is found by nobody.
#[derive(Debug)]
pub(crate) struct Served {
    database: PathBuf,
    identity: FileIdentity,
}

impl Served {
    pub(crate) fn now(database: PathBuf) -> io::Result<Self> {
        let identity = FileIdentity::of(&database)?;
        Ok(Self { database, identity })
    }

    pub(crate) fn is_there(&self) -> bool {
        leads_to(&self.database, &self.identity)
    }
}

/// The person's door.
pub(crate) struct FrontDoor {
    socket: PathBuf,
    identity: FileIdentity,
    task: JoinHandle<()>,
}

impl FrontDoor {
    /// Opens it at `socket`, making the folder if need be.
    pub(crate) fn open(engine: Arc<Engine>, socket: &Path) -> io::Result<Self> {
        if let Some(folder) = socket.parent() {
            private_dir(folder).map_err(io::Error::other)?;
        }
        let listener = listen(socket)?;
        let identity = FileIdentity::of(socket)?;
        let task = tokio::spawn(server::serve(engine, listener, Behind::Person));
        Ok(Self { socket: socket.to_owned(), identity, task })
    }

    /// Whether clients find it.
    pub(crate) fn is_there(&self) -> bool {
        leads_to(&self.socket, &self.identity)
    }
}

impl Drop for FrontDoor {
    fn drop(&mut self) {
        self.task.abort();
        // The engine of a home that took this one's place may listen there by now.
        if self.is_there() {
            let _ = fs::remove_file(&self.socket);
        }
    }
}

fn leads_to(path: &Path, identity: &FileIdentity) -> bool {
    FileIdentity::of(path).is_ok_and(|now| now == *identity)
}
