//! Rules and grants of a session, the label, and captures of copies.

use super::log::{Log, body, id, path};
use crate::delegated::FIRST_TASK;
use crate::event::{Frozen, Outcome};
use crate::id::{Label, SessionId, SlotName};
use crate::permission::{Answer, Deed, Mode};
use crate::refusal::RefusalKind;
use crate::rule::{Bucket, Effect, Pattern, Rule};
use crate::session::{Command, Outcomes};

fn rule(effect: Effect, pattern: &str) -> Rule {
    Rule { effect, pattern: Pattern::parse(pattern).unwrap() }
}

fn make() -> Deed {
    Deed::Command("make".to_owned())
}

#[test]
fn agents_61_what_a_rule_denies_is_not_asked_and_not_permitted() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    let open = log.asked("/root/a", "make");
    log.ok(Command::Permit { id: open, answer: Answer::Session });
    let open = log.asked("/root/a", "make x");
    log.ok(Command::SetMode { mode: Some(Mode::FullAuto), plan_ceiling: None });
    let rules = vec![rule(Effect::Deny, "command:make")];
    log.ok(Command::SetRules { bucket: Bucket::Global, rules: rules.clone() });
    let refusal = log.ask("/root/a", make()).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Denied);
    assert!(refusal.line.contains("deny command:make"), "{}", refusal.line);
    for answer in [Answer::Once, Answer::Session] {
        assert_eq!(log.refused(Command::Permit { id: open, answer }), RefusalKind::Denied);
    }
    let length = log.log.len();
    log.ok(Command::SetRules { bucket: Bucket::Global, rules });
    assert_eq!(log.log.len(), length, "the same rules again are no event");
    log.ok(Command::SetRules { bucket: Bucket::Global, rules: Vec::new() });
    assert_eq!(log.ask("/root/a", make()).unwrap(), Outcomes::Allowed);
    let delegated = Command::SetRules { bucket: Bucket::Delegated, rules: Vec::new() };
    assert_eq!(log.refused(delegated), RefusalKind::InvalidArgument);
}

#[test]
fn a_role_narrows_everyone_below_its_agent() {
    let mut log = Log::new(8);
    let command = match log.reserve_command("/root", "a") {
        Command::Reserve {
            caller,
            agent,
            call,
            task_name,
            role,
            message,
            directory,
            driver,
            ..
        } => {
            let rules = vec![rule(Effect::Deny, "command:make")];
            let profile = Some(body("profile"));
            let frozen = Box::new(Frozen { profile, rules, ..Frozen::default() });
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
    log.ok(command);
    log.publish(&path("/root/a"));
    log.spawn("/root/a", "b");
    for at in ["/root/a", "/root/a/b"] {
        assert_eq!(log.ask(at, make()).unwrap_err().kind, RefusalKind::Denied);
        assert_eq!(log.agent(at).frozen.profile, Some(body("profile")), "frozen and inherited");
    }
    assert!(matches!(log.ask("/root", make()), Ok(Outcomes::Asked(_))));
}

#[test]
fn a_grant_that_is_taken_back_is_asked_again() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    let id = log.asked("/root/a", "make");
    log.ok(Command::Permit { id, answer: Answer::Session });
    assert_eq!(log.ask("/root", make()).unwrap(), Outcomes::Allowed);
    log.ok(Command::Revoke { grant: make() });
    assert!(matches!(log.ask("/root", make()), Ok(Outcomes::Asked(_))));
    assert_eq!(log.refused(Command::Revoke { grant: make() }), RefusalKind::NotFound);
    assert_eq!(log.restarted().state, log.state);
}

#[test]
fn agents_85_a_label_changes_and_is_nobodys_address() {
    let mut log = Log::new(8);
    let label = || Label::parse("nightly").unwrap();
    log.ok(Command::Rename { label: Some(label()) });
    assert_eq!(log.state.world.label, Some(label()));
    let length = log.log.len();
    log.ok(Command::Rename { label: Some(label()) });
    assert_eq!(log.log.len(), length);
    for target in ["nightly", "/nightly", "/root/nightly"] {
        let refusal = log.send("person", target, true).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::UnknownAgent);
    }
    log.ok(Command::Rename { label: None });
    assert_eq!(log.restarted().state.world.label, None);
}

fn line(log: &Log, id: &SessionId) -> String {
    log.state.branch.roster.find_id(id).unwrap_err().line
}

#[test]
fn a_gone_id_says_what_became_of_it() {
    let mut log = Log::new(8);
    log.complete("/root");
    let point = log.state.tip;
    log.send("person", "/root", true).unwrap();
    log.spawn("/root", "x");
    let gone = log.agent("/root/x").id.clone();
    assert!(log.state.branch.roster.find_id(&gone).is_ok());
    log.complete("/root/x");
    log.deliver("/root");
    log.complete("/root");
    let half = log.reserve("/root", "half");
    let refused = log.state.branch.roster.at(&half).unwrap().id.clone();
    log.ok(Command::Refuse { path: half, reason: "no room".to_owned() });
    assert!(line(&log, &refused).ends_with("/root/half, is gone: its spawn was refused: no room"));
    log.ok(Command::Rewind { to: point, stable: true });
    assert!(line(&log, &gone).contains("/root/x, is gone: a rewind left it behind"));
    assert!(line(&log, &id("never")).starts_with("there is no agent"));
    assert_eq!(
        {
            log.send("person", "/root", true).unwrap();
            log.spawn("/root", "x")
        },
        "/root/x"
    );
    assert!(line(&log, &gone).contains("a rewind left it behind"));
}

#[test]
fn copies_are_captured_once_a_turn_and_restored_at_rest_with_a_way_back() {
    let mut log = Log::in_copies(8);
    let slot = || SlotName::parse("app").unwrap();
    let held = |text: &str| body(text).digest;
    let turn = log.turn("/root");
    let capture = |turn, text| Command::Capture {
        turn,
        task: FIRST_TASK,
        slot: slot(),
        snapshot: held(text),
    };
    let restore = |from, to| Command::Restore {
        task: FIRST_TASK,
        slot: slot(),
        from: held(from),
        to: held(to),
    };
    log.ok(capture(turn, "one"));
    assert_eq!(log.refused(capture(turn, "two")), RefusalKind::AlreadyExists);
    assert_eq!(log.refused(restore("now", "one")), RefusalKind::WrongState);
    log.complete("/root");
    let point = log.state.tip;
    assert_eq!(log.refused(capture(turn, "two")), RefusalKind::WrongState);
    log.send("person", "/root", true).unwrap();
    let second = log.turn("/root");
    log.ok(capture(second, "two"));
    log.deliver("/root");
    log.settle("/root", Outcome::Completed);
    let tip = log.state.tip;
    let held_at = |log: &Log, at| log.state.world.held_at(FIRST_TASK, &slot(), at);
    assert_eq!((held_at(&log, point), held_at(&log, tip)), (Some(held("two")), None));
    assert_eq!(log.refused(restore("three", "never")), RefusalKind::NotFound);
    log.ok(Command::Rewind { to: point, stable: true });
    log.ok(restore("three", "two"));
    // Going back is undone by going to where it came from.
    assert_eq!(held_at(&log, tip), Some(held("three")));
    log.ok(Command::Rewind { to: tip, stable: true });
    log.ok(restore("two", "three"));
    assert_eq!(log.restarted().state, log.state);
}
