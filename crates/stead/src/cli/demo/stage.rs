//! Where the demo plays: a folder with a home of its own, which is gone afterwards.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stead_core::env;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_engine::Home;
use stead_files::remove_tree_at;
use stead_place::Which;
use stead_process::environment::without_git_discovery;

use super::super::serve::end_engine;
use crate::clean;
use crate::context::{Context, current_dir, new_request, own_program};
use crate::exit::usage;
use crate::output::{say, style, styled};

/// The folders of the home, by the variables that name them.
const FOLDERS: [(&str, &str); 4] = [
    (env::STEAD_HOME, "home"),
    (env::XDG_STATE_HOME, "state"),
    (env::XDG_RUNTIME_DIR, "run"),
    (env::XDG_CONFIG_HOME, "config"),
];

/// The file that makes a shell use the home.
const ENVIRONMENT: &str = "env.sh";

/// How long what the demo itself runs may take to end, and how often that is looked at.
const CLEARING: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);

/// The folder of one demo.
pub(super) struct Stage {
    folder: PathBuf,
    keeps: bool,
    /// Set when the demo ends: nothing more is started.
    pub(super) is_over: AtomicBool,
    /// The environment and the home of every command of the demo.
    pub(super) context: Context,
}

impl Stage {
    /// A new folder: `keep`, or one below the temporary folder.
    pub(super) fn new(keep: Option<&Path>) -> Result<Self, Refusal> {
        let folder = match keep {
            Some(folder) => kept(folder)?,
            None => temporary()?,
        };
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        // Who calls may be an agent, or in a repository's hook.
        variables.retain(|name, _| !name.as_bytes().starts_with(b"STEAD_"));
        without_git_discovery(&mut variables);
        for (name, below) in FOLDERS {
            variables.insert(name.into(), folder.join(below).into());
        }
        let user = rustix::process::getuid().as_raw();
        let home = Home::derive(&variables, &std::env::temp_dir(), user)?;
        let context = Context { variables, home, cut_short: Vec::new() };
        let stage =
            Self { folder, keeps: keep.is_some(), is_over: AtomicBool::new(false), context };
        if let Err(refusal) = stage.prepare() {
            // Nothing runs yet.
            let _ = stage.remove();
            return Err(refusal);
        }
        Ok(stage)
    }

    fn prepare(&self) -> Result<(), Refusal> {
        self.context.home.socket().map_err(|refusal| {
            refusal.hint("TMPDIR or `--keep DIR` names a folder with a shorter path")
        })?;
        for (_, below) in FOLDERS {
            private(&self.folder.join(below)).map_err(|error| self.unwritable(&error))?;
        }
        let mut text = String::new();
        for (name, below) in FOLDERS {
            text.push_str(&format!("export {name}={}\n", quoted(&self.folder.join(below))));
        }
        if let Some(bin) = own_program()?.parent() {
            text.push_str(&format!("export PATH={}:\"$PATH\"\n", quoted(bin)));
        }
        fs::write(self.folder.join(ENVIRONMENT), text).map_err(|error| self.unwritable(&error))
    }

    fn unwritable(&self, error: &std::io::Error) -> Refusal {
        let line = format!("cannot write in {}: {error}", self.folder.display());
        Refusal::new(RefusalKind::Storage, line).hint("TMPDIR or `--keep DIR` names another folder")
    }

    /// The original of the project.
    pub(super) fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    /// Where the demo's own builds of the original go, which stays as it is.
    pub(super) fn target(&self) -> PathBuf {
        self.folder.join("target")
    }

    fn remove(&self) -> Result<(), Refusal> {
        remove_tree_at(&self.folder).map(drop).map_err(|error| {
            let line = format!("{} is not removed: {error}", self.folder.display());
            Refusal::new(RefusalKind::Storage, line).hint("nothing runs in it any more")
        })
    }

    /// Says what is left, and how to look around in it.
    pub(super) fn tell_end(&self, has_failed: bool) {
        let folder = clean::path(&self.folder);
        if !self.keeps {
            say(styled(style::DIM, format_args!("everything has ended, {folder} is removed")));
            if has_failed {
                say("`stead demo --keep DIR` keeps everything to look at");
            }
            return;
        }
        say(format_args!("everything has ended and is kept in {folder}. To look around:"));
        let file = quoted(&self.folder.join(ENVIRONMENT));
        say(format_args!("  . {file} && cd {}", quoted(&self.project())));
        say(
            "  git diff; stead tree; stead log; stead task list; stead task show 1; stead serve --stop",
        );
    }
}

/// Ends every process of the demo, gives all ports back and removes the folder, unless it is to be
/// kept.
pub(super) async fn clear(stage: &Arc<Stage>) -> Result<(), Refusal> {
    stage.is_over.store(true, Ordering::Relaxed);
    // Its turns first: they end what they are running, and start nothing else.
    let ended = end_engine(&stage.context).await;
    let deadline = Instant::now() + CLEARING;
    loop {
        let host = stage.context.home.places();
        let released = tokio::task::spawn_blocking(move || release_all(&host)).await;
        released.map_err(|error| Refusal::new(RefusalKind::Failed, error.to_string()))??;
        // The demo's own checks hold the stage as long as they go on.
        if Arc::strong_count(stage) == 1 || Instant::now() >= deadline {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    ended?;
    if stage.keeps { Ok(()) } else { stage.remove() }
}

fn release_all(host: &stead_place::Host) -> Result<(), Refusal> {
    let failed = |line: String| Refusal::new(RefusalKind::WrongState, line);
    for listed in host.list().map_err(|error| failed(error.to_string()))? {
        let which = Which::Named(listed.id);
        let released = host.release(&which).map_err(|error| failed(error.to_string()))?;
        if let Some(left) = released.iter().flat_map(|one| &one.left).next() {
            return Err(failed(format!("{} is not released: {left}", listed.place.display())));
        }
    }
    Ok(())
}

/// The folder to keep: new, or there and empty.
fn kept(folder: &Path) -> Result<PathBuf, Refusal> {
    let folder = current_dir()?.join(folder);
    let refused = |why: String| {
        usage(format!("{} cannot be used: {why}", folder.display()))
            .hint("`--keep` takes a folder that is new or empty")
    };
    match private(&folder) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let mut entries = fs::read_dir(&folder).map_err(|error| refused(error.to_string()))?;
            if entries.next().is_some() {
                return Err(refused("it is not empty".to_owned()));
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let above = folder.parent().unwrap_or(&folder);
            let line = format!("{} is not there, and so nothing in it", clean::path(above));
            return Err(usage(line).hint(format!("mkdir -p {}", quoted(above))));
        }
        Err(error) => return Err(refused(error.to_string())),
    }
    folder.canonicalize().map_err(|error| refused(error.to_string()))
}

fn temporary() -> Result<PathBuf, Refusal> {
    let base = std::env::temp_dir();
    let id = new_request()?.to_string();
    // The end of an id is random.
    let folder = base.join(format!("stead-demo-{}", id.rsplit('-').next().unwrap_or(&id)));
    private(&folder).and_then(|()| folder.canonicalize()).map_err(|error| {
        let line = format!("cannot make a folder in {}: {error}", base.display());
        Refusal::new(RefusalKind::Storage, line).hint("TMPDIR or `--keep DIR` names another folder")
    })
}

/// A new folder for this user alone.
fn private(folder: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(folder)
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}
