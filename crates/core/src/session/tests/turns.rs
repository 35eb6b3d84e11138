//! A turn ends once, and what it owned ends with it (A9, A10).

use super::log::{Log, body, path};
use crate::event::{BranchEvent, Event, MailKind, Outcome, Sender};
use crate::refusal::RefusalKind;
use crate::roster::Standing;
use crate::session::{Command, interrupt};

fn results(log: &Log, from: &str) -> usize {
    let from = Sender::Agent(path(from));
    log.log
        .iter()
        .filter(|e| {
            matches!(
                &e.event,
                Event::Branch(BranchEvent::MailStored { kind: MailKind::Result, from: f, .. })
                    if *f == from
            )
        })
        .count()
}

#[test]
fn agents_32_the_first_end_wins_and_the_second_changes_nothing() {
    for (first, second) in [
        (Outcome::Completed, Outcome::Interrupted),
        (Outcome::Interrupted, Outcome::Completed),
        (Outcome::Errored, Outcome::Interrupted),
    ] {
        let mut log = Log::new(8);
        log.spawn("/root", "a");
        // Both ends were on their way before either was decided.
        let (target, turn) = interrupt(&log.state, None, "a").unwrap();
        assert_eq!((target, turn), (path("/root/a"), Some(log.turn("/root/a"))));
        let late = log.settle_command("/root/a", second);
        log.settle("/root/a", first);
        assert_eq!(log.refused(late.clone()), RefusalKind::WrongState);
        assert_eq!(log.agent("/root/a").settled().unwrap().outcome, first);
        assert_eq!(results(&log, "/root/a"), 1);
        // Nor does it end the turn that came after.
        log.send("/root", "a", true).unwrap();
        assert_eq!(log.refused(late), RefusalKind::WrongState);
        assert!(log.agent("/root/a").turn().is_some());
    }
}

#[test]
fn agents_33_interrupting_a_parent_leaves_its_children_running() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    log.spawn("/root/a", "child");
    log.settle("/root/a", Outcome::Interrupted);
    assert_eq!(log.agent("/root/a").standing, Standing::Idle);
    assert!(log.agent("/root/a/child").turn().is_some());
    log.complete("/root/a/child");
    assert_eq!(log.unread("/root/a").len(), 1);
    assert_eq!(log.agent("/root/a").standing, Standing::Idle);
    assert_eq!(results(&log, "/root/a/child"), 1);
}

#[test]
fn a_turn_that_ended_takes_nothing_more() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    let turn = log.turn("/root/a");
    log.say("/root/a", &["c"]);
    log.settle("/root/a", Outcome::Interrupted);
    log.send("/root", "a", true).unwrap();
    let at = || path("/root/a");
    for late in [
        Command::Deliver { path: at(), turn },
        Command::Say { path: at(), turn, body: body("x"), calls: Vec::new(), usage: None },
        Command::Answer { path: at(), turn, call: super::log::call("c"), body: body("x") },
        Command::Ask {
            path: at(),
            turn,
            deed: crate::permission::Deed::Command("make".to_owned()),
            zones: Vec::new(),
            subject: "run make".to_owned(),
            attended: true,
        },
    ] {
        assert_eq!(log.refused(late), RefusalKind::WrongState);
    }
}

#[test]
fn a_turn_does_not_complete_over_mail_that_woke_it() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    log.send("/root", "a", false).unwrap();
    log.complete("/root/a");
    log.send("/root", "a", true).unwrap();
    let complete = log.settle_command("/root/a", Outcome::Completed);
    assert_eq!(log.refused(complete.clone()), RefusalKind::MailWaiting);
    assert_eq!(log.deliver("/root/a"), 2);
    log.ok(complete);
    // An end that is no success is never held up; the mail waits for the next turn.
    log.send("/root", "a", true).unwrap();
    log.settle("/root/a", Outcome::Errored);
    assert_eq!(log.unread("/root/a").len(), 1);
}

#[test]
fn a_reason_is_one_bounded_line() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    let mut command = log.settle_command("/root/a", Outcome::Errored);
    if let Command::Settle { reason, .. } = &mut command {
        *reason = Some(format!("503\r\n\u{1b}[31m{}", "x".repeat(100_000)));
    }
    log.ok(command);
    let reason = log.agent("/root/a").settled().unwrap().reason.clone().unwrap();
    assert!(reason.starts_with("503 [31mxxx") && reason.chars().count() == 1000);
}
