//! Compares the steps of a turn with each other: every name is known, and every way ends.

use stead_core::path::AgentPath;

use super::error::{PlaybookError, listed, nearest};
use super::fill::{each_text, names};
use super::read::Read;
use super::script::{Action, Step, Wanted};

/// The placeholders that have a value in every turn.
pub(super) const ALWAYS: [&str; 3] = ["message", "path", "summary"];

/// Checks a turn whose steps are each well formed.
pub(super) fn check_turn(place: &str, steps: &[Step]) -> Read<()> {
    let results = result_names(steps);
    for (at, step) in steps.iter().enumerate() {
        let error = |problem: String, hint: String| {
            let place = format!("{place}, step {}", at + 1);
            Err(PlaybookError { line: step.line, place, problem, hint })
        };
        if let Some(label) = &step.label
            && steps.iter().take(at).any(|earlier| earlier.label.as_ref() == Some(label))
        {
            return error(
                format!("an earlier step of this turn has the label `{label}` too"),
                "give each label once in a turn".to_owned(),
            );
        }
        if let Some(condition) = &step.condition
            && !results.contains(&condition.result.as_str())
        {
            return error(
                format!("no call and no wait of this turn is named `{}`", condition.result),
                suggest(
                    &condition.result,
                    &results,
                    "add as = \"…\" to the call or wait that is meant",
                ),
            );
        }
        if let Some(name) = placeholders(&step.action)
            .into_iter()
            .find(|name| !results.contains(name) && !ALWAYS.contains(name))
        {
            let known: Vec<&str> = ALWAYS.iter().copied().chain(results.iter().copied()).collect();
            let otherwise = "name the call or wait that is meant with `as`; in a call, verbatim = true keeps braces as they are";
            return error(
                format!("nothing in this turn is named by the placeholder {{{{{name}}}}}"),
                suggest(name, &known, otherwise),
            );
        }
        if let Action::Goto { label, at_most } = &step.action {
            let labels: Vec<&str> = steps.iter().filter_map(|s| s.label.as_deref()).collect();
            match steps.iter().position(|other| other.label.as_ref() == Some(label)) {
                None => {
                    return error(
                        format!("no step of this turn has the label `{label}`"),
                        suggest(label, &labels, "add label = \"…\" to the step to go on with"),
                    );
                }
                Some(target) if target <= at && at_most.is_none() => {
                    return error(
                        "a `goto` that leads back needs a bound".to_owned(),
                        "add at_most = 3, or as often as it may be taken in one turn".to_owned(),
                    );
                }
                Some(_) => {}
            }
        }
        if let Some(path) = impossible_path(&step.action) {
            return error(
                format!("no agent has the path {path:?}"),
                "write a canonical path such as \"/root/a\", one relative to the agent itself such as \"a\", or a placeholder".to_owned(),
            );
        }
    }
    match steps.last() {
        Some(Step { condition: None, action: Action::Say(_) | Action::Fail(_), .. }) => Ok(()),
        last => Err(PlaybookError {
            line: last.map_or(1, |step| step.line),
            place: place.to_owned(),
            problem: "the last step does not end the turn".to_owned(),
            hint: "end with a step that only has say = \"…\", the turn's result".to_owned(),
        }),
    }
}

/// The names that results may have in a turn.
fn result_names(steps: &[Step]) -> Vec<&str> {
    let mut found = Vec::new();
    for step in steps {
        match &step.action {
            Action::Call { calls, .. } => {
                found.extend(calls.iter().filter_map(|call| call.name.as_deref()));
            }
            Action::Wait(wait) => found.extend(wait.name.as_deref()),
            Action::Say(_) | Action::Fail(_) | Action::Goto { .. } => {}
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn placeholders(action: &Action) -> Vec<&str> {
    let mut found = Vec::new();
    match action {
        Action::Say(text) | Action::Fail(text) => found.extend(names(text)),
        Action::Call { say, calls } => {
            found.extend(names(say));
            for call in calls.iter().filter(|call| !call.verbatim) {
                each_text(&call.with, &mut |text| found.extend(names(text)));
            }
        }
        Action::Wait(wait) => {
            if let Wanted::Each(paths) = &wait.wanted {
                found.extend(paths.iter().flat_map(|path| names(path)));
            }
        }
        Action::Goto { .. } => {}
    }
    found
}

/// A path without placeholders that is waited for and that no agent can have.
fn impossible_path(action: &Action) -> Option<&str> {
    let Action::Wait(wait) = action else { return None };
    let Wanted::Each(paths) = &wait.wanted else { return None };
    paths
        .iter()
        .map(String::as_str)
        .filter(|path| names(path).is_empty())
        .find(|path| AgentPath::resolve(&AgentPath::root(), path).is_err())
}

fn suggest(wrong: &str, known: &[&str], otherwise: &str) -> String {
    match nearest(wrong, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? This turn knows {}", listed(known)),
        None => otherwise.to_owned(),
    }
}
