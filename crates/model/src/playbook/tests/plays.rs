//! Turns, calls, branches, and conversations in every state.

use insta::assert_snapshot;
use serde_json::json;
use stead_core::event::MailKind;
use stead_core::path::AgentPath;
use stead_core::usage::Usage;

use super::stage::Stage;
use crate::ModelError;
use crate::message::{Message, Purpose};

#[test]
fn the_first_agent_and_the_first_turn_that_fit_are_played() {
    let text = r#"
        [[agent]]
        path = "/root/fix-*"
        [[agent.turn]]
        when = "login"
        step = [{ say = "{{path}} repairs: {{message}}" }]
        [[agent.turn]]
        step = [{ say = "something else" }]
        [[agent]]
        path = "/root/**"
        [[agent.turn]]
        step = [{ say = "deep" }]
    "#;
    let said = |agent, message| Stage::new(text, agent).open(message).say().text;
    assert_eq!(said("/root/fix-a", "the login test"), "/root/fix-a repairs: the login test");
    assert_eq!(said("/root/fix-a", "Login"), "something else");
    assert_eq!(said("/root/fix-a/b", "login"), "deep");
    assert_eq!(said("/root/x/y/z", "login"), "deep");
    assert_snapshot!(Stage::new(text, "/root").open(&"é".repeat(70)).error(), @r#"
    no agent of the playbook is for /root, which heard "éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé…"; add an [[agent]] with path = "/root"
    "#);
}

#[test]
fn a_message_that_no_turn_answers_is_named() {
    let text = "[[agent]]\npath = \"**\"\n[[agent.turn]]\nwhen = \"a\"\nstep = [{ say = \"b\" }]";
    let mut stage = Stage::new(text, "/root/x");
    assert_snapshot!(stage.error(), @r"
    /root/x has heard nothing yet
    ");
    assert_snapshot!(stage.open("do it").error(), @r#"
    no turn of the playbook's agent "**" answers /root/x, which heard "do it"; add a turn with a fitting `when`, or a last one without
    "#);
    assert!(matches!(stage.ask(), Err(ModelError::NoReply(_))));
}

#[test]
fn results_are_named_and_branched_on() {
    let steps = r#"
        { label = "again", call = { tool = "bash", as = "check", with = { command = "cargo test" } } },
        { if = { result = "check", lacks = "FAILED" }, goto = "done" },
        { say = "repairing", call = [
            { tool = "edit", with = { path = "src/lib.rs", lines = ["{{check}}"] } },
            { tool = "read", as = "file" },
        ] },
        { goto = "again", at_most = 2 },
        { say = "gave up: {{check}} {{file}}" },
        { label = "done", say = "it works: {{check}}" },
    "#;
    let check = |stage: &mut Stage| stage.say().calls.remove(0);
    let mut stage = Stage::of_steps(steps);
    stage.open("go");
    let call = check(&mut stage);
    assert_eq!((call.tool.as_str(), call.id.as_str()), ("bash", "t1-s1-1"));
    assert_eq!(call.arguments, json!({ "command": "cargo test" }));
    stage.answer(&call, "FAILED x", true);
    let reply = stage.say();
    assert_eq!(reply.text, "repairing");
    assert_eq!(reply.calls[0].arguments, json!({ "path": "src/lib.rs", "lines": ["FAILED x"] }));
    assert_eq!(reply.calls[1].id.as_str(), "t1-s2-2");
    assert_eq!(reply.calls[1].arguments, json!({}));
    // Mail in between and a result that never came change nothing.
    stage.mail("/root/b", "how is it?").answer(&reply.calls[0], "ok", false);
    let call = check(&mut stage);
    assert_eq!(call.id.as_str(), "t1-s3-1");
    stage.answer(&call, "all ok", false);
    assert_eq!(stage.say().text, "it works: all ok");

    let mut stage = Stage::of_steps(steps);
    let (called, result) = stage.open("go").play(|call| format!("{} FAILED", call.tool));
    assert_eq!(called.len(), 3 + 3 * 2);
    assert_eq!(result, "gave up: bash FAILED read FAILED");
}

#[test]
fn a_condition_on_a_result_that_is_not_there_never_holds() {
    for test in ["contains = \"x\"", "lacks = \"x\"", "failed = true", "failed = false"] {
        let mut stage = Stage::of_steps(&format!(
            "{{ call = {{ tool = \"bash\", as = \"a\" }} }},
             {{ if = {{ result = \"a\", {test} }}, say = \"holds\" }}, {{ say = \"not\" }}"
        ));
        let call = stage.open("go").say().calls.remove(0);
        assert_eq!(stage.ask().unwrap().text, "not", "{test}");
        let holds = test == "lacks = \"x\"" || test == "failed = false";
        let said = stage.answer(&call, "y", false).ask().unwrap().text;
        assert_eq!(said, if holds { "holds" } else { "not" }, "{test}");
    }
}

#[test]
fn an_earlier_turn_does_not_matter_and_ids_are_new() {
    let mut stage = Stage::of_steps(
        r#"{ call = { tool = "bash", as = "a" } }, { say = "{{message}}: {{a}}" }"#,
    );
    // Interrupted: the call has no result.
    assert_eq!(stage.open("one").say().calls[0].id.as_str(), "t1-s1-1");
    let call = stage.open("two").say().calls.remove(0);
    assert_eq!(call.id.as_str(), "t2-s1-1");
    assert_eq!(stage.answer(&call, "ok", false).say().text, "two: ok");
    // A compacted conversation counts its turns anew, but an id that stands in it is not given.
    stage
        .messages
        .retain(|message| !matches!(message, Message::User { text, .. } if text == "one"));
    assert_eq!(stage.open("three").say().calls[0].id.as_str(), "t2-s2-1");
}

#[test]
fn the_last_word_is_said_again_when_mail_came_before_the_end() {
    let mut stage = Stage::of_steps("{ say = \"done\" }");
    assert_eq!(stage.open("go").say().text, "done");
    assert_eq!(stage.mail("/root/a", "wait!").say().text, "done");
    assert_eq!(stage.result("/root/a", "late").say().text, "done");
}

#[test]
fn unread_mail_does_not_hide_the_message_that_began_the_turn() {
    let text = r#"
        [[agent]]
        path = "/root"
        [[agent.turn]]
        when = "report"
        step = [{ say = "{{message}}" }]
        [[agent.turn]]
        step = [{ say = "other: {{message}}" }]
    "#;
    let mut stage = Stage::new(text, "/root");
    stage.hear("/root/a", MailKind::Result, "my report", true);
    assert_eq!(stage.ask().unwrap().text, "my report");
    stage.hear("person", MailKind::User, "go on", false);
    assert_eq!(stage.ask().unwrap().text, "other: go on");
    stage.mail("/root/b", "the report");
    assert_eq!(stage.ask().unwrap().text, "the report");
}

#[test]
fn braces_can_be_kept() {
    let mut stage = Stage::of_steps(
        r#"{ call = [{ tool = "write", verbatim = true, with = { text = "{{message}}" } },
                     { tool = "write", with = { "{{message}}" = "{{{message}}} {{ x }}", n = 1, at = 2026-01-02 } }] },
           { say = "a" }"#,
    );
    let calls = stage.open("m").say().calls;
    assert_eq!(calls[0].arguments, json!({ "text": "{{message}}" }));
    let filled = json!({ "{{message}}": "{m} {{ x }}", "n": 1, "at": "2026-01-02" });
    assert_eq!(calls[1].arguments, filled);
}

#[test]
fn a_turn_can_fail_as_a_provider_does() {
    let mut stage = Stage::of_steps("{ fail = \"no credit for {{message}}\" }");
    match stage.open("this").ask() {
        Err(ModelError::Provider(text)) => assert_eq!(text, "no credit for this"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_reply_says_what_it_used_where_the_step_does() {
    let steps = r#"
        { call = { tool = "bash" }, usage = { input = 1_000, output = 0x10, cost_micros = 0 } },
        { wait = 1, usage = { input = 2, output = 0 } },
        { call = { tool = "list" } },
        { say = "done", usage = { input = 3, output = 4 } },
    "#;
    let used = |input, output, cost_micros| Some(Usage { input, output, cost_micros });
    let mut stage = Stage::of_steps(steps);
    stage.open("go");
    assert_eq!(stage.say().usage, used(1000, 16, Some(0)));
    assert_eq!(stage.say().usage, used(2, 0, None));
    stage.result("/root/a", "x");
    assert_eq!(stage.say().usage, None);
    assert_eq!(stage.say().usage, used(3, 4, None));
}

#[test]
fn a_summary_is_what_the_script_says_and_calls_go_on_with_numbers_of_their_own() {
    let text = "[[agent]]\npath = \"/root\"\nsummary = \"all quiet\"\n[[agent.turn]]\nstep = [ \
                { call = { tool = \"list\" } }, { say = \"x\" } ]";
    let mut stage = Stage::new(text, "/root");
    stage.open("go");
    let mut request = stage.request();
    request.earlier_turns = 3;
    assert_eq!(stage.answer_to(&request).unwrap().calls[0].id.as_str(), "t4-s1-1");
    request.purpose = Purpose::Summary;
    let summary = stage.answer_to(&request).unwrap();
    assert_eq!((summary.text.as_str(), summary.calls.len()), ("all quiet", 0));
    request.agent = AgentPath::parse("/root/other").unwrap();
    assert_eq!(
        stage.answer_to(&request).unwrap().text,
        "The playbook gives no summary of 1 messages."
    );
}
