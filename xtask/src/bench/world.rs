//! A home of its own, and the program in it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::report::Result;

/// What a build or a script in the world needs of the machine.
const KEPT: &[&str] =
    &["PATH", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "SSL_CERT_FILE", "LANG"];

/// The file whose coming says that a playbook has been played.
pub(crate) const DONE: &str = "played";

/// A home and everything else that stead keeps, in a folder that goes with it. The engine of the
/// home is stopped when the world is dropped.
pub(crate) struct World {
    folder: TempDir,
    program: PathBuf,
    variables: BTreeMap<OsString, OsString>,
}

impl World {
    /// A world below `base` in which `program` is stead.
    pub(crate) fn new(base: &Path, program: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("w-").tempdir_in(base)?;
        let mut variables: BTreeMap<OsString, OsString> = BTreeMap::new();
        for (name, below) in [
            ("HOME", "user"),
            ("STEAD_HOME", "home"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_RUNTIME_DIR", "run"),
        ] {
            variables.insert(name.into(), folder.path().join(below).into());
        }
        // Toolchains live below the person's home when no variable says otherwise.
        if let Some(home) = std::env::var_os("HOME").map(PathBuf::from) {
            for (name, below) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
                variables.insert(name.into(), home.join(below).into());
            }
        }
        let kept = KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        variables.extend(kept.map(|(name, value)| (OsString::from(name), value)));
        // What is stead's own it makes itself.
        for name in ["user", "run", "work"] {
            fs::create_dir(folder.path().join(name))?;
        }
        Ok(Self { folder, program: program.to_owned(), variables })
    }

    /// Sets a variable for every later command.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.insert(name.into(), value.into());
    }

    /// Writes the settings.
    pub(crate) fn settings(&self, text: &str) -> Result<()> {
        let folder = self.folder.path().join("config/stead");
        fs::create_dir_all(&folder)?;
        Ok(fs::write(folder.join("config.toml"), text)?)
    }

    /// The environment of every command.
    pub(crate) fn variables(&self) -> &BTreeMap<OsString, OsString> {
        &self.variables
    }

    /// A folder for agents to work in.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// The engine's log.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("home/log/engine.log")
    }

    /// The process that serves the home.
    pub(crate) fn engine(&self) -> Result<u32> {
        let record = fs::read(self.folder.path().join("home/engine.json"))?;
        let record: serde_json::Value = serde_json::from_slice(&record)?;
        let pid = record.pointer("/process/pid").and_then(serde_json::Value::as_u64);
        Ok(u32::try_from(pid.ok_or("engine.json names no process")?)?)
    }

    /// The program with these arguments in `directory`, its input empty.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        directory: &Path,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env_clear()
            .envs(&self.variables)
            .current_dir(directory)
            .stdin(Stdio::null());
        command
    }

    /// What the program prints; an error with all it said when it fails.
    pub(crate) fn ok<S: AsRef<OsStr>>(
        &self,
        directory: &Path,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<String> {
        let mut command = self.command(directory, arguments);
        let Output { status, stdout, stderr } = command.output()?;
        let text = String::from_utf8_lossy(&stdout).into_owned();
        if status.success() {
            return Ok(text);
        }
        let says = command.get_args().map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ");
        let errors = String::from_utf8_lossy(&stderr);
        Err(format!("`stead {says}` ended with {status}\n{text}\n{errors}").into())
    }

    /// Plays a playbook in the work folder with nobody looking on, and waits until it has made the
    /// file [`DONE`] there. Answers the session's id.
    pub(crate) fn play(&self, playbook: &str, patience: Duration) -> Result<String> {
        let (work, done) = (self.work(), self.work().join(DONE));
        let _ = fs::remove_file(&done);
        let file = self.folder.path().join("playbook.toml");
        fs::write(&file, playbook)?;
        let agent = format!("playbook:{}", file.display());
        let run = ["run", "--in-place", "--detach", "--mode", "full-auto", "--agent", &agent, "go"];
        let session = self.ok(&work, run)?.trim().to_owned();
        let deadline = Instant::now() + patience;
        while !done.exists() {
            if Instant::now() > deadline {
                let shown = self.ok(&work, ["sessions", "show", &session])?;
                return Err(format!("it was not played in {patience:?}:\n{shown}").into());
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(session)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.command(Path::new("/"), ["serve", "--stop"]).output();
    }
}
