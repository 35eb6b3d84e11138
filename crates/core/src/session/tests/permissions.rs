//! The one queue of requests, and who is answered (A13, A15).

use super::log::{Log, path};
use crate::event::Outcome;
use crate::permission::{Answer, Deed, Mode};
use crate::refusal::RefusalKind;
use crate::session::{Command, Outcomes};

fn permit(id: crate::id::PermissionId, answer: Answer) -> Command {
    Command::Permit { id, answer }
}

fn tree() -> Log {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    log.spawn("/root", "b");
    log
}

#[test]
fn agents_59_allowed_for_the_session_is_allowed_for_everyone() {
    let mut log = tree();
    let first = log.asked("/root/a", "make");
    let same = log.asked("/root/b", "make");
    let other = log.asked("/root/b", "make install");
    let request = &log.state.branch.permissions[&first];
    assert_eq!((&request.path, request.subject.as_str()), (&path("/root/a"), "run make"));
    log.ok(permit(first, Answer::Session));
    let open: Vec<_> = log.state.branch.permissions.keys().copied().collect();
    assert_eq!(open, [other]);
    assert_eq!(log.refused(permit(same, Answer::Denied)), RefusalKind::NotFound);
    for at in ["/root", "/root/a", "/root/b"] {
        assert_eq!(log.ask(at, Deed::Command("make".to_owned())).unwrap(), Outcomes::Allowed);
        assert!(matches!(log.ask(at, Deed::Edit("make".to_owned())).unwrap(), Outcomes::Asked(_)));
    }
}

#[test]
fn agents_60_an_end_of_a_turn_withdraws_its_requests_only() {
    let mut log = tree();
    let gone = log.asked("/root/a", "make");
    let stays = log.asked("/root/b", "make");
    log.settle("/root/a", Outcome::Interrupted);
    let open: Vec<_> = log.state.branch.permissions.keys().copied().collect();
    assert_eq!(open, [stays]);
    for answer in [Answer::Once, Answer::Session, Answer::Denied] {
        assert_eq!(log.refused(permit(gone, answer)), RefusalKind::NotFound);
    }
    assert!(log.state.world.grants.is_empty());
    log.ok(permit(stays, Answer::Once));
    assert_eq!(log.refused(permit(stays, Answer::Once)), RefusalKind::NotFound);
    assert!(matches!(log.ask("/root/b", Deed::Command("make".to_owned())), Ok(Outcomes::Asked(_))));
}

#[test]
fn nothing_lifts_the_plan_ceiling_but_the_person() {
    let mut log = tree();
    let open = log.asked("/root/a", "make");
    log.ok(Command::SetMode { mode: Some(Mode::FullAuto), plan_ceiling: Some(true) });
    let deed = Deed::Edit("src/lib.rs".to_owned());
    assert_eq!(log.ask("/root/a", deed.clone()).unwrap_err().kind, RefusalKind::Denied);
    assert_eq!(log.refused(permit(open, Answer::Once)), RefusalKind::Denied);
    assert_eq!(log.refused(permit(open, Answer::Session)), RefusalKind::Denied);
    log.ok(Command::SetMode { mode: None, plan_ceiling: Some(false) });
    assert_eq!(log.ask("/root/a", deed).unwrap(), Outcomes::Allowed);
    log.ok(permit(open, Answer::Once));
    let length = log.log.len();
    log.ok(Command::SetMode { mode: Some(Mode::FullAuto), plan_ceiling: Some(false) });
    assert_eq!(log.log.len(), length, "the same mode again is no event");
}

#[test]
fn nobody_there_is_denied_at_once_with_what_helps() {
    let mut log = tree();
    let turn = log.turn("/root/a");
    let ask = Command::Ask {
        path: path("/root/a"),
        turn,
        deed: Deed::Command("make".to_owned()),
        zones: Vec::new(),
        subject: "run\nmake \u{1b}[2J".to_owned(),
        attended: false,
    };
    let refusal = log.refusal(ask);
    assert_eq!(refusal.kind, RefusalKind::Denied);
    assert_eq!(refusal.line, "run make [2J: nobody is there to ask");
    assert!(refusal.hint.unwrap().contains("--mode"));
    let id = log.asked("/root/a", "make");
    assert_eq!(log.refused(permit(id, Answer::Withdrawn)), RefusalKind::InvalidArgument);
    log.ok(permit(id, Answer::Denied));
}
