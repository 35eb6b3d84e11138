//! Journals on the disk: one a root, written whole before the root is touched.
//!
//! The first line is the header, one line for each path follows. A journal is replaced as a whole,
//! so a reader finds all of it or none.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use stead_core::id::{Digest, RootId};
use stead_core::step::{self, Moment};
use stead_files::{AtomicError, FolderError};

use super::record::{Finished, Header, Step, VERSION};
use crate::Home;

/// The longest first line that is read: far more than paths and ids take.
const LONGEST_HEADER: u64 = 256 << 10;

/// Why a journal was not written, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It is not as it was written.
    #[error("the journal {} is damaged: {why}", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// What is wrong.
        why: &'static str,
    },
    /// Another program wrote it.
    #[error("the journal {} has version {version}, this program reads {VERSION}", path.display())]
    Version {
        /// The journal.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The system refused to read or remove it.
    #[error("cannot {act} {}: {source}", path.display())]
    System {
        /// `read`, `list`, `remove` or `sync`.
        act: &'static str,
        /// What.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] AtomicError),
    /// The folder of journals cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// A journal, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Journal {
    pub(crate) header: Header,
    /// In the order of paths.
    pub(crate) steps: Vec<Step>,
}

/// Where the journal of a root is, when there is one.
pub(crate) fn path_of(home: &Home, root: &RootId) -> PathBuf {
    home.applies().join(format!("{}.journal", root.as_str()))
}

/// Where the journal of an apply is kept that left paths neither old nor new, or whose root is gone:
/// evidence for a person, which nobody finishes any more.
pub fn kept_journal(home: &Home, header: &Header) -> PathBuf {
    home.rescued().join(format!("{}.journal", header.apply.as_str()))
}

/// The kernel lock under which a root is written and its journal finished.
pub(crate) fn lock_of(home: &Home, root: &RootId) -> PathBuf {
    home.applies().join(format!("{}.lock", root.as_str()))
}

impl Journal {
    /// A journal of these steps; the header's `paths` and `rest` are filled in.
    pub(crate) fn new(mut header: Header, steps: Vec<Step>) -> Self {
        header.paths = u64::try_from(steps.len()).unwrap_or(u64::MAX);
        header.rest = digest(&lines(&steps));
        Self { header, steps }
    }

    /// Writes it, durably.
    pub(crate) fn write(&self, home: &Home) -> Result<(), JournalError> {
        stead_files::private_dir(&home.applies())?;
        let mut bytes = line(&self.header);
        bytes.extend_from_slice(&lines(&self.steps));
        step::pass("copies.journal", Moment::Before);
        stead_files::replace(&path_of(home, &self.header.root), &bytes, None)?;
        step::pass("copies.journal", Moment::After);
        Ok(())
    }

    /// Says in it, durably, how it was finished.
    pub(crate) fn finish(&mut self, home: &Home, finished: Finished) -> Result<(), JournalError> {
        self.header.finished = Some(finished);
        self.write(home)
    }

    /// The journal of a root; none when there is none.
    pub(crate) fn read(home: &Home, root: &RootId) -> Result<Option<Self>, JournalError> {
        let path = path_of(home, root);
        let Some((header, mut reader)) = open(&path)? else { return Ok(None) };
        let damaged = |why| JournalError::Damaged { path: path.clone(), why };
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).map_err(system("read", &path))?;
        if digest(&rest) != header.rest {
            return Err(damaged("its paths are not those that were written"));
        }
        let steps: Result<Vec<Step>, _> = rest
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(serde_json::from_slice)
            .collect();
        let steps = steps.map_err(|_| damaged("a path cannot be read"))?;
        if header.root != *root || u64::try_from(steps.len()).ok() != Some(header.paths) {
            return Err(damaged("it is another root's, or is cut short"));
        }
        Ok(Some(Self { header, steps }))
    }

    /// Removes it, durably.
    pub(crate) fn remove(home: &Home, root: &RootId) -> Result<(), JournalError> {
        Self::unlink(home, root)?;
        let folder = home.applies();
        match File::open(&folder).and_then(|folder| folder.sync_all()) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(system("sync", &folder)(error))
            }
            _ => Ok(()),
        }
    }

    /// Moves it to where journals are kept as evidence, durably; gives the place.
    pub(crate) fn set_aside(home: &Home, header: &Header) -> Result<PathBuf, JournalError> {
        let (from, to) = (path_of(home, &header.root), kept_journal(home, header));
        let folder = home.rescued();
        stead_files::private_dir(&folder)?;
        step::pass("copies.set-aside", Moment::Before);
        fs::rename(&from, &to).map_err(system("move", &from))?;
        for folder in [folder, home.applies()] {
            let opened = File::open(&folder).and_then(|folder| folder.sync_all());
            opened.map_err(system("sync", &folder))?;
        }
        step::pass("copies.set-aside", Moment::After);
        Ok(to)
    }

    /// Removes it. After a cut of the power it may be there again.
    pub(crate) fn unlink(home: &Home, root: &RootId) -> Result<(), JournalError> {
        let path = path_of(home, root);
        step::pass("copies.forget", Moment::Before);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(system("remove", &path)(error));
            }
            _ => {}
        }
        step::pass("copies.forget", Moment::After);
        Ok(())
    }
}

/// A journal that an apply left behind, or that its engine has not yet recorded.
#[derive(Debug)]
pub struct Leftover {
    /// The root, by the journal's name.
    pub root: RootId,
    /// The journal.
    pub path: PathBuf,
    /// What it says, or why it cannot be read: then nothing may be written to that root, and only a
    /// person can help.
    pub header: Result<Header, JournalError>,
}

/// The journals of a home, by root: what an apply now under way holds too.
///
/// # Errors
/// The folder of journals cannot be listed.
pub fn leftovers(home: &Home) -> Result<Vec<Leftover>, JournalError> {
    let folder = home.applies();
    let listed = match fs::read_dir(&folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(system("list", &folder)(error)),
    };
    let mut found = Vec::new();
    for entry in listed {
        let name = entry.map_err(system("list", &folder))?.file_name();
        let root = name.to_str().and_then(|name| name.strip_suffix(".journal"));
        let Some(root) = root.and_then(|root| RootId::parse(root).ok()) else { continue };
        let path = folder.join(&name);
        let header = match open(&path) {
            Ok(Some((header, _))) => Ok(header),
            Ok(None) => continue,
            Err(error) => Err(error),
        };
        found.push(Leftover { root, path, header });
    }
    found.sort_by(|one, two| one.root.cmp(&two.root));
    Ok(found)
}

fn open(path: &Path) -> Result<Option<(Header, BufReader<File>)>, JournalError> {
    let mut reader = match stead_files::open_file(path) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(system("read", path)(error)),
    };
    let mut first = Vec::new();
    reader
        .by_ref()
        .take(LONGEST_HEADER)
        .read_until(b'\n', &mut first)
        .map_err(system("read", path))?;
    let damaged =
        || JournalError::Damaged { path: path.to_owned(), why: "its first line cannot be read" };
    let value: serde_json::Value = serde_json::from_slice(&first).map_err(|_| damaged())?;
    match value.get("version").and_then(serde_json::Value::as_u64) {
        Some(version) if version == u64::from(VERSION) => {}
        Some(version) => {
            let version = u32::try_from(version).unwrap_or(u32::MAX);
            return Err(JournalError::Version { path: path.to_owned(), version });
        }
        None => return Err(damaged()),
    }
    let header = serde_json::from_value(value).map_err(|_| damaged())?;
    Ok(Some((header, reader)))
}

fn line(value: &impl serde::Serialize) -> Vec<u8> {
    // Nothing in these types fails to be written: keys are text and numbers are finite.
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

fn lines(steps: &[Step]) -> Vec<u8> {
    steps.iter().flat_map(line).collect()
}

fn digest(bytes: &[u8]) -> Digest {
    Digest::from_bytes(*blake3::hash(bytes).as_bytes())
}

fn system(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.to_owned();
    move |source| JournalError::System { act, path, source }
}

#[cfg(test)]
mod tests {
    use stead_core::id::{RequestId, SessionId, SlotName, TaskId};
    use stead_core::layout::{AbsoluteDir, RootIdentity};
    use stead_files::RelPath;

    use super::super::record::Rescue;
    use super::*;
    use crate::changes::State;

    fn path(bytes: &[u8]) -> RelPath {
        RelPath::parse(bytes).unwrap()
    }

    fn root() -> RootId {
        RootId::parse("root-1").unwrap()
    }

    fn journal() -> Journal {
        let header = Header {
            version: VERSION,
            apply: RequestId::parse("apply-1").unwrap(),
            session: SessionId::parse("session").unwrap(),
            task: TaskId(3),
            slot: SlotName::parse("app").unwrap(),
            root: root(),
            source: AbsoluteDir::new("/w/app").unwrap(),
            identity: RootIdentity { inode: 7, birth: Some((1, 2)) },
            snapshot: digest(b"snapshot"),
            review: digest(b"review"),
            index: Some(AbsoluteDir::new("/w/app/.git").unwrap()),
            paths: 0,
            rest: digest(b""),
            finished: None,
        };
        let file = State::File { mode: 0o644, size: 1, digest: digest(b"x") };
        let link = State::Link { target: (*b"\xff\n").into() };
        let steps = vec![
            Step {
                path: path(b"a\n\xff"),
                old: Some(file.clone()),
                new: Some(link),
                beside: path(b".stead-new-apply-1-0"),
            },
            Step { path: path(b"d"), old: None, new: Some(file), beside: path(b"x") },
            Step {
                path: path(b"e"),
                old: Some(State::Folder { mode: 0o755 }),
                new: None,
                beside: path(b"y"),
            },
        ];
        Journal::new(header, steps)
    }

    #[test]
    fn a_journal_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        assert_eq!(Journal::read(&home, &root()).unwrap(), None);
        assert!(leftovers(&home).unwrap().is_empty());
        let mut journal = journal();
        journal.write(&home).unwrap();
        assert_eq!(Journal::read(&home, &root()).unwrap().unwrap(), journal);
        let rescue = Rescue { paths: vec![path(b"a\n\xff")], folder: None };
        journal.finish(&home, Finished::Neither { rescue }).unwrap();
        assert_eq!(Journal::read(&home, &root()).unwrap().unwrap(), journal);
        let left = leftovers(&home).unwrap();
        assert_eq!(left[0].header.as_ref().unwrap(), &journal.header);
        Journal::remove(&home, &root()).unwrap();
        Journal::remove(&home, &root()).unwrap();
        assert!(leftovers(&home).unwrap().is_empty());
    }

    #[test]
    fn what_is_not_whole_or_not_known_is_said_and_listed() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        journal().write(&home).unwrap();
        let path = path_of(&home, &root());
        let whole = fs::read_to_string(&path).unwrap();
        let mut other = whole.clone();
        other.replace_range(whole.len() - 10..whole.len() - 9, "!");
        let newer = whole.replacen("\"version\":1", "\"version\":2", 1);
        let short = |length: usize| whole.chars().take(length).collect::<String>();
        let cut = [short(whole.len() - 40), short(20), String::new(), "{}\n".to_owned()];
        for bad in cut.iter().chain([&other, &newer]) {
            fs::write(&path, bad).unwrap();
            let error = Journal::read(&home, &root()).unwrap_err();
            let is_newer = matches!(error, JournalError::Version { version: 2, .. });
            assert_eq!(is_newer, *bad == newer, "{error}");
            assert_eq!(leftovers(&home).unwrap().len(), 1, "{bad}");
        }
        // What a later program of the same version adds is no hindrance.
        let more = whole.replacen("\"version\":1", "\"version\":1,\"more\":[]", 1);
        fs::write(&path, more).unwrap();
        assert_eq!(Journal::read(&home, &root()).unwrap().unwrap(), journal());
    }

    #[test]
    fn the_first_version_is_read_for_ever() {
        let step = concat!(
            r#"{"path":{"hex":"610aff"},"old":{"kind":"file","mode":420,"size":1,"digest":"#,
            r#""0000000000000000000000000000000000000000000000000000000000000007"},"#,
            r#""new":{"kind":"link","target":[255,10]},"beside":".stead-new-apply-1-0"}"#,
        );
        let seven = Digest::parse(&format!("{:064x}", 7)).unwrap();
        let read: Step = serde_json::from_str(step).unwrap();
        assert_eq!(read.path, path(b"a\n\xff"));
        assert_eq!(read.old, Some(State::File { mode: 0o644, size: 1, digest: seven }));
        assert_eq!(read.new, Some(State::Link { target: (*b"\xff\n").into() }));
        assert_eq!(serde_json::to_string(&read).unwrap(), step);
    }
}
