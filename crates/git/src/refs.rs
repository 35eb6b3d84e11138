//! The refs of a copy: what a person would push and fetch, and nothing of what they are doing.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::error::GitError;
use crate::git::unreadable;
use crate::head::Head;
use crate::object::ObjectId;
use crate::path::path_of;
use crate::repository::{RefFormat, Repository};

/// What a copy gets. Not the stash, bisect's and rebase's marks, other tools' refs.
const ALLOWED: [&[u8]; 4] = [b"refs/heads/", b"refs/tags/", b"refs/remotes/", b"refs/notes/"];

/// What a ref leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An object: most often a commit, or a tag.
    Object(ObjectId),
    /// Another ref, as `refs/remotes/origin/HEAD` does.
    Ref(OsString),
}

/// A ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ref {
    /// Its whole name.
    pub name: OsString,
    /// What it leads to.
    pub target: Target,
}

impl Repository {
    /// The refs that a copy gets, by name: branches, tags, remote-tracking ones and notes, and the
    /// branch of HEAD whatever its name. One process.
    ///
    /// # Errors
    /// Whatever kept Git from answering.
    pub fn carried_refs(&self) -> Result<Vec<Ref>, GitError> {
        let mut refs = self.all_refs()?;
        refs.retain(|found| is_carried(&found.name, &self.head));
        Ok(refs)
    }

    fn all_refs(&self) -> Result<Vec<Ref>, GitError> {
        let format = "--format=%(refname)%00%(objectname)%00%(symref)%00";
        let answer = self.git.ask(self.folder(), "for-each-ref", &["for-each-ref", format])?;
        parse(&answer).ok_or_else(|| unreadable("for-each-ref", self.folder()))
    }

    /// Writes HEAD and the carried refs of this repository into `git_directory`, the Git directory
    /// of a copy: a folder that exists and has no refs yet. What HEAD has checked out is that of
    /// this work tree, also of a linked one. No reflog, no stash, no mark of an operation is
    /// carried.
    ///
    /// As files: one process, and the refs are then in `packed-refs`. As reftables: the tables are
    /// copied as they are, then what is not carried is removed through Git, which needs the copy's
    /// `config` and object store to be in place; reflogs inside the tables stay. Four processes.
    ///
    /// # Errors
    /// [`GitError::File`], or whatever kept Git from answering; what was written so far stays.
    pub fn write_refs(&self, git_directory: &Path) -> Result<(), GitError> {
        match self.ref_format {
            RefFormat::Files => self.write_files(git_directory),
            RefFormat::Reftable => self.write_reftable(git_directory),
        }
    }

    fn write_files(&self, to: &Path) -> Result<(), GitError> {
        let mut packed = b"# pack-refs with: sorted \n".to_vec();
        for found in self.carried_refs()? {
            let name = found.name.as_bytes();
            match found.target {
                Target::Object(id) => {
                    packed.extend_from_slice(id.to_string().as_bytes());
                    packed.push(b' ');
                    packed.extend_from_slice(name);
                    packed.push(b'\n');
                }
                Target::Ref(target) => {
                    let path = to.join(path_of(name));
                    create_folder(path.parent().unwrap_or(to))?;
                    write(&path, &symbolic(&target))?;
                }
            }
        }
        for folder in ["refs/heads", "refs/tags"] {
            create_folder(&to.join(folder))?;
        }
        write(&to.join("packed-refs"), &packed)?;
        let head = match &self.head {
            Head::Branch { name, .. } => symbolic(name),
            Head::Detached(commit) => format!("{commit}\n").into_bytes(),
        };
        write(&to.join("HEAD"), &head)
    }

    fn write_reftable(&self, to: &Path) -> Result<(), GitError> {
        // Files that only keep older versions of Git away.
        write(&to.join("HEAD"), b"ref: refs/heads/.invalid\n")?;
        create_folder(&to.join("refs"))?;
        write(&to.join("refs/heads"), b"this repository uses the reftable format\n")?;
        self.copy_tables(to)?;
        let mut at = vec![OsString::from("--git-dir"), to.as_os_str().to_owned()];
        let ask = |question, arguments: &[&OsStr]| {
            let all: Vec<&OsStr> =
                at.iter().map(OsString::as_os_str).chain(arguments.iter().copied()).collect();
            self.git.ask(to, question, &all)
        };
        match &self.head {
            Head::Branch { name, .. } => {
                ask("symbolic-ref", &["symbolic-ref".as_ref(), "HEAD".as_ref(), name])?;
            }
            Head::Detached(commit) => {
                let commit = commit.to_string();
                let arguments = ["update-ref", "--no-deref", "HEAD", &commit];
                ask("update-ref", &arguments.map(OsStr::new))?;
            }
        }
        let format = "--format=%(refname)%00%(objectname)%00%(symref)%00";
        let answer = ask("for-each-ref", &["for-each-ref".as_ref(), format.as_ref()])?;
        let there = parse(&answer).ok_or_else(|| unreadable("for-each-ref", to))?;
        let mut orders = Vec::new();
        let marks = ["ORIG_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "AUTO_MERGE", "BISECT_HEAD"];
        let unwanted = there.iter().map(|found| &*found.name);
        let unwanted = unwanted.filter(|name| !is_carried(name, &self.head));
        for name in unwanted.chain(marks.map(OsStr::new)) {
            orders.extend_from_slice(b"option no-deref\0delete ");
            orders.extend_from_slice(name.as_bytes());
            orders.extend_from_slice(b"\0\0");
        }
        at.extend(["update-ref", "--stdin", "-z"].map(OsString::from));
        let output = self.git.tool(to, &at).input(orders).run()?;
        if output.status.success() {
            Ok(())
        } else {
            Err(crate::git::failed("update-ref", to, &output))
        }
    }

    /// Git replaces the list of tables after the tables themselves are there, and removes old ones
    /// after that: a table that is gone means that the list is to be read again.
    fn copy_tables(&self, to: &Path) -> Result<(), GitError> {
        let (from, to) = (self.common_directory.join("reftable"), to.join("reftable"));
        create_folder(&to)?;
        let list = from.join("tables.list");
        let mut last = None;
        for _ in 0..TRIES {
            let names = fs::read(&list).map_err(GitError::file("read", &list))?;
            let tables = names.split(|byte| *byte == b'\n').filter(|name| !name.is_empty());
            last = tables
                .map(path_of)
                .map(|name| fs::copy(from.join(&name), to.join(&name)).map_err(|e| (name, e)))
                .find_map(Result::err);
            match &last {
                None => return write(&to.join("tables.list"), &names),
                Some((_, error)) if error.kind() == std::io::ErrorKind::NotFound => {}
                Some(_) => break,
            }
        }
        match last {
            Some((name, error)) => Err(GitError::file("copy", &from.join(name))(error)),
            None => Ok(()),
        }
    }
}

/// How often a list of tables is read again because it changed meanwhile.
const TRIES: usize = 10;

fn is_carried(name: &OsStr, head: &Head) -> bool {
    let is_head = matches!(head, Head::Branch { name: branch, .. } if branch == name);
    is_head || ALLOWED.iter().any(|allowed| name.as_bytes().starts_with(allowed))
}

fn symbolic(target: &OsStr) -> Vec<u8> {
    [b"ref: ", target.as_bytes(), b"\n"].concat()
}

/// Triples of name, object and target of a symbolic ref, each with a zero byte behind it, and a
/// line feed behind every triple.
fn parse(answer: &[u8]) -> Option<Vec<Ref>> {
    let mut refs = Vec::new();
    let mut parts = answer.split(|byte| *byte == 0);
    loop {
        let name = parts.next()?;
        let name = name.strip_prefix(b"\n").unwrap_or(name);
        if name.is_empty() {
            return Some(refs);
        }
        let (object, target) = (parts.next()?, parts.next()?);
        let target = if target.is_empty() {
            Target::Object(ObjectId::from_hex(object)?)
        } else {
            Target::Ref(OsStr::from_bytes(target).to_owned())
        };
        refs.push(Ref { name: OsStr::from_bytes(name).to_owned(), target });
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), GitError> {
    fs::write(path, bytes).map_err(GitError::file("write", path))
}

fn create_folder(path: &Path) -> Result<(), GitError> {
    fs::create_dir_all(path).map_err(GitError::file("create", path))
}
