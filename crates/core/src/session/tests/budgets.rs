//! Budgets are counted from the log, over an agent and all above it, rewinds or not.

use super::log::{Log, body, driver, path, started};
use crate::budget::{Budget, Caps, Spent};
use crate::event::{DriverSpec, Frozen, Outcome};
use crate::id::{PermissionId, Timestamp};
use crate::permission::Answer;
use crate::refusal::RefusalKind;
use crate::session::{Command, over_budget};
use crate::usage::{Reports, Usage};

fn session(budget: Budget, reports: Reports) -> Log {
    let mut log = Log::default();
    log.ok(start(budget, reports));
    log
}

fn start(budget: Budget, reports: Reports) -> Command {
    match super::log::start(started(8)) {
        Command::Start { started, directory, message, title, notes, .. } => Command::Start {
            driver: DriverSpec { reports, ..driver() },
            frozen: Box::new(Frozen { budget, ..Frozen::default() }),
            started,
            directory,
            message,
            title,
            notes,
        },
        other => other,
    }
}

fn tree(tree: Caps) -> Budget {
    Budget { tree, ..Budget::default() }
}

fn own(own: Caps) -> Budget {
    Budget { own, ..Budget::default() }
}

fn tokens(count: u64) -> Caps {
    Caps { tokens: Some(count), ..Caps::default() }
}

fn turns(count: u64) -> Caps {
    Caps { turns: Some(count), ..Caps::default() }
}

fn say(log: &mut Log, at: &str, used: Option<u64>) {
    let usage = used.map(|input| Usage { input, output: 0, cost_micros: None });
    let turn = log.turn(at);
    log.ok(Command::Say { path: path(at), turn, body: body("x"), calls: vec![], usage });
}

fn now(log: &Log) -> Timestamp {
    Timestamp(1_700_000_000_000 + log.clock)
}

fn over(log: &Log, at: &str) -> Option<String> {
    over_budget(&log.state, &path(at), now(log))
}

fn spent(log: &Log, at: &str) -> (Spent, Spent) {
    log.state.ledger().spent(&path(at), Some(now(log)))
}

fn spawn(log: &mut Log, name: &str, budget: Budget) -> Result<String, RefusalKind> {
    let command = match log.reserve_command("/root", name) {
        Command::Reserve { caller, agent, call, task_name, role, message, directory, .. } => {
            let (driver, frozen) = (None, Box::new(Frozen { budget, ..Frozen::default() }));
            Command::Reserve {
                caller,
                agent,
                call,
                task_name,
                role,
                message,
                directory,
                driver,
                frozen,
            }
        }
        other => other,
    };
    log.give(command).map_err(|refusal| refusal.kind)?;
    let at = path(&format!("/root/{name}"));
    log.publish(&at);
    Ok(at.to_string())
}

#[test]
fn what_an_agent_uses_counts_for_everyone_above_it() {
    let mut log = session(tree(tokens(100)), Reports::Tokens);
    let a = spawn(&mut log, "a", own(tokens(30))).unwrap();
    let b = log.spawn(&a, "b");
    say(&mut log, &b, Some(60));
    assert_eq!((spent(&log, &a).0.tokens, spent(&log, &a).1.tokens), (0, 60));
    assert_eq!(over(&log, &a), None, "its own cap is for it alone");
    say(&mut log, &a, Some(30));
    let reason = over(&log, &a).unwrap();
    assert_eq!(reason, "the budget of /root/a alone is used up: 30 of 30 tokens are used");
    assert_eq!(over(&log, &b), None);
    say(&mut log, "/root", Some(10));
    for at in ["/root", &b] {
        assert!(over(&log, at).unwrap().contains("100 of 100 tokens"), "{at}");
    }
    // At the cap the turn ends with the reason, and nothing else is started.
    log.settle(&b, Outcome::Errored);
    assert_eq!(log.send("person", &b, true).unwrap_err().kind, RefusalKind::OverBudget);
    let more = log.reserve_command("/root", "c");
    assert_eq!(log.refused(more), RefusalKind::OverBudget);
    assert!(log.send("person", &b, false).is_ok(), "mail that starts nothing is free");
    assert_eq!(log.restarted().state, log.state);
}

#[test]
fn a_rewind_gives_nothing_back() {
    let mut log = session(tree(turns(3)), Reports::Nothing);
    let point = {
        log.complete("/root");
        log.state.tip
    };
    log.send("person", "/root", true).unwrap();
    log.deliver("/root");
    log.spawn("/root", "a");
    log.complete("/root/a");
    log.complete("/root");
    log.ok(Command::Rewind { to: point, stable: true });
    assert_eq!(spent(&log, "/root").1.turns, 3);
    assert_eq!(log.send("person", "/root", true).unwrap_err().kind, RefusalKind::OverBudget);
    assert_eq!(log.restarted().state, log.state);
}

#[test]
fn what_nobody_knows_is_never_nothing() {
    let mut empty = Log::default();
    let capped = start(tree(tokens(9)), Reports::Nothing);
    assert_eq!(empty.give(capped).unwrap_err().kind, RefusalKind::InvalidArgument);
    let mut log = session(Budget::default(), Reports::Nothing);
    let refused = spawn(&mut log, "a", own(tokens(9)));
    assert_eq!(refused, Err(RefusalKind::InvalidArgument));
    // And a driver that promised and did not keep it is at the cap.
    let mut log = session(tree(tokens(9)), Reports::Tokens);
    say(&mut log, "/root", Some(1));
    assert_eq!(over(&log, "/root"), None);
    say(&mut log, "/root", None);
    assert!(over(&log, "/root").unwrap().contains("is not known"));
}

#[test]
fn time_that_the_person_takes_is_no_work() {
    let wall = Caps { wall_seconds: Some(10), ..Caps::default() };
    let mut log = session(tree(wall), Reports::Nothing);
    let a = spawn(&mut log, "a", Budget::default()).unwrap();
    log.clock += 3_000;
    let id: PermissionId = log.asked(&a, "make");
    log.clock += 1_000_000;
    assert_eq!(spent(&log, &a).0.wall_ms, 3_000);
    log.ok(Command::Permit { id, answer: Answer::Once });
    log.clock += 1_000;
    assert_eq!(spent(&log, &a).0.wall_ms, 4_000);
    log.complete(&a);
    log.clock += 1_000_000;
    assert_eq!(spent(&log, &a).1.wall_ms, 4_000);
    // `/root` worked all the time.
    assert!(over(&log, "/root").is_some());
}

#[test]
fn time_in_which_no_engine_ran_is_no_work() {
    let mut log = Log::new(8);
    let a = log.spawn("/root", "a");
    log.clock += 2_000;
    log.say(&a, &[]);
    log.clock += 1_000_000;
    let mut log = log.restarted();
    log.ok(super::recovery::recover());
    assert_eq!(spent(&log, &a).0.wall_ms, 2_000);
    assert_eq!(log.restarted().state, log.state);
}
