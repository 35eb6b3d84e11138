//! Going back: what is dropped and what never is (A11).

use super::log::{Log, path, task, to};
use crate::event::Outcome;
use crate::permission::{Answer, Mode};
use crate::refusal::RefusalKind;
use crate::roster::Standing;
use crate::session::{Command, live};

fn rewind(to: u64) -> Command {
    Command::Rewind { to, stable: true }
}

/// A session at rest, with an agent, a task and a grant after the point that is given.
fn rested() -> (Log, u64) {
    let mut log = Log::new(8);
    log.complete("/root");
    let point = log.state.tip;
    log.send("person", "/root", true).unwrap();
    log.deliver("/root");
    log.spawn("/root", "x");
    log.write("/root/x", &[task("one"), task("two")]).unwrap();
    let id = log.asked("/root/x", "make");
    log.ok(Command::Permit { id, answer: Answer::Session });
    log.settle("/root/x", Outcome::Errored);
    log.complete("/root");
    (log, point)
}

#[test]
fn agents_18_after_a_rewind_the_name_is_free() {
    let (mut log, point) = rested();
    log.ok(rewind(point));
    let refusal = log.send("person", "/root/x", true).unwrap_err();
    assert_eq!(refusal.line, "there is no agent /root/x: a rewind left it behind");
    assert_eq!(log.spawn("/root", "x"), "/root/x");
    assert!(log.send("person", "/root/x", true).is_ok());
    assert_eq!(log.agent("/root/x").turns, 1);
}

#[test]
fn a_rewind_drops_agents_mail_and_tasks_but_nothing_of_the_world() {
    let (mut log, point) = rested();
    log.ok(Command::SetMode { mode: Some(Mode::Edits), plan_ceiling: None });
    // Even a rewind to the tip drops them.
    for to in [log.state.tip, point] {
        log.ok(rewind(to));
        let branch = &log.state.branch;
        assert_eq!(branch.roster.all().count(), 1);
        assert!(branch.tasks.tasks.is_empty() && branch.permissions.is_empty());
        assert!(log.unread("/root").is_empty());
        assert_eq!(log.agent("/root").standing, Standing::Idle);
    }
    assert_eq!(log.state.world.grants.len(), 1);
    assert_eq!(log.state.world.mode, Some(Mode::Edits));
    // Task numbers go on, and the old ones say what became of them.
    let refusal = log.write("person", &[super::log::change(1)]).unwrap_err();
    assert_eq!(refusal.line, "there is no task 1 any more: a rewind left it behind");
    assert_eq!(log.write("person", &[task("three")]).unwrap(), [3]);
    assert_eq!(log.restarted().state, log.state);
}

#[test]
fn a_rewind_needs_rest_and_a_place_to_go() {
    let (mut log, point) = rested();
    for to in [0, 4, log.state.tip + 1, u64::MAX] {
        assert_eq!(log.refused(rewind(to)), RefusalKind::NotFound);
    }
    assert_eq!(log.refused(Command::Rewind { to: point, stable: false }), RefusalKind::NotFound);
    // Inside the turn that followed the point.
    assert_eq!(log.refused(rewind(point + 2)), RefusalKind::WrongState);
    assert_eq!(log.refused(rewind(log.state.tip - 1)), RefusalKind::WrongState);
    log.send("person", "/root/x", true).unwrap();
    assert_eq!(log.refused(rewind(point)), RefusalKind::WrongState);
    log.settle("/root/x", Outcome::Interrupted);
    let half = log.reserve("/root", "half");
    assert_eq!(log.refused(rewind(point)), RefusalKind::WrongState);
    log.ok(Command::Refuse { path: half, reason: "no".to_owned() });
    log.ok(rewind(5));
    assert_eq!(log.agent("/root").last, None);
    // A branch that was left behind can be gone back to.
    log.ok(rewind(point));
    assert!(log.agent("/root").settled().is_ok());
}

#[test]
fn the_way_back_from_the_tip() {
    assert_eq!(live(9, &[]), [1..=9]);
    assert_eq!(live(9, &[(8, 5)]), [1..=5, 9..=9]);
    assert_eq!(live(20, &[(8, 5), (15, 7)]), [1..=7, 16..=20]);
    assert_eq!(live(20, &[(8, 5), (15, 12)]), [1..=5, 9..=12, 16..=20]);
    assert_eq!(live(u64::MAX, &[(u64::MAX, u64::MAX)]).len(), 2);
}

#[test]
fn tasks_are_gone_after_a_rewind() {
    let (mut log, point) = rested();
    log.ok(rewind(point));
    assert!(log.state.branch.tasks.tasks.is_empty());
    assert!(log.write("/root", &[to("/root/x", task("for one who is gone"))]).is_err());
    assert!(log.state.branch.roster.find(&path("/root/x")).is_err());
}
