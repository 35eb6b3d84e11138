//! Builds the script from the text.

use globset::{GlobBuilder, GlobMatcher};
use stead_core::usage::Usage;
use toml::de::{DeTable, DeValue};

use super::check::check_turn;
use super::error::{PlaybookError, listed};
use super::fill::is_name;
use super::read::{Fields, Kind, Node, Read, line_of};
use super::script::{
    Action, Agent, Call, Condition, Playbook, Step, Test, Turn, Wait, WaitSort, Wanted,
};

/// How often a `goto` may be taken, and `wait_agent` be called, at most.
const MOST: u32 = 1000;
/// How often `wait_agent` is called by a wait that does not say. Each call lasts 30 seconds when
/// nothing comes, so this is most of an hour.
const WAITS: u32 = 100;

const FILE: Kind = Kind { what: "a playbook", keys: &["agent"] };
const AGENT: Kind = Kind { what: "an agent", keys: &["path", "summary", "turn"] };
const TURN: Kind = Kind { what: "a turn", keys: &["when", "step"] };
const STEP: Kind = Kind {
    what: "a step",
    keys: &[
        "label",
        "if",
        "say",
        "call",
        "wait",
        "wait_mail",
        "as",
        "usage",
        "goto",
        "at_most",
        "fail",
    ],
};
const CALL: Kind = Kind { what: "a call", keys: &["tool", "with", "as", "verbatim"] };
const CONDITION: Kind = Kind { what: "an `if`", keys: &["result", "contains", "lacks", "failed"] };
const USAGE: Kind = Kind { what: "a usage", keys: &["input", "output", "cost_micros"] };

/// What a step may do; `say` may also stand beside `call`.
const ACTIONS: [&str; 6] = ["say", "call", "wait", "wait_mail", "goto", "fail"];

impl Playbook {
    /// Parses a playbook. The error is about the first thing that is wrong.
    pub fn parse(text: &str) -> Result<Self, PlaybookError> {
        let file = DeTable::parse(text).map_err(|error| PlaybookError {
            line: line_of(text, error.span().map_or(0, |span| span.start)),
            place: String::new(),
            problem: format!("this is not TOML: {}", error.message().replace('\n', ", ")),
            hint: "repair the line; a text of several lines stands between '''".to_owned(),
        })?;
        let fields = Fields::of_file(text, file.get_ref(), &FILE)?;
        let mut agents: Vec<Agent> = Vec::new();
        let hint = "begin with [[agent]] and its path, such as path = \"/root\"";
        for (node, number) in fields.list("agent", hint)?.into_iter().zip(1_usize..) {
            let fields = fields.table("agent", node, format!("agent {number}"), &AGENT)?;
            let agent = parse_agent(&fields)?;
            if agents.iter().any(|earlier| earlier.pattern == agent.pattern) {
                return Err(fields.error_at(
                    "path",
                    format!("an earlier agent has the path {:?} too", agent.pattern),
                    "write the turns of both below the first one",
                ));
            }
            agents.push(agent);
        }
        Ok(Self { agents })
    }
}

fn parse_agent(fields: &Fields<'_>) -> Read<Agent> {
    let Some(pattern) = fields.text("path")? else {
        return Err(fields
            .error("`path` is missing", "add the agent's path, such as path = \"/root/fix-*\""));
    };
    let path = parse_pattern(fields, &pattern)?;
    let mut turns: Vec<Turn> = Vec::new();
    let hint = "add [[agent.turn]] with its steps";
    for (node, number) in fields.list("turn", hint)?.into_iter().zip(1_usize..) {
        let place = format!("{}, turn {number}", fields.place);
        let fields = fields.table("turn", node, place, &TURN)?;
        if turns.last().is_some_and(|earlier| earlier.when.is_none()) {
            return Err(fields.error(
                "this turn is never played: the one before it has no `when` and takes every message",
                "put the turn without `when` last",
            ));
        }
        turns.push(parse_turn(&fields)?);
    }
    Ok(Agent { pattern, path, summary: fields.text("summary")?, turns })
}

fn parse_pattern(fields: &Fields<'_>, pattern: &str) -> Read<GlobMatcher> {
    let hint = "write /root, or segments below it: `*` stands for any part of a segment, `**` for any segments";
    if !(pattern == "/root" || pattern.starts_with("/root/") || pattern == "**") {
        return Err(fields.error_at("path", format!("no agent has a path like {pattern:?}"), hint));
    }
    match GlobBuilder::new(pattern).literal_separator(true).build() {
        Ok(glob) => Ok(glob.compile_matcher()),
        Err(error) => Err(fields.error_at(
            "path",
            format!("{pattern:?} is not a pattern: {}", error.kind()),
            hint,
        )),
    }
}

fn parse_turn(fields: &Fields<'_>) -> Read<Turn> {
    let when = fields.text("when")?;
    let mut steps = Vec::new();
    let hint = "add [[agent.turn.step]] with say = \"…\"";
    for (node, number) in fields.list("step", hint)?.into_iter().zip(1_usize..) {
        let place = format!("{}, step {number}", fields.place);
        steps.push(parse_step(&fields.table("step", node, place, &STEP)?)?);
    }
    check_turn(&fields.place, &steps)?;
    Ok(Turn { when, steps })
}

fn parse_step(fields: &Fields<'_>) -> Read<Step> {
    let label = parse_name(fields, "label")?;
    let condition = match fields.node("if") {
        Some(node) => {
            Some(parse_condition(&fields.table("if", node, fields.place.clone(), &CONDITION)?)?)
        }
        None => None,
    };
    let action = match *fields.present(&ACTIONS).as_slice() {
        [] => {
            let hint = format!("a step has one of {}", listed(&ACTIONS));
            return Err(fields.error("this step does nothing", hint));
        }
        ["say"] => Action::Say(fields.text("say")?.unwrap_or_default()),
        ["call"] | ["say", "call"] => Action::Call {
            say: fields.text("say")?.unwrap_or_default(),
            calls: parse_calls(fields)?,
        },
        ["wait"] => parse_wait(fields, "wait", WaitSort::Results)?,
        ["wait_mail"] => parse_wait(fields, "wait_mail", WaitSort::Mail)?,
        ["goto"] => Action::Goto {
            label: parse_name(fields, "goto")?.unwrap_or_default(),
            at_most: fields.number("at_most", MOST)?,
        },
        ["fail"] => Action::Fail(fields.text("fail")?.unwrap_or_default()),
        ref several => {
            return Err(fields.error(
                format!("this step has {} at once", listed(several)),
                "make them steps of their own; only `say` and `call` may stand together",
            ));
        }
    };
    refuse_misplaced(fields, &action)?;
    let usage = match fields.node("usage") {
        Some(node) => {
            Some(parse_usage(&fields.table("usage", node, fields.place.clone(), &USAGE)?)?)
        }
        None => None,
    };
    Ok(Step { line: fields.line(), label, condition, action, usage })
}

/// `as`, `at_most` and `usage` belong to some actions only.
fn refuse_misplaced(fields: &Fields<'_>, action: &Action) -> Read<()> {
    let (names, counts) = match action {
        Action::Wait(_) => (true, true),
        Action::Goto { .. } => (false, true),
        Action::Say(_) | Action::Fail(_) | Action::Call { .. } => (false, false),
    };
    if !names && fields.node("as").is_some() {
        let hint = match action {
            Action::Call { .. } => "write it inside the call: call = { tool = \"…\", as = \"…\" }",
            _ => "remove it",
        };
        return Err(fields.error_at("as", "`as` names what a call or a wait came to", hint));
    }
    if !counts && fields.node("at_most").is_some() {
        return Err(fields.error_at(
            "at_most",
            "`at_most` bounds a `goto`, a `wait` or a `wait_mail`",
            "remove it, or move it to the step that it bounds",
        ));
    }
    let speaks = matches!(action, Action::Say(_) | Action::Call { .. } | Action::Wait(_));
    if !speaks && fields.node("usage").is_some() {
        return Err(fields.error_at(
            "usage",
            "`usage` is what a reply used, and this step gives none",
            "remove it, or move it to a step with `say`, `call`, `wait` or `wait_mail`",
        ));
    }
    Ok(())
}

/// Tokens are known together; what they cost may be unknown, which is not the same as nothing.
fn parse_usage(fields: &Fields<'_>) -> Read<Usage> {
    let known = |key| match fields.count(key)? {
        Some(count) => Ok(count),
        None => Err(fields.error(
            format!("`usage` has no `{key}`"),
            "write usage = { input = 1200, output = 80 }, perhaps with cost_micros = 900",
        )),
    };
    Ok(Usage {
        input: known("input")?,
        output: known("output")?,
        cost_micros: fields.count("cost_micros")?,
    })
}

fn parse_name(fields: &Fields<'_>, key: &str) -> Read<Option<String>> {
    match fields.text(key)? {
        Some(name) if !is_name(&name) => Err(fields.error_at(
            key,
            format!("{name:?} is not a name"),
            "a name begins with one of a to z and goes on with a to z, 0 to 9, `_` and `-`",
        )),
        name => Ok(name),
    }
}

/// The name of a result; placeholders that are always there keep theirs.
fn parse_result_name(fields: &Fields<'_>) -> Read<Option<String>> {
    match parse_name(fields, "as")? {
        Some(name) if super::check::ALWAYS.contains(&name.as_str()) => Err(fields.error_at(
            "as",
            format!("`{name}` always has a meaning of its own"),
            format!("take another name than {}", listed(&super::check::ALWAYS)),
        )),
        name => Ok(name),
    }
}

fn parse_calls(fields: &Fields<'_>) -> Read<Vec<Call>> {
    let nodes: Vec<&Node<'_>> = match fields.node("call") {
        Some(node) if matches!(node.get_ref(), DeValue::Table(_)) => vec![node],
        _ => {
            fields.list("call", "write call = { tool = \"…\", with = { … } }, or a list of such")?
        }
    };
    nodes
        .into_iter()
        .map(|node| {
            let fields = fields.table("call", node, fields.place.clone(), &CALL)?;
            let Some(tool) = fields.text("tool")? else {
                return Err(
                    fields.error("`tool` is missing", "name the tool, such as tool = \"bash\"")
                );
            };
            Ok(Call {
                tool,
                with: fields.object("with")?,
                verbatim: fields.flag("verbatim")?.unwrap_or_default(),
                name: parse_result_name(&fields)?,
            })
        })
        .collect()
}

fn parse_wait(fields: &Fields<'_>, key: &'static str, sort: WaitSort) -> Read<Action> {
    let hint = format!(
        "write {key} = [\"/root/a\", \"{{{{name}}}}\"] for one from each, or {key} = 2 for any two"
    );
    let wanted = match fields.node(key).map(toml::Spanned::get_ref) {
        Some(DeValue::Integer(_)) => {
            let count = fields.number(key, MOST)?.unwrap_or(1);
            Wanted::Count(usize::try_from(count).unwrap_or(usize::MAX))
        }
        _ => Wanted::Each(
            fields
                .list(key, &hint)?
                .into_iter()
                .map(|node| fields.text_in(key, node))
                .collect::<Read<_>>()?,
        ),
    };
    let at_most = fields.number("at_most", MOST)?.unwrap_or(WAITS);
    Ok(Action::Wait(Wait { sort, wanted, name: parse_result_name(fields)?, at_most }))
}

fn parse_condition(fields: &Fields<'_>) -> Read<Condition> {
    let Some(result) = parse_name(fields, "result")? else {
        return Err(fields
            .error("`if` names no result", "add result = \"…\", the `as` of a call or a wait"));
    };
    let tests = ["contains", "lacks", "failed"];
    let test = match *fields.present(&tests).as_slice() {
        ["contains"] => Test::Contains(fields.text("contains")?.unwrap_or_default()),
        ["lacks"] => Test::Lacks(fields.text("lacks")?.unwrap_or_default()),
        ["failed"] => Test::Failed(fields.flag("failed")?.unwrap_or_default()),
        _ => {
            let hint = format!("an `if` has exactly one of {}", listed(&tests));
            return Err(fields.error(format!("what must hold of `{result}` is not clear"), hint));
        }
    };
    Ok(Condition { result, test })
}
