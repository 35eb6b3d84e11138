//! What a turn is given before its driver runs it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use stead_agent::{Driver, Execution, InstructionFile, Port, Situation, Turn, TurnEnd};
use stead_core::env::XDG_STATE_HOME;
use stead_core::event::{DriverSpec, Outcome, Worktree};
use stead_core::id::{BodyRef, SessionId, TaskId, TurnId};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::roster::Agent;
use stead_git::GitEntry;
use stead_place::{Identity, Place, top_of};
use tokio_util::sync::CancellationToken;

use super::actor::{Actor, Shared};
use super::frozen;
use super::tools::{still, still_own};
use crate::copies::unusable;
use crate::door::Door;

impl Actor {
    /// What an agent is told as its turn begins.
    pub(super) fn situation(&self, path: &AgentPath, agent: &Agent) -> Situation {
        Situation {
            path: path.clone(),
            directory: agent.directory.clone(),
            roots: self.routes(agent),
            originals: self.originals(agent),
            instructions: Vec::new(),
            role: agent.role.clone(),
            children: self.children(path),
            seeded: agent.frozen.seed.is_some(),
        }
    }
}

/// What a turn is run with.
pub(super) struct TurnFacts {
    pub(super) shared: Arc<Shared>,
    pub(super) session: SessionId,
    pub(super) agent: SessionId,
    pub(super) turn: TurnId,
    pub(super) driver: DriverSpec,
    /// What the agent was frozen with at its spawn.
    pub(super) profile: Option<BodyRef>,
    pub(super) situation: Situation,
    /// The task whose copies the roots are.
    pub(super) copies: Option<TaskId>,
    /// The worktree that its directory is in, when that is in none of the session's roots.
    pub(super) worktree: Option<Worktree>,
    pub(super) environment: BTreeMap<OsString, OsString>,
    pub(super) port: Port,
    pub(super) cancel: CancellationToken,
}

impl TurnFacts {
    /// Runs the turn to its end; one that cannot be equipped has errored.
    pub(super) async fn run(self) -> TurnEnd {
        match self.equip().await {
            Ok((driver, turn, _door)) => driver.run(turn).await,
            Err(refusal) => TurnEnd {
                outcome: Outcome::Errored,
                result: String::new(),
                reason: Some(match refusal.hint {
                    Some(hint) => format!("{} ({hint})", refusal.line),
                    None => refusal.line,
                }),
            },
        }
    }

    /// Looks at the directory once more, never falling back to another, and opens the agent's
    /// door.
    async fn equip(mut self) -> Result<(Arc<dyn Driver>, Turn, Door), Refusal> {
        let failed = |e: String| Refusal::new(RefusalKind::Failed, e);
        let shared = self.shared.clone();
        let (situation, agent) = (self.situation.clone(), self.agent.clone());
        let (session, copies) = (self.session.clone(), self.copies);
        let worktree = self.worktree.clone();
        let (spec, profile) = (self.driver.clone(), self.profile);
        let (place, driver, profile, instructions) = tokio::task::spawn_blocking(move || {
            let place = Place::adopt(&shared.home.host(), &situation.directory, &agent)
                .map_err(|e| failed(e.to_string()))?;
            if let Some(task) = copies
                && let Some(layout) = stead_copies::Layout::load(&shared.copies, &session, task)
                    .map_err(|error| unusable(&error))?
            {
                still_own(&shared.git()?, &layout, &situation.roots)?;
            }
            if let Some(worktree) = worktree {
                still(&shared.git()?, &worktree, &situation.directory)?;
            }
            let driver = shared.drivers.driver(shared.store.reader(), &spec)?;
            let profile = frozen::profile(shared.store.reader(), profile)?;
            Ok::<_, Refusal>((place, driver, profile, instruction_files(&situation)))
        })
        .await
        .map_err(|e| failed(e.to_string()))??;
        self.situation.instructions = instructions;
        let socket = place.socket(self.shared.home.runtime());
        let door = self
            .shared
            .doors
            .open(&socket, self.session.clone(), self.situation.path.clone())
            .map_err(|e| failed(format!("the socket {} cannot be made: {e}", socket.display())))?;
        let identity = Identity { agent: &self.agent, path: &self.situation.path, socket: &socket };
        let environment = place.environment(&self.environment, identity);
        let mut client = self.environment;
        if let Some(state) = self.shared.home.state_home() {
            // `stead exec` inside a run must count against the same bound.
            client.insert(XDG_STATE_HOME.into(), state.into());
        }
        let exec = Execution {
            host: self.shared.host.clone(),
            bound: self.shared.bound,
            keeper: self.shared.keeper.clone(),
            client,
            socket: socket.clone(),
        };
        let turn = Turn {
            logs: self
                .shared
                .home
                .logs()
                .join("runs")
                .join(self.session.as_str())
                .join(self.turn.to_string()),
            session: self.session,
            agent: self.agent,
            id: self.turn,
            situation: self.situation,
            profile,
            environment,
            spawners: self.shared.spawners.clone(),
            runs: self.shared.runs.clone(),
            exec: Arc::new(exec),
            port: self.port,
            cancel: self.cancel,
        };
        Ok((driver, turn, door))
    }
}

/// The instruction files from the top of the checkout that an agent works in: its copy, else the
/// worktree, else the root that its directory is in.
fn instruction_files(situation: &Situation) -> Vec<InstructionFile> {
    let directory = &situation.directory;
    let mut roots = situation.roots.iter().map(|root| &root.directory);
    let root = roots.find(|root| directory.is_within(root)).cloned();
    let worktree = || {
        let top = top_of(directory.as_path()).ok()?;
        GitEntry::of(top.as_path()).ok()?.map(|_| top)
    };
    let top = match root {
        Some(copy) if !situation.originals.is_empty() => copy,
        root => worktree().or(root).unwrap_or_else(|| directory.clone()),
    };
    stead_agent::instruction_files(top.as_path(), directory.as_path())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use stead_core::id::{RootId, SlotName};
    use stead_core::layout::{AbsoluteDir, Access, Root, RootIdentity};

    use super::*;

    fn situation(base: &Path, directory: &str, root: &str, original: Option<&str>) -> Situation {
        let at = |name: &str| AbsoluteDir::new(base.join(name)).unwrap();
        Situation {
            path: AgentPath::root(),
            directory: at(directory),
            roots: vec![Root {
                id: RootId::parse("r1").unwrap(),
                slot: SlotName::parse("app").unwrap(),
                directory: at(root),
                access: Access::Write,
                identity: RootIdentity { inode: 1, birth: None },
            }],
            originals: original.map(at).into_iter().collect(),
            instructions: Vec::new(),
            role: None,
            children: Vec::new(),
            seeded: false,
        }
    }

    #[test]
    fn agents_57_instructions_are_those_of_the_checkout_that_the_directory_is_in() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        for at in ["main/.git", "main/sub", "plain/a", "wt/deep", "main/nested/.git"] {
            fs::create_dir_all(base.join(at)).unwrap();
        }
        fs::write(base.join("wt/.git"), "gitdir: ../main/.git/worktrees/wt").unwrap();
        for at in ["", "main", "main/sub", "main/nested", "plain", "plain/a", "wt", "wt/deep"] {
            fs::write(base.join(at).join("AGENTS.md"), at).unwrap();
        }
        let told = |directory: &str, root: &str, original: Option<&str>| -> Vec<String> {
            let situation = situation(&base, directory, root, original);
            instruction_files(&situation).into_iter().map(|file| file.text).collect()
        };
        assert_eq!(told("wt/deep", "main", None), ["wt", "wt/deep"]);
        assert_eq!(told("main/sub", "main", None), ["main", "main/sub"]);
        assert_eq!(told("main/sub", "main/sub", None), ["main", "main/sub"]);
        assert_eq!(told("main/nested", "main", None), ["main/nested"]);
        assert_eq!(told("plain/a", "plain", None), ["plain", "plain/a"]);
        assert_eq!(told("main/nested", "main", Some("wt")), ["main", "main/nested"]);
    }
}
