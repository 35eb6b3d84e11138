//! What a target may be, and what one that is wrong gets to hear (A6, A7).

use super::log::{Log, path};
use crate::event::{BranchEvent, Event, MailKind, Sender};
use crate::mail::ReceiptState;
use crate::refusal::RefusalKind;
use crate::roster::Standing;
use crate::session::interrupt;

/// `/root` with `a`, `b` and `a/child`.
fn tree() -> Log {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    log.spawn("/root", "b");
    log.spawn("/root/a", "child");
    log
}

fn unknown(log: &mut Log, from: &str, target: &str) {
    let before = (log.state.clone(), log.log.len());
    assert_eq!(log.send(from, target, false).unwrap_err().kind, RefusalKind::UnknownAgent);
    assert_eq!(log.send(from, target, true).unwrap_err().kind, RefusalKind::UnknownAgent);
    let caller = path(from);
    let refusal = interrupt(&log.state, Some(&caller), target).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::UnknownAgent, "{target:?}");
    assert_eq!((log.state.clone(), log.log.len()), before, "{target:?}");
}

#[test]
fn agents_21_a_relative_target_is_below_the_caller() {
    let mut log = tree();
    assert_eq!(log.send("/root/a", "child", false).unwrap().to, path("/root/a/child"));
    assert_eq!(log.send("/root", "a/child", false).unwrap().to, path("/root/a/child"));
    assert_eq!(log.send("/root/a", "/root/b", false).unwrap().to, path("/root/b"));
    unknown(&mut log, "/root/a", "b");
}

#[test]
fn agents_22_a_malformed_target_changes_nothing() {
    let mut log = tree();
    let long = "a/".repeat(4 * 1024 * 1024);
    for target in [
        "",
        "a//b",
        "a/",
        "./a",
        "../a",
        "/root/",
        "/",
        "/Root/a",
        "/root/A",
        "root/a",
        " a",
        "a ",
        "a\0",
        "/root/a\n",
        "ａ",
        &long,
    ] {
        unknown(&mut log, "/root", target);
    }
}

#[test]
fn agents_23_agents_24_field_id_02_ids_labels_and_roles_are_no_addresses() {
    let mut log = tree();
    let name = log.spawn("/root", "Review code");
    assert_eq!(name, "/root/review-code");
    let id = log.agent(&name).id.to_string();
    for target in [id.as_str(), &format!("/root/{id}"), "Review code", "reviewer", "review"] {
        unknown(&mut log, "/root", target);
    }
    assert!(log.unread(&name).is_empty());
}

#[test]
fn agents_26_a_prefix_ends_at_a_segment() {
    let mut log = tree();
    log.spawn("/root", "ab");
    log.reserve("/root/a", "hidden");
    let roster = &log.state.branch.roster;
    let paths = |prefix| -> Vec<String> {
        roster.within(prefix).unwrap().iter().map(|a| a.path.to_string()).collect()
    };
    assert_eq!(paths("/root/a"), ["/root/a", "/root/a/child"]);
    assert_eq!(paths("/root/none"), [""; 0]);
    assert_eq!(paths("/root").len(), 5);
    for bad in ["/root/..", "a", "", "/root/"] {
        assert_eq!(roster.within(bad).unwrap_err().kind, RefusalKind::InvalidArgument);
    }
}

#[test]
fn agents_27_whom_an_interrupt_may_meet() {
    let mut log = tree();
    log.complete("/root/b");
    let a = path("/root/a");
    let state = &log.state;
    let kind = |caller, target| interrupt(state, Some(caller), target).unwrap_err().kind;
    assert_eq!(kind(&a, "/root"), RefusalKind::NotAllowed);
    assert_eq!(kind(&a, "/root/a"), RefusalKind::NotAllowed);
    assert_eq!(kind(&a, "/root/x"), RefusalKind::UnknownAgent);
    assert_eq!(kind(&path("/root/ghost"), "/root/b"), RefusalKind::UnknownAgent);
    assert_eq!(interrupt(state, Some(&a), "/root/b").unwrap(), (path("/root/b"), None));
    let turn = log.turn("/root/a/child");
    assert_eq!(interrupt(state, Some(&a), "child").unwrap(), (path("/root/a/child"), Some(turn)));
    // The person may interrupt /root too.
    assert_eq!(interrupt(state, None, "/root").unwrap().1, Some(log.turn("/root")));
}

#[test]
fn agents_28_a_child_reaches_root_by_its_whole_path() {
    let mut log = tree();
    assert!(log.send("/root/a", "/root", false).is_ok());
    assert_eq!(log.unread("/root").len(), 1);
    unknown(&mut log, "/root/a", "root");
}

#[test]
fn field_id_01_an_unknown_address_is_refused_with_the_nearest() {
    let mut log = tree();
    log.spawn("/root", "team-lead");
    let length = log.log.len();
    for target in ["team_lead", "/root/team_lead", "/root/a/team-lead", "Team Lead"] {
        let refusal = log.send("/root", target, false).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::UnknownAgent);
        let hint = refusal.hint.unwrap();
        assert!(hint.contains("are /root/team-lead, "), "{target}: {hint}");
    }
    assert_eq!(log.log.len(), length);
}

#[test]
fn field_id_03_one_path_everywhere_byte_for_byte() {
    let mut log = Log::new(8);
    let answer = log.spawn("/root", "Über die Brücke");
    log.spawn("/root", "peer");
    let receipt = log.send("/root/peer", "/root/-ber-die-br-cke", false);
    assert!(receipt.is_err(), "no second spelling");
    assert_eq!(log.send("/root/peer", &answer, false).unwrap().to.as_str(), answer);
    log.deliver(&answer);
    log.send(&answer, "/root/peer", false).unwrap();
    let heard = log.agent("/root/peer").unread[0].from.clone();
    assert_eq!(heard, Sender::Agent(path(&answer)));
    assert_eq!(log.agent(&answer).path.as_str(), answer);
    let stored: Vec<String> = log.log.iter().map(|e| e.event.encode().unwrap().body).collect();
    let quoted = format!("\"{answer}\"");
    assert!(stored.iter().filter(|body| body.contains("br-cke")).all(|b| b.contains(&quoted)));
}

#[test]
fn field_msg_08_mail_to_a_settled_agent_is_only_stored() {
    let mut log = tree();
    log.complete("/root/b");
    let receipt = log.send("/root/a", "/root/b", false).unwrap();
    assert_eq!((receipt.state, receipt.result_to), (ReceiptState::Stored, None));
    assert_eq!(log.agent("/root/b").standing, Standing::Idle);
    assert_eq!(log.unread("/root/b"), [receipt.mail]);
    log.send("/root/a", "/root/b", true).unwrap();
    assert_eq!(log.deliver("/root/b"), 2);
}

#[test]
fn field_msg_09_a_sender_never_gets_its_own_message() {
    let mut log = tree();
    log.send("/root/a", "/root/b", false).unwrap();
    log.send("/root/a", "child", true).unwrap();
    assert!(log.unread("/root/a").is_empty());
    for (from, wake) in [("/root/a", false), ("/root/a", true), ("/root", false)] {
        assert_eq!(log.send(from, from, wake).unwrap_err().kind, RefusalKind::NotAllowed);
    }
    for event in log.log.iter().map(|e| &e.event) {
        if let Event::Branch(BranchEvent::MailStored { from: Sender::Agent(from), to, .. }) = event
        {
            assert_ne!(from, to);
        }
    }
}

#[test]
fn a_caller_that_is_not_there_is_nobody() {
    let mut log = tree();
    assert_eq!(
        log.send("/root/ghost", "/root/a", false).unwrap_err().kind,
        RefusalKind::UnknownAgent
    );
    assert!(log.write("/root/ghost", &[super::log::task("x")]).is_err());
}

#[test]
fn who_may_wake_root() {
    let mut log = tree();
    assert_eq!(log.send("/root/a", "/root", true).unwrap_err().kind, RefusalKind::NotAllowed);
    // The person's words to a running /root are heard in that turn, to an idle one in a new turn.
    let receipt = log.send("person", "/root", false).unwrap();
    assert_eq!(receipt.state, ReceiptState::QueuedForRunningTurn);
    let command = log.settle_command("/root", crate::event::Outcome::Completed);
    assert_eq!(log.refused(command), RefusalKind::MailWaiting);
    assert_eq!(log.deliver("/root"), 1);
    log.complete("/root");
    let receipt = log.send("person", "/root", false).unwrap();
    assert_eq!(receipt.state, ReceiptState::TurnStarted);
    assert_eq!(receipt.result_to, None);
    assert_eq!(log.agent("/root").unread[0].kind, MailKind::User);
}
