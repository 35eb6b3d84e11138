//! Which files the tools of a turn may touch.
//!
//! A path is judged by where it really leads: links are followed first, and what is then compared,
//! by whole components, are canonical paths. So a root reached through a link works under both
//! names, and a link that leads out of every root does not (field_sbx_03, field_sbx_04).

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use stead_core::layout::Access;
use stead_core::refusal::{Refusal, RefusalKind};

use crate::driver::Turn;

/// As many links as the kernel itself follows before it says `ELOOP`.
const MOST_LINKS: usize = 40;

/// Where a turn may read and write.
#[derive(Debug, Clone)]
pub(crate) struct Authority {
    directory: PathBuf,
    allowed: Vec<(PathBuf, Access)>,
}

/// A path that may be touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where it really leads: no link stands in it.
    pub(crate) real: PathBuf,
    /// What people and models are shown: relative to the agent's directory where it is below it.
    pub(crate) shown: String,
}

impl Found {
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
        Self {
            directory: turn.situation.directory.as_path().to_owned(),
            allowed: roots.chain(scratch.map(|path| (path, Access::Write))).collect(),
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
        }
    }

    /// A path that may be read, there or not.
    pub(crate) fn reading(&self, text: &str) -> Result<Found, Refusal> {
        self.resolve(text).map(|(found, ..)| found)
    }

    /// A path that may be written, there or not.
    pub(crate) fn writing(&self, text: &str) -> Result<Found, Refusal> {
        let (found, root, access) = self.resolve(text)?;
        let not_allowed = |line| Refusal::new(RefusalKind::NotAllowed, line);
        if access == Access::Read {
            return Err(not_allowed(format!("{} may only be read", found.shown))
                .hint(format!("the person gave this root for reading; {}", self.roots())));
        }
        // Whoever removed a root did not ask for another one in its place.
        if !root.is_dir() {
            let line = format!("the working root {} is gone", display(root));
            return Err(Refusal::new(RefusalKind::NotFound, line));
        }
        let below = found.real.strip_prefix(root).unwrap_or(&found.real);
        if below.components().any(|c| c.as_os_str().eq_ignore_ascii_case(".git")) {
            return Err(not_allowed(format!("{} is Git's own and may only be read", found.shown))
                .hint("change it with the git program"));
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

    fn resolve(&self, text: &str) -> Result<(Found, &Path, Access), Refusal> {
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
        let root = self
            .allowed
            .iter()
            .filter(|(root, _)| real.starts_with(root))
            .max_by_key(|(root, _)| root.components().count());
        if let Some((root, access)) = root {
            let shown = self.show(&real);
            return Ok((Found { real, shown }, root, *access));
        }
        let leads = display(&real);
        let line = if leads == display(&joined) {
            format!("{leads} lies outside the working roots")
        } else {
            format!("{text:?} leads to {leads}, outside the working roots")
        };
        Err(Refusal::new(RefusalKind::NotAllowed, line).hint(self.roots()))
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
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    struct World {
        _folder: tempfile::TempDir,
        base: PathBuf,
    }

    /// `app` (write) with `src/a.rs`, `lib` (read), `app-evil` and `outside.txt` beside them.
    fn world() -> World {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        for name in ["app/src", "app/.git", "lib", "app-evil", "scratch"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        for name in ["app/src/a.rs", "lib/b.rs", "app-evil/c", "outside.txt"] {
            fs::write(base.join(name), "x").unwrap();
        }
        World { _folder: folder, base }
    }

    fn authority(world: &World) -> Authority {
        let roots = [("app", Access::Write), ("lib", Access::Read)]
            .map(|(name, access)| (world.base.join(name), access));
        let roots = roots.iter().map(|(path, access)| (path.as_path(), *access));
        Authority::new(&world.base.join("app"), roots, Some(&world.base.join("scratch")))
    }

    #[test]
    fn field_pth_04_a_sibling_with_the_same_beginning_is_outside() {
        let world = world();
        let authority = authority(&world);
        for text in ["../app-evil/c", "../outside.txt", "/etc/passwd", "..", "src/../../lib2"] {
            let refusal = authority.reading(text).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::NotAllowed, "{text}");
            assert!(refusal.hint.unwrap().contains("app (write)"));
        }
        assert_eq!(authority.reading("src/../src/a.rs").unwrap().shown, "src/a.rs");
        assert_eq!(authority.reading(".").unwrap().shown, ".");
    }

    #[test]
    fn field_sbx_03_a_link_that_leads_out_is_refused_and_its_target_named() {
        let world = world();
        let app = world.base.join("app");
        symlink("../outside.txt", app.join("l")).unwrap();
        symlink("/", app.join("up")).unwrap();
        symlink("../nothing-yet", app.join("dangling")).unwrap();
        symlink("dangling", app.join("twice")).unwrap();
        symlink("loop", app.join("loop")).unwrap();
        let authority = authority(&world);
        for text in ["l", "up/etc/passwd", "dangling", "twice", "dangling/below", "up/new/file"] {
            for refusal in [authority.reading(text), authority.writing(text)] {
                let refusal = refusal.unwrap_err();
                assert_eq!(refusal.kind, RefusalKind::NotAllowed, "{text}");
                assert!(refusal.line.contains("leads to /"), "{refusal}");
            }
        }
        assert!(authority.reading("loop").is_err());
    }

    #[test]
    fn field_sbx_04_a_root_behind_a_link_works_by_both_names() {
        let world = world();
        let link = world.base.join("link");
        symlink("app", &link).unwrap();
        let authority = Authority::new(
            &link.join("src"),
            std::iter::once((link.as_path(), Access::Write)),
            None,
        );
        for text in ["a.rs".to_owned(), link.join("src/a.rs").display().to_string()] {
            assert_eq!(authority.writing(&text).unwrap().shown, "a.rs");
        }
        let direct = world.base.join("app/src/new.rs").display().to_string();
        assert_eq!(authority.writing(&direct).unwrap().shown, "new.rs");
    }

    #[test]
    fn field_sbx_03_a_root_that_became_a_link_or_is_gone_holds_nothing() {
        let world = world();
        let authority = authority(&world);
        fs::rename(world.base.join("app"), world.base.join("moved")).unwrap();
        symlink("app-evil", world.base.join("app")).unwrap();
        for refusal in [authority.reading("c"), authority.writing("c"), authority.reading(".")] {
            let refusal = refusal.unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::NotAllowed);
            assert!(refusal.line.contains("app-evil"), "{refusal}");
        }
        fs::remove_file(world.base.join("app")).unwrap();
        for text in ["new", "src/new"] {
            assert!(authority.writing(text).unwrap_err().line.contains("is gone"), "{text}");
        }
    }

    #[test]
    fn read_roots_git_and_strange_texts_are_not_written() {
        let world = world();
        let authority = authority(&world);
        let lib = world.base.join("lib/b.rs").display().to_string();
        assert!(authority.reading(&lib).is_ok());
        assert!(authority.writing(&lib).unwrap_err().line.contains("may only be read"));
        for text in [".git/config", ".git", "src/.git/hooks/x", ".GIT/config"] {
            assert!(authority.writing(text).unwrap_err().line.contains("Git's own"), "{text}");
            assert!(authority.reading(text).is_ok());
        }
        for text in ["", "a\0b", "~/x", "new/", "none/../x", "src/a.rs/below"] {
            assert!(authority.writing(text).is_err(), "{text:?}");
        }
        let scratch = world.base.join("scratch/t").display().to_string();
        assert!(authority.writing(&scratch).is_ok());
    }

    #[test]
    fn only_regular_files_are_opened() {
        let world = world();
        let pipe = world.base.join("app/pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        let authority = authority(&world);
        for (text, says) in [("pipe", "not a regular file"), ("src", "is a folder")] {
            let found = authority.reading(text).unwrap();
            assert!(found.open().unwrap_err().line.contains(says));
        }
        let found = authority.reading("src/a.rs").unwrap();
        fs::rename(world.base.join("app/src"), world.base.join("moved")).unwrap();
        symlink("../moved", world.base.join("app/src")).unwrap();
        assert_eq!(found.open().unwrap_err().kind, RefusalKind::Conflict);
    }
}
