//! What a crash leaves, and what a start makes of it.

use super::log::{Log, body, path};
use crate::event::{BranchEvent, Event, MailKind, Outcome};
use crate::roster::Standing;
use crate::session::{Command, Outcomes};

pub(super) fn recover() -> Command {
    Command::Recover { reason: "the engine was killed".to_owned(), report: body("interrupted") }
}

fn results(log: &Log) -> usize {
    log.log
        .iter()
        .filter(|e| {
            matches!(
                &e.event,
                Event::Branch(BranchEvent::MailStored { kind: MailKind::Result, .. })
            )
        })
        .count()
}

#[test]
fn agents_44_after_a_kill_all_are_idle_and_a_second_start_adds_nothing() {
    let mut log = Log::new(8);
    for name in ["running", "waiting", "blocked", "parent", "mailed"] {
        log.spawn("/root", name);
    }
    log.spawn("/root/parent", "child");
    log.complete("/root/mailed");
    log.say("/root/waiting", &["wait"]);
    log.asked("/root/blocked", "make");
    let mail = log.send("/root", "mailed", false).unwrap().mail;
    log.reserve("/root", "half");
    let before = results(&log);

    let mut log = log.restarted();
    assert_eq!(log.ok(recover()), Outcomes::Recovered { turns: 6, reservations: 1 });
    let standings: Vec<_> = log.state.branch.roster.all().map(|a| a.standing).collect();
    assert_eq!(standings, [Standing::Idle; 7]);
    for at in ["/root/running", "/root/waiting", "/root/blocked", "/root/parent/child"] {
        let settled = log.agent(at).settled().unwrap();
        assert_eq!(settled.outcome, Outcome::Interrupted);
        assert_eq!(settled.reason.as_deref(), Some("the engine was killed"));
    }
    assert_eq!(results(&log), before + 5);
    assert_eq!(log.unread("/root/mailed"), [mail]);
    assert_eq!(log.unread("/root/parent").len(), 1);
    assert!(log.state.branch.permissions.is_empty());
    // Children end before their parents, as they do without a crash.
    let ended = |at: &str| {
        let ends = |e: &&crate::event::Envelope| matches!(&e.event, Event::Branch(BranchEvent::TurnSettled { path: p, .. }) if *p == path(at));
        log.log.iter().rev().find(ends).unwrap().position
    };
    assert!(ended("/root/parent/child") < ended("/root/parent"));
    assert!(ended("/root/parent") < ended("/root"));

    let mut again = log.restarted();
    assert_eq!(again.ok(recover()), Outcomes::Recovered { turns: 0, reservations: 0 });
    assert_eq!(again.log.len(), log.log.len());
    assert_eq!(again.reserve("/root", "half"), path("/root/half"));
}

#[test]
fn agents_47_an_agent_that_failed_reads_as_errored_after_a_restart() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    log.settle("/root/a", Outcome::Errored);
    let mut log = log.restarted();
    log.ok(recover());
    assert_eq!(log.agent("/root/a").settled().unwrap().outcome, Outcome::Errored);
    assert_eq!(log.agent("/root/a").settled().unwrap().reason.as_deref(), Some("why"));
}

#[test]
fn field_ses_10_a_settled_interruption_never_comes_back() {
    let mut log = Log::new(8);
    log.settle("/root", Outcome::Interrupted);
    for _ in 0..2 {
        log.send("person", "/root", true).unwrap();
        log.deliver("/root");
        log.complete("/root");
    }
    let last = log.agent("/root").settled().unwrap().clone();
    for _ in 0..3 {
        log = log.restarted();
        assert_eq!(log.ok(recover()), Outcomes::Recovered { turns: 0, reservations: 0 });
        assert_eq!(log.agent("/root").settled().unwrap(), &last);
        assert_eq!(last.outcome, Outcome::Completed);
        assert_eq!(log.state.tip, last.turn.0 + 3);
    }
}
