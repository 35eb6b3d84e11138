//! The stored form of what came after the first release of the format: all of it is optional.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use serde_json::{Value, json};

use super::super::log::{call, directory, driver, id, path, started};
use super::{DIGEST, slot, text};
use crate::budget::{Budget, Caps};
use crate::context::Context;
use crate::event::{
    BranchEvent, DriverSpec, Event, Frozen, MailKind, Sender, SessionStarted, Worktree, WorldEvent,
};
use crate::id::{Label, MailId, TaskId, TurnId};
use crate::layout::RootIdentity;
use crate::lineage::{Dropped, Forked, LeftTask};
use crate::permission::Deed;
use crate::rule::{Bucket, Effect, Pattern, Rule};
use crate::shell::{ShellFate, ShellId};
use crate::usage::{Reports, Usage};

fn rule() -> Rule {
    let pattern = Pattern::parse("command:git push").unwrap();
    Rule { effect: Effect::Deny, pattern }
}

fn body_json() -> Value {
    json!({"digest": DIGEST, "bytes": 12})
}

pub(super) fn pinned() -> Vec<(Event, &'static str, &'static str, Value)> {
    world().into_iter().chain(agents()).chain(turns()).collect()
}

fn world() -> Vec<(Event, &'static str, &'static str, Value)> {
    let world = |event, kind, body| (Event::World(event), "world", kind, body);
    let forked = Forked {
        session: id("source"),
        position: 9,
        left: Dropped {
            agents: vec![path("/root/a")],
            agent_count: 1,
            mail: vec![(MailId(7), path("/root"))],
            mail_count: 1,
            tasks: vec![TaskId(1)],
            task_count: 1,
            delegated: vec![LeftTask {
                task: TaskId(2),
                title: "Fix it".to_owned(),
                owner: path("/root/fix-it"),
                settled: None,
                detached: true,
            }],
            delegated_count: 1,
        },
    };
    let fork = SessionStarted { forked: Some(forked), roots: Vec::new(), ..started(8) };
    let identified = |fate| Deed::Foreign { title: fate };
    vec![
        world(
            WorldEvent::SessionStarted(fork),
            "session-started",
            json!({"session": "root-session", "roots": [], "placement": "in-place",
                "capacity": 8, "mode": "ask", "plan_ceiling": false,
                "forked": {"session": "source", "position": 9, "left": {
                    "agents": ["/root/a"], "agent_count": 1, "mail": [[7, "/root"]],
                    "mail_count": 1, "tasks": [1], "task_count": 1, "delegated": [
                        {"task": 2, "title": "Fix it", "owner": "/root/fix-it",
                            "detached": true}],
                    "delegated_count": 1}}}),
        ),
        world(
            WorldEvent::Granted { grant: Deed::Edits(vec!["/a".to_owned(), "/b".to_owned()]) },
            "granted",
            json!({"grant": {"edits": ["/a", "/b"]}}),
        ),
        world(
            WorldEvent::Granted { grant: identified("open a page".to_owned()) },
            "granted",
            json!({"grant": {"foreign": {"title": "open a page"}}}),
        ),
        world(
            WorldEvent::GrantRevoked { grant: Deed::Read("/etc/hosts".to_owned()) },
            "grant-revoked",
            json!({"grant": {"read": "/etc/hosts"}}),
        ),
        world(
            WorldEvent::RulesSet { bucket: Bucket::Global, rules: vec![rule()] },
            "rules-set",
            json!({"bucket": "global",
                "rules": [{"effect": "deny", "pattern": "command:git push"}]}),
        ),
        world(
            WorldEvent::SessionRenamed { label: Some(Label::parse("nightly").unwrap()) },
            "session-renamed",
            json!({"label": "nightly"}),
        ),
        world(
            WorldEvent::SessionRenamed { label: None },
            "session-renamed",
            json!({"label": null}),
        ),
        world(
            WorldEvent::Captured {
                turn: TurnId(7),
                task: TaskId(1),
                slot: slot(),
                snapshot: text().digest,
            },
            "captured",
            json!({"turn": 7, "task": 1, "slot": "app", "snapshot": DIGEST}),
        ),
        world(
            WorldEvent::Restored {
                task: TaskId(1),
                slot: slot(),
                from: text().digest,
                to: text().digest,
            },
            "restored",
            json!({"task": 1, "slot": "app", "from": DIGEST, "to": DIGEST}),
        ),
    ]
}

fn agents() -> Vec<(Event, &'static str, &'static str, Value)> {
    let branch = |event, kind, body| (Event::Branch(event), "branch", kind, body);
    let identity = RootIdentity { inode: 7, birth: None };
    let worktree = Worktree {
        top: directory("/w/wt"),
        identity,
        common: directory("/w/app/.git"),
        common_identity: identity,
    };
    let caps = |turns| Caps { turns: Some(turns), ..Caps::default() };
    vec![
        branch(
            BranchEvent::AgentReserved {
                agent: id("agent-1"),
                path: path("/root/a"),
                role: None,
                driver: DriverSpec { reports: Reports::TokensAndCost, ..driver() },
                directory: directory("/w/wt"),
                message: None,
                call: None,
                task: None,
                frozen: Box::new(Frozen {
                    profile: Some(text()),
                    rules: vec![rule()],
                    budget: Budget { own: caps(1), tree: caps(2) },
                    seed: Some(text()),
                    worktree: Some(worktree),
                }),
            },
            "agent-reserved",
            json!({"agent": "agent-1", "path": "/root/a",
                "driver": {"kind": "playbook", "name": "book.toml",
                    "reports": "tokens-and-cost"},
                "directory": "/w/wt", "profile": body_json(),
                "rules": [{"effect": "deny", "pattern": "command:git push"}],
                "budget": {"own": {"turns": 1}, "tree": {"turns": 2}}, "seed": body_json(),
                "worktree": {"top": "/w/wt", "identity": {"inode": 7},
                    "common": "/w/app/.git", "common_identity": {"inode": 7}}}),
        ),
        branch(
            BranchEvent::HookNoted { path: path("/root/a"), context: text() },
            "hook-noted",
            json!({"path": "/root/a", "context": body_json()}),
        ),
        branch(
            BranchEvent::StopNoted { path: path("/root/a"), turn: TurnId(7) },
            "stop-noted",
            json!({"path": "/root/a", "turn": 7}),
        ),
        branch(
            BranchEvent::DriverNoted { path: path("/root/a"), body: text() },
            "driver-noted",
            json!({"path": "/root/a", "body": body_json()}),
        ),
        branch(
            BranchEvent::ShellStarted {
                path: path("/root/a"),
                turn: TurnId(7),
                shell: ShellId(1),
                command: "make".to_owned(),
            },
            "shell-started",
            json!({"path": "/root/a", "turn": 7, "shell": 1, "command": "make"}),
        ),
        branch(
            BranchEvent::ShellEnded {
                path: path("/root/a"),
                shell: ShellId(1),
                fate: ShellFate::Exited(2),
            },
            "shell-ended",
            json!({"path": "/root/a", "shell": 1, "fate": {"exited": 2}}),
        ),
        branch(
            BranchEvent::ShellEnded {
                path: path("/root/a"),
                shell: ShellId(1),
                fate: ShellFate::TimedOut,
            },
            "shell-ended",
            json!({"path": "/root/a", "shell": 1, "fate": "timed-out"}),
        ),
        branch(
            BranchEvent::FileChanged {
                path: path("/root/a"),
                turn: TurnId(7),
                file: directory("/w/app/x"),
                before: None,
                after: Some(text()),
            },
            "file-changed",
            json!({"path": "/root/a", "turn": 7, "file": "/w/app/x", "after": body_json()}),
        ),
        branch(
            BranchEvent::Reminded { tasks: BTreeSet::from([TaskId(1)]) },
            "reminded",
            json!({"tasks": [1]}),
        ),
    ]
}

fn turns() -> Vec<(Event, &'static str, &'static str, Value)> {
    let branch = |event, kind, body| (Event::Branch(event), "branch", kind, body);
    let usage = |cost_micros| Some(Usage { input: 3, output: 4, cost_micros });
    let said =
        |usage| BranchEvent::Said { turn: TurnId(7), body: text(), calls: vec![call("c1")], usage };
    vec![
        branch(
            BranchEvent::TurnStarted { path: path("/root/a"), context: vec![text()] },
            "turn-started",
            json!({"path": "/root/a", "context": [body_json()]}),
        ),
        branch(
            BranchEvent::Heard {
                turn: TurnId(7),
                from: Sender::Stead,
                mail: None,
                sort: MailKind::Note,
                body: text(),
            },
            "heard",
            json!({"turn": 7, "from": "stead", "sort": "NOTE", "body": body_json()}),
        ),
        branch(
            said(usage(None)),
            "said",
            json!({"turn": 7, "body": body_json(), "calls": ["c1"],
                "usage": {"input": 3, "output": 4}}),
        ),
        branch(
            said(usage(Some(5))),
            "said",
            json!({"turn": 7, "body": body_json(), "calls": ["c1"],
                "usage": {"input": 3, "output": 4, "cost_micros": 5}}),
        ),
        branch(
            BranchEvent::Compacted { turn: TurnId(7), through: 4, summary: text(), usage: None },
            "compacted",
            json!({"turn": 7, "through": 4, "summary": body_json()}),
        ),
    ]
}

#[test]
fn a_context_is_stored_as_people_write_it() {
    let three = Context::Turns(NonZeroU32::new(3).unwrap());
    assert_eq!(serde_json::to_value(three).unwrap(), json!("3"));
    assert_eq!(serde_json::from_value::<Context>(json!("all")).unwrap(), Context::All);
    assert!(serde_json::from_value::<Context>(json!("03")).is_err());
}
