//! What holds after every command, read off the log by other means than the rules' own.

use std::collections::{BTreeMap, BTreeSet};

use super::log::Log;
use crate::delegated::{ApplyOutcome, Review};
use crate::event::{BranchEvent, Envelope, Event, MailKind, Outcome, Sender, Stream, WorldEvent};
use crate::id::{
    ApplyId, BodyRef, CallId, Digest, MailId, PermissionId, SessionId, SlotName, TaskId, TurnId,
};
use crate::layout::Placement;
use crate::path::AgentPath;
use crate::roster::Standing;
use crate::shell::ShellId;
use crate::task::{Owner, Status};

/// Fails with what does not hold.
pub(super) fn check(log: &Log) {
    numbers(&log.log);
    roster(log);
    Walk::default().generation(log);
    tasks(log);
    delegated(log);
    spent(log);
    marks(log);
}

/// What everyone used alone is what `/root` used with all below it, whatever was left behind.
fn spent(log: &Log) {
    let opened = log.log.iter().position(|e| {
        matches!(&e.event, Event::Branch(BranchEvent::AgentPublished { path, .. }) if path.is_root())
    });
    let Some(opened) = opened else { return };
    let (mut turns, mut said) = (0, 0);
    for envelope in &log.log[opened..] {
        match &envelope.event {
            Event::Branch(BranchEvent::TurnStarted { .. }) => turns += 1,
            Event::Branch(BranchEvent::Said { .. } | BranchEvent::Compacted { .. }) => said += 1,
            _ => {}
        }
    }
    let (own, tree) = log.state.ledger().spent(&AgentPath::root(), None);
    assert_eq!((tree.turns, tree.unknown_tokens), (turns, said));
    assert!(own.turns <= tree.turns && own.wall_ms <= tree.wall_ms);
}

/// Live shells belong to running turns, pending notes are heard by the next turn, and a cut never
/// lies behind the conversation.
fn marks(log: &Log) {
    for agent in log.state.branch.roster.all() {
        assert!(agent.shells.values().all(|shell| Some(shell.turn) == agent.turn()));
        assert!(agent.shells.keys().all(|shell| *shell <= agent.last_shell));
        let last = log.state.next_seq(&Stream::Conversation(agent.id.clone())) - 1;
        assert!(agent.cuts.allowed().iter().all(|end| *end <= last));
        assert!(agent.cuts.allowed().is_sorted());
    }
    assert!(log.state.branch.roster.passed_over().is_empty());
}

/// Positions and seqs begin at 1 and have no gap.
fn numbers(log: &[Envelope]) {
    let mut seqs: BTreeMap<&Stream, u64> = BTreeMap::new();
    for (envelope, position) in log.iter().zip(1..) {
        let seq = seqs.entry(&envelope.stream).or_default();
        *seq += 1;
        assert_eq!((envelope.position, envelope.seq), (position, *seq));
        let conversation = matches!(
            envelope.event,
            Event::Branch(
                BranchEvent::Heard { .. }
                    | BranchEvent::Said { .. }
                    | BranchEvent::Answered { .. }
                    | BranchEvent::Unanswered { .. }
                    | BranchEvent::Compacted { .. }
            )
        );
        assert_eq!(envelope.stream != Stream::Control, conversation, "{envelope:?}");
    }
}

/// Paths and ids are one to one, parents are there, room is kept.
fn roster(log: &Log) {
    let roster = &log.state.branch.roster;
    let agents: Vec<_> = roster.all().collect();
    let ids: BTreeSet<_> = agents.iter().map(|a| &a.id).collect();
    assert_eq!((ids.len(), roster.paths.len()), (agents.len(), agents.len()));
    for agent in &agents {
        assert_eq!(roster.with_id(&agent.id), Some(*agent));
        assert_eq!(roster.at(&agent.path), Some(*agent));
        if let Some(parent) = agent.path.parent() {
            assert!(roster.find(&parent).is_ok(), "{} has no parent", agent.path);
        }
        assert!(!roster.gone.contains_key(&agent.path));
        if agent.turn().is_none() {
            assert!(agent.open_calls.is_empty());
        }
    }
    let capacity = usize::from(log.state.world.started.as_ref().unwrap().capacity);
    let busy = agents.iter().filter(|a| !a.path.is_root() && a.standing != Standing::Idle).count();
    assert!(busy <= capacity, "{busy} of {capacity}");
    assert_eq!(busy, roster.active());
}

/// What a walk over the events since the last rewind has seen.
#[derive(Default)]
struct Walk<'a> {
    taken: BTreeMap<&'a AgentPath, (&'a SessionId, bool)>,
    turns: BTreeMap<&'a AgentPath, TurnId>,
    calls: BTreeMap<&'a Stream, Vec<&'a CallId>>,
    stored: BTreeMap<&'a AgentPath, Vec<(MailId, BodyRef)>>,
    heard: BTreeMap<&'a Stream, Vec<(MailId, BodyRef)>>,
    delivered: BTreeMap<&'a AgentPath, Vec<MailId>>,
    waking: BTreeMap<MailId, &'a AgentPath>,
    settled: BTreeMap<&'a AgentPath, usize>,
    results: BTreeMap<&'a AgentPath, usize>,
    asked: BTreeMap<PermissionId, &'a AgentPath>,
    shells: BTreeSet<(&'a AgentPath, ShellId)>,
}

impl<'a> Walk<'a> {
    /// Walks over what belongs to the agents there are now: the events since the last rewind, and
    /// `/root`, which every branch has.
    fn generation(mut self, log: &'a Log) {
        let forked = log.state.world.started.as_ref().is_some_and(|s| s.forked.is_some());
        // The history of a fork ends where its `/root` is published.
        let rewound = |e: &&Envelope| match &e.event {
            Event::World(WorldEvent::Rewound { .. }) => true,
            Event::Branch(BranchEvent::AgentPublished { path, .. }) => forked && path.is_root(),
            _ => false,
        };
        let from = log.log.iter().rev().find(rewound).map_or(0, |e| e.position);
        let root = log.state.branch.roster.all().next().unwrap();
        if from > 0 {
            self.taken.insert(&root.path, (&root.id, true));
        }
        for envelope in log.log.iter().filter(|e| e.position > from) {
            if let Event::Branch(event) = &envelope.event {
                self.branch(envelope, event);
            }
        }
        self.compare(log);
    }

    fn branch(&mut self, envelope: &'a Envelope, event: &'a BranchEvent) {
        match event {
            BranchEvent::AgentReserved { path, agent, .. } => {
                assert!(self.taken.values().all(|(id, _)| *id != agent), "{agent} twice");
                assert!(self.taken.insert(path, (agent, false)).is_none(), "{path} twice");
            }
            BranchEvent::AgentPublished { path, .. } => {
                let (_, published) = self.taken.get_mut(path).unwrap();
                assert!(!std::mem::replace(published, true));
            }
            BranchEvent::AgentRefused { path, .. } => {
                let (_, published) = self.taken.remove(path).unwrap();
                assert!(!published, "{path} was published");
            }
            BranchEvent::TurnStarted { path, .. } => {
                assert!(self.taken[path].1);
                let turn = TurnId(envelope.position);
                assert!(self.turns.insert(path, turn).is_none(), "two turns of {path}");
            }
            BranchEvent::TurnSettled { path, turn, outcome, .. } => {
                assert_eq!(self.turns.remove(path), Some(*turn));
                let stream = Stream::Conversation(self.taken[path].0.clone());
                assert!(self.calls.get(&stream).is_none_or(Vec::is_empty), "an open call");
                let open = self.asked.values().filter(|asker| **asker == path).count();
                assert_eq!(open, 0, "an open request of {path}");
                *self.settled.entry(path).or_default() += 1;
                if *outcome == Outcome::Completed {
                    let unheard = self.waking.values().any(|to| *to == path);
                    assert!(!unheard, "{path} completed over mail that woke it");
                }
            }
            BranchEvent::MailStored { kind, from, to, body, wake } => {
                assert!(self.taken[to].1);
                if *wake {
                    self.waking.insert(MailId(envelope.position), to);
                }
                self.stored.entry(to).or_default().push((MailId(envelope.position), *body));
                if let (MailKind::Result, Sender::Agent(from)) = (kind, from) {
                    assert_eq!(from.parent().as_ref(), Some(to));
                    *self.results.entry(from).or_default() += 1;
                    assert_eq!(self.results[from], self.settled[from], "a result without an end");
                }
            }
            BranchEvent::MailDelivered { to, mail } => {
                self.delivered.entry(to).or_default().extend(mail);
                self.waking.retain(|id, _| !mail.contains(id));
            }
            BranchEvent::PermissionAsked { path, turn, .. } => {
                assert_eq!(self.turns.get(path), Some(turn));
                self.asked.insert(PermissionId(envelope.position), path);
            }
            BranchEvent::PermissionSettled { id, .. } => {
                assert!(self.asked.remove(id).is_some(), "{id} settled twice");
            }
            BranchEvent::Heard { turn, mail, body, .. } => {
                self.speaks(envelope, *turn);
                assert!(self.calls.get(&envelope.stream).is_none_or(Vec::is_empty));
                if let Some(mail) = mail {
                    self.heard.entry(&envelope.stream).or_default().push((*mail, *body));
                }
            }
            BranchEvent::Said { turn, calls, .. } => {
                self.speaks(envelope, *turn);
                let open = self.calls.entry(&envelope.stream).or_default();
                assert!(open.is_empty(), "{open:?} have no result");
                open.extend(calls);
            }
            BranchEvent::Answered { turn, call, .. }
            | BranchEvent::Unanswered { turn, call, .. } => {
                self.speaks(envelope, *turn);
                let open = self.calls.get_mut(&envelope.stream).unwrap();
                assert_eq!(open.remove(0), call);
            }
            BranchEvent::Compacted { turn, .. } => {
                self.speaks(envelope, *turn);
                assert!(self.calls.get(&envelope.stream).is_none_or(Vec::is_empty));
            }
            BranchEvent::ShellStarted { path, turn, shell, .. } => {
                assert_eq!(self.turns.get(path), Some(turn));
                assert!(self.shells.insert((path, *shell)), "{shell} of {path} twice");
            }
            BranchEvent::ShellEnded { path, shell, .. } => {
                assert!(self.shells.remove(&(path, *shell)), "{shell} of {path} ended twice");
            }
            BranchEvent::FileChanged { path, turn, .. } => {
                assert_eq!(self.turns.get(path), Some(turn));
            }
            BranchEvent::HookNoted { .. }
            | BranchEvent::StopNoted { .. }
            | BranchEvent::DriverNoted { .. }
            | BranchEvent::Reminded { .. }
            | BranchEvent::TasksWritten { .. }
            | BranchEvent::NoteSet { .. } => {}
        }
    }

    /// A conversation grows only in the running turn of its agent.
    fn speaks(&self, envelope: &Envelope, turn: TurnId) {
        let Stream::Conversation(id) = &envelope.stream else { panic!("{envelope:?}") };
        let (path, _) = self.taken.iter().find(|(_, (agent, _))| *agent == id).unwrap();
        assert_eq!(self.turns.get(path), Some(&turn), "{path} has ended");
    }

    /// What was seen is what the state says.
    fn compare(&self, log: &Log) {
        for agent in log.state.branch.roster.all() {
            let path = &agent.path;
            assert_eq!(self.turns.get(path).copied(), agent.turn());
            let stream = Stream::Conversation(agent.id.clone());
            let heard = self.heard.get(&stream).cloned().unwrap_or_default();
            let delivered = self.delivered.get(path).cloned().unwrap_or_default();
            assert!(delivered.iter().eq(heard.iter().map(|(mail, _)| mail)));
            let unread = agent.unread.iter().map(|m| (m.id, m.body));
            let all: Vec<_> = heard.into_iter().chain(unread).collect();
            assert_eq!(all, self.stored.get(path).cloned().unwrap_or_default(), "mail of {path}");
            if !path.is_root() {
                let settled = self.settled.get(path).copied().unwrap_or_default();
                assert_eq!(self.results.get(path).copied().unwrap_or_default(), settled);
                assert_eq!(agent.last.is_some(), settled > 0);
            }
            let open = self.calls.get(&stream).cloned().unwrap_or_default();
            assert!(agent.open_calls.iter().eq(open));
        }
        assert_eq!(self.taken.len(), log.state.branch.roster.all().count());
        let open = &log.state.branch.permissions;
        assert!(open.iter().map(|(id, r)| (*id, &r.path)).eq(self.asked.clone()));
    }
}

/// The last task number that was used before the session began: by the source of a fork. The task
/// of a fork's own `/root` is the first of its own.
fn started_with(log: &Log) -> u32 {
    let started = log.state.world.started.as_ref().unwrap();
    let reserved =
        |e: &&Envelope| !matches!(e.event, Event::Branch(BranchEvent::AgentReserved { .. }));
    let numbered = log.log.iter().take_while(reserved).find_map(|e| match &e.event {
        Event::World(WorldEvent::TasksNumbered { last }) => Some(last.0),
        _ => None,
    });
    match (numbered, started.placement) {
        (Some(first), Placement::PrivateCopies) => first - 1,
        (Some(last), Placement::InPlace) => last,
        (None, _) => 0,
    }
}

/// Numbers are given once, blockers are open tasks without circles, owners are there.
fn tasks(log: &Log) {
    let (mut ever, mut now) = (BTreeSet::new(), BTreeSet::new());
    for envelope in &log.log {
        match &envelope.event {
            Event::World(WorldEvent::Rewound { .. }) => now.clear(),
            Event::Branch(BranchEvent::TasksWritten { tasks, .. }) => {
                for task in tasks {
                    if now.insert(task.id) {
                        assert!(ever.insert(task.id), "task {} again", task.id);
                    }
                }
            }
            _ => {}
        }
    }
    // A delegated task has its number from its reservation on, and is listed from admission on.
    for envelope in &log.log {
        if let Event::World(WorldEvent::TaskReserved { task, .. }) = &envelope.event {
            ever.insert(*task);
        }
    }
    // A fork goes on behind the numbers of its source.
    let began = started_with(log);
    assert!(
        ever.iter()
            .copied()
            .eq((began.saturating_add(1)..=log.state.world.last_task.0).map(TaskId)),
        "{ever:?}"
    );
    let list = &log.state.branch.tasks;
    assert!(list.tasks.keys().eq(now.iter()));
    let there = |owner: &Owner| match owner {
        Owner::Agent(path) => !path.is_root() && log.state.branch.roster.find(path).is_ok(),
        Owner::Main | Owner::Bucket(_) => true,
    };
    for task in list.tasks.values() {
        assert!(there(&task.owner), "{task:?}");
        for blocker in &task.blocked_by {
            assert_ne!(list.tasks[blocker].status, Status::Completed, "{task:?}");
        }
    }
    // Without a circle, tasks can be taken away one after another.
    let mut left = list.tasks.clone();
    while !left.is_empty() {
        let before = left.len();
        let ids: BTreeSet<TaskId> = left.keys().copied().collect();
        left.retain(|_, task| !task.blocked_by.is_disjoint(&ids));
        assert!(left.len() < before, "a circle in {left:?}");
    }
    for owner in list.notes.keys() {
        assert!(there(owner) && list.has_open(owner), "a note of {owner:?}");
    }
}

/// A delegated task is admitted with all its copies or leaves nothing, only what was reviewed is
/// applied, one apply at a time, each ends once, and nothing of it happens while somebody works in
/// its layout.
fn delegated(log: &Log) {
    let mut applying: BTreeMap<(TaskId, &SlotName), (ApplyId, Digest)> = BTreeMap::new();
    let mut shown: BTreeMap<(TaskId, &SlotName), &Review> = BTreeMap::new();
    let mut applied: BTreeSet<(TaskId, &SlotName, Digest, Digest)> = BTreeSet::new();
    let mut gone = BTreeSet::new();
    let mut left_behind = 0;
    for envelope in &log.log {
        match &envelope.event {
            Event::World(WorldEvent::Restored { task, slot, .. }) => {
                assert!(!gone.contains(&(*task, slot)) && !applying.contains_key(&(*task, slot)));
                shown.remove(&(*task, slot));
            }
            Event::World(WorldEvent::CopyReviewed { task, slot, review }) => {
                assert!(!gone.contains(&(*task, slot)));
                assert!(!applying.contains_key(&(*task, slot)));
                shown.insert((*task, slot), review);
            }
            Event::World(WorldEvent::ApplyBegun { task, slot, snapshot }) => {
                assert!(!gone.contains(&(*task, slot)));
                let review = shown[&(*task, slot)];
                assert_eq!(review.snapshot, *snapshot);
                assert!(!applied.contains(&(*task, slot, review.base, *snapshot)), "twice");
                let id = ApplyId(envelope.position);
                assert!(applying.insert((*task, slot), (id, *snapshot)).is_none());
            }
            Event::World(WorldEvent::ApplyEnded { task, slot, apply, snapshot, outcome }) => {
                assert_eq!(applying.remove(&(*task, slot)), Some((*apply, *snapshot)));
                if matches!(outcome, ApplyOutcome::Applied { .. }) {
                    applied.insert((*task, slot, shown[&(*task, slot)].base, *snapshot));
                }
            }
            Event::World(WorldEvent::CopyDiscarded { task, slot }) => {
                assert!(!applying.contains_key(&(*task, slot)));
                assert!(gone.insert((*task, slot)), "{slot} of {task} discarded twice");
            }
            Event::World(WorldEvent::Rewound { .. }) => left_behind += 1,
            _ => {}
        }
    }
    for own in log.state.world.delegated.values() {
        let slots = own.roots.iter().map(|root| &root.slot).collect::<BTreeSet<_>>();
        if own.admitted {
            assert!(slots.iter().copied().eq(own.copies.keys()), "{own:?}");
        } else {
            assert!(own.copies.is_empty());
            let agent = log.state.branch.roster.at(&own.owner).unwrap();
            assert_eq!((agent.standing, agent.task), (Standing::Preparing, Some(own.task)));
        }
        for (slot, copy) in &own.copies {
            let under_way = applying.get(&(own.task, slot)).map(|(id, _)| *id);
            assert_eq!(copy.applying, under_way);
            assert_eq!(copy.discarded, gone.contains(&(own.task, slot)));
        }
        // On the branch it was made on it is listed, and follows its agent.
        if left_behind == 0 && own.admitted {
            let task = &log.state.branch.tasks.tasks[&own.task];
            let agent = log.state.branch.roster.at(&own.owner).unwrap();
            if !own.owner.is_root() {
                assert_eq!(task.owner, Owner::Agent(own.owner.clone()));
                let completed = agent.turn().is_none()
                    && agent.last.as_ref().is_some_and(|l| l.outcome == Outcome::Completed);
                assert_eq!(task.status == Status::Completed, completed, "{task:?} {agent:?}");
            }
        }
    }
}
