//! A log in memory: decides commands, appends what they come to and folds it in.

use crate::delegated::{Admission, AdmittedCopy};
use crate::event::{BranchEvent, DriverSpec, Envelope, Event, Outcome, SessionStarted, Stream};
use crate::id::{
    BodyRef, CallId, Digest, MailId, PermissionId, RootId, SessionId, SlotName, TaskId, Timestamp,
    TurnId,
};
use crate::layout::{AbsoluteDir, Access, Placement, Root, RootIdentity};
use crate::mail::Receipt;
use crate::path::AgentPath;
use crate::permission::{Deed, Mode, Zone};
use crate::refusal::{Refusal, RefusalKind};
use crate::roster::{Agent, Standing};
use crate::session::{Command, Evolved, Outcomes, Planned, State, decide, replay};
use crate::task::{Owner, Task, TaskChange};
use crate::usage::Reports;

/// A session as an engine holds it, with its whole log.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_field_names, reason = "a log is what it is")]
pub(super) struct Log {
    pub(super) state: State,
    pub(super) log: Vec<Envelope>,
    /// The milliseconds that have passed.
    pub(super) clock: i64,
}

pub(super) fn path(text: &str) -> AgentPath {
    AgentPath::parse(text).unwrap()
}

pub(super) fn body(text: &str) -> BodyRef {
    let mut bytes = [0; 32];
    for (at, byte) in text.bytes().enumerate() {
        bytes[at % 32] ^= byte.rotate_left(u32::try_from(at / 32).unwrap());
    }
    BodyRef { digest: Digest::from_bytes(bytes), bytes: text.len().try_into().unwrap() }
}

pub(super) fn call(text: &str) -> CallId {
    CallId::parse(text).unwrap()
}

pub(super) fn id(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

pub(super) fn directory(text: &str) -> AbsoluteDir {
    AbsoluteDir::new(text).unwrap()
}

pub(super) fn driver() -> DriverSpec {
    DriverSpec {
        kind: "playbook".to_owned(),
        name: "book.toml".to_owned(),
        body: None,
        reports: Reports::Nothing,
    }
}

pub(super) fn root(slot: &str, dir: &str) -> Root {
    Root {
        id: RootId::parse(slot).unwrap(),
        slot: SlotName::parse(slot).unwrap(),
        directory: directory(dir),
        access: Access::Write,
        identity: RootIdentity { inode: 7, birth: None },
    }
}

pub(super) fn started(capacity: u16) -> SessionStarted {
    SessionStarted {
        session: id("root-session"),
        label: None,
        roots: vec![root("app", "/w/app")],
        placement: Placement::InPlace,
        capacity,
        mode: Mode::Ask,
        plan_ceiling: false,
        forked: None,
    }
}

pub(super) fn start(started: SessionStarted) -> Command {
    Command::Start {
        started,
        driver: driver(),
        directory: directory("/w/app"),
        message: Some(body("build it")),
        title: "Build it".to_owned(),
        frozen: Box::default(),
        notes: Vec::new(),
    }
}

/// A session whose agents work in private copies of two roots, one of them read-only.
pub(super) fn started_in_copies(capacity: u16) -> SessionStarted {
    let mut started = started(capacity);
    started.placement = Placement::PrivateCopies;
    started.roots.push(Root { access: Access::Read, ..root("lib", "/w/lib") });
    started
}

impl Log {
    /// A session in the middle of `/root`'s first turn.
    pub(super) fn new(capacity: u16) -> Self {
        let mut log = Self::default();
        log.ok(start(started(capacity)));
        log
    }

    /// A session with private copies, in the middle of `/root`'s first turn.
    pub(super) fn in_copies(capacity: u16) -> Self {
        let mut log = Self::default();
        log.ok(start(started_in_copies(capacity)));
        log.publish(&AgentPath::root());
        log
    }

    /// Decides, appends and folds in; a refusal leaves everything as it was.
    pub(super) fn give(&mut self, command: Command) -> Result<Outcomes, Refusal> {
        let decision = decide(&self.state, command)?;
        for planned in decision.events {
            self.append(planned);
        }
        Ok(decision.answer)
    }

    pub(super) fn append(&mut self, Planned { stream, event }: Planned) {
        let position = self.state.tip + 1;
        let envelope = Envelope {
            seq: self.state.next_seq(&stream),
            stream,
            position,
            at: Timestamp(1_700_000_000_000 + self.clock),
            request: None,
            event,
        };
        self.log.push(envelope.clone());
        if self.state.evolve(&envelope) == Evolved::Replay {
            self.state = replay(&self.log);
        }
    }

    pub(super) fn ok(&mut self, command: Command) -> Outcomes {
        self.give(command).unwrap()
    }

    /// The kind of the refusal, after showing that nothing changed.
    pub(super) fn refused(&mut self, command: Command) -> RefusalKind {
        self.refusal(command).kind
    }

    pub(super) fn refusal(&mut self, command: Command) -> Refusal {
        let before = (self.state.clone(), self.log.len());
        let refusal = self.give(command).unwrap_err();
        assert_eq!((self.state.clone(), self.log.len()), before);
        refusal
    }

    /// What a new process has: the state read back from the log.
    pub(super) fn restarted(&self) -> Self {
        Self { state: replay(&self.log), log: self.log.clone(), clock: self.clock }
    }

    pub(super) fn agent(&self, at: &str) -> &Agent {
        self.state.branch.roster.find(&path(at)).unwrap()
    }

    pub(super) fn busy(&self) -> bool {
        self.state.branch.roster.all().any(|a| a.standing != Standing::Idle)
    }

    pub(super) fn turn(&self, at: &str) -> TurnId {
        self.agent(at).turn().unwrap()
    }

    pub(super) fn reserve_command(&self, caller: &str, name: &str) -> Command {
        Command::Reserve {
            caller: path(caller),
            agent: id(&format!("agent-{}", self.log.len())),
            call: None,
            task_name: name.to_owned(),
            role: None,
            message: body("do your part"),
            directory: None,
            driver: None,
            frozen: Box::default(),
        }
    }

    pub(super) fn reserve(&mut self, caller: &str, name: &str) -> AgentPath {
        let command = self.reserve_command(caller, name);
        match self.ok(command) {
            Outcomes::Reserved { path, again: false, .. } => path,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn publish(&mut self, path: &AgentPath) -> TurnId {
        match self.ok(Command::Publish { path: path.clone(), admission: self.admission(path) }) {
            Outcomes::Started { turn, .. } => turn,
            other => panic!("{other:?}"),
        }
    }

    /// The copies that admission would make for a reserved agent.
    pub(super) fn admission(&self, path: &AgentPath) -> Admission {
        let own = self.state.world.delegated.values().find(|d| d.owner == *path && !d.admitted);
        let copy = |task: TaskId, root: &Root| AdmittedCopy {
            slot: root.slot.clone(),
            directory: directory(&format!("/home/copies/{task}/{}", root.slot)),
            base: body(&format!("base {task} {}", root.slot)).digest,
        };
        let roots = own.into_iter().flat_map(|d| d.roots.iter().map(|root| copy(d.task, root)));
        Admission { copies: roots.collect(), notes: Vec::new() }
    }

    /// Reserves and publishes; the new agent's path.
    pub(super) fn spawn(&mut self, caller: &str, name: &str) -> String {
        let path = self.reserve(caller, name);
        self.publish(&path);
        path.to_string()
    }

    pub(super) fn settle_command(&self, at: &str, outcome: Outcome) -> Command {
        Command::Settle {
            path: path(at),
            turn: self.turn(at),
            outcome,
            result: Some(body("the whole result")),
            reason: (outcome != Outcome::Completed).then(|| "why".to_owned()),
            report: body(&format!("report of {at}")),
        }
    }

    pub(super) fn settle(&mut self, at: &str, outcome: Outcome) {
        let command = self.settle_command(at, outcome);
        self.ok(command);
    }

    pub(super) fn complete(&mut self, at: &str) {
        self.settle(at, Outcome::Completed);
    }

    pub(super) fn send(
        &mut self,
        from: &str,
        target: &str,
        wake: bool,
    ) -> Result<Receipt, Refusal> {
        match self.give(Command::Send {
            from: (from != "person").then(|| path(from)),
            target: target.to_owned(),
            body: body("a message"),
            wake,
        })? {
            Outcomes::Sent(receipt) => Ok(receipt),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn deliver(&mut self, at: &str) -> usize {
        let command = Command::Deliver { path: path(at), turn: self.turn(at) };
        match self.ok(command) {
            Outcomes::Delivered(count) => count,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn say(&mut self, at: &str, calls: &[&str]) {
        let command = Command::Say {
            path: path(at),
            turn: self.turn(at),
            body: body("hm"),
            calls: calls.iter().map(|c| call(c)).collect(),
            usage: None,
        };
        self.ok(command);
    }

    pub(super) fn write(&mut self, by: &str, changes: &[TaskChange]) -> Result<Vec<u32>, Refusal> {
        match self.give(Command::WriteTasks {
            by: (by != "person").then(|| path(by)),
            changes: changes.to_vec(),
            notes: Vec::new(),
        })? {
            Outcomes::Written { tasks, .. } => Ok(tasks.into_iter().map(|t| t.0).collect()),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn task(&self, number: u32) -> &Task {
        &self.state.branch.tasks.tasks[&TaskId(number)]
    }

    pub(super) fn ask(&mut self, at: &str, deed: Deed) -> Result<Outcomes, Refusal> {
        let command = Command::Ask {
            path: path(at),
            turn: self.turn(at),
            zones: zones(&deed),
            deed,
            subject: "run make".to_owned(),
            attended: true,
        };
        self.give(command)
    }

    pub(super) fn asked(&mut self, at: &str, deed: &str) -> PermissionId {
        match self.ask(at, Deed::Command(deed.to_owned())).unwrap() {
            Outcomes::Asked(id) => id,
            other => panic!("{other:?}"),
        }
    }

    /// The unread mail of an agent, oldest first.
    pub(super) fn unread(&self, at: &str) -> Vec<MailId> {
        self.agent(at).unread.iter().map(|m| m.id).collect()
    }

    /// The events of one agent's conversation, those of abandoned branches too.
    pub(super) fn conversation(&self, at: &str) -> Vec<BranchEvent> {
        let stream = Stream::Conversation(self.agent(at).id.clone());
        self.log
            .iter()
            .filter(|e| e.stream == stream)
            .map(|e| match &e.event {
                Event::Branch(event) => event.clone(),
                Event::World(event) => panic!("{event:?}"),
            })
            .collect()
    }
}

/// The zones of a deed all of whose files lie in roots.
pub(super) fn zones(deed: &Deed) -> Vec<Zone> {
    let files = match deed {
        Deed::Edit(_) | Deed::Read(_) => 1,
        Deed::Edits(paths) => paths.len(),
        Deed::Command(_) | Deed::Foreign { .. } => 0,
    };
    vec![Zone::Root; files]
}

/// A new task without an owner.
pub(super) fn task(subject: &str) -> TaskChange {
    TaskChange { subject: Some(subject.to_owned()), ..TaskChange::default() }
}

pub(super) fn change(number: u32) -> TaskChange {
    TaskChange { id: Some(TaskId(number)), ..TaskChange::default() }
}

/// The same, to be given to this owner.
pub(super) fn to(text: &str, change: TaskChange) -> TaskChange {
    TaskChange { owner: Some(Owner::try_from(text.to_owned()).unwrap()), ..change }
}
