//! Forks: a new session that begins with the conversation of another (A11, B5).
//!
//! Positions are counted anew, so everything in a body that is a position, or a `seq`, is
//! translated. See the record *A fork counts its positions anew*.

use std::collections::BTreeMap;

use super::command::{Decision, Outcomes, Planned};
use super::decide::{control, world};
use super::left::dropped;
use super::replay::{live, replay};
use super::spawn::{RootAgent, check_start, first_task};
use super::state::State;
use crate::delegated::Delegated;
use crate::event::{BranchEvent, Envelope, Event, SessionStarted, Stream, WorldEvent};
use crate::id::{Label, MailId, Position, SessionId, TaskId, TurnId};
use crate::layout::Placement;
use crate::lineage::{Dropped, Forked};
use crate::path::AgentPath;
use crate::permission::Grant;
use crate::refusal::{Refusal, RefusalKind};
use crate::roster::{Agent, Standing};
use crate::rule::{Bucket, Rule};

/// What a fork takes of a session at a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    started: SessionStarted,
    position: Position,
    grants: Vec<Grant>,
    rules: BTreeMap<Bucket, Vec<Rule>>,
    last_task: TaskId,
    root: Agent,
    title: String,
    /// What `/root` heard, said and did, oldest first.
    history: Vec<Envelope>,
    left: Dropped,
}

impl Taken {
    /// What stays with the source.
    pub fn left(&self) -> &Dropped {
        &self.left
    }
}

/// Takes what a fork of this log at `at` begins with. `stable` says that a batch ended there.
/// Refused inside a turn of `/root`; other agents may work, they stay (agents_84).
pub fn take(log: &[Envelope], at: Position, stable: bool) -> Result<Taken, Refusal> {
    let length = usize::try_from(at).unwrap_or(usize::MAX);
    let prefix = log.get(..length).filter(|_| stable).unwrap_or_default();
    let state = replay(prefix);
    let root = state.branch.roster.find(&AgentPath::root()).ok();
    let (Some(started), Some(root)) = (state.world.started.clone(), root) else {
        return Err(Refusal::new(
            RefusalKind::NotFound,
            format!("position {at} is not the end of a batch of this session"),
        )
        .hint("`stead log` names the positions at which turns of /root ended"));
    };
    if root.standing != Standing::Idle {
        return Err(Refusal::new(
            RefusalKind::WrongState,
            format!("position {at} is inside a turn of /root"),
        )
        .hint("`stead log` names the positions at which its turns ended"));
    }
    let own = root.task.and_then(|task| state.world.delegated.get(&task));
    Ok(Taken {
        position: at,
        grants: state.world.grants.clone(),
        rules: state.world.rules.clone(),
        last_task: state.world.last_task,
        title: own
            .map_or_else(|| "the work of /root".to_owned(), |own: &Delegated| own.title.clone()),
        history: history(prefix, &state, &root.id),
        left: dropped(&state),
        started: SessionStarted {
            mode: state.world.mode.unwrap_or(started.mode),
            plan_ceiling: state.world.plan_ceiling,
            ..started
        },
        root: root.clone(),
    })
}

/// The events of the branch that `/root`'s conversation consists of. Mail is taken with its
/// delivery: what was not heard stays with the source.
fn history(prefix: &[Envelope], state: &State, root: &SessionId) -> Vec<Envelope> {
    let ranges = live(state.tip, &state.world.rewinds);
    let on_branch = |e: &&Envelope| ranges.iter().any(|range| range.contains(&e.position));
    let heard: Vec<MailId> = prefix
        .iter()
        .filter(on_branch)
        .filter_map(|envelope| match &envelope.event {
            Event::Branch(BranchEvent::MailDelivered { to, mail }) if to.is_root() => Some(mail),
            _ => None,
        })
        .flatten()
        .copied()
        .collect();
    let heard: std::collections::BTreeSet<MailId> = heard.into_iter().collect();
    let stream = Stream::Conversation(root.clone());
    let belongs = |envelope: &&Envelope| match &envelope.event {
        Event::World(_) => false,
        Event::Branch(_) if envelope.stream == stream => true,
        Event::Branch(event) => match event {
            BranchEvent::TurnStarted { path, .. } | BranchEvent::TurnSettled { path, .. } => {
                path.is_root()
            }
            BranchEvent::MailStored { .. } => heard.contains(&MailId(envelope.position)),
            BranchEvent::MailDelivered { to, .. } => to.is_root(),
            _ => false,
        },
    };
    prefix.iter().filter(on_branch).filter(belongs).cloned().collect()
}

/// Begins a session with what was taken: the settings, rules and grants of that moment, and the
/// conversation of `/root`. It has no other agents, no mail, no tasks and no processes, and its
/// private copies, if it has any, are made anew from the originals.
pub(super) fn begin(
    state: &State,
    session: SessionId,
    label: Option<Label>,
    taken: Taken,
) -> Result<Decision, Refusal> {
    let Taken { started, position, grants, rules, last_task, root, title, history, left } = taken;
    let forked = Forked { session: started.session.clone(), position, left: left.clone() };
    let started =
        SessionStarted { session: session.clone(), label, forked: Some(forked), ..started };
    check_start(state, &started)?;
    let copies = started.placement == Placement::PrivateCopies;
    let Some(primary) = started.roots.first().cloned() else {
        return Err(Refusal::new(RefusalKind::InvalidArgument, "a session has 1 to 64 roots"));
    };
    let roots = started.roots.clone();
    let mut events = vec![world(WorldEvent::SessionStarted(started))];
    events.extend(grants.into_iter().map(|grant| world(WorldEvent::Granted { grant })));
    events.extend(
        rules.into_iter().map(|(bucket, rules)| world(WorldEvent::RulesSet { bucket, rules })),
    );
    let mut task = None;
    if copies {
        // Numbers go on where the source was: one that stands in the conversation never comes to
        // mean another task.
        let next = last_task
            .0
            .checked_add(1)
            .ok_or_else(|| Refusal::new(RefusalKind::InvalidArgument, "no task number is left"))?;
        task = Some(TaskId(next));
        events.extend(first_task(&roots, TaskId(next), &title)?);
    } else if last_task > TaskId(0) {
        events.push(world(WorldEvent::TasksNumbered { last: last_task }));
    }
    let root = RootAgent {
        driver: root.driver,
        directory: if copies { primary.directory } else { root.directory },
        message: None,
        frozen: root.frozen,
    };
    events.push(root.reserved(&session, task));
    Translation::new(&session).history(history, &mut events)?;
    let path = AgentPath::root();
    if !copies {
        events.push(control(BranchEvent::AgentPublished { path: path.clone(), directory: None }));
    }
    Ok(Decision { events, answer: Outcomes::Forked { path, agent: session, left } })
}

/// The new numbers of what is named by a position or a `seq`.
struct Translation {
    stream: Stream,
    turns: BTreeMap<TurnId, TurnId>,
    mail: BTreeMap<MailId, MailId>,
    seqs: BTreeMap<u64, u64>,
}

impl Translation {
    fn new(session: &SessionId) -> Self {
        Self {
            stream: Stream::Conversation(session.clone()),
            turns: BTreeMap::new(),
            mail: BTreeMap::new(),
            seqs: BTreeMap::new(),
        }
    }

    fn history(mut self, history: Vec<Envelope>, to: &mut Vec<Planned>) -> Result<(), Refusal> {
        for envelope in history {
            let old = envelope.position;
            let new = Position::try_from(to.len()).unwrap_or(Position::MAX).saturating_add(1);
            let Event::Branch(event) = envelope.event else { continue };
            let stream = if envelope.stream == Stream::Control {
                Stream::Control
            } else {
                let next = u64::try_from(self.seqs.len()).unwrap_or(u64::MAX).saturating_add(1);
                self.seqs.insert(envelope.seq, next);
                self.stream.clone()
            };
            match &event {
                BranchEvent::TurnStarted { .. } => {
                    self.turns.insert(TurnId(old), TurnId(new));
                }
                BranchEvent::MailStored { .. } => {
                    self.mail.insert(MailId(old), MailId(new));
                }
                _ => {}
            }
            let event = self.event(event).ok_or_else(|| {
                Refusal::new(
                    RefusalKind::Unreadable,
                    format!("the event at {old} refers to what is not in its history"),
                )
                .hint("`stead doctor` looks at the log")
            })?;
            to.push(Planned { stream, event: Event::Branch(event) });
        }
        Ok(())
    }

    /// The event with every number in it translated; none where one has no translation.
    fn event(&self, mut event: BranchEvent) -> Option<BranchEvent> {
        match &mut event {
            BranchEvent::TurnSettled { turn, .. }
            | BranchEvent::Said { turn, .. }
            | BranchEvent::Answered { turn, .. }
            | BranchEvent::Unanswered { turn, .. } => *turn = *self.turns.get(turn)?,
            BranchEvent::Heard { turn, mail, .. } => {
                *turn = *self.turns.get(turn)?;
                if let Some(mail) = mail {
                    *mail = *self.mail.get(mail)?;
                }
            }
            BranchEvent::Compacted { turn, through, .. } => {
                *turn = *self.turns.get(turn)?;
                *through = *self.seqs.get(through)?;
            }
            BranchEvent::MailDelivered { mail, .. } => {
                for mail in mail {
                    *mail = *self.mail.get(mail)?;
                }
            }
            // Nothing in them is a number; what is not of a history is not taken.
            BranchEvent::TurnStarted { .. }
            | BranchEvent::MailStored { .. }
            | BranchEvent::AgentReserved { .. }
            | BranchEvent::AgentPublished { .. }
            | BranchEvent::AgentRefused { .. }
            | BranchEvent::TasksWritten { .. }
            | BranchEvent::NoteSet { .. }
            | BranchEvent::PermissionAsked { .. }
            | BranchEvent::PermissionSettled { .. }
            | BranchEvent::HookNoted { .. }
            | BranchEvent::StopNoted { .. }
            | BranchEvent::ShellStarted { .. }
            | BranchEvent::ShellEnded { .. }
            | BranchEvent::DriverNoted { .. }
            | BranchEvent::FileChanged { .. }
            | BranchEvent::Reminded { .. } => {}
        }
        Some(event)
    }
}
