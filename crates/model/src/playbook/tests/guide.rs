//! `docs/playbook.md` tells the truth: its examples parse, and the first one plays as it says.

use stead_core::event::MailKind;

use super::stage::Stage;
use crate::Playbook;

const GUIDE: &str = include_str!("../../../../../docs/playbook.md");

fn examples() -> Vec<&'static str> {
    GUIDE
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split_once("```").expect("the example is closed").0)
        .collect()
}

#[test]
fn every_example_parses() {
    assert!(examples().len() > 3);
    for example in examples() {
        if let Err(error) = Playbook::parse(example) {
            panic!("{error}\n\n{example}");
        }
    }
}

#[test]
fn every_key_is_explained() {
    // Written as `key`, or as `key = …`.
    for key in [
        "agent",
        "path",
        "summary",
        "turn",
        "when",
        "step",
        "label",
        "if",
        "say",
        "call",
        "wait",
        "wait_mail",
        "as",
        "goto",
        "at_most",
        "fail",
        "tool",
        "with",
        "verbatim",
        "result",
        "contains",
        "lacks",
        "failed",
        "usage",
        "input",
        "output",
        "cost_micros",
        "{{message}}",
        "{{path}}",
        "{{summary}}",
    ] {
        assert!(
            GUIDE.contains(&format!("`{key}`")) || GUIDE.contains(&format!("`{key} =")),
            "{key} is not explained"
        );
    }
}

#[test]
fn the_example_plays_as_the_guide_says() {
    let example = examples()[0];

    // The one who repairs: red once, then green.
    let mut fix = Stage::new(example, "/root/fix-parser");
    fix.hear("/root", MailKind::Mail, "Repair the crate parser.", true);
    let first = fix.say().calls.remove(0);
    fix.answer(&first, "test result: FAILED. 1 failed", true);
    let repair = fix.say();
    assert_eq!(repair.text, "A test is red; I repair it.");
    assert!(repair.calls[0].arguments.to_string().contains("sed -i"));
    assert_eq!(repair.calls[1].arguments, first.arguments);
    fix.answer(&repair.calls[0], "", false);
    fix.answer(&repair.calls[1], "test result: ok. 12 passed", false);
    let report = fix.say().text;
    assert_eq!(report, "/root/fix-parser is done:\ntest result: ok. 12 passed");

    // The one who gives up.
    let mut fix = Stage::new(example, "/root/fix-parser");
    fix.hear("/root", MailKind::Mail, "Repair the crate parser.", true);
    let (called, result) = fix.play(|_| "test result: FAILED".to_owned());
    assert_eq!(called.len(), 1 + 3 * 2);
    assert_eq!(result, "It is still red:\ntest result: FAILED");

    // The root: two agents, a wait, a report.
    let mut root = Stage::new(example, "/root");
    root.open("Please fix the tests.");
    let spawns = root.say().calls;
    assert_eq!(spawns.len(), 2);
    root.answer(&spawns[0], "/root/fix-parser", false);
    root.result("/root/fix-parser", &report);
    root.answer(&spawns[1], "/root/fix-server", false);
    let wait = root.say().calls.remove(0);
    assert_eq!(wait.tool, "wait_agent");
    root.answer(&wait, "mailbox", false).result("/root/fix-server", "server: ok");
    assert_eq!(root.say().text, format!("Both are done.\n\n{report}\n\nserver: ok"));

    // Another message to the root.
    assert_eq!(root.open("Thanks!").say().text, "I only know how to fix tests.");
}
