//! What becomes of a command in the process that is to watch it: its parts are looked at, its
//! program is looked up and started.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use rustix::io::Errno;
use rustix::process::Pid;

use crate::system;
use crate::wire::{Part, Refusal};

/// Where a program is looked for when its environment does not say.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What is started.
pub(crate) struct Launch<'a> {
    pub(crate) program: &'a OsStr,
    pub(crate) arguments: &'a [OsString],
    pub(crate) environment: &'a BTreeMap<OsString, OsString>,
    pub(crate) directory: &'a Path,
}

impl Launch<'_> {
    /// Refuses what no program can be given, and says which part it is.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let has_zero = |text: &OsStr| text.as_bytes().contains(&0);
        if self.program.is_empty() || has_zero(self.program) {
            return Err("program's name");
        }
        if self.arguments.iter().any(|argument| has_zero(argument)) {
            return Err("arguments");
        }
        let is_no_name = |name: &OsStr| name.is_empty() || name.as_bytes().contains(&b'=');
        if self.environment.iter().any(|(n, v)| is_no_name(n) || has_zero(n) || has_zero(v)) {
            return Err("environment");
        }
        Ok(())
    }

    /// Starts the command as the leader of a new session with these as its standard input, output
    /// and error. Leaves this process in `/`.
    pub(crate) fn start(&self, stdio: [BorrowedFd<'_>; 3]) -> Result<Pid, Refusal> {
        let part = |part| move |error: io::Error| Refusal::new(part, &error);
        // This process serves this one command, so its own directory may be the command's.
        std::env::set_current_dir(self.directory).map_err(part(Part::Directory))?;
        let program = zero_ended(self.find().map_err(part(Part::Lookup))?.as_os_str());
        let mut arguments = vec![zero_ended(self.program)];
        arguments.extend(self.arguments.iter().map(|argument| zero_ended(argument)));
        let environment: Vec<CString> = self.environment.iter().map(variable).collect();
        let leader = system::launch(&program, &arguments, &environment, stdio)
            .map_err(part(Part::Program))?;
        // Nothing of the command's is to be held by the one who watches it.
        let _ = std::env::set_current_dir("/");
        Ok(leader)
    }

    /// Looks the program up as a shell would, by the command's own `PATH`.
    fn find(&self) -> io::Result<PathBuf> {
        if self.program.as_bytes().contains(&b'/') {
            rustix::fs::access(self.program, Access::EXISTS)?;
            return Ok(self.program.into());
        }
        let path = self.environment.get(OsStr::new("PATH"));
        let path = path.map_or(OsStr::new(USUAL_PATH), OsString::as_os_str);
        let mut refused = None;
        for folder in std::env::split_paths(path) {
            // An empty entry means the working directory, which a bare name would not.
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
            let candidate = folder.join(self.program);
            if candidate.is_file() {
                match rustix::fs::access(&candidate, Access::EXEC_OK) {
                    Ok(()) => return Ok(candidate),
                    Err(_) => refused = refused.or(Some(candidate)),
                }
            }
        }
        // Starting one that may not be executed gives the error that says so.
        refused.ok_or_else(|| Errno::NOENT.into())
    }
}

fn variable((name, value): (&OsString, &OsString)) -> CString {
    let mut pair = name.clone();
    pair.push("=");
    pair.push(value);
    zero_ended(&pair)
}

/// [`Launch::check`] has refused zero bytes; should one come all the same, the text ends there.
fn zero_ended(text: &OsStr) -> CString {
    let bytes = text.as_bytes().split(|byte| *byte == 0).next().unwrap_or_default();
    CString::new(bytes).unwrap_or_default()
}
