//! The environment of what runs in a place: rebuilt at every start, never inherited.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use stead_core::env;
use stead_core::id::SessionId;
use stead_core::path::AgentPath;
use stead_process::environment::scrubbed;

use crate::place::Place;
use crate::ports::BLOCK;
use crate::registry::Hold;
use crate::run::Run;

/// Whose processes run in a place.
#[derive(Debug, Clone, Copy)]
pub struct Identity<'a> {
    /// The agent's id.
    pub agent: &'a SessionId,
    /// The agent's address.
    pub path: &'a AgentPath,
    /// The socket on which its callers are that agent.
    pub socket: &'a Path,
}

impl Place {
    /// The complete environment: the allow-listed part of the client's, then stead's own. `TMPDIR`
    /// is the scratch folder.
    pub fn environment(
        &self,
        client: &BTreeMap<OsString, OsString>,
        identity: Identity<'_>,
    ) -> BTreeMap<OsString, OsString> {
        let mut environment = scrubbed(client.clone());
        let mut set = |name: &str, value: OsString| {
            environment.insert(name.into(), value);
        };
        set("TMPDIR", self.scratch().into());
        set(env::STEAD_SCRATCH, self.scratch().into());
        set(env::STEAD_PLACE, self.directory().as_path().into());
        set(env::STEAD_SESSION, identity.agent.as_str().into());
        set(env::STEAD_AGENT, identity.path.as_str().into());
        set(env::STEAD_SOCKET, identity.socket.into());
        environment
    }
}

/// The same for a run: beside the place's scratch folder, its ports and the run's name.
pub(crate) fn of_run(
    hold: &Hold,
    run: &Run,
    client: &BTreeMap<OsString, OsString>,
    identity: Option<Identity<'_>>,
) -> BTreeMap<OsString, OsString> {
    let mut environment = scrubbed(client.clone());
    let mut set = |name: &str, value: OsString| {
        environment.insert(name.into(), value);
    };
    // A run inside the run counts against the same bound and is known as a part of it.
    if let Some(state) = client.get(OsStr::new(env::XDG_STATE_HOME)) {
        set(env::XDG_STATE_HOME, state.clone());
    }
    set("TMPDIR", hold.scratch.as_path().into());
    set(env::STEAD_SCRATCH, hold.scratch.as_path().into());
    set(env::STEAD_PLACE, hold.directory.as_path().into());
    set(env::STEAD_RUN, run.id.clone().into());
    set(env::STEAD_PORT, hold.ports.first().to_string().into());
    set(env::STEAD_PORT_COUNT, BLOCK.to_string().into());
    for (number, port) in hold.ports.ports().enumerate() {
        set(&format!("{}_{number}", env::STEAD_PORT), port.to_string().into());
    }
    if let Some(identity) = identity {
        set(env::STEAD_SESSION, identity.agent.as_str().into());
        set(env::STEAD_AGENT, identity.path.as_str().into());
        set(env::STEAD_SOCKET, identity.socket.into());
    }
    environment
}

#[cfg(test)]
mod tests {
    use stead_core::layout::AbsoluteDir;

    use super::*;

    #[test]
    fn nothing_but_the_list_and_our_own_gets_in() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let agent = SessionId::parse("agent-1").unwrap();
        let directory = AbsoluteDir::new(&base).unwrap();
        let place = Place::adopt(&base, &directory, &agent).unwrap();
        let client = ["PATH", "API_KEY", "GIT_DIR", "STEAD_AGENT", "TMPDIR"]
            .map(|name| (OsString::from(name), OsString::from("from the client")));
        let environment = place.environment(
            &BTreeMap::from(client),
            Identity { agent: &agent, path: &AgentPath::root(), socket: Path::new("/s") },
        );
        let get = |name: &str| environment.get(std::ffi::OsStr::new(name));
        assert_eq!(get("PATH").unwrap(), "from the client");
        assert_eq!(get("STEAD_AGENT").unwrap(), "/root");
        assert_eq!(get("TMPDIR").unwrap(), place.scratch());
        assert!(get("API_KEY").is_none() && get("GIT_DIR").is_none());
    }
}
