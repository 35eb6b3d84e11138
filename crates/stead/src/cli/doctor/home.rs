//! The home as a folder, the settings, what lies around, and the programs that agents need.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Access, access, statvfs};
use stead_engine::Home;

use super::finding::Finding;
use crate::clean;
use crate::context::on_path;
use crate::render::{counted, size};

/// Less room than this and a session may soon not be stored.
const LITTLE_ROOM: u64 = 256 * 1024 * 1024;
/// Logs larger than this are told about.
const LARGE_LOGS: u64 = 1024 * 1024 * 1024;
/// How many entries of a folder are counted.
const MOST_ENTRIES: usize = 200_000;

/// The folder: whose it is, who may write it, where it is.
pub(super) fn home(home: &Home) -> Vec<Finding> {
    let folder = home.data();
    let shown = clean::path(folder);
    let other = "STEAD_HOME names another folder";
    let mut findings = Vec::new();
    let found = fs::symlink_metadata(folder);
    findings.push(match &found {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::ok("home", format!("{shown}, made by the first command that needs it"))
        }
        Err(error) => Finding::fault("home", format!("{shown}: {error}"), other),
        Ok(found) if found.is_symlink() => Finding::fault(
            "home",
            format!("{shown} is a symbolic link"),
            "set STEAD_HOME to the folder that it leads to",
        ),
        Ok(found) if !found.is_dir() => {
            Finding::fault("home", format!("{shown} is not a folder"), other)
        }
        Ok(found) if found.uid() != rustix::process::geteuid().as_raw() => {
            Finding::fault("home", format!("{shown} belongs to another user"), other)
        }
        Ok(found) if found.mode() & 0o022 != 0 => Finding::fault(
            "home",
            format!("{shown} can be written by others (mode {:o})", found.mode() & 0o777),
            format!("chmod go-w {shown}"),
        ),
        Ok(_) if access(folder, Access::WRITE_OK | Access::EXEC_OK).is_err() => {
            Finding::fault("home", format!("{shown} cannot be written"), other)
        }
        Ok(_) => Finding::ok("home", shown.clone()),
    });
    match stead_files::is_network_file_system(folder) {
        Ok(true) => findings.push(Finding::fault(
            "disk",
            format!("{shown} is on a network file system, where locks cannot be trusted"),
            "set STEAD_HOME to a folder on a disk of this machine",
        )),
        Ok(false) => findings.extend(room(folder)),
        Err(error) => findings.push(Finding::warning("disk", format!("{shown}: {error}"), other)),
    }
    if let Err(refusal) = home.socket() {
        let help = refusal.hint.unwrap_or_default();
        findings.push(Finding::fault("socket", refusal.line, help));
    }
    findings
}

/// What is in the home under a name of stead's, and is not what stead makes there.
pub(super) fn kinds(home: &Home) -> Vec<Finding> {
    let files = [
        "stead.db",
        "stead.lock",
        "engine.lock",
        "runs.lock",
        "engine.json",
        "roots.json",
        "log/engine.log",
    ];
    let folders = ["blobs", "copies", "objects", "trash", "applies", "log", "leases"];
    let wrong = |name: &str, is_right: fn(&fs::FileType) -> bool, word: &str| {
        let path = home.data().join(name);
        let found = fs::symlink_metadata(&path).ok()?;
        (!is_right(&found.file_type())).then(|| {
            let line = format!("{} is not a {word}", clean::path(&path));
            Finding::fault("home", line, "move it away: it is not stead's")
        })
    };
    let files = files.iter().filter_map(|name| wrong(name, fs::FileType::is_file, "file"));
    let folders = folders.iter().filter_map(|name| wrong(name, fs::FileType::is_dir, "folder"));
    files.chain(folders).collect()
}

fn room(folder: &Path) -> Option<Finding> {
    let found = folder.ancestors().find_map(|folder| statvfs(folder).ok())?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    if free >= LITTLE_ROOM {
        return None;
    }
    Some(Finding::warning(
        "disk",
        format!("only {} are free for the home", size(free)),
        "make room: what cannot be stored is refused, and nothing is lost by it",
    ))
}

/// The settings: readable and understood.
pub(super) fn settings(home: &Home) -> Finding {
    let path = home.settings();
    match stead_engine::read_settings(home) {
        Ok(_) if path.exists() => Finding::ok("settings", clean::path(&path)),
        Ok(_) => Finding::ok("settings", format!("{} (none; not needed)", clean::path(&path))),
        Err(refusal) => {
            let help = refusal.hint.unwrap_or_else(|| "mend the file".to_owned());
            Finding::fault("settings", refusal.line, help)
        }
    }
}

/// Scratch folders and logs.
pub(super) fn left_over(home: &Home) -> Vec<Finding> {
    let mut findings = Vec::new();
    let scratch = home.host().join("scratch");
    let folders = fs::read_dir(&scratch).map_or(0, Iterator::count);
    if folders > 0 {
        let (_, bytes) = weigh(&scratch);
        let folders = counted(folders, "scratch folder", "scratch folders");
        findings.push(Finding::ok(
            "scratch",
            format!("{folders} of agents in {}, {}", clean::path(&scratch), size(bytes)),
        ));
    }
    let (files, bytes) = weigh(&home.logs());
    if files > 0 {
        let line = format!(
            "{} in {}, {}",
            counted(files, "file", "files"),
            clean::path(&home.logs()),
            size(bytes)
        );
        findings.push(if bytes > LARGE_LOGS {
            let runs = clean::path(&home.logs().join("runs"));
            let help = format!("logs of commands are in {runs}; old ones may be removed");
            Finding::warning("logs", line, help)
        } else {
            Finding::ok("logs", line)
        });
    }
    findings
}

/// How many files are below a folder, and how many bytes they have. Follows no links.
fn weigh(folder: &Path) -> (usize, u64) {
    let (mut files, mut bytes, mut seen) = (0, 0_u64, 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MOST_ENTRIES {
                return (files, bytes);
            }
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() {
                folders.push(entry.path());
            } else {
                files += 1;
                bytes = bytes.saturating_add(found.len());
            }
        }
    }
    (files, bytes)
}

/// The programs that agents need.
pub(super) fn programs(variables: &BTreeMap<OsString, OsString>) -> Vec<Finding> {
    let path = variables.get(OsStr::new("PATH"));
    let find = |name| path.and_then(|path| on_path(path, name));
    [
        ("bash", "agents cannot run commands without it"),
        ("git", "agents cannot use repositories without it"),
    ]
    .into_iter()
    .map(|(name, without)| match find(name) {
        Some(found) => Finding::ok(name, clean::path(&found)),
        None => Finding::fault(name, format!("not in PATH; {without}"), format!("install {name}")),
    })
    .collect()
}
