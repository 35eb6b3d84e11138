//! What a person reads when a playbook is not one.

use crate::Playbook;
use insta::assert_snapshot;

fn error(text: &str) -> String {
    Playbook::parse(text).unwrap_err().to_string()
}

/// The error of a turn whose steps are these lines, from line 4 on.
fn steps(lines: &str) -> String {
    error(&format!("[[agent]]\npath = \"/root\"\n[[agent.turn]]\nstep = [\n{lines}\n]\n"))
}

#[test]
fn a_file_that_is_no_toml() {
    assert_snapshot!(error("[[agent]]\npath = /root\n"), @r"
    line 2: this is not TOML: string values must be quoted, expected literal string
    hint: repair the line; a text of several lines stands between '''
    ");
    assert_snapshot!(error("[[agent]\n"), @r"
    line 1: this is not TOML: unclosed array table, expected `]`
    hint: repair the line; a text of several lines stands between '''
    ");
}

#[test]
fn keys_that_nobody_knows() {
    assert_snapshot!(error("[[agnet]]\npath = \"/root\"\n"), @r"
    line 1: unknown key `agnet`
    hint: did you mean `agent`? (a playbook may have `agent`)
    ");
    assert_snapshot!(error("[[agent]]\npath = \"/root\"\nmodel = \"x\"\n"), @r"
    line 3, agent 1: unknown key `model`
    hint: an agent may have `path`, `summary` and `turn`
    ");
    assert_snapshot!(error("[[agent]]\npath = \"/root\"\n\n[[agent.turn]]\nwehn = \"x\"\n"), @r"
    line 5, agent 1, turn 1: unknown key `wehn`
    hint: did you mean `when`? (a turn may have `when` and `step`)
    ");
    assert_snapshot!(steps("{ cal = { tool = \"bash\" } }"), @r"
    line 5, agent 1, turn 1, step 1: unknown key `cal`
    hint: did you mean `call`? (a step may have `label`, `if`, `say`, `call`, `wait`, `wait_mail`, `as`, `usage`, `goto`, `at_most` and `fail`)
    ");
    assert_snapshot!(steps("{ call = { tool = \"bash\",\n wiht = { command = \"true\" } } }"), @r"
    line 6, agent 1, turn 1, step 1: unknown key `wiht`
    hint: did you mean `with`? (a call may have `tool`, `with`, `as` and `verbatim`)
    ");
    assert_snapshot!(steps("{ if = { result = \"a\", contain = \"x\" }, say = \"b\" }"), @r"
    line 5, agent 1, turn 1, step 1: unknown key `contain`
    hint: did you mean `contains`? (an `if` may have `result`, `contains`, `lacks` and `failed`)
    ");
}

#[test]
fn what_is_missing() {
    assert_snapshot!(error(""), @r#"
    line 1: `agent` is missing
    hint: begin with [[agent]] and its path, such as path = "/root"
    "#);
    assert_snapshot!(error("agent = []"), @r#"
    line 1: `agent` is empty
    hint: begin with [[agent]] and its path, such as path = "/root"
    "#);
    assert_snapshot!(error("[[agent]]\n"), @r#"
    line 1, agent 1: `path` is missing
    hint: add the agent's path, such as path = "/root/fix-*"
    "#);
    assert_snapshot!(error("[[agent]]\npath = \"/root\"\n"), @r"
    line 1, agent 1: `turn` is missing
    hint: add [[agent.turn]] with its steps
    ");
    assert_snapshot!(error("[[agent]]\npath = \"/root\"\n[[agent.turn]]\nwhen = \"x\"\n"), @r#"
    line 3, agent 1, turn 1: `step` is missing
    hint: add [[agent.turn.step]] with say = "…"
    "#);
    assert_snapshot!(steps("{ label = \"a\" }"), @r"
    line 5, agent 1, turn 1, step 1: this step does nothing
    hint: a step has one of `say`, `call`, `wait`, `wait_mail`, `goto` and `fail`
    ");
    assert_snapshot!(steps("{ call = { with = {} } }"), @r#"
    line 5, agent 1, turn 1, step 1: `tool` is missing
    hint: name the tool, such as tool = "bash"
    "#);
    assert_snapshot!(steps("{ call = [] }"), @r#"
    line 5, agent 1, turn 1, step 1: `call` is empty
    hint: write call = { tool = "…", with = { … } }, or a list of such
    "#);
    assert_snapshot!(steps("{ if = { contains = \"x\" }, say = \"b\" }"), @r#"
    line 5, agent 1, turn 1, step 1: `if` names no result
    hint: add result = "…", the `as` of a call or a wait
    "#);
    assert_snapshot!(steps("{ if = { result = \"x\" }, say = \"b\" }"), @r"
    line 5, agent 1, turn 1, step 1: what must hold of `x` is not clear
    hint: an `if` has exactly one of `contains`, `lacks` and `failed`
    ");
}

#[test]
fn what_is_of_another_type() {
    assert_snapshot!(error("[agent]\npath = \"/root\"\n"), @r#"
    line 1: `agent` must be a list, not a table
    hint: begin with [[agent]] and its path, such as path = "/root"
    "#);
    assert_snapshot!(error("agent = [1]\n"), @r"
    line 1: `agent` must be a table, not a number
    hint: an agent has `path`, `summary` and `turn`
    ");
    assert_snapshot!(error("[[agent]]\npath = 1\n"), @r"
    line 2, agent 1: `path` must be a text, not a number
    hint: put it between quotes
    ");
    assert_snapshot!(steps("{ say = \"\" }"), @r"
    line 5, agent 1, turn 1, step 1: `say` is empty
    hint: write a text, or leave `say` out
    ");
    assert_snapshot!(steps("{ say = [\"a\"] }"), @r"
    line 5, agent 1, turn 1, step 1: `say` must be a text, not a list
    hint: put it between quotes
    ");
    assert_snapshot!(steps("{ wait = \"/root/a\" }"), @r#"
    line 5, agent 1, turn 1, step 1: `wait` must be a list, not a text
    hint: write wait = ["/root/a", "{{name}}"] for one from each, or wait = 2 for any two
    "#);
    assert_snapshot!(steps("{ wait = 0 }"), @r"
    line 5, agent 1, turn 1, step 1: `wait` is out of range
    hint: write a whole number from 1 to 1000, without quotes
    ");
    assert_snapshot!(steps("{ wait = [1] }"), @r"
    line 5, agent 1, turn 1, step 1: `wait` must be a text, not a number
    hint: put it between quotes
    ");
    assert_snapshot!(steps("{ wait = 1, at_most = \"3\" }"), @r"
    line 5, agent 1, turn 1, step 1: `at_most` must be a whole number, not a text
    hint: write a whole number from 1 to 1000, without quotes
    ");
    assert_snapshot!(steps("{ call = { tool = \"bash\", with = \"true\" } }"), @r#"
    line 5, agent 1, turn 1, step 1: `with` must be a table, not a text
    hint: write the tool's arguments, such as { command = "true" }
    "#);
    assert_snapshot!(steps("{ call = { tool = \"bash\", with = {\n x = [ inf ] } } }"), @r"
    line 6, agent 1, turn 1, step 1: a number in `with` cannot be given to a tool
    hint: write a number that JSON has: finite, whole ones below 2^63
    ");
    assert_snapshot!(steps("{ call = { tool = \"bash\", verbatim = 1 } }"), @r"
    line 5, agent 1, turn 1, step 1: `verbatim` must be true or false, not a number
    hint: write it without quotes
    ");
}

#[test]
fn paths_that_no_agent_has() {
    assert_snapshot!(error("[[agent]]\npath = \"/roto/a\"\n"), @r#"
    line 2, agent 1: no agent has a path like "/roto/a"
    hint: write /root, or segments below it: `*` stands for any part of a segment, `**` for any segments
    "#);
    assert_snapshot!(error("[[agent]]\npath = \"/root/{a\"\n"), @r#"
    line 2, agent 1: "/root/{a" is not a pattern: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)
    hint: write /root, or segments below it: `*` stands for any part of a segment, `**` for any segments
    "#);
    assert_snapshot!(steps("{ wait = [\"/root/A\"] },\n{ say = \"a\" }"), @r#"
    line 5, agent 1, turn 1, step 1: no agent has the path "/root/A"
    hint: write a canonical path such as "/root/a", one relative to the agent itself such as "a", or a placeholder
    "#);
}

#[test]
fn steps_that_do_not_fit_together() {
    assert_snapshot!(steps("{ say = \"a\", wait = 1 }"), @r"
    line 5, agent 1, turn 1, step 1: this step has `say` and `wait` at once
    hint: make them steps of their own; only `say` and `call` may stand together
    ");
    assert_snapshot!(steps("{ call = { tool = \"bash\" }, as = \"a\" }"), @r#"
    line 5, agent 1, turn 1, step 1: `as` names what a call or a wait came to
    hint: write it inside the call: call = { tool = "…", as = "…" }
    "#);
    assert_snapshot!(steps("{ say = \"a\", at_most = 2 }"), @r"
    line 5, agent 1, turn 1, step 1: `at_most` bounds a `goto`, a `wait` or a `wait_mail`
    hint: remove it, or move it to the step that it bounds
    ");
    assert_snapshot!(steps("{ wait = 1, as = \"A\" }"), @r#"
    line 5, agent 1, turn 1, step 1: "A" is not a name
    hint: a name begins with one of a to z and goes on with a to z, 0 to 9, `_` and `-`
    "#);
    assert_snapshot!(steps("{ wait = 1, as = \"path\" }"), @r"
    line 5, agent 1, turn 1, step 1: `path` always has a meaning of its own
    hint: take another name than `message`, `path` and `summary`
    ");
    assert_snapshot!(steps("{ label = \"a\", wait = 1 },\n{ label = \"a\", say = \"a\" }"), @r"
    line 6, agent 1, turn 1, step 2: an earlier step of this turn has the label `a` too
    hint: give each label once in a turn
    ");
    assert_snapshot!(steps("{ label = \"again\", wait = 1 },\n{ goto = \"agian\" },\n{ say = \"a\" }"), @r"
    line 6, agent 1, turn 1, step 2: no step of this turn has the label `agian`
    hint: did you mean `again`? This turn knows `again`
    ");
    assert_snapshot!(steps("{ label = \"again\", wait = 1 },\n{ goto = \"again\" },\n{ say = \"a\" }"), @r"
    line 6, agent 1, turn 1, step 2: a `goto` that leads back needs a bound
    hint: add at_most = 3, or as often as it may be taken in one turn
    ");
    assert_snapshot!(steps("{ wait = 1 },"), @r#"
    line 5, agent 1, turn 1: the last step does not end the turn
    hint: end with a step that only has say = "…", the turn's result
    "#);
    assert_snapshot!(steps("{ wait = 1, as = \"report\" },\n{ say = \"{{reprot}}\" }"), @r"
    line 6, agent 1, turn 1, step 2: nothing in this turn is named by the placeholder {{reprot}}
    hint: did you mean `report`? This turn knows `message`, `path`, `summary` and `report`
    ");
    assert_snapshot!(steps("{ call = { tool = \"write\", with = { text = [\"{{x}}\"] } } },\n{ say = \"a\" }"), @r"
    line 5, agent 1, turn 1, step 1: nothing in this turn is named by the placeholder {{x}}
    hint: name the call or wait that is meant with `as`; in a call, verbatim = true keeps braces as they are
    ");
    assert_snapshot!(steps("{ wait = 1, as = \"report\" },\n{ if = { result = \"check\", failed = true }, say = \"b\" },\n{ say = \"a\" }"), @r#"
    line 6, agent 1, turn 1, step 2: no call and no wait of this turn is named `check`
    hint: add as = "…" to the call or wait that is meant
    "#);
}

#[test]
fn what_is_never_played() {
    let turn = "[[agent.turn]]\nstep = [{ say = \"a\" }]\n";
    assert_snapshot!(error(&format!("[[agent]]\npath = \"/root\"\n{turn}{turn}")), @r"
    line 5, agent 1, turn 2: this turn is never played: the one before it has no `when` and takes every message
    hint: put the turn without `when` last
    ");
    let agent = format!("[[agent]]\npath = \"/root\"\n{turn}");
    assert_snapshot!(error(&format!("{agent}{agent}")), @r#"
    line 6, agent 2: an earlier agent has the path "/root" too
    hint: write the turns of both below the first one
    "#);
}

#[test]
fn a_usage_that_is_none() {
    assert_snapshot!(steps("{ usage = 3, say = \"b\" }"), @r"
    line 5, agent 1, turn 1, step 1: `usage` must be a table, not a number
    hint: a usage has `input`, `output` and `cost_micros`
    ");
    assert_snapshot!(steps("{ usage = { input = 3 }, say = \"b\" }"), @r"
    line 5, agent 1, turn 1, step 1: `usage` has no `output`
    hint: write usage = { input = 1200, output = 80 }, perhaps with cost_micros = 900
    ");
    assert_snapshot!(steps("{ usage = { input = -3, output = 1 }, say = \"b\" }"), @r"
    line 5, agent 1, turn 1, step 1: `input` is out of range
    hint: write a whole number from 0 on, without quotes
    ");
    assert_snapshot!(steps("{ usage = { input = \"3\", output = 1 }, say = \"b\" }"), @r"
    line 5, agent 1, turn 1, step 1: `input` must be a whole number, not a text
    hint: write a whole number from 0 on, without quotes
    ");
    assert_snapshot!(steps("{ usage = { input = 3, output = 1, cost = 2 }, say = \"b\" }"), @r"
    line 5, agent 1, turn 1, step 1: unknown key `cost`
    hint: a usage may have `input`, `output` and `cost_micros`
    ");
    assert_snapshot!(steps("{ fail = \"x\", usage = { input = 3, output = 1 } }"), @r"
    line 5, agent 1, turn 1, step 1: `usage` is what a reply used, and this step gives none
    hint: remove it, or move it to a step with `say`, `call`, `wait` or `wait_mail`
    ");
}
