//! Where stead keeps things: every path, derived in one place from the environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use stead_core::env;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_place::{Host, PortRange};

/// The longest path that a Unix socket may have, in bytes.
const LONGEST_SOCKET: usize = 104;

/// The folders of one home, made by nobody yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    data: PathBuf,
    config: PathBuf,
    state: PathBuf,
    runtime: PathBuf,
}

impl Home {
    /// Derives the folders from environment variables; `user` is the numeric user id.
    ///
    /// Refuses a relative `STEAD_HOME`, and an environment that names no folder at all. Relative
    /// XDG variables count as not set, as their specification has it.
    pub fn derive(
        variables: &BTreeMap<OsString, OsString>,
        temporary: &Path,
        user: u32,
    ) -> Result<Self, Refusal> {
        let get =
            |name: &str| variables.get(name.as_ref() as &std::ffi::OsStr).filter(|v| !v.is_empty());
        let absolute = |name: &str| get(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let under_home = |below: &str| {
            absolute(env::HOME).map(|home| home.join(below)).ok_or_else(|| {
                let line = match get(env::HOME) {
                    Some(home) => format!("HOME={} is not absolute", Path::new(home).display()),
                    None => "neither HOME nor STEAD_HOME is set".to_owned(),
                };
                Refusal::new(RefusalKind::InvalidArgument, line)
                    .hint("set STEAD_HOME to an absolute folder of your own")
            })
        };
        let data = match get(env::STEAD_HOME).map(PathBuf::from) {
            Some(home) if home.is_absolute() => home,
            Some(home) => {
                return Err(Refusal::new(
                    RefusalKind::InvalidArgument,
                    format!("STEAD_HOME={} is not absolute", home.display()),
                )
                .hint("set it to an absolute folder of your own"));
            }
            None => match absolute(env::XDG_DATA_HOME) {
                Some(data) => data.join("stead"),
                None => under_home(".local/share/stead")?,
            },
        };
        let config = match absolute(env::XDG_CONFIG_HOME) {
            Some(config) => config.join("stead"),
            None => under_home(".config/stead").unwrap_or_else(|_| data.join("config")),
        };
        let state = match absolute(env::XDG_STATE_HOME) {
            Some(state) => state.join("stead"),
            None => under_home(".local/state/stead").unwrap_or_else(|_| data.join("state")),
        };
        let runtime = match absolute(env::XDG_RUNTIME_DIR) {
            Some(runtime) => runtime.join("stead"),
            None => temporary.join(format!("stead-{user}")),
        };
        Ok(Self { data, config, state, runtime })
    }

    /// `$STEAD_HOME`: the log, bodies, locks.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The event log.
    pub fn database(&self) -> PathBuf {
        self.data.join("stead.db")
    }

    /// Bodies longer than 64 KiB, by digest.
    pub fn blobs(&self) -> PathBuf {
        self.data.join("blobs")
    }

    /// Logs of the engine and of commands.
    pub fn logs(&self) -> PathBuf {
        self.data.join("log")
    }

    /// The lock of the engine that serves this home.
    pub fn engine_lock(&self) -> PathBuf {
        self.data.join("engine.lock")
    }

    /// The lock that every command of an agent holds, through its supervisor.
    pub fn runs_lock(&self) -> PathBuf {
        self.data.join("runs.lock")
    }

    /// Who serves this home.
    pub fn engine_record(&self) -> PathBuf {
        self.data.join("engine.json")
    }

    /// The registered working roots.
    pub fn roots(&self) -> PathBuf {
        self.data.join("roots.json")
    }

    /// The settings.
    pub fn settings(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Facts of this host and user, shared by all homes.
    pub fn host(&self) -> PathBuf {
        self.state.join("host")
    }

    /// What `XDG_STATE_HOME` must be so that another program finds the same places; none when they
    /// are not where that variable could lead.
    pub fn state_home(&self) -> Option<&Path> {
        self.state.parent().filter(|parent| parent.join("stead") == self.state)
    }

    /// The places of this host, as every process of this user sees them.
    pub fn places(&self) -> Host {
        let user = rustix::process::getuid().as_raw();
        // Not the temporary folder of the environment, which is another place's scratch inside a
        // run.
        let short = PathBuf::from(format!("/tmp/stead-{user}"));
        Host::new(&self.host(), &short, user, PortRange::default())
    }

    /// The folder of sockets.
    pub fn runtime(&self) -> &Path {
        &self.runtime
    }

    /// The person's socket of this home: named after the home's canonical path, so that two homes
    /// never share one.
    pub fn socket(&self) -> Result<PathBuf, Refusal> {
        let canonical = std::fs::canonicalize(&self.data).unwrap_or_else(|_| self.data.clone());
        let digest = stead_store::Body::new(canonical.as_os_str().as_bytes()).digest().to_string();
        let name: String = digest.chars().take(16).collect();
        let socket = self.runtime.join(format!("{name}.sock"));
        if socket.as_os_str().len() > LONGEST_SOCKET {
            return Err(Refusal::new(
                RefusalKind::InvalidArgument,
                format!("the socket's path {} is too long", socket.display()),
            )
            .hint("set XDG_RUNTIME_DIR to a shorter folder of your own"));
        }
        Ok(socket)
    }

    /// Every path with what it is for, in the order in which `stead paths` lists them.
    pub fn listing(&self) -> Vec<(&'static str, PathBuf, &'static str)> {
        let socket = self.socket().unwrap_or_else(|_| self.runtime.clone());
        let (copies, host) = (stead_copies::Home::new(&self.data), self.host());
        vec![
            ("home", self.data.clone(), "stead's own data"),
            ("log of events", self.database(), "sessions, mail, tasks, settings of sessions"),
            ("bodies", self.blobs(), "texts longer than 64 KiB, by digest"),
            ("copies", copies.copies(), "private copies, by session and task"),
            ("objects", copies.depots(), "Git objects that copies borrow, by root"),
            ("trash", copies.trash(), "copies that were discarded, for 30 days"),
            ("applies", copies.applies(), "journals and locks of applies"),
            ("logs", self.logs(), "of the engine and of agents' commands"),
            ("engine", self.engine_record(), "which process serves this home"),
            ("lock", self.engine_lock(), "held by that process"),
            ("lock of events", self.data.join("stead.lock"), "held by who writes the log"),
            ("lock of runs", self.runs_lock(), "held by it and by all that agents run"),
            ("roots", self.roots(), "which folders were selected as working roots"),
            ("socket", socket, "where that process listens"),
            ("settings", self.settings(), "yours; stead only reads it"),
            ("host", host.clone(), "what all homes of this user share on this machine"),
            ("places", host.join("places.json"), "which place holds which ports"),
            ("lock of places", host.join("places.lock"), "held while that is changed"),
            ("runs", host.join("runs"), "records and logs of runs in places"),
            ("bound", host.join("bound.lock"), "held while room for a run is given"),
            ("line", host.join("line"), "who waits for room"),
            ("releases", host.join("releasing"), "which places are being released"),
            ("aside", host.join("aside"), "records of runs that could not be read"),
            ("scratch", host.join("scratch"), "temporary folders of agents and places"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(pairs: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
        pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect()
    }

    #[test]
    fn folders_follow_the_environment() {
        let home = Home::derive(&vars(&[("HOME", "/h")]), Path::new("/tmp"), 7).unwrap();
        assert_eq!(home.data(), Path::new("/h/.local/share/stead"));
        assert_eq!(home.runtime(), Path::new("/tmp/stead-7"));
        let set = vars(&[("HOME", "/h"), ("STEAD_HOME", "/d"), ("XDG_RUNTIME_DIR", "relative")]);
        let home = Home::derive(&set, Path::new("/tmp"), 7).unwrap();
        assert_eq!((home.data(), home.runtime()), (Path::new("/d"), Path::new("/tmp/stead-7")));
        assert!(Home::derive(&vars(&[("STEAD_HOME", "d")]), Path::new("/tmp"), 7).is_err());
        let refused = |pairs| Home::derive(&vars(pairs), Path::new("/tmp"), 7).unwrap_err().line;
        assert_eq!(refused(&[]), "neither HOME nor STEAD_HOME is set");
        assert_eq!(refused(&[("HOME", "rel")]), "HOME=rel is not absolute");
    }
}
