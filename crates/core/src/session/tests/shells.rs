//! Background shells: owned by one agent, ended once, heard of (A19).

use super::log::{Log, body, path};
use crate::event::{BranchEvent, Event, MailKind, Outcome};
use crate::refusal::RefusalKind;
use crate::session::{Command, Outcomes};
use crate::shell::{MOST_SHELLS, ShellFate, ShellId};

fn start(log: &mut Log, at: &str) -> ShellId {
    let command =
        Command::StartShell { path: path(at), turn: log.turn(at), command: "make\nx".to_owned() };
    match log.ok(command) {
        Outcomes::Shell(shell) => shell,
        other => panic!("{other:?}"),
    }
}

fn end(at: &str, shell: ShellId, fate: ShellFate) -> Command {
    Command::EndShell { path: path(at), shell, fate, report: body("it ended") }
}

fn fates(log: &Log) -> Vec<ShellFate> {
    let ended = log.log.iter().filter_map(|e| match &e.event {
        Event::Branch(BranchEvent::ShellEnded { fate, .. }) => Some(*fate),
        _ => None,
    });
    ended.collect()
}

#[test]
fn agents_81_only_its_owner_has_a_shell_whatever_number_is_guessed() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    log.spawn("/root", "b");
    let (a, b) = (start(&mut log, "/root/a"), start(&mut log, "/root/b"));
    assert_eq!((a, b), (ShellId(1), ShellId(1)), "numbers are the owner's");
    let second = start(&mut log, "/root/a");
    assert_eq!(log.refused(end("/root/b", second, ShellFate::Stopped)), RefusalKind::NotFound);
    log.ok(end("/root/a", a, ShellFate::Exited(0)));
    let mail: Vec<_> = log.agent("/root/a").unread.iter().map(|m| m.kind).collect();
    assert_eq!(mail, [MailKind::Execution]);
    assert!(log.unread("/root/b").is_empty() && log.unread("/root").is_empty());
    assert_eq!(log.refused(end("/root/a", a, ShellFate::Exited(0))), RefusalKind::NotFound);
    assert_eq!(start(&mut log, "/root/a"), ShellId(3), "a number is never used again");
    assert_eq!(log.restarted().state, log.state);
}

#[test]
fn a_turn_completes_when_its_shells_have_ended_and_were_heard_of() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    let shell = start(&mut log, "/root/a");
    let complete = log.settle_command("/root/a", Outcome::Completed);
    assert_eq!(log.refused(complete.clone()), RefusalKind::ShellsLive);
    log.ok(end("/root/a", shell, ShellFate::Signalled(9)));
    assert_eq!(log.refused(complete), RefusalKind::MailWaiting);
    assert_eq!(log.deliver("/root/a"), 1);
    log.complete("/root/a");
    assert_eq!(fates(&log), [ShellFate::Signalled(9)]);
}

#[test]
fn an_end_of_the_turn_ends_its_shells_and_a_crash_loses_them() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    log.spawn("/root", "b");
    start(&mut log, "/root/a");
    start(&mut log, "/root/b");
    log.settle("/root/a", Outcome::Interrupted);
    assert_eq!(fates(&log), [ShellFate::Stopped]);
    assert!(log.unread("/root/a").is_empty());
    let mut log = log.restarted();
    log.ok(super::recovery::recover());
    assert_eq!(fates(&log), [ShellFate::Stopped, ShellFate::Lost]);
    assert!(log.state.branch.roster.all().all(|agent| agent.shells.is_empty()));
    let length = log.log.len();
    log.ok(super::recovery::recover());
    assert_eq!(log.log.len(), length);
}

#[test]
fn shells_are_bounded_and_belong_to_a_running_turn() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    let turn = log.turn("/root/a");
    let command = || Command::StartShell { path: path("/root/a"), turn, command: "x".to_owned() };
    for _ in 0..MOST_SHELLS {
        log.ok(command());
    }
    assert_eq!(log.refused(command()), RefusalKind::NoRoom);
    log.ok(end("/root/a", ShellId(2), ShellFate::Stopped));
    log.ok(command());
    log.settle("/root/a", Outcome::Errored);
    assert_eq!(log.refused(command()), RefusalKind::WrongState);
}
