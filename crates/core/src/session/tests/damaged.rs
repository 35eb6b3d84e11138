//! Records that contradict those before them are passed over, one by one (agents_45).

use super::log::{Log, directory, driver, id, path};
use crate::event::{BranchEvent, Event, Stream};
use crate::session::Planned;

fn record(agent: &str, at: &str) -> Planned {
    let event = BranchEvent::AgentReserved {
        agent: id(agent),
        path: path(at),
        role: None,
        driver: driver(),
        directory: directory("/w/app"),
        message: None,
        call: None,
        task: None,
        frozen: Box::default(),
    };
    Planned { stream: Stream::Control, event: Event::Branch(event) }
}

fn published(at: &str) -> Planned {
    let event = BranchEvent::AgentPublished { path: path(at), directory: None };
    Planned { stream: Stream::Control, event: Event::Branch(event) }
}

#[test]
fn bad_records_are_passed_over_with_all_below_them_and_the_others_live() {
    let mut log = Log::new(8);
    log.spawn("/root", "a");
    let good = log.agent("/root/a").clone();
    let known = good.id.as_str();
    for planned in [
        record("second", "/root/a"),
        published("/root/a"),
        record(known, "/root/b"),
        published("/root/b"),
        record("orphan", "/root/none/x"),
        published("/root/none/x"),
        record("below", "/root/none/x/y"),
        record("root-again", "/root"),
        record("fine", "/root/c"),
        published("/root/c"),
    ] {
        log.append(planned);
    }
    for log in [log.restarted(), log] {
        assert_eq!(log.agent("/root/a"), &good, "the first of two is the agent");
        let paths: Vec<&str> = log.state.branch.roster.all().map(|a| a.path.as_str()).collect();
        assert_eq!(paths, ["/root", "/root/a", "/root/c"]);
        let passed: Vec<String> = log
            .state
            .branch
            .roster
            .passed_over()
            .iter()
            .map(|bad| format!("{}: {}", bad.path, bad.why))
            .collect();
        assert_eq!(
            passed,
            [
                "/root/a: another agent has the address".to_owned(),
                format!("/root/b: /root/a has the id {known}"),
                "/root/none/x: there is no /root/none".to_owned(),
                "/root/none/x/y: there is no /root/none/x".to_owned(),
                "/root: another agent has the address".to_owned(),
            ]
        );
    }
}
