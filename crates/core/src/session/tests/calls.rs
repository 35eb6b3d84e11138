//! Calls of tools and their results in a conversation.

use super::log::{Log, body, call, path};
use crate::event::{BranchEvent, CallFate, Outcome};
use crate::refusal::RefusalKind;
use crate::session::Command;

fn answer(log: &Log, at: &str, name: &str) -> Command {
    Command::Answer { path: path(at), turn: log.turn(at), call: call(name), body: body("done") }
}

fn fates(log: &Log, at: &str) -> Vec<(String, CallFate)> {
    log.conversation(at)
        .into_iter()
        .filter_map(|event| match event {
            BranchEvent::Unanswered { call, fate, .. } => Some((call.to_string(), fate)),
            _ => None,
        })
        .collect()
}

#[test]
fn results_come_in_the_order_of_the_calls() {
    let mut log = Log::new(8);
    log.say("/root", &["a", "b"]);
    let (first, second) = (answer(&log, "/root", "a"), answer(&log, "/root", "b"));
    assert_eq!(log.refused(second.clone()), RefusalKind::WrongState);
    let turn = log.turn("/root");
    let say =
        Command::Say { path: path("/root"), turn, body: body("x"), calls: Vec::new(), usage: None };
    log.send("person", "/root", true).unwrap();
    let boundary = Command::Deliver { path: path("/root"), turn };
    for early in [&say, &boundary] {
        assert_eq!(log.refused(early.clone()), RefusalKind::WrongState);
    }
    log.ok(first.clone());
    assert_eq!(log.refused(first), RefusalKind::WrongState);
    assert_eq!(log.refused(boundary.clone()), RefusalKind::WrongState);
    log.ok(second);
    log.ok(boundary);
    log.ok(say);
    let twice = Command::Say {
        path: path("/root"),
        turn,
        body: body("x"),
        calls: vec![call("c"), call("c")],
        usage: None,
    };
    assert_eq!(log.refused(twice), RefusalKind::InvalidArgument);
}

#[test]
fn agents_83_field_ses_04_a_call_without_a_result_says_what_is_known_of_it() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    log.say("/root/a", &["done", "begun", "later", "last"]);
    let first = answer(&log, "/root/a", "done");
    log.ok(first);
    let mut log = log.restarted();
    let length = log.conversation("/root/a").len();
    log.ok(super::recovery::recover());
    assert_eq!(
        fates(&log, "/root/a"),
        [
            ("begun".to_owned(), CallFate::Unknown),
            ("later".to_owned(), CallFate::NotStarted),
            ("last".to_owned(), CallFate::NotStarted),
        ]
    );
    // Nothing was cut, and the next turn begins with a whole conversation.
    assert_eq!(log.conversation("/root/a").len(), length + 3);
    log.send("person", "/root/a", true).unwrap();
    log.deliver("/root/a");
    log.say("/root/a", &["begun"]);
    log.settle("/root/a", Outcome::Interrupted);
    assert_eq!(fates(&log, "/root/a").len(), 4);
}
