//! Where the files lie that the tools of a turn would touch.
//!
//! What may be done with them is judged by [`stead_core::permission::Authority`]; here is found out
//! what is judged.
//!
//! A path is judged by where it really leads: links are followed first, and what is then compared,
//! by whole components, are canonical paths. So a root reached through a link works under both
//! names, and a link that leads out of every root does not (field_sbx_03, field_sbx_04).

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use stead_core::layout::Access;
use stead_core::permission::{Deed, Terms, Verdict, Zone};
use stead_core::refusal::{Refusal, RefusalKind};

use crate::driver::Turn;

/// As many links as the kernel itself follows before it says `ELOOP`.
const MOST_LINKS: usize = 40;

/// A folder, and what may be done in it.
type Allowed = (PathBuf, Access);

/// Where a turn may read and write without more ado.
#[derive(Debug, Clone)]
pub(crate) struct Authority {
    directory: PathBuf,
    allowed: Vec<Allowed>,
    /// What the roots are copies of, each with its copy: never touched, whoever allows it.
    originals: Vec<(PathBuf, PathBuf)>,
}

/// A path that a tool would touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where it really leads: no link stands in it.
    pub(crate) real: PathBuf,
    /// What people and models are shown: relative to the agent's directory where it is below it.
    pub(crate) shown: String,
    /// Where it lies.
    pub(crate) zone: Zone,
}

/// What a tool that goes through many files judges each of them by.
#[derive(Debug, Clone)]
pub(crate) struct Sight {
    pub(crate) authority: Arc<Authority>,
    pub(crate) terms: Terms,
}

impl Sight {
    /// A path that no link stands in.
    pub(crate) fn found(&self, real: &Path) -> Found {
        let (shown, zone) = (self.authority.show(real), self.authority.zone(real));
        Found { real: real.to_owned(), shown, zone }
    }

    /// Whether nobody need be asked to read this file or folder, whose path no link stands in.
    pub(crate) fn may_read(&self, real: &Path) -> bool {
        let zone = self.authority.zone(real);
        let deed = Deed::Read(name(real));
        self.terms.authority().judge(&deed, &[zone]) == Verdict::Allow
    }
}

impl Found {
    /// What of it a refusal can hint at.
    pub(crate) fn hint(&self, authority: &Authority) -> Option<String> {
        if self.zone == Zone::Outside {
            let roots = authority.roots();
            return Some(format!("only an exact leave of the person allows it; {roots}"));
        }
        let is_gits = self.real.components().any(|c| c.as_os_str().eq_ignore_ascii_case(".git"));
        is_gits.then(|| "what is Git's own is changed with the git program".to_owned())
    }

    /// One line for the person about doing `act` to it.
    pub(crate) fn subject(&self, act: &str) -> String {
        match self.zone {
            Zone::Outside => format!("{act} {}, outside the working roots", self.shown),
            Zone::Root | Zone::Plan => format!("{act} {}", self.shown),
        }
    }

    /// Opens a file for reading, without following a link and without waiting for a pipe's other
    /// end, and makes sure that what was opened is what was judged.
    pub(crate) fn open(&self) -> Result<File, Refusal> {
        let failed = |error: &io::Error| failed("read", &self.shown, error);
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&self.real)
            .map_err(|error| failed(&error))?;
        let opened = file.metadata().map_err(|error| failed(&error))?;
        if opened.is_dir() {
            return Err(Refusal::new(
                RefusalKind::InvalidArgument,
                format!("{} is a folder", self.shown),
            )
            .hint("list shows what is in it"));
        }
        if !opened.is_file() {
            return Err(Refusal::new(
                RefusalKind::NotAllowed,
                format!("{} is not a regular file", self.shown),
            ));
        }
        // A folder of the path may have been replaced by a link after it was judged.
        let now = self.real.canonicalize().map_err(|error| failed(&error))?;
        let named = now.symlink_metadata().map_err(|error| failed(&error))?;
        if now != self.real || (named.dev(), named.ino()) != (opened.dev(), opened.ino()) {
            return Err(Refusal::new(
                RefusalKind::Conflict,
                format!("{} was replaced while it was opened", self.shown),
            )
            .hint("try again"));
        }
        Ok(file)
    }
}

impl Authority {
    /// The authority of a turn: its roots, and the scratch that `TMPDIR` names.
    ///
    /// To be made once, before the turn does anything. Directory and roots are canonical since
    /// they were admitted, the scratch is made so now: a link that takes the place of one of them
    /// leads elsewhere and moves no authority there.
    pub(crate) fn of(turn: &Turn) -> Self {
        let roots = turn
            .situation
            .roots
            .iter()
            .map(|root| (root.directory.as_path().to_owned(), root.access));
        let scratch = turn.environment.get(OsStr::new("TMPDIR")).map(Path::new);
        let scratch = scratch.filter(|path| path.is_absolute());
        let scratch = scratch.and_then(|path| path.canonicalize().ok());
        let originals = turn.situation.originals.iter().zip(&turn.situation.roots);
        Self {
            directory: turn.situation.directory.as_path().to_owned(),
            allowed: roots.chain(scratch.map(|path| (path, Access::Write))).collect(),
            originals: originals
                .map(|(original, copy)| {
                    (original.as_path().to_owned(), copy.directory.as_path().to_owned())
                })
                .collect(),
        }
    }

    /// The same from paths that may lead through links.
    #[cfg(test)]
    pub(crate) fn new<'a>(
        directory: &Path,
        roots: impl Iterator<Item = (&'a Path, Access)>,
        scratch: Option<&'a Path>,
    ) -> Self {
        let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let scratch = scratch.map(|path| (path, Access::Write));
        Self {
            directory: canonical(directory),
            allowed: roots.chain(scratch).map(|(path, access)| (canonical(path), access)).collect(),
            originals: Vec::new(),
        }
    }

    /// A path that would be read, there or not.
    pub(crate) fn reading(&self, text: &str) -> Result<Found, Refusal> {
        self.resolve(text).map(|(found, _)| found)
    }

    /// A path that would be written, there or not.
    pub(crate) fn writing(&self, text: &str) -> Result<Found, Refusal> {
        let (found, root) = self.resolve(text)?;
        if let Some((root, access)) = root {
            if *access == Access::Read {
                let line = format!("{} may only be read", found.shown);
                return Err(Refusal::new(RefusalKind::NotAllowed, line)
                    .hint(format!("the person gave this root for reading; {}", self.roots())));
            }
            // Whoever removed a root did not ask for another one in its place.
            if !root.is_dir() {
                let line = format!("the working root {} is gone", display(root));
                return Err(Refusal::new(RefusalKind::NotFound, line));
            }
        }
        if text.ends_with('/') {
            return Err(Refusal::new(
                RefusalKind::InvalidArgument,
                format!("{text:?} names a folder, not a file"),
            ));
        }
        Ok(found)
    }

    /// A path as it is shown: relative to the agent's directory where it lies below it.
    pub(crate) fn show(&self, path: &Path) -> String {
        match path.strip_prefix(&self.directory) {
            Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
            Ok(below) => display(below),
            Err(_) => display(path),
        }
    }

    /// Where a path lies that no link stands in.
    fn zone(&self, real: &Path) -> Zone {
        if self.root(real).is_some() { Zone::Root } else { Zone::Outside }
    }

    /// The innermost root around it.
    fn root(&self, real: &Path) -> Option<&Allowed> {
        let around = self.allowed.iter().filter(|(root, _)| real.starts_with(root));
        around.max_by_key(|(root, _)| root.components().count())
    }

    fn resolve(&self, text: &str) -> Result<(Found, Option<&Allowed>), Refusal> {
        let invalid = |line: String| Refusal::new(RefusalKind::InvalidArgument, line);
        if text.is_empty() || text.contains('\0') {
            return Err(invalid("a path may neither be empty nor hold a NUL".to_owned()));
        }
        if text == "~" || text.starts_with("~/") {
            return Err(invalid(format!("{text:?}: a path does not begin with `~` here"))
                .hint(format!("paths are absolute, or relative to {}", display(&self.directory))));
        }
        let joined = self.directory.join(text);
        let real = real(&joined).map_err(|error| failed("find", &self.show(&joined), &error))?;
        let root = self.root(&real);
        if root.is_none() {
            self.check_original(&real)?;
        }
        let zone = if root.is_some() { Zone::Root } else { Zone::Outside };
        let shown = self.show(&real);
        Ok((Found { real, shown, zone }, root))
    }

    /// Whoever works in a copy has no business in what it is a copy of: work there would be taken
    /// for work in the copy (field_cwd_02).
    fn check_original(&self, real: &Path) -> Result<(), Refusal> {
        let around = self.originals.iter().filter(|(original, _)| real.starts_with(original));
        let Some((original, copy)) =
            around.max_by_key(|(original, _)| original.components().count())
        else {
            return Ok(());
        };
        let below = real.strip_prefix(original).unwrap_or(real);
        let own =
            self.show(&if below.as_os_str().is_empty() { copy.clone() } else { copy.join(below) });
        let line = format!("{} is an original, of which you have a private copy", display(real));
        Err(Refusal::new(RefusalKind::NotAllowed, line).hint(format!("in your copy it is {own}")))
    }

    fn roots(&self) -> String {
        let roots: Vec<_> = self
            .allowed
            .iter()
            .map(|(root, access)| match access {
                Access::Read => format!("{} (read)", display(root)),
                Access::Write => format!("{} (write)", display(root)),
            })
            .collect();
        format!("the roots are: {}", roots.join(", "))
    }
}

/// A path as deeds name it: no two paths have one name, and it begins as the path does, so that
/// globs of rules match it. What is not UTF-8, or a control character, becomes U+FFFD with its bytes
/// in hexadecimal.
pub(crate) fn name(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let mut name = String::with_capacity(bytes.len());
    let escape = |name: &mut String, bytes: &[u8]| {
        for byte in bytes {
            let _ = write!(name, "\u{fffd}{byte:02X}");
        }
    };
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() || c == char::REPLACEMENT_CHARACTER {
                escape(&mut name, c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                name.push(c);
            }
        }
        escape(&mut name, chunk.invalid());
    }
    name
}

/// A path for people: what is not UTF-8 or would move the cursor is escaped, so that two files
/// never look the same and a name never breaks a line.
#[expect(clippy::unnecessary_debug_formatting, reason = "the escaped form is what is wanted")]
pub(crate) fn display(path: &Path) -> String {
    match path.to_str() {
        Some(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => format!("{:?}", path.as_os_str()),
    }
}

/// What the system refused, in a line.
pub(crate) fn failed(act: &str, shown: &str, error: &io::Error) -> Refusal {
    match error.kind() {
        ErrorKind::NotFound => Refusal::new(RefusalKind::NotFound, format!("there is no {shown}"))
            .hint("list and search show what there is"),
        _ => Refusal::new(RefusalKind::Failed, format!("cannot {act} {shown}: {error}")),
    }
}

/// Where a path leads, also when its last components do not exist yet or a link in it dangles.
fn real(path: &Path) -> io::Result<PathBuf> {
    let mut current = path.to_owned();
    let mut missing: Vec<OsString> = Vec::new();
    let mut links = 0;
    loop {
        match current.canonicalize() {
            Ok(mut real) => {
                real.extend(missing.iter().rev());
                return Ok(real);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // Only an existing folder's `..` has a meaning that cannot be mistaken.
        let name = match current.components().next_back() {
            Some(Component::Normal(name)) => name.to_owned(),
            _ => {
                return Err(io::Error::new(
                    ErrorKind::InvalidInput,
                    "`..` after a folder that does not exist",
                ));
            }
        };
        let parent = current.parent().unwrap_or(Path::new("/")).to_owned();
        if let Ok(target) = current.read_link() {
            links += 1;
            if links > MOST_LINKS {
                return Err(rustix::io::Errno::LOOP.into());
            }
            current = parent.join(target);
        } else {
            missing.push(name);
            current = parent;
        }
    }
}

#[cfg(test)]
mod tests;
