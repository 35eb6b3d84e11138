//! A session that answers the port of a turn, and a model that is a function.
#![allow(dead_code)] // each test program uses its own part

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use stead_agent::{
    Ask, Asked, Done, Driver as _, Entry, Execution, Loop, Port, SessionTool, Situation, Turn,
    TurnEnd,
};
use stead_core::bound::Bound;
use stead_core::event::{MailKind, Sender};
use stead_core::id::{CallId, RootId, SessionId, SlotName, TurnId};
use stead_core::layout::{AbsoluteDir, Access, Root, RootIdentity};
use stead_core::path::AgentPath;
use stead_core::permission::{Answer, Deed, Mode, Terms, Zone};
use stead_core::profile::Profile;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::shell::{ShellFate, ShellId};
use stead_files::Lock;
use stead_model::{Message, Model, ModelError, Reply, Request, ToolCall, ToolResult};
use stead_place::{Host, PortRange, Which};
use stead_process::Spawners;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What the session knows and was asked.
pub(crate) struct State {
    pub(crate) entries: Vec<Entry>,
    /// Delivered one a boundary.
    pub(crate) mail: VecDeque<Entry>,
    pub(crate) answer: Answer,
    pub(crate) terms: Terms,
    /// Every ask in one word or two, in order.
    pub(crate) asked: Vec<String>,
    /// Where the conversation is cut, and the summary.
    pub(crate) cut: Option<(usize, String)>,
    /// What is told with a summary.
    pub(crate) standing: String,
    /// How background shells ended, by their numbers; the newest number is the count of starts.
    pub(crate) shells: Vec<(ShellId, ShellFate)>,
    pub(crate) started: u32,
    /// What is refused instead of being recorded, once.
    pub(crate) refuse_say: Option<Refusal>,
    /// The same of a shell's end.
    pub(crate) refuse_end: Option<Refusal>,
}

/// A folder with a root `app`, a session and a spawner.
pub(crate) struct World {
    folder: tempfile::TempDir,
    spawners: Arc<Spawners>,
    runs: Arc<Lock>,
    state: Arc<Mutex<State>>,
    /// How many runs there may be in places at once.
    pub(crate) bound: u32,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("app")).unwrap();
        let program = env!("CARGO_BIN_EXE_stead-agent-spawner").into();
        let spawners = Arc::new(Spawners::start(program, Vec::new()).unwrap());
        let state = State {
            entries: vec![heard("do it")],
            mail: VecDeque::new(),
            answer: Answer::Once,
            terms: Terms {
                mode: Mode::FullAuto,
                plan_ceiling: false,
                grants: Vec::new(),
                rules: Vec::new(),
            },
            asked: Vec::new(),
            cut: None,
            standing: String::new(),
            shells: Vec::new(),
            started: 0,
            refuse_say: None,
            refuse_end: None,
        };
        let lock = Lock::try_exclusive(&folder.path().join("runs.lock"), "runs");
        let runs = Arc::new(lock.unwrap().unwrap());
        Self { folder, spawners, runs, state: Arc::new(Mutex::new(state)), bound: 4 }
    }

    /// A folder beside `app`.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// The places of the world.
    pub(crate) fn host(&self) -> Host {
        let folder = self.folder.path().canonicalize().unwrap();
        Host::new(&folder.join("host"), &folder.join("short"), 0, PortRange::default())
    }

    pub(crate) fn app(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("app")
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The state for a model that changes it.
    pub(crate) fn shared(&self) -> Arc<Mutex<State>> {
        self.state.clone()
    }

    /// A turn of `/root` in `app`.
    pub(crate) fn turn(&self) -> Turn {
        self.turn_of("root-session", "/root", &self.app())
    }

    pub(crate) fn turn_of(&self, agent: &str, path: &str, directory: &Path) -> Turn {
        let (sender, receiver) = mpsc::channel(8);
        tokio::spawn(serve(self.state.clone(), receiver));
        let id = TurnId(1);
        let root = Root {
            id: RootId::parse("r1").unwrap(),
            slot: SlotName::parse("app").unwrap(),
            directory: AbsoluteDir::new(self.app()).unwrap(),
            access: Access::Write,
            identity: RootIdentity { inode: 1, birth: None },
        };
        let environment: BTreeMap<OsString, OsString> =
            [("PATH", std::env::var_os("PATH").unwrap())].map(|(n, v)| (n.into(), v)).into();
        Turn {
            session: SessionId::parse("root-session").unwrap(),
            agent: SessionId::parse(agent).unwrap(),
            id,
            situation: Situation {
                path: AgentPath::parse(path).unwrap(),
                directory: AbsoluteDir::new(directory).unwrap(),
                roots: vec![root],
                originals: Vec::new(),
                instructions: Vec::new(),
                role: None,
                children: Vec::new(),
                seeded: false,
            },
            profile: Profile::default(),
            logs: self.folder.path().canonicalize().unwrap().join("logs"),
            spawners: self.spawners.clone(),
            runs: self.runs.clone(),
            exec: Arc::new(Execution {
                host: self.host(),
                bound: Bound { runs: self.bound, reserved: 0 },
                keeper: (env!("CARGO_BIN_EXE_stead-agent-keeper").into(), Vec::new()),
                client: environment.clone(),
                socket: "/nowhere.sock".into(),
            }),
            environment,
            port: Port::new(id, sender),
            cancel: CancellationToken::new(),
        }
    }

    /// Runs one turn in which these calls are made one after another, and gives their results.
    pub(crate) async fn calls(&self, calls: &[(&str, Value)]) -> Vec<ToolResult> {
        let turn = self.turn();
        self.calls_in(turn, Duration::from_secs(10), calls).await
    }

    pub(crate) async fn calls_in(
        &self,
        turn: Turn,
        yield_after: Duration,
        calls: &[(&str, Value)],
    ) -> Vec<ToolResult> {
        self.state().entries.push(heard("go on"));
        let before = results(&self.state().entries).len();
        let agent = turn.agent.clone();
        let calls = calls.iter().map(|(tool, arguments)| ((*tool).to_owned(), arguments.clone()));
        let mut calls: VecDeque<_> = calls.collect();
        let mut number = before;
        let end = run(turn, yield_after, move |_| {
            number += 1;
            Ok(match calls.pop_front() {
                Some((tool, arguments)) => call(&format!("{agent}-{number}"), &tool, arguments),
                None => say("done"),
            })
        })
        .await;
        assert_eq!((end.result.as_str(), end.reason), ("done", None));
        results(&self.state().entries).split_off(before)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let host = self.host();
        for listed in host.list().unwrap_or_default() {
            let _ = host.release(&Which::Named(listed.id));
        }
    }
}

pub(crate) async fn run(
    turn: Turn,
    yield_after: Duration,
    model: impl FnMut(&Request) -> Result<Reply, ModelError> + Send + 'static,
) -> TurnEnd {
    Loop::new(Arc::new(Function(Mutex::new(model)))).yield_after(yield_after).run(turn).await
}

pub(crate) fn results(entries: &[Entry]) -> Vec<ToolResult> {
    let found = entries.iter().filter_map(|entry| match entry {
        Entry::Answered { result, .. } => Some(result.clone()),
        _ => None,
    });
    found.collect()
}

pub(crate) fn heard(text: &str) -> Entry {
    Entry::Heard {
        turn: TurnId(1),
        from: Sender::Person,
        sort: MailKind::User,
        text: text.to_owned(),
    }
}

pub(crate) fn say(text: &str) -> Reply {
    Reply { text: text.to_owned(), ..Reply::default() }
}

pub(crate) fn call(id: &str, tool: &str, arguments: Value) -> Reply {
    let id = CallId::parse(id).unwrap();
    let calls = vec![ToolCall { id, tool: tool.to_owned(), arguments }];
    Reply { calls, ..Reply::default() }
}

/// How many replies the conversation of a request holds.
pub(crate) fn replies(request: &Request) -> usize {
    request.messages.iter().filter(|m| matches!(m, Message::Assistant(_))).count()
}

pub(crate) struct Function<F>(pub(crate) Mutex<F>);

#[async_trait]
impl<F: FnMut(&Request) -> Result<Reply, ModelError> + Send> Model for Function<F> {
    async fn reply(&self, request: &Request) -> Result<Reply, ModelError> {
        self.0.lock().unwrap()(request)
    }
}

async fn serve(state: Arc<Mutex<State>>, mut receiver: mpsc::Receiver<Asked>) {
    while let Some(Asked { turn, ask }) = receiver.recv().await {
        state.lock().unwrap().take(turn, ask);
    }
}

impl State {
    /// The conversation as the model is shown it.
    fn shown(&self) -> Vec<Entry> {
        let Some((cut, text)) = &self.cut else { return self.entries.clone() };
        let (before, after) = self.entries.split_at(*cut);
        let mut turns: Vec<_> = before.iter().filter_map(Entry::turn).collect();
        turns.dedup();
        let calls = before.iter().filter_map(|entry| match entry {
            Entry::Said { reply, .. } => Some(reply.calls.iter().map(|call| call.id.clone())),
            _ => None,
        });
        let summary = Entry::Summary {
            text: text.clone(),
            turns: u32::try_from(turns.len()).unwrap(),
            calls: calls.flatten().collect(),
            standing: self.standing.clone(),
        };
        [&[summary], after].concat()
    }

    fn take(&mut self, turn: TurnId, ask: Ask) {
        match ask {
            Ask::Conversation { answer } => drop(answer.send(Ok(self.shown()))),
            Ask::Boundary { answer } => {
                self.asked.push("boundary".to_owned());
                let news: Vec<_> = self.mail.pop_front().into_iter().collect();
                self.entries.extend(news.clone());
                let _ = answer.send(Ok(news));
            }
            Ask::Say { reply, calls, answer, .. } => {
                if let Some(refusal) = self.refuse_say.take() {
                    return drop(answer.send(Err(refusal)));
                }
                let reply: Reply = serde_json::from_slice(&reply).unwrap();
                assert!(reply.calls.iter().map(|call| &call.id).eq(&calls));
                let calls: Vec<_> = calls.iter().map(ToString::to_string).collect();
                self.asked.push(format!("say {}", calls.join(" ")));
                self.entries.push(Entry::Said { turn, reply });
                let _ = answer.send(Ok(()));
            }
            Ask::Answer { call, result, answer } => {
                let result: ToolResult = serde_json::from_slice(&result).unwrap();
                assert_eq!(result.id, call);
                self.asked.push(format!("answer {}", result.id));
                self.entries.push(Entry::Answered { turn, result });
                let _ = answer.send(Ok(()));
            }
            Ask::Compact { summary, answer, .. } => {
                self.asked.push(format!("compact {summary}"));
                let cut = self.entries.iter().position(|entry| entry.turn() == Some(turn));
                self.cut = Some((cut.unwrap(), summary));
                let _ = answer.send(Ok(()));
            }
            Ask::StartShell { command, answer } => {
                self.asked.push(format!("shell {command}"));
                self.started += 1;
                let _ = answer.send(Ok(ShellId(self.started)));
            }
            Ask::ShellEnded { answer, .. } if self.refuse_end.is_some() => {
                let refusal = self.refuse_end.take().unwrap();
                let _ = answer.send(Err(refusal));
            }
            Ask::ShellEnded { shell, fate, report, answer } => {
                self.asked.push(format!("shell {shell} {fate}"));
                self.shells.push((shell, fate));
                if fate != ShellFate::Stopped {
                    self.mail.push_back(Entry::Heard {
                        turn,
                        from: Sender::Stead,
                        sort: MailKind::Execution,
                        text: report,
                    });
                }
                let _ = answer.send(Ok(()));
            }
            // Reading inside the roots asks nobody.
            Ask::Permission { deed: Deed::Read(_), zones, answer, .. } if zones == [Zone::Root] => {
                let _ = answer.send(Ok(Answer::Once));
            }
            Ask::Permission { deed, subject, answer, .. } => {
                self.asked.push(format!("permission {deed:?} {subject}"));
                let _ = answer.send(Ok(self.answer));
            }
            Ask::Terms { answer } => drop(answer.send(Ok(self.terms.clone()))),
            Ask::Tool { tool: SessionTool::Wait { .. }, answer, .. } => {
                self.asked.push("wait".to_owned());
                // Nobody ever writes: only a cancel ends it.
                tokio::spawn(async move {
                    std::future::pending::<()>().await;
                    drop(answer);
                });
            }
            Ask::Tool { tool: SessionTool::Interrupt { target }, answer, .. } => {
                let line = format!("no agent {target}");
                let refusal = Refusal::new(RefusalKind::UnknownAgent, line)
                    .hint("list_agents names the agents there are");
                let _ = answer.send(Err(refusal));
            }
            Ask::Tool { call, tool, answer } => {
                self.asked.push(format!("tool {call}"));
                let structured = json!({ "ok": true });
                let _ = answer.send(Ok(Done { text: format!("{tool:?}"), structured }));
            }
        }
    }
}

/// Whether a process whose command line holds this word is there.
pub(crate) fn is_running(word: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let is_process =
            entry.file_name().to_string_lossy().starts_with(|c: char| c.is_ascii_digit());
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        is_process
            && line.split(|b| *b == 0).any(|part| OsStr::new(word).as_encoded_bytes() == part)
    })
}
