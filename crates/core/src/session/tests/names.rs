//! Which path a spawn gets, and how long it keeps it (A3–A5).

use super::log::{Log, body, call, directory, id, path, root, start, started};
use crate::delegated::Admission;
use crate::event::Outcome;
use crate::id::BodyRef;
use crate::refusal::RefusalKind;
use crate::roster::Standing;
use crate::session::{Command, Outcomes};

#[test]
fn agents_1_agents_2_agents_8_agents_15_each_spawn_is_a_new_conversation_with_a_path_of_its_own() {
    let mut log = Log::new(8);
    let label = "Review code-block copy";
    assert_eq!(log.spawn("/root", label), "/root/review-code-block-copy");
    log.complete("/root/review-code-block-copy");
    assert_eq!(log.spawn("/root", label), "/root/review-code-block-copy-2");
    assert_eq!(log.spawn("/root", label), "/root/review-code-block-copy-3");
    let first = log.agent("/root/review-code-block-copy");
    let second = log.agent("/root/review-code-block-copy-2");
    assert_ne!(first.id, second.id);
    assert_eq!((first.turns, first.standing), (1, Standing::Idle));

    assert_eq!(log.spawn("/root", "a/b"), "/root/a-b");
    assert_eq!(log.spawn("/root/a-b", "t"), "/root/a-b/t");
    assert_eq!(log.spawn("/root/review-code-block-copy", "t"), "/root/review-code-block-copy/t");
}

#[test]
fn agents_3_agents_4_agents_25_a_reservation_takes_its_path_and_is_seen_by_nobody() {
    let mut log = Log::new(8);
    let a = log.reserve("/root", "x");
    let b = log.reserve("/root", "x");
    assert_eq!((a.as_str(), b.as_str()), ("/root/x", "/root/x-2"));
    let shown: Vec<_> = log.state.branch.roster.published().map(|a| a.path.as_str()).collect();
    assert_eq!(shown, ["/root"]);
    assert_eq!(log.send("/root", "/root/x", false).unwrap_err().kind, RefusalKind::UnknownAgent);
    assert!(crate::session::interrupt(&log.state, None, "/root/x").is_err());

    log.ok(Command::Refuse { path: a.clone(), reason: "no\nroom".to_owned() });
    let refusal = log.send("/root", "/root/x", false).unwrap_err();
    assert_eq!(refusal.line, "there is no agent /root/x: its spawn was refused: no room");
    log.publish(&b);
    assert_eq!(log.reserve("/root", "x"), a);
    log.publish(&a);
    assert!(log.send("/root", "/root/x", false).is_ok() && log.send("/root", "x-2", false).is_ok());
    assert_eq!(log.state.branch.roster.published().count(), 3);
    // What was published cannot be published again, nor taken back.
    assert_eq!(
        log.refused(Command::Publish { path: a.clone(), admission: Admission::default() }),
        RefusalKind::WrongState
    );
    let refuse = Command::Refuse { path: a, reason: "late".to_owned() };
    assert_eq!(log.refused(refuse), RefusalKind::WrongState);
}

#[test]
fn agents_16_an_agent_whose_first_request_failed_keeps_its_path() {
    let mut log = Log::new(8);
    log.spawn("/root", "x");
    log.settle("/root/x", Outcome::Errored);
    assert_eq!(log.spawn("/root", "x"), "/root/x-2");
    assert!(log.send("/root", "x", true).is_ok());
}

#[test]
fn agents_19_a_restart_frees_no_path() {
    let mut log = Log::new(8);
    log.spawn("/root", "x");
    log.complete("/root/x");
    let mut log = log.restarted();
    assert_eq!(log.spawn("/root", "x"), "/root/x-2");
}

#[test]
fn agents_20_a_spawn_that_cannot_be_takes_nothing() {
    let mut log = Log::new(1);
    let with = |message, agent, call_of: Option<&str>, name: &str| Command::Reserve {
        caller: path("/root"),
        agent: id(agent),
        call: call_of.map(call),
        task_name: name.to_owned(),
        role: None,
        message,
        directory: Some(directory("/w/app/sub")),
        driver: None,
        frozen: Box::default(),
    };
    let empty = BodyRef { bytes: 0, ..body("") };
    let huge = BodyRef { bytes: u64::MAX, ..body("x") };
    assert_eq!(log.refused(with(empty, "a", None, "x")), RefusalKind::InvalidArgument);
    assert_eq!(log.refused(with(huge, "a", None, "x")), RefusalKind::InvalidArgument);
    assert_eq!(log.refused(with(body("x"), "root-session", None, "x")), RefusalKind::AlreadyExists);
    let mut stranger = log.reserve_command("/root", "x");
    if let Command::Reserve { caller, .. } = &mut stranger {
        *caller = path("/root/nobody");
    }
    assert_eq!(log.refused(stranger), RefusalKind::UnknownAgent);
    log.ok(with(body("x"), "a", None, "x"));

    assert_eq!(log.refused(with(body("x"), "b", None, "y")), RefusalKind::NoRoom);
    assert_eq!(
        log.state.branch.roster.at(&path("/root/x")).unwrap().directory,
        directory("/w/app/sub")
    );
}

#[test]
fn a_start_that_cannot_be_leaves_an_empty_log() {
    let mut log = Log::default();
    let mut bad = vec![started(0), started(1025)];
    for roots in [
        vec![],
        vec![root("a", "/w/app"), root("A", "/v")],
        vec![root("a", "/w"), root("b", "/w/app")],
        vec![root("a", "/w"), root("a2", "/w")],
    ] {
        bad.push(crate::event::SessionStarted { roots, ..started(8) });
    }
    for started in bad {
        assert_eq!(log.refused(start(started)), RefusalKind::InvalidArgument);
    }
    assert_eq!(
        log.refused(Command::Publish { path: path("/root"), admission: Admission::default() }),
        RefusalKind::NotFound
    );
    log.ok(start(started(8)));
    assert_eq!(log.refused(start(started(8))), RefusalKind::AlreadyExists);
    assert_eq!(log.turn("/root").0, 4);
}

#[test]
fn a_path_as_deep_as_it_may_be_refuses_the_next_spawn() {
    let mut log = Log::new(8);
    let mut at = "/root".to_owned();
    let name = "n".repeat(40);
    while at.len() + 41 <= crate::path::LONGEST_PATH {
        let child = log.spawn(&at, &name);
        if at != "/root" {
            log.complete(&at);
        }
        at = child;
    }
    let command = log.reserve_command(&at, &name);
    assert_eq!(log.refused(command), RefusalKind::InvalidArgument);
}

#[test]
fn the_same_call_again_is_the_same_agent() {
    let mut log = Log::new(2);
    let again = |agent: &str, message: &str| Command::Reserve {
        caller: path("/root"),
        agent: id(agent),
        call: Some(call("c1")),
        task_name: message.to_owned(),
        role: None,
        message: body(message),
        directory: None,
        driver: None,
        frozen: Box::default(),
    };
    let first = log.ok(again("a", "x"));
    let Outcomes::Reserved { path: at, again: false, .. } = first else { panic!("{first:?}") };
    let same = Outcomes::Reserved { path: at.clone(), agent: id("a"), again: true, task: None };
    assert_eq!(log.ok(again("b", "other")), same);
    log.publish(&at);
    log.complete("/root/x");
    log.complete("/root");
    let length = log.log.len();
    assert_eq!(log.ok(again("c", "")), same);
    assert_eq!(log.log.len(), length);
    // Another caller's call of that name is another call, and one whose turn has ended is late.
    log.send("/root", "x", true).unwrap();
    let mut other = again("d", "y");
    if let Command::Reserve { caller, .. } = &mut other {
        *caller = at;
    }
    assert!(matches!(log.ok(other), Outcomes::Reserved { again: false, .. }));
    let mut late = again("e", "z");
    if let Command::Reserve { call: c, .. } = &mut late {
        *c = Some(call("c2"));
    }
    assert_eq!(log.refused(late), RefusalKind::WrongState);
}

#[test]
fn a_child_has_what_its_parent_has_unless_it_was_given_more() {
    let mut log = Log::new(8);
    let spawn = |log: &mut Log, caller: &str, role: Option<&str>, dir: Option<&str>| {
        let mut command = log.reserve_command(caller, "x");
        if let Command::Reserve { role: r, directory: d, .. } = &mut command {
            *r = role.map(|text| crate::id::RoleName::parse(text).unwrap());
            *d = dir.map(directory);
        }
        let Outcomes::Reserved { path, .. } = log.ok(command) else { panic!() };
        log.publish(&path);
        path.to_string()
    };
    let a = spawn(&mut log, "/root", Some("reviewer"), Some("/w/app/sub"));
    let b = spawn(&mut log, &a, None, None);
    let c = spawn(&mut log, &b, Some("worker"), Some("/w/app"));
    let facts = |at: &str| {
        let agent = log.agent(at);
        (agent.role.as_ref().unwrap().as_str().to_owned(), agent.directory.clone())
    };
    assert_eq!(facts(&a), ("reviewer".to_owned(), directory("/w/app/sub")));
    assert_eq!(facts(&b), facts(&a));
    assert_eq!(facts(&c), ("worker".to_owned(), directory("/w/app")));
    assert_eq!(log.agent(&c).driver, log.agent("/root").driver);
}

#[test]
fn an_id_that_had_a_conversation_is_never_given_again() {
    let mut log = Log::new(8);
    log.complete("/root");
    let point = log.state.tip;
    log.spawn("/root", "x");
    log.complete("/root/x");
    let used = log.agent("/root/x").id.clone();
    let with = |agent| Command::Reserve {
        caller: path("/root"),
        agent,
        call: None,
        task_name: "x".to_owned(),
        role: None,
        message: body("m"),
        directory: None,
        driver: None,
        frozen: Box::default(),
    };
    assert_eq!(log.refused(with(used.clone())), RefusalKind::AlreadyExists);
    log.ok(Command::Rewind { to: point, stable: true });
    assert_eq!(log.refused(with(used)), RefusalKind::AlreadyExists);
    log.ok(with(id("fresh")));
}
