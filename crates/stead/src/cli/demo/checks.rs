//! What the demo itself runs and looks at: Git, the tests of the original, the servers.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use stead_core::refusal::{Refusal, RefusalKind};
use stead_engine::{bound_here, read_settings};
use stead_files::{CaptureOptions, Manifest, capture};
use stead_place::{Ask, Entered, GRACE, Patience, Request, top_of};
use stead_process::How;
use stead_process::environment::scrubbed;
use stead_process::tool::{Tool, find};

use super::stage::Stage;
use crate::context::own_program;

/// How long the tests of the project may take, on a machine that does much else.
const LONGEST: Duration = Duration::from_mins(10);
/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most of a log that is read.
const LARGEST_LOG: u64 = 1 << 20;

/// The programs that the demo needs.
#[derive(Debug, Clone)]
pub(super) struct Tools {
    git: PathBuf,
    cargo: PathBuf,
}

impl Tools {
    /// Finds them and looks that they work.
    pub(super) fn find() -> Result<Self, Refusal> {
        Ok(Self { git: working("git")?, cargo: working("cargo")? })
    }

    /// Makes the project a repository with one commit.
    pub(super) fn commit(&self, stage: &Stage) -> Result<(), Refusal> {
        let steps: [&[&str]; 6] = [
            &["init", "--quiet"],
            &["config", "user.name", "stead demo"],
            &["config", "user.email", "demo@localhost"],
            // The person's own key is not for this.
            &["config", "commit.gpgSign", "false"],
            &["add", "--all"],
            &["commit", "--quiet", "--message", "A library and a service, both broken"],
        ];
        for arguments in steps {
            let output = Tool::new(&self.git)
                .args(arguments)
                .env(scrubbed(stage.context.variables.clone()))
                .directory(stage.project())
                .run()
                .map_err(|error| failed(error.to_string()))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                return Err(failed(format!("git {} failed: {said}", arguments.join(" "))));
            }
        }
        Ok(())
    }

    /// Runs the tests of the original, as `stead exec` would: in its folder as a place. Blocks; a
    /// release of the place ends it.
    pub(super) fn test(&self, stage: &Stage) -> Result<Tests, Refusal> {
        let host = stage.context.home.places();
        let refused = |error: &dyn std::fmt::Display| failed(format!("the tests: {error}"));
        let ask = Ask {
            bound: bound_here(&read_settings(&stage.context.home)?),
            patience: Patience::Wait(LONGEST),
            command: "cargo test",
            session: None,
            cancel: Some(&stage.is_over),
        };
        let place = top_of(&stage.project()).map_err(|error| refused(&error))?;
        let entered = host.enter(&place, &ask, &mut |_| {}).map_err(|error| refused(&error))?;
        let Entered::Room(room) = entered else {
            return Err(failed("the demo is part of a run of its own project".to_owned()));
        };
        let words = ["test", "--offline", "--locked", "--workspace", "--no-fail-fast"];
        let mut arguments: Vec<OsString> = words.map(OsString::from).to_vec();
        // The original stays as it is, also what Git ignores.
        arguments.extend(["--target-dir".into(), stage.target().into()]);
        let request = Request {
            program: self.cargo.clone().into(),
            arguments,
            client: &stage.context.variables,
            identity: None,
            directory: stage.project(),
            time_limit: LONGEST,
            grace: GRACE,
        };
        let keeper = own_program()?;
        let started = room
            .start_by(&keeper, &[OsStr::new(crate::cli::KEEPER)], request, LARGEST_LOG)
            .map_err(|error| refused(&error))?;
        let how = started.kept.ended(None).map_err(|error| refused(&error))?;
        let text = fs::read_to_string(started.run.log()).unwrap_or_default();
        let tests = Tests::counted(&text);
        let is_green = how == Some(How::Exited(0));
        if tests.passed + tests.failed == 0 || is_green != (tests.failed == 0) {
            return Err(failed(format!("cargo test says nothing of tests:\n{text}")));
        }
        Ok(tests)
    }
}

/// How many tests passed and failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tests {
    pub(super) passed: usize,
    pub(super) failed: usize,
}

impl Tests {
    /// Counts the lines that tell of one test.
    fn counted(text: &str) -> Self {
        let count = |end: &str| {
            text.lines().filter(|line| line.starts_with("test ") && line.ends_with(end)).count()
        };
        Self { passed: count("... ok"), failed: count("... FAILED") }
    }
}

/// A program of the person's `PATH` that can be called.
fn working(name: &str) -> Result<PathBuf, Refusal> {
    let missing = |why: String| {
        Refusal::new(RefusalKind::Failed, format!("the demo needs {name}: {why}")).hint(
            match name {
                "cargo" => "https://rustup.rs tells how to install it; then try again",
                _ => "install it with the packages of your system; then try again",
            },
        )
    };
    let variables = std::env::vars_os();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = find(name, &path).ok_or_else(|| missing("it is not in PATH".to_owned()))?;
    let asked = Tool::new(&program).args(["--version"]).env(scrubbed(variables)).run();
    match asked {
        Ok(output) if output.status.success() => Ok(program),
        Ok(output) => Err(missing(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        Err(error) => Err(missing(error.to_string())),
    }
}

/// The whole original, its `.git` too.
pub(super) fn look(project: &Path) -> Result<Manifest, Refusal> {
    let captured = capture(project, None, &CaptureOptions::default());
    captured.map(|captured| captured.manifest).map_err(|error| failed(error.to_string()))
}

/// Asks a server on this machine, a line for each request.
pub(super) fn asked(port: u16, requests: &[&str]) -> std::io::Result<Vec<String>> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut answers = BufReader::new(stream.try_clone()?).lines();
    let mut heard = Vec::new();
    for request in requests {
        writeln!(stream, "{request}")?;
        heard
            .push(answers.next().unwrap_or_else(|| Err(std::io::ErrorKind::UnexpectedEof.into()))?);
    }
    Ok(heard)
}

pub(super) fn failed(line: String) -> Refusal {
    Refusal::new(RefusalKind::Failed, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_and_summaries_are_not() {
        let text = "test a ... ok\ntest b::c ... FAILED\ntest d ... ok\n\n\
                    test result: FAILED. 2 passed; 1 failed\n";
        assert_eq!(Tests::counted(text), Tests { passed: 2, failed: 1 });
    }
}
