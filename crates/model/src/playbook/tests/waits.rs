//! Waits: what counts, how often, and how they end.

use insta::assert_snapshot;
use stead_core::event::MailKind;

use super::stage::Stage;

/// Says the next message and answers the one call in it.
fn step(stage: &mut Stage, text: &str) -> String {
    let reply = stage.say();
    match reply.calls.first() {
        None => reply.text,
        Some(call) => {
            stage.answer(call, text, false);
            call.tool.clone()
        }
    }
}

#[test]
fn a_wait_ends_when_each_has_reported() {
    let mut stage = Stage::of_steps(
        r#"{ call = { tool = "agent", as = "a" } },
           { wait = ["{{a}}", "b"], as = "reports" },
           { say = "{{reports}}" }"#,
    );
    stage.open("go");
    assert_eq!(step(&mut stage, "/root/a\n"), "agent");
    // Heard before the wait begins, and of others, and of the wrong sort.
    stage.result("/root/b", "B").result("/root/c", "C").mail("/root/a", "not a result");
    assert_eq!(step(&mut stage, "mailbox"), "wait_agent");
    stage.result("/root/a", "A");
    assert_eq!(step(&mut stage, ""), "A\n\nB");
}

#[test]
fn a_result_counts_for_one_wait() {
    let mut stage = Stage::of_steps(
        r#"{ wait = ["a"], as = "first" }, { wait = ["a"], as = "second" },
           { say = "{{first}} {{second}}" }"#,
    );
    stage.open("go").result("/root/a", "one");
    assert_eq!(step(&mut stage, "mailbox"), "wait_agent");
    stage.result("/root/a", "two");
    assert_eq!(step(&mut stage, ""), "one two");
}

#[test]
fn a_wait_can_be_for_any_two() {
    let mut stage = Stage::of_steps(r#"{ wait = 2, as = "both" }, { say = "{{both}}" }"#);
    stage.hear("/root/x", MailKind::Result, "X", true);
    stage.hear("person", MailKind::User, "go", false);
    assert_eq!(step(&mut stage, "timeout"), "wait_agent");
    stage.result("/root/y", "Y").result("/root/z", "Z");
    assert_eq!(step(&mut stage, ""), "X\n\nY");
}

#[test]
fn mail_can_be_waited_for_and_the_assignment_is_not_mail() {
    let text = r#"
        [[agent]]
        path = "/root/a"
        [[agent.turn]]
        step = [{ wait_mail = 1, as = "go" }, { wait_mail = ["/root/b"], as = "b" }, { say = "{{go}} {{b}}" }]
    "#;
    let mut stage = Stage::new(text, "/root/a");
    stage.hear("/root", MailKind::Mail, "wait for it", true);
    let alone = stage.ask().unwrap();
    assert_eq!(alone.calls[0].tool, "wait_agent");
    assert_eq!(alone.calls[0].id.as_str(), "t1-s1-1");
    // Whether mail comes with the assignment or after a wait, it counts.
    stage.hear("person", MailKind::User, "GO", false).mail("/root/c", "no");
    assert_eq!(step(&mut stage, "mailbox"), "wait_agent");
    stage.mail("/root/b", "B");
    assert_eq!(step(&mut stage, ""), "GO B");
}

#[test]
fn a_wait_gives_up() {
    let mut stage = Stage::of_steps("{ wait = [\"a\"], at_most = 2 }, { say = \"done\" }");
    stage.open("go").result("/root/b", "B");
    assert_eq!(step(&mut stage, "timeout"), "wait_agent");
    // Also a call without a result is one.
    stage.say();
    assert_snapshot!(stage.error(), @r"
    /root called wait_agent 2 times and has not heard all that the wait in line 5 of the playbook is for; see with `stead tree` what the others do, or raise the step's at_most
    ");
    stage.result("/root/a", "A");
    assert_eq!(step(&mut stage, ""), "done");
}

#[test]
fn a_wait_for_an_agent_that_was_not_made_says_so() {
    let mut stage = Stage::of_steps(
        "{ call = { tool = \"agent\", as = \"a\" } }, { wait = [\"{{a}}\"] }, { say = \"done\" }",
    );
    let call = stage.open("go").say().calls.remove(0);
    assert_snapshot!(stage.error(), @r#"
    the wait in line 5 of the playbook is for "{{a}}", which is no agent's path here: an address may not be empty; see what the call that should have given it came to
    "#);
    stage.answer(&call, "no room for another agent", true);
    assert_snapshot!(stage.error(), @r#"
    the wait in line 5 of the playbook is for "{{a}}", which is no agent's path here: "no room for another agent" has the character ' '; only a to z, 0 to 9, '_' and '-' may stand in an address; see what the call that should have given it came to
    "#);
}
