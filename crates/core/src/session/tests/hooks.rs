//! What hooks leave behind, stale tasks and notes.

use super::log::{Log, body, path, task, to};
use crate::event::{BranchEvent, MailKind, Outcome, Sender};
use crate::refusal::RefusalKind;
use crate::session::{Command, STALE_TURNS, stale_tasks};

fn note(log: &mut Log, at: &str, text: &str) {
    log.ok(Command::NoteHook { path: path(at), context: body(text) });
}

/// What the agent heard from stead, in order.
fn noted(log: &Log, at: &str) -> Vec<crate::id::BodyRef> {
    let heard = log.conversation(at).into_iter().filter_map(|event| match event {
        BranchEvent::Heard { from: Sender::Stead, sort: MailKind::Note, body, .. } => Some(body),
        _ => None,
    });
    heard.collect()
}

#[test]
fn context_of_a_blocked_task_is_heard_once_by_the_next_that_is_accepted() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    log.complete("/root/a");
    let turns = log.agent("/root/a").turns;
    // The hook blocks the wake: the message is not sent, and what the hook added is kept.
    note(&mut log, "/root/a", "first");
    note(&mut log, "/root/a", "second");
    assert_eq!((log.agent("/root/a").turns, noted(&log, "/root/a").len()), (turns, 0));
    assert_eq!(log.restarted().state, log.state);
    // Mail that starts nothing does not use it.
    log.send("/root", "a", false).unwrap();
    assert_eq!(log.agent("/root/a").notes.len(), 2);
    log.send("/root", "a", true).unwrap();
    assert_eq!(noted(&log, "/root/a"), [body("first"), body("second")]);
    assert!(log.agent("/root/a").notes.is_empty());
    log.deliver("/root/a");
    log.complete("/root/a");
    log.send("/root", "a", true).unwrap();
    assert_eq!(noted(&log, "/root/a").len(), 2, "used once");
    assert_eq!(log.restarted().state, log.state);
}

#[test]
fn a_start_hook_speaks_to_an_agent_that_nobody_sees_yet() {
    let mut log = Log::new(8);
    let at = log.reserve("/root", "a");
    note(&mut log, "/root/a", "from the start hook");
    log.publish(&at);
    assert_eq!(noted(&log, "/root/a"), [body("from the start hook")]);
    let nobody = Command::NoteHook { path: path("/root/b"), context: body("x") };
    assert_eq!(log.refused(nobody), RefusalKind::UnknownAgent);
}

#[test]
fn a_stop_is_due_once_for_each_turn_that_ended() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    let first = log.turn("/root/a");
    let stop = |turn| Command::NoteStop { path: path("/root/a"), turn };
    assert_eq!(log.refused(stop(first)), RefusalKind::WrongState);
    log.settle("/root/a", Outcome::Errored);
    // Killed before the hook was started: it is still due.
    let mut log = log.restarted();
    assert_eq!(log.agent("/root/a").stop_due(), Some(first));
    log.ok(stop(first));
    assert_eq!(log.agent("/root/a").stop_due(), None);
    assert_eq!(log.refused(stop(first)), RefusalKind::WrongState);
    log.send("person", "/root/a", true).unwrap();
    assert_eq!(log.agent("/root/a").stop_due(), None);
    let mut log = log.restarted();
    log.ok(super::recovery::recover());
    assert!(log.agent("/root/a").stop_due().is_some_and(|turn| turn > first));
}

fn remind(log: &Log) -> Command {
    Command::Remind { turn: log.turn("/root"), text: body("open: task 1 of /root/a") }
}

fn turn(log: &mut Log) {
    log.complete("/root");
    log.send("person", "/root", true).unwrap();
    log.deliver("/root");
}

#[test]
fn agents_68_root_is_reminded_of_open_tasks_once_in_a_stale_interval() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    log.write("/root/a", &[task("one"), to("/root", task("two"))]).unwrap();
    log.settle("/root/a", Outcome::Errored);
    for _ in 1..STALE_TURNS {
        turn(&mut log);
        assert!(stale_tasks(&log.state).is_empty());
        let early = remind(&log);
        assert_eq!(log.refused(early), RefusalKind::WrongState);
    }
    turn(&mut log);
    let owners: Vec<String> =
        stale_tasks(&log.state).iter().map(|task| String::from(task.owner.clone())).collect();
    assert_eq!(owners, ["/root/a", "/root"], "each names its owner");
    let due = remind(&log);
    log.ok(due);
    assert_eq!(noted(&log, "/root").len(), 1);
    // Throttled: nothing more until the interval has passed again.
    for _ in 1..STALE_TURNS {
        assert!(stale_tasks(&log.state).is_empty());
        turn(&mut log);
    }
    turn(&mut log);
    assert_eq!(stale_tasks(&log.state).len(), 2);
    assert_eq!(log.restarted().state, log.state);
    // And never of what is done.
    let done = crate::task::Status::Completed;
    for number in [1, 2] {
        let change = crate::task::TaskChange { status: Some(done), ..super::log::change(number) };
        log.write("/root", &[change]).unwrap();
    }
    for _ in 0..2 * STALE_TURNS {
        turn(&mut log);
    }
    assert!(stale_tasks(&log.state).is_empty());
}

#[test]
fn what_a_driver_keeps_is_there_in_its_next_turn() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    let keep = |log: &Log| Command::NoteDriver {
        path: path("/root/a"),
        turn: log.turn("/root/a"),
        body: body("session 7"),
    };
    let (first, length) = (keep(&log), log.log.len());
    log.ok(first.clone());
    log.ok(first);
    assert_eq!(log.log.len(), length + 1, "the same again is no event");
    log.complete("/root/a");
    assert_eq!(log.restarted().agent("/root/a").driver_note, Some(body("session 7")));
}
