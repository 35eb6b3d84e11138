//! Forks: the same conversation in another session, and nothing else of it (A11, B5).

use super::invariants::check;
use super::log::{Log, id, path, root, started_in_copies, task};
use crate::event::{BranchEvent, Envelope, Event, Outcome, Stream};
use crate::id::TaskId;
use crate::permission::{Answer, Deed, Mode};
use crate::refusal::RefusalKind;
use crate::roster::Standing;
use crate::session::{Command, Outcomes, live, take};

fn fork(of: &Log, at: u64, name: &str) -> Log {
    let taken = take(&of.log, at, true).unwrap();
    let mut log = Log::default();
    let left = taken.left().clone();
    let command = Command::Fork { session: id(name), label: None, taken: Box::new(taken) };
    let outcome = log.ok(command);
    assert_eq!(outcome, Outcomes::Forked { path: path("/root"), agent: id(name), left });
    assert_eq!(log.restarted().state, log.state);
    log
}

fn refused(of: &Log, at: u64) -> RefusalKind {
    take(&of.log, at, true).unwrap_err().kind
}

/// What is said in `/root`'s conversation, without its numbers.
fn talk(log: &Log) -> Vec<String> {
    let root = log.state.branch.roster.at(&path("/root")).unwrap();
    let stream = Stream::Conversation(root.id.clone());
    let ranges = live(log.state.tip, &log.state.world.rewinds);
    let is_live = |e: &&Envelope| ranges.iter().any(|range| range.contains(&e.position));
    let events = log.log.iter().filter(|e| e.stream == stream).filter(is_live);
    let told = events.map(|envelope| match &envelope.event {
        Event::Branch(BranchEvent::Heard { from, sort, body, .. }) => {
            format!("heard {from:?} {sort:?} {body:?}")
        }
        Event::Branch(BranchEvent::Said { body, calls, .. }) => format!("said {body:?} {calls:?}"),
        Event::Branch(BranchEvent::Answered { call, body, .. }) => format!("{call} {body:?}"),
        Event::Branch(BranchEvent::Unanswered { call, fate, .. }) => format!("{call} {fate:?}"),
        Event::Branch(BranchEvent::Compacted { summary, .. }) => format!("so far {summary:?}"),
        other => panic!("{other:?}"),
    });
    told.collect()
}

/// Every number in `/root`'s conversation leads to what it names.
fn numbers_lead_somewhere(log: &Log) {
    let at = |position: u64| &log.log[usize::try_from(position).unwrap() - 1].event;
    for envelope in &log.log {
        let Event::Branch(event) = &envelope.event else { continue };
        let turn = match event {
            BranchEvent::Heard { turn, mail, body, .. } => {
                if let Some(mail) = mail {
                    let Event::Branch(BranchEvent::MailStored { body: stored, .. }) = at(mail.0)
                    else {
                        panic!("{envelope:?}");
                    };
                    assert_eq!(stored, body);
                }
                turn
            }
            BranchEvent::TurnSettled { turn, .. }
            | BranchEvent::Said { turn, .. }
            | BranchEvent::Answered { turn, .. }
            | BranchEvent::Unanswered { turn, .. }
            | BranchEvent::Compacted { turn, .. } => turn,
            _ => continue,
        };
        assert!(matches!(at(turn.0), Event::Branch(BranchEvent::TurnStarted { .. })));
    }
}

/// A session at rest with agents, tasks, mail, a compaction and a rewind behind it.
fn talked(mut log: Log) -> Log {
    log.say("/root", &["c1"]);
    log.spawn("/root", "x");
    log.write("/root/x", &[task("one"), task("two")]).unwrap();
    let asked = log.asked("/root/x", "make");
    log.ok(Command::Permit { id: asked, answer: Answer::Session });
    log.settle("/root/x", Outcome::Errored);
    let answer = Command::Answer {
        path: path("/root"),
        turn: log.turn("/root"),
        call: super::log::call("c1"),
        body: super::log::body("result"),
    };
    log.ok(answer);
    log.deliver("/root");
    log.complete("/root");
    let point = log.state.tip;
    log.send("person", "/root", true).unwrap();
    log.deliver("/root");
    log.say("/root", &[]);
    log.complete("/root");
    log.ok(Command::Rewind { to: point, stable: true });
    log.send("person", "/root", true).unwrap();
    log.deliver("/root");
    log.say("/root", &["c2", "c3"]);
    log.settle("/root", Outcome::Interrupted);
    log.send("person", "/root", true).unwrap();
    log.deliver("/root");
    let through = log.agent("/root").cuts.allowed()[0];
    let turn = log.turn("/root");
    let summary = super::log::body("so far");
    log.ok(Command::Compact { path: path("/root"), turn, through, summary, usage: None });
    log.spawn("/root", "x");
    log.write("/root/x", &[task("three")]).unwrap();
    log.send("/root/x", "/root", false).unwrap();
    log.complete("/root");
    log.ok(Command::SetMode { mode: Some(Mode::Edits), plan_ceiling: None });
    log
}

#[test]
fn a_fork_of_a_fork_has_the_same_history_once_and_in_order() {
    for source in [Log::new(8), Log::in_copies(8)] {
        let source = talked(source);
        let first = fork(&source, source.state.tip, "fork-1");
        numbers_lead_somewhere(&first);
        assert_eq!(talk(&first), talk(&source));
        let mut first = first;
        if !first.agent_is_published() {
            first.publish_idle();
        }
        let second = fork(&first, first.state.tip, "fork-2");
        assert_eq!(talk(&second), talk(&source));
        numbers_lead_somewhere(&second);
        for (log, of, at) in
            [(&second, "fork-1", first.state.tip), (&first, "root-session", source.state.tip)]
        {
            let forked = log.state.world.started.as_ref().unwrap().forked.as_ref().unwrap();
            assert_eq!((forked.session.as_str(), forked.position), (of, at), "where it is from");
        }
        // Both go on, each for itself.
        let before = source.log.clone();
        first.send("person", "/root", true).unwrap();
        first.deliver("/root");
        first.complete("/root");
        check(&first);
        assert_eq!(source.log, before);
    }
}

#[test]
fn agents_17_in_a_fork_every_name_is_free_and_in_the_source_none() {
    let mut source = talked(Log::new(8));
    let mut child = fork(&source, source.state.tip, "fork");
    let refusal = child.send("person", "/root/x", true).unwrap_err();
    assert!(refusal.line.contains("it stayed in the session root-session"), "{}", refusal.line);
    child.send("person", "/root", true).unwrap();
    assert_eq!(child.spawn("/root", "x"), "/root/x");
    source.send("person", "/root", true).unwrap();
    assert_eq!(source.spawn("/root", "x"), "/root/x-2");
    assert!(child.send("person", "/root/x", false).is_ok());
    assert_eq!(child.restarted().state, child.state);
}

#[test]
fn agents_84_a_fork_ends_at_no_open_turn_and_one_of_nothing_is_empty() {
    let mut source = Log::default();
    let mut start = super::log::start(super::log::started(8));
    if let Command::Start { message, .. } = &mut start {
        *message = None;
    }
    source.ok(start);
    assert_eq!(source.agent("/root").standing, Standing::Idle);
    let empty = fork(&source, source.state.tip, "empty");
    assert!(talk(&empty).is_empty());
    assert_eq!(empty.agent("/root").turns, 0);
    source.send("person", "/root", true).unwrap();
    let inside = source.state.tip;
    assert_eq!(refused(&source, inside), RefusalKind::WrongState);
    source.deliver("/root");
    assert_eq!(refused(&source, source.state.tip), RefusalKind::WrongState);
    source.spawn("/root", "busy");
    source.complete("/root");
    // The child still works; it stays where it is.
    let child = fork(&source, source.state.tip, "fork");
    assert_eq!(talk(&child), talk(&source));
    assert_eq!(child.state.branch.roster.all().count(), 1);
    for at in [0, 1, 2, source.state.tip + 1, u64::MAX] {
        assert_eq!(refused(&source, at), RefusalKind::NotFound, "{at}");
    }
    assert!(take(&source.log, source.state.tip, false).is_err());
    assert_eq!(refused(&source, inside), RefusalKind::WrongState);
    // What has begun cannot begin again.
    let taken = Box::new(take(&source.log, source.state.tip, true).unwrap());
    let again = Command::Fork { session: id("other"), label: None, taken };
    let mut begun = Log::new(8);
    assert_eq!(begun.refused(again), RefusalKind::AlreadyExists);
}

#[test]
fn a_fork_copies_settings_and_grants_of_that_moment_and_then_both_go_apart() {
    let mut source = talked(Log::new(8));
    let mut child = fork(&source, source.state.tip, "fork");
    assert_eq!(child.state.world.mode, Some(Mode::Edits));
    assert_eq!(child.state.world.grants, source.state.world.grants);
    let make = Deed::Command("make".to_owned());
    source.ok(Command::Revoke { grant: make.clone() });
    child.send("person", "/root", true).unwrap();
    assert_eq!(child.ask("/root", make).unwrap(), Outcomes::Allowed);
    // What the source used is not used by the fork.
    let used = child.state.ledger().spent(&path("/root"), None).1;
    assert_eq!(used.turns, 1);
}

#[test]
fn agents_71_fork_and_rewind_list_what_they_drop_and_leave_delegated_tasks_to_the_person() {
    let mut log = Log::default();
    log.ok(super::log::start(started_in_copies(8)));
    log.publish(&path("/root"));
    let propose = |log: &mut Log, title: &str| {
        let command = Command::Propose {
            caller: path("/root"),
            agent: id(&format!("agent-{}", log.log.len())),
            call: super::log::call(&format!("c-{}", log.log.len())),
            title: title.to_owned(),
            role: None,
            message: super::log::body("repair it"),
            roots: Some(vec![root("app", "/w/app")]),
            blocked_by: std::collections::BTreeSet::new(),
            driver: None,
            frozen: Box::default(),
        };
        match log.ok(command) {
            Outcomes::Reserved { path, .. } => log.publish(&path),
            other => panic!("{other:?}"),
        }
    };
    propose(&mut log, "done");
    log.complete("/root/done");
    propose(&mut log, "busy");
    log.write("/root", &[task("plain")]).unwrap();
    log.complete("/root");
    let taken = take(&log.log, log.state.tip, true).unwrap();
    let left = taken.left();
    let told: Vec<_> =
        left.delegated.iter().map(|own| (own.task.0, own.settled, own.detached)).collect();
    assert_eq!(told, [(2, Some(Outcome::Completed), false), (3, None, true)]);
    assert_eq!(left.agents, [path("/root/busy"), path("/root/done")]);
    assert_eq!((left.tasks.clone(), left.mail_count), (vec![TaskId(4)], 1));
    let child = fork(&log, log.state.tip, "fork");
    assert!(child.state.branch.tasks.tasks.is_empty());
    let own: Vec<u32> = child.state.world.delegated.keys().map(|task| task.0).collect();
    assert_eq!(own, [5], "its own copies are made anew, and numbers go on");

    log.complete("/root/busy");
    let to = log.state.tip;
    let Outcomes::Rewound(dropped) = log.ok(Command::Rewind { to, stable: true }) else {
        panic!("no list");
    };
    let settled: Vec<_> = dropped.delegated.iter().map(|own| (own.settled, own.detached)).collect();
    assert_eq!(settled, [(Some(Outcome::Completed), false); 2]);
    assert_eq!((dropped.tasks.len(), dropped.agent_count, dropped.mail_count), (1, 2, 2));
    assert!(log.state.branch.tasks.tasks.is_empty());
    // Their copies and outcomes are still there.
    for number in [2, 3] {
        let own = &log.state.world.delegated[&TaskId(number)];
        assert!(own.admitted && own.settled == Some(Outcome::Completed));
        assert_eq!(own.copies.len(), 1);
    }
}

impl Log {
    fn agent_is_published(&self) -> bool {
        self.state.branch.roster.find(&path("/root")).is_ok()
    }

    /// Publishes `/root` of a fork with private copies: no turn begins.
    fn publish_idle(&mut self) {
        let at = path("/root");
        let admission = self.admission(&at);
        let outcome = self.ok(Command::Publish { path: at, admission });
        assert!(matches!(outcome, Outcomes::Reserved { .. }), "{outcome:?}");
        assert_eq!(self.agent("/root").standing, Standing::Idle);
    }
}
