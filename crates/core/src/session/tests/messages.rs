//! Room, waking and who hears a result (A8, A10).

use super::log::{Log, body, path};
use crate::event::{BranchEvent, MailKind, Outcome, Sender};
use crate::mail::ReceiptState;
use crate::refusal::RefusalKind;
use crate::roster::Standing;
use crate::session::Command;

#[test]
fn agents_29_at_the_cap_nothing_is_queued() {
    let mut log = Log::new(3);
    for name in ["idle", "a", "b", "c"] {
        log.spawn("/root", name);
        if name == "idle" {
            log.complete("/root/idle");
        }
    }
    let spawn = log.reserve_command("/root", "d");
    assert_eq!(log.refused(spawn), RefusalKind::NoRoom);
    assert_eq!(log.send("/root", "idle", false).unwrap().state, ReceiptState::Stored);
    let before = log.state.clone();
    assert_eq!(log.send("/root", "idle", true).unwrap_err().kind, RefusalKind::NoRoom);
    assert_eq!(log.state, before);
    let receipt = log.send("/root", "a", true).unwrap();
    assert_eq!(receipt.state, ReceiptState::QueuedForRunningTurn);
    assert_eq!(receipt.result_to, Some(path("/root")));
    // The person's wake of /root needs no room.
    log.complete("/root");
    assert_eq!(log.send("person", "/root", true).unwrap().state, ReceiptState::TurnStarted);
    log.complete("/root/b");
    assert_eq!(log.send("/root", "idle", true).unwrap().state, ReceiptState::TurnStarted);
}

#[test]
fn agents_30_an_agent_in_the_middle_of_a_call_takes_its_room() {
    let mut log = Log::new(1);
    log.spawn("/root", "a");
    log.say("/root/a", &["wait"]);
    let spawn = log.reserve_command("/root", "b");
    assert_eq!(log.refused(spawn), RefusalKind::NoRoom);
}

#[test]
fn agents_31_a_reservation_takes_room_until_it_is_refused() {
    let mut log = Log::new(1);
    let first = log.reserve("/root", "a");
    let second = log.reserve_command("/root", "b");
    assert_eq!(log.refused(second.clone()), RefusalKind::NoRoom);
    log.ok(Command::Refuse { path: first, reason: "no".to_owned() });
    log.ok(second);
}

#[test]
fn the_result_goes_to_the_spawn_parent_whoever_woke() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    log.complete("/root/a");
    log.spawn("/root", "b");
    log.deliver("/root");
    let receipt = log.send("/root/b", "/root/a", true).unwrap();
    assert_eq!(receipt.result_to, Some(path("/root")));
    log.deliver("/root/a");
    log.complete("/root/a");
    assert_eq!(log.unread("/root").len(), 1);
    assert!(log.unread("/root/b").is_empty());
}

#[test]
fn agents_35_agents_37_results_wait_in_order_and_are_heard_at_the_next_boundary() {
    let mut log = Log::new(8);
    let mut expected = Vec::new();
    for (name, outcome) in [
        ("a", Outcome::Completed),
        ("b", Outcome::Errored),
        ("c", Outcome::Interrupted),
        ("d", Outcome::Completed),
    ] {
        let at = log.spawn("/root", name);
        log.settle(&at, outcome);
        expected.push((Sender::Agent(path(&at)), body(&format!("report of {at}"))));
    }
    let turns = log.agent("/root").turns;
    assert_eq!(log.deliver("/root"), 4);
    let heard: Vec<_> = log
        .conversation("/root")
        .into_iter()
        .filter_map(|event| match event {
            BranchEvent::Heard { from, mail: Some(_), sort: MailKind::Result, body, .. } => {
                Some((from, body))
            }
            _ => None,
        })
        .collect();
    assert_eq!(heard, expected);
    assert_eq!(log.deliver("/root"), 0);
    assert_eq!(log.agent("/root").turns, turns);
    assert_eq!(log.agent("/root/b").settled().unwrap().outcome, Outcome::Errored);
}

#[test]
fn a_child_that_ends_before_its_parent_looks_starts_nothing() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    log.complete("/root");
    log.settle("/root/a", Outcome::Errored);
    assert_eq!(log.agent("/root").standing, Standing::Idle);
    assert_eq!(log.unread("/root").len(), 1);
    let log = log.restarted();
    assert_eq!(log.unread("/root").len(), 1);
}

#[test]
fn agents_41_a_result_is_not_ready_while_a_turn_works() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    assert_eq!(log.agent("/root/a").settled().unwrap_err().kind, RefusalKind::WrongState);
    log.complete("/root/a");
    assert_eq!(log.agent("/root/a").settled().unwrap().result, Some(body("the whole result")));
    log.send("/root", "a", true).unwrap();
    assert_eq!(log.agent("/root/a").settled().unwrap_err().kind, RefusalKind::WrongState);
    log.deliver("/root/a");
    log.complete("/root/a");
    assert!(log.agent("/root/a").settled().is_ok());
}

#[test]
fn mail_leaves_the_queue_with_the_event_that_puts_it_into_the_conversation() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    let mail = log.send("/root", "a", false).unwrap().mail;
    // Cut the batch of the delivery anywhere: it is one batch, so a cut means it never was.
    let mut killed = log.restarted();
    killed.ok(super::recovery::recover());
    assert_eq!(killed.unread("/root/a"), [mail]);
    killed.send("person", "/root/a", true).unwrap();
    assert_eq!(killed.deliver("/root/a"), 2);
    let heard = killed
        .conversation("/root/a")
        .into_iter()
        .filter(|e| matches!(e, BranchEvent::Heard { mail: Some(m), .. } if *m == mail))
        .count();
    assert_eq!(heard, 1);
    assert_eq!(killed.restarted().state, killed.state);
    assert!(killed.unread("/root/a").is_empty());
}

#[test]
fn a_message_is_neither_empty_nor_endless() {
    let mut log = Log::new(8);
    for bytes in [0, 8 * 1024 * 1024 + 1, u64::MAX] {
        let send = Command::Send {
            from: None,
            target: "/root".to_owned(),
            body: crate::id::BodyRef { bytes, ..body("x") },
            wake: true,
        };
        assert_eq!(log.refused(send), RefusalKind::InvalidArgument);
    }
}
