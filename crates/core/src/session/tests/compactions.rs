//! A summary stands for the beginning of a conversation, and nothing is lost by it.

use super::log::{Log, body, path};
use crate::compaction::seen;
use crate::event::{BranchEvent, Envelope, Event, MailKind, Stream};
use crate::id::BodyRef;
use crate::refusal::RefusalKind;
use crate::session::{Command, live};

fn compact(log: &Log, at: &str, through: u64) -> Command {
    Command::Compact {
        path: path(at),
        turn: log.turn(at),
        through,
        summary: body("so far"),
        usage: None,
    }
}

fn stream(log: &Log, at: &str) -> Vec<Envelope> {
    let stream = Stream::Conversation(log.agent(at).id.clone());
    let ranges = live(log.state.tip, &log.state.world.rewinds);
    let is_live = |e: &&Envelope| ranges.iter().any(|range| range.contains(&e.position));
    log.log.iter().filter(|e| e.stream == stream).filter(is_live).cloned().collect()
}

fn shown(log: &Log, at: &str) -> (Option<BodyRef>, Vec<u64>) {
    let conversation = stream(log, at);
    let (summary, rest) = seen(&conversation);
    (summary, rest.map(|e| e.seq).collect())
}

fn turn(log: &mut Log) {
    log.send("person", "/root", true).unwrap();
    log.deliver("/root");
    log.say("/root", &[]);
}

/// Two turns that ended, and one that runs: six events.
fn talked() -> Log {
    let mut log = Log::new(8);
    log.say("/root", &[]);
    for _ in 0..2 {
        log.complete("/root");
        turn(&mut log);
    }
    log
}

#[test]
fn agents_36_a_result_that_comes_while_its_parent_compacts_is_heard_after_it() {
    let mut log = talked();
    log.spawn("/root", "a");
    log.complete("/root/a");
    let results = log.unread("/root");
    let command = compact(&log, "/root", 4);
    log.ok(command);
    assert_eq!(log.unread("/root"), results);
    assert_eq!(log.deliver("/root"), 1);
    let last = stream(&log, "/root").pop().unwrap();
    assert!(matches!(last.event, Event::Branch(BranchEvent::Heard { sort: MailKind::Result, .. })));
    let (summary, seqs) = shown(&log, "/root");
    assert_eq!((summary, seqs), (Some(body("so far")), vec![5, 6, 8]));
}

#[test]
fn a_cut_lies_where_a_turn_ended_and_removes_no_event() {
    let mut log = talked();
    assert_eq!(log.agent("/root").cuts.allowed(), [2, 4]);
    let before = stream(&log, "/root");
    for through in [0, 1, 3, 5, 6, 7, u64::MAX] {
        let command = compact(&log, "/root", through);
        assert_eq!(log.refused(command), RefusalKind::WrongState, "{through}");
    }
    let command = compact(&log, "/root", 2);
    log.ok(command);
    assert_eq!(shown(&log, "/root"), (Some(body("so far")), vec![3, 4, 5, 6]));
    assert_eq!(log.agent("/root").cuts.allowed(), [4]);
    let back = compact(&log, "/root", 2);
    assert_eq!(log.refused(back), RefusalKind::WrongState, "a cut never goes back");
    let command = compact(&log, "/root", 4);
    log.ok(command);
    assert_eq!(shown(&log, "/root").1, [5, 6]);
    assert_eq!(&stream(&log, "/root")[..before.len()], before);
    assert_eq!(log.restarted().state, log.state);
}

#[test]
fn a_summary_waits_for_no_call_and_a_rewind_gives_back_what_it_stands_for() {
    let mut log = talked();
    log.complete("/root");
    let point = log.state.tip;
    turn(&mut log);
    log.say("/root", &["c"]);
    let command = compact(&log, "/root", 4);
    assert_eq!(log.refused(command), RefusalKind::WrongState);
    let answer = Command::Answer {
        path: path("/root"),
        turn: log.turn("/root"),
        call: super::log::call("c"),
        body: body("x"),
    };
    log.ok(answer);
    let command = compact(&log, "/root", 6);
    log.ok(command);
    assert_eq!(log.agent("/root").cuts.allowed(), [0_u64; 0]);
    log.complete("/root");
    log.ok(Command::Rewind { to: point, stable: true });
    assert_eq!(shown(&log, "/root"), (None, vec![1, 2, 3, 4, 5, 6]));
    assert_eq!(log.agent("/root").cuts.allowed(), [2, 4, 6]);
}
