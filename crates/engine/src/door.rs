//! Doors: the sockets on which the engine listens, and who stands behind each.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use stead_core::id::SessionId;
use stead_core::path::AgentPath;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use crate::caller::Behind;
use crate::engine::Engine;
use crate::server;

/// Opens doors for agents.
#[derive(Default)]
pub(crate) struct Doors {
    engine: OnceLock<Weak<Engine>>,
}

impl Doors {
    /// From now on doors lead to `engine`.
    pub(crate) fn lead_to(&self, engine: &Arc<Engine>) {
        let _ = self.engine.set(Arc::downgrade(engine));
    }

    /// A door on which every caller is the agent at `path`. It is closed when it is dropped.
    pub(crate) fn open(
        &self,
        socket: &Path,
        session: SessionId,
        path: AgentPath,
    ) -> io::Result<Door> {
        let engine =
            self.engine.get().and_then(Weak::upgrade).ok_or(io::ErrorKind::NotConnected)?;
        let listener = listen(socket)?;
        let behind = Behind::Agent { session, path };
        let task = tokio::spawn(server::serve(engine, listener, behind));
        Ok(Door { socket: socket.to_owned(), task })
    }
}

/// Binds a socket with mode 0600 in place of what an earlier process left there.
pub(crate) fn listen(socket: &Path) -> io::Result<UnixListener> {
    match fs::symlink_metadata(socket) {
        Ok(_) => fs::remove_file(socket)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// An open door.
pub(crate) struct Door {
    socket: PathBuf,
    task: JoinHandle<()>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.task.abort();
        let _ = fs::remove_file(&self.socket);
    }
}
