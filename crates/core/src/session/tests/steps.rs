//! Random commands, small enough to shrink: each step is made a command on the state it meets, so
//! that most are possible and many are not.

use proptest::prelude::*;

use super::log::{Log, body, call, id, path, root, zones};
use crate::delegated::{ApplyOutcome, PrivateCopy, Review};
use crate::event::{BranchEvent, Event, Outcome};
use crate::id::{ApplyId, BodyRef, PermissionId, SlotName, TaskId, TurnId};
use crate::path::AgentPath;
use crate::permission::{Answer, Deed, Mode};
use crate::roster::Agent;
use crate::session::Command;
use crate::shell::{ShellFate, ShellId};
use crate::task::{Owner, Status, TaskChange};

/// One element of a batch of tasks.
#[derive(Debug, Clone)]
pub(super) struct Change {
    id: Option<u8>,
    subject: bool,
    status: Option<u8>,
    owner: Option<u8>,
    blocked_by: Option<u8>,
}

/// One step; numbers choose among what there is.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Reserve { caller: u8, name: u8, call: u8, old_id: bool, empty: bool },
    Propose { caller: u8, name: u8, call: u8, roots: u8, blocked_by: Option<u8> },
    Review { task: u8, slot: u8, snapshot: u8, stale: bool },
    BeginApply { task: u8, slot: u8 },
    EndApply { task: u8, slot: u8, outcome: u8, stale: bool },
    Discard { task: u8, slot: Option<u8> },
    Publish { agent: u8 },
    Refuse { agent: u8 },
    Send { from: u8, target: u8, relative: bool, wake: bool, empty: bool },
    Deliver { agent: u8, stale: bool },
    Say { agent: u8, stale: bool, calls: u8 },
    Answer { agent: u8, stale: bool, call: u8 },
    Settle { agent: u8, stale: bool, outcome: u8 },
    Tasks { by: u8, changes: Vec<Change>, note: Option<u8> },
    Ask { agent: u8, stale: bool, deed: u8, attended: bool },
    Permit { request: u8, answer: u8 },
    Mode { mode: u8, ceiling: Option<bool> },
    Rewind { to: u8, stable: bool },
    Recover,
    Compact { agent: u8, cut: u8 },
    StartShell { agent: u8 },
    EndShell { agent: u8, fate: u8 },
    NoteHook { agent: u8 },
    NoteStop { agent: u8 },
    Remind { agent: u8 },
    Capture { task: u8, slot: u8, snapshot: u8 },
    Restore { task: u8, slot: u8, to: u8 },
    Rules { rules: u8 },
    Revoke { grant: u8 },
    Rename { label: bool },
}

fn change() -> impl Strategy<Value = Change> {
    (
        prop::option::of(any::<u8>()),
        prop::bool::weighted(0.1),
        prop::option::of(0..3_u8),
        prop::option::weighted(0.3, any::<u8>()),
        prop::option::weighted(0.3, any::<u8>()),
    )
        .prop_map(|(id, subject, status, owner, blocked_by)| Change {
            id,
            subject,
            status,
            owner,
            blocked_by,
        })
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let n = any::<u8>;
    let rarely = || prop::bool::weighted(0.06);
    prop_oneof![
        10 => (n(), 0..4_u8, 0..6_u8, rarely(), rarely()).prop_map(
            |(caller, name, call, old_id, empty)| Step::Reserve { caller, name, call, old_id, empty }
        ),
        6 => (n(), 0..4_u8, 0..6_u8, 0..8_u8, prop::option::weighted(0.2, n())).prop_map(
            |(caller, name, call, roots, blocked_by)| Step::Propose {
                caller, name, call, roots, blocked_by,
            }
        ),
        6 => (n(), n(), 0..3_u8, rarely()).prop_map(
            |(task, slot, snapshot, stale)| Step::Review { task, slot, snapshot, stale }
        ),
        6 => (n(), n()).prop_map(|(task, slot)| Step::BeginApply { task, slot }),
        6 => (n(), n(), 0..4_u8, rarely()).prop_map(
            |(task, slot, outcome, stale)| Step::EndApply { task, slot, outcome, stale }
        ),
        1 => (n(), prop::option::of(n())).prop_map(|(task, slot)| Step::Discard { task, slot }),
        10 => n().prop_map(|agent| Step::Publish { agent }),
        2 => n().prop_map(|agent| Step::Refuse { agent }),
        10 => (n(), n(), any::<bool>(), any::<bool>(), rarely()).prop_map(
            |(from, target, relative, wake, empty)| Step::Send {
                from, target, relative, wake, empty,
            }
        ),
        7 => (n(), rarely()).prop_map(|(agent, stale)| Step::Deliver { agent, stale }),
        8 => (n(), rarely(), 0..4_u8)
            .prop_map(|(agent, stale, calls)| Step::Say { agent, stale, calls }),
        12 => (n(), rarely(), 0..3_u8)
            .prop_map(|(agent, stale, call)| Step::Answer { agent, stale, call }),
        8 => (n(), rarely(), 0..3_u8)
            .prop_map(|(agent, stale, outcome)| Step::Settle { agent, stale, outcome }),
        8 => (n(), prop::collection::vec(change(), 1..3), prop::option::weighted(0.3, n()))
            .prop_map(|(by, changes, note)| Step::Tasks { by, changes, note }),
        4 => (n(), rarely(), 0..4_u8, prop::bool::weighted(0.9)).prop_map(
            |(agent, stale, deed, attended)| Step::Ask { agent, stale, deed, attended }
        ),
        3 => (n(), 0..5_u8).prop_map(|(request, answer)| Step::Permit { request, answer }),
        1 => (0..4_u8, prop_oneof![Just(None), Just(Some(false)), Just(Some(true))])
            .prop_map(|(mode, ceiling)| Step::Mode { mode, ceiling }),
        6 => (n(), prop::bool::weighted(0.9)).prop_map(|(to, stable)| Step::Rewind { to, stable }),
        1 => Just(Step::Recover),
        4 => (n(), n()).prop_map(|(agent, cut)| Step::Compact { agent, cut }),
        4 => n().prop_map(|agent| Step::StartShell { agent }),
        5 => (n(), 0..4_u8).prop_map(|(agent, fate)| Step::EndShell { agent, fate }),
        3 => n().prop_map(|agent| Step::NoteHook { agent }),
        2 => n().prop_map(|agent| Step::NoteStop { agent }),
        1 => n().prop_map(|agent| Step::Remind { agent }),
        2 => (n(), n(), 0..3_u8)
            .prop_map(|(task, slot, snapshot)| Step::Capture { task, slot, snapshot }),
        2 => (n(), n(), 0..3_u8).prop_map(|(task, slot, to)| Step::Restore { task, slot, to }),
        1 => (0..3_u8).prop_map(|rules| Step::Rules { rules }),
        1 => n().prop_map(|grant| Step::Revoke { grant }),
        1 => any::<bool>().prop_map(|label| Step::Rename { label }),
    ]
}

fn pick<T: Clone>(among: &[T], number: u8) -> Option<T> {
    let count = among.len();
    (count > 0).then(|| among[usize::from(number) % count].clone())
}

/// A path of the roster, preparing ones included, and now and then one that is not there.
fn any_path(log: &Log, number: u8) -> AgentPath {
    let paths: Vec<AgentPath> = log.state.branch.roster.all().map(|a| a.path.clone()).collect();
    if number > 250 { path("/root/nobody") } else { pick(&paths, number).unwrap() }
}

/// An agent in a turn and the turn; a stale one is the turn before. None: nobody works.
fn in_turn(log: &Log, number: u8, stale: bool) -> Option<(AgentPath, TurnId, Agent)> {
    let working: Vec<Agent> =
        log.state.branch.roster.all().filter(|a| a.turn().is_some()).cloned().collect();
    let agent = pick(&working, number)?;
    let before = agent.last.as_ref().map_or(TurnId(1), |last| last.turn);
    let turn = if stale { before } else { agent.turn()? };
    Some((agent.path.clone(), turn, agent))
}

fn preparing(log: &Log, number: u8) -> Option<AgentPath> {
    let all = log.state.branch.roster.all();
    let reserved: Vec<AgentPath> =
        all.filter(|a| !a.is_published()).map(|a| a.path.clone()).collect();
    // Now and then somebody who is not being prepared.
    if number > 240 { Some(any_path(log, number)) } else { pick(&reserved, number) }
}

/// A copy, by its task and slot; one that is being applied, or any.
fn copy(log: &Log, task: u8, slot: u8, applying: bool) -> Option<(TaskId, SlotName, PrivateCopy)> {
    let all: Vec<(TaskId, SlotName, PrivateCopy)> = log
        .state
        .world
        .delegated
        .values()
        .flat_map(|own| {
            own.copies.iter().map(|(slot, copy)| (own.task, slot.clone(), copy.clone()))
        })
        .filter(|(_, _, copy)| !applying || copy.applying.is_some())
        .collect();
    pick(&all, task.wrapping_add(slot))
}

/// An end of a shell that lives; where there is none, of one that does not.
fn end_shell(log: &Log, number: u8, fate: u8) -> Command {
    let live: Vec<(AgentPath, ShellId)> = log
        .state
        .branch
        .roster
        .all()
        .flat_map(|agent| agent.shells.keys().map(|shell| (agent.path.clone(), *shell)))
        .collect();
    let (path, shell) = pick(&live, number).unwrap_or_else(|| (any_path(log, number), ShellId(1)));
    let fate =
        [ShellFate::Exited(0), ShellFate::Signalled(9), ShellFate::TimedOut, ShellFate::Stopped]
            [usize::from(fate)];
    Command::EndShell { path, shell, fate, report: text(false, log) }
}

/// What happens where nothing is there for a step: the person wakes somebody.
fn wake(log: &Log, number: u8) -> Command {
    Command::Send {
        from: None,
        target: any_path(log, number).to_string(),
        body: text(false, log),
        wake: true,
    }
}

fn text(empty: bool, log: &Log) -> BodyRef {
    if empty { BodyRef { bytes: 0, ..body("") } } else { body(&format!("body {}", log.log.len())) }
}

fn owner(log: &Log, number: u8) -> Owner {
    match number % 8 {
        0 => Owner::Main,
        1 => Owner::Bucket("bucket".to_owned()),
        2 if number > 200 => Owner::Bucket("/not/an/owner".to_owned()),
        // `/root` among them: it is the main list.
        _ => Owner::Agent(any_path(log, number)),
    }
}

impl Change {
    fn on(&self, log: &Log) -> TaskChange {
        let numbers = u64::from(log.state.world.last_task.0) + 1;
        let number = |n: u8| TaskId(u32::try_from(u64::from(n) % numbers).unwrap() + 1);
        let id = self.id.map(number).filter(|id| u64::from(id.0) < numbers || self.subject);
        TaskChange {
            id,
            subject: (id.is_none() || self.subject).then(|| "a task".to_owned()),
            description: None,
            status: self.status.map(|n| match n {
                0 => Status::Pending,
                1 => Status::InProgress,
                _ => Status::Completed,
            }),
            owner: self.owner.map(|n| owner(log, n)),
            blocked_by: self.blocked_by.map(|n| [number(n)].into()),
        }
    }
}

impl Step {
    /// The command that this step is on the state of `log`.
    pub(super) fn on(&self, log: &Log) -> Command {
        match self.clone() {
            Self::Reserve { caller, name, call: number, old_id, empty } => {
                let working = in_turn(log, caller / 2, false).map(|(path, ..)| path);
                let ids: Vec<_> = log.state.branch.roster.all().map(|a| a.id.clone()).collect();
                Command::Reserve {
                    caller: working
                        .filter(|_| caller % 2 == 0)
                        .unwrap_or_else(|| any_path(log, caller)),
                    agent: if old_id {
                        pick(&ids, name).unwrap()
                    } else {
                        id(&format!("agent-{}", log.log.len()))
                    },
                    call: (number < 4).then(|| call(&format!("c{number}"))),
                    task_name: ["x", "x", "Root", "x-2"][usize::from(name)].to_owned(),
                    role: None,
                    message: text(empty, log),
                    directory: None,
                    driver: None,
                    frozen: Box::default(),
                }
            }
            Self::Propose { caller, name, call: number, roots, blocked_by } => {
                let working = in_turn(log, caller / 2, false).map(|(path, ..)| path);
                let started = log.state.world.started.as_ref().unwrap();
                let all = &started.roots;
                let roots = match roots {
                    0..4 => None,
                    4 => Some(all.iter().take(1).cloned().collect()),
                    5 => Some(vec![root("inner", "/w/app/inner")]),
                    6 => Some(vec![root("lib", "/w/lib")]),
                    _ => Some(vec![root("a", "/w/app"), root("b", "/w/app/inner")]),
                };
                Command::Propose {
                    caller: working
                        .filter(|_| caller % 8 > 0)
                        .unwrap_or_else(|| any_path(log, caller)),
                    agent: id(&format!("agent-{}", log.log.len())),
                    call: call(&format!("c{number}")),
                    title: ["x", "Fix it", "", "x-2"][usize::from(name)].to_owned(),
                    role: None,
                    message: text(false, log),
                    roots,
                    blocked_by: blocked_by
                        .map(|n| TaskId(u32::from(n) % (log.state.world.last_task.0 + 2)))
                        .into_iter()
                        .collect(),
                    driver: None,
                    frozen: Box::default(),
                }
            }
            Self::Review { task, slot, snapshot, stale } => match copy(log, task, slot, false) {
                Some((task, slot, copy)) => Command::Review {
                    task,
                    slot,
                    review: Review {
                        snapshot: body(&format!("snapshot {snapshot}")).digest,
                        base: if stale { body("elsewhere").digest } else { copy.base },
                        checkout: None,
                    },
                    since: if snapshot == 2 && stale { 0 } else { log.state.tip },
                },
                None => wake(log, task),
            },
            Self::BeginApply { task, slot } => match copy(log, task, slot, false) {
                Some((task, slot, _)) => Command::BeginApply { task, slot },
                None => wake(log, task),
            },
            Self::EndApply { task, slot, outcome, stale } => match copy(log, task, slot, true) {
                Some((task, slot, copy)) => Command::EndApply {
                    task,
                    slot,
                    apply: copy.applying.filter(|_| !stale).unwrap_or(ApplyId(2)),
                    outcome: match outcome {
                        0 | 1 => ApplyOutcome::Applied {
                            base: body(&format!("base at {}", log.log.len())).digest,
                            paths: 1,
                        },
                        2 => ApplyOutcome::RolledBack {
                            cause: "full".to_owned(),
                            conflict: false,
                            paths: Vec::new(),
                            rescue: None,
                        },
                        _ => ApplyOutcome::RecoveryNeeded {
                            cause: "odd".to_owned(),
                            paths: Vec::new(),
                            rescue: "/h/rescue".to_owned(),
                        },
                    },
                },
                None => Self::BeginApply { task, slot }.on(log),
            },
            Self::Discard { task, slot } => match copy(log, task, slot.unwrap_or(0), false) {
                Some((task, name, _)) => Command::Discard { task, slot: slot.map(|_| name) },
                None => wake(log, task),
            },
            Self::Publish { agent } => match preparing(log, agent) {
                Some(path) => Command::Publish { admission: log.admission(&path), path },
                None => wake(log, agent),
            },
            Self::Refuse { agent } => match preparing(log, agent) {
                Some(path) => Command::Refuse { path, reason: "cannot be".to_owned() },
                None => wake(log, agent),
            },
            Self::Send { from, target, relative, wake, empty } => {
                let from = (from % 4 > 0).then(|| any_path(log, from));
                let to = any_path(log, target);
                let below = from.as_ref().map_or("/root", AgentPath::as_str).to_owned() + "/";
                let target = match to.as_str().strip_prefix(&below) {
                    Some(rest) if relative => rest.to_owned(),
                    _ => to.to_string(),
                };
                Command::Send { from, target, body: text(empty, log), wake }
            }
            Self::Deliver { agent, .. }
            | Self::Say { agent, .. }
            | Self::Answer { agent, .. }
            | Self::Settle { agent, .. }
            | Self::Ask { agent, .. } => self.in_turn(log).unwrap_or_else(|| wake(log, agent)),
            Self::Tasks { by, changes, note } => Command::WriteTasks {
                by: (by % 4 > 0).then(|| any_path(log, by)),
                changes: changes.iter().map(|c| c.on(log)).collect(),
                notes: note
                    .map(|n| {
                        let owner = (n % 4 > 0).then(|| owner(log, n));
                        (owner, if n % 8 == 0 { String::new() } else { "a note".to_owned() })
                    })
                    .into_iter()
                    .collect(),
            },
            Self::Permit { request, answer } => {
                let open: Vec<PermissionId> =
                    log.state.branch.permissions.keys().copied().collect();
                let answer = [
                    Answer::Once,
                    Answer::Session,
                    Answer::Denied,
                    Answer::Withdrawn,
                    Answer::Headless,
                ][usize::from(answer)];
                Command::Permit { id: pick(&open, request).unwrap_or(PermissionId(3)), answer }
            }
            Self::Mode { mode, ceiling } => Command::SetMode {
                mode: [None, Some(Mode::Ask), Some(Mode::Edits), Some(Mode::FullAuto)]
                    [usize::from(mode)],
                plan_ceiling: ceiling,
            },
            // A rewind needs rest: most of them bring it about first.
            Self::Rewind { to, .. } if to % 8 > 0 && log.busy() => super::recovery::recover(),
            Self::Rewind { to, stable } => {
                let ends: Vec<u64> = log
                    .log
                    .iter()
                    .filter(|e| matches!(&e.event, Event::Branch(BranchEvent::TurnSettled { .. })))
                    .map(|e| e.position)
                    .collect();
                let any = u64::from(to) % (log.state.tip + 2);
                let to = pick(&ends, to).filter(|_| to % 4 > 0).unwrap_or(any);
                Command::Rewind { to, stable }
            }
            Self::Recover => super::recovery::recover(),
            Self::Compact { agent, .. } | Self::StartShell { agent } | Self::Remind { agent } => {
                self.in_turn(log).unwrap_or_else(|| wake(log, agent))
            }
            Self::EndShell { agent, fate } => end_shell(log, agent, fate),
            Self::NoteHook { agent } => {
                Command::NoteHook { path: any_path(log, agent), context: text(false, log) }
            }
            Self::NoteStop { agent } => {
                let path = any_path(log, agent);
                let last = log.state.branch.roster.at(&path).and_then(|a| a.last.as_ref());
                Command::NoteStop { turn: last.map_or(TurnId(1), |last| last.turn), path }
            }
            Self::Capture { task, slot, snapshot } => match copy(log, task, slot, false) {
                Some((task, slot, _)) => Command::Capture {
                    turn: log.agent("/root").turn().unwrap_or(TurnId(1)),
                    task,
                    slot,
                    snapshot: body(&format!("held {snapshot}")).digest,
                },
                None => wake(log, task),
            },
            Self::Restore { task, slot, to } => match copy(log, task, slot, false) {
                Some((task, slot, _)) => Command::Restore {
                    task,
                    slot,
                    from: body(&format!("held {}", log.log.len())).digest,
                    to: body(&format!("held {to}")).digest,
                },
                None => wake(log, task),
            },
            Self::Rules { rules } => {
                let deny = ["command:make", "edit:**"].into_iter().take(usize::from(rules));
                let rule = |text| {
                    let pattern = crate::rule::Pattern::parse(text).unwrap();
                    crate::rule::Rule { effect: crate::rule::Effect::Deny, pattern }
                };
                let bucket = crate::rule::Bucket::Session;
                Command::SetRules { bucket, rules: deny.map(rule).collect() }
            }
            Self::Revoke { grant } => {
                let known = pick(&log.state.world.grants, grant);
                Command::Revoke { grant: known.unwrap_or(Deed::Command("make 9".to_owned())) }
            }
            Self::Rename { label } => Command::Rename {
                label: label.then(|| crate::id::Label::parse("nightly").unwrap()),
            },
        }
    }

    /// The command of a step that an agent takes in its turn.
    fn in_turn(&self, log: &Log) -> Option<Command> {
        let body = text(false, log);
        Some(match *self {
            Self::Deliver { agent, stale } => {
                let (path, turn, _) = in_turn(log, agent, stale)?;
                Command::Deliver { path, turn }
            }
            Self::Say { agent, stale, calls } => {
                let (path, turn, _) = in_turn(log, agent, stale)?;
                let calls = (0..calls).map(|n| call(&format!("c{n}"))).collect();
                Command::Say { path, turn, body, calls, usage: None }
            }
            Self::Answer { agent, stale, call: number } => {
                let calling = |n: &u8| {
                    in_turn(log, *n, false).is_some_and(|(_, _, a)| !a.open_calls.is_empty())
                };
                let Some(agent) = (agent..agent.saturating_add(8)).find(calling) else {
                    // Nobody called anything: now somebody does.
                    return Self::Say { agent, stale, calls: number + 1 }.in_turn(log);
                };
                let (path, turn, known) = in_turn(log, agent, stale)?;
                let open = known.open_calls.into_iter().nth(usize::from(number == 2));
                let call = open.unwrap_or_else(|| call(&format!("c{number}")));
                Command::Answer { path, turn, call, body }
            }
            Self::Settle { agent, stale, outcome } => {
                let (path, turn, _) = in_turn(log, agent, stale)?;
                let outcome = [Outcome::Completed, Outcome::Errored, Outcome::Interrupted]
                    [usize::from(outcome)];
                let (result, reason) = (Some(body), None);
                Command::Settle { path, turn, outcome, result, reason, report: body }
            }
            Self::Ask { agent, stale, deed, attended } => {
                let (path, turn, _) = in_turn(log, agent, stale)?;
                let deed = if deed < 2 {
                    Deed::Command(format!("make {deed}"))
                } else {
                    Deed::Edit(format!("file {deed}"))
                };
                let zones = zones(&deed);
                Command::Ask { path, turn, deed, zones, subject: "do it".to_owned(), attended }
            }
            Self::Compact { agent, cut } => {
                let (path, turn, known) = in_turn(log, agent, false)?;
                let through = pick(known.cuts.allowed(), cut).unwrap_or(u64::from(cut));
                Command::Compact { path, turn, through, summary: body, usage: None }
            }
            Self::StartShell { agent } => {
                let (path, turn, _) = in_turn(log, agent, false)?;
                Command::StartShell { path, turn, command: "make".to_owned() }
            }
            Self::Remind { .. } => {
                let turn = log.state.branch.roster.at(&AgentPath::root())?.turn()?;
                Command::Remind { turn, text: body }
            }
            _ => return None,
        })
    }
}
