//! A home of its own for one test, and the program in it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A home, folders for everything that stead keeps, and a work folder; the engine that serves the
/// home is stopped when the world is dropped.
pub struct World {
    folder: TempDir,
    program: PathBuf,
    variables: BTreeMap<OsString, OsString>,
}

impl World {
    /// A world in which `program` is stead.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self::below(&std::env::temp_dir(), program)
    }

    /// The same, with all its folders below `base`.
    pub fn below(base: &Path, program: impl Into<PathBuf>) -> Self {
        let folder = tempfile::Builder::new().prefix("st-").tempdir_in(base).unwrap();
        let at = |name: &str| folder.path().join(name).into_os_string();
        let mut variables: BTreeMap<OsString, OsString> = BTreeMap::from(
            [
                ("HOME", at("user")),
                ("STEAD_HOME", at("home")),
                ("XDG_CONFIG_HOME", at("config")),
                ("XDG_STATE_HOME", at("state")),
                ("XDG_RUNTIME_DIR", at("run")),
                ("GIT_CONFIG_NOSYSTEM", "1".into()),
                ("LC_ALL", "C.UTF-8".into()),
            ]
            .map(|(name, value)| (name.into(), value)),
        );
        // What a build in the world needs of the machine: its tools, wherever they were installed.
        for name in ["PATH", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
            if let Some(value) = std::env::var_os(name) {
                variables.insert(name.into(), value);
            }
        }
        if let Some(home) = std::env::var_os("HOME") {
            for (name, below) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
                variables
                    .entry(name.into())
                    .or_insert_with(|| Path::new(&home).join(below).into_os_string());
            }
        }
        for name in ["user", "run", "work"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, program: program.into(), variables }
    }

    /// Sets a variable for every later command.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.insert(name.into(), value.into());
    }

    /// Removes a variable from every later command.
    pub fn unset(&mut self, name: &str) {
        self.variables.remove(OsStr::new(name));
    }

    /// The environment of every command.
    pub fn variables(&self) -> &BTreeMap<OsString, OsString> {
        &self.variables
    }

    /// The folder in which everything of the world is.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// `STEAD_HOME`.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The work folder, canonical.
    pub fn work(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("work")
    }

    /// The program with these arguments in the work folder, its input empty.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env_clear()
            .envs(&self.variables)
            .current_dir(self.work())
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs the program, demands that it succeeds, and gives its standard output.
    pub fn ok<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> String {
        let output = self.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}\n{text}\n{errors}", output.status);
        text
    }

    /// Runs the program with `--json` and gives the document.
    pub fn json<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> serde_json::Value {
        let mut words: Vec<OsString> =
            arguments.into_iter().map(|a| a.as_ref().to_owned()).collect();
        words.push("--json".into());
        let text = self.ok(words);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    /// Writes a file below the work folder, with the folders it needs.
    pub fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.work().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The process that serves the home, as `engine.json` says.
    pub fn engine(&self) -> Option<u32> {
        let text = std::fs::read(self.home().join("engine.json")).ok()?;
        let record: serde_json::Value = serde_json::from_slice(&text).ok()?;
        u32::try_from(record.get("process")?.get("pid")?.as_u64()?).ok()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // The engine ends by itself as well, once its home is gone.
        let _ = self.command(["serve", "--stop"]).output();
    }
}
