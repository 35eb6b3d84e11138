//! What stands in a record: its header and its sections.

use super::markdown::{prose, sections};
use super::tree::Place;

/// The day the format came; older records may lack their alternatives.
const FORMAT_DAY: &str = "2026-07-05";

/// What an older record carries when nobody knows its alternatives any more.
const GRANDFATHER: &str = "<!-- rfc-format: alternatives-not-recorded (pre-format RFC) -->";

/// The mark that older records carried until they followed the format.
const DEBT: &str = "XXX: legacy ADR/RFC body format";

/// The word that a status line starts with.
const STATUS: &str = "Status:";

const ALTERNATIVES: &str = "Alternatives considered";

/// Headings that speak of work to come, and so have no place in a record of what is.
const PROPOSAL_WORDS: &[&str] = &["proposal", "plan", "migration plan", "acceptance criteria"];

/// The title, without the prefix; `None` when line 1 is no record's heading.
pub(crate) fn title(text: &str) -> Option<&str> {
    let title = text.split('\n').next()?.strip_prefix("# RFC: ")?;
    (!title.trim().is_empty() && !title.contains('\r')).then_some(title)
}

/// Everything in a record that does not follow the format.
pub(crate) fn violations(place: &Place, text: &str) -> Vec<String> {
    let mut found = header(place, text);
    found.extend(body(place, text));
    found
}

fn header(place: &Place, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.split('\n');
    lines.next();
    if title(text).is_none() {
        found.push("line 1: must be `# RFC: ` and a title, with neither byte-order mark nor carriage return".into());
    }
    let mut blank = |number: usize, line: Option<&str>| {
        if line != Some("") {
            found.push(format!("line {number}: must be there and empty"));
        }
    };
    let second = lines.next();
    let status = lines.next().unwrap_or_default();
    blank(2, second);
    blank(4, lines.next());
    found.extend(status_violation(place.lifecycle, status));
    for (number, _) in prose(text).filter(|(_, line)| line.starts_with(STATUS)) {
        if number != 3 {
            found.push(format!("line {number}: a second line that starts with `{STATUS}`"));
        }
    }
    found
}

/// The status must be the folder's, in exactly its one spelling.
fn status_violation(lifecycle: &str, line: &str) -> Option<String> {
    let wrong = |why: &str| Some(format!("line 3: {why}"));
    if lifecycle != "rejected" {
        let expected = format!("{STATUS} {lifecycle}");
        return if line == expected { None } else { wrong(&format!("must be `{expected}`")) };
    }
    let Some(reason) = line.strip_prefix("Status: rejected — ") else {
        return wrong("must be `Status: rejected — ` and the reason in one line");
    };
    if reason.trim().is_empty() || reason.contains('\r') {
        return wrong("a rejection needs its reason, in one line without a carriage return");
    }
    if reason.contains(['(', ')']) || has_date(reason) {
        return wrong("a status has neither dates nor parentheses");
    }
    None
}

fn has_date(text: &str) -> bool {
    let shape: String = text.chars().map(|it| if it.is_ascii_digit() { '9' } else { it }).collect();
    shape.contains("9999-99-99")
}

fn body(place: &Place, text: &str) -> Vec<String> {
    let sections = sections(text);
    let has = |name: &str| sections.contains(&name);
    let mut found = Vec::new();

    if sections.first() != Some(&"Problem") {
        found.push("the first section must be `## Problem`".into());
    }
    let required: &[&str] = match place.lifecycle {
        "proposed" => &["Proposal", "Acceptance criteria", "Risks"],
        "implemented" => &["Decision", "Consequences"],
        _ => &["Proposal"],
    };
    for name in required.iter().filter(|name| !has(name)) {
        found.push(format!("the section `## {name}` is missing"));
    }
    if place.lifecycle == "implemented" {
        for heading in sections.iter().filter(|heading| speaks_of_a_proposal(heading)) {
            found.push(format!(
                "`## {heading}` speaks of work to come; an implemented record says what is"
            ));
        }
    }

    let grandfathered = prose(text).any(|(_, line)| line == GRANDFATHER);
    let young = place.date.as_str() >= FORMAT_DAY;
    match (has(ALTERNATIVES), grandfathered) {
        (false, false) => found.push(format!("the section `## {ALTERNATIVES}` is missing")),
        (true, true) => {
            found.push(format!("has both `## {ALTERNATIVES}` and the comment that excuses it"));
        }
        _ => {}
    }
    if grandfathered && young {
        found.push(format!(
            "only records from before {FORMAT_DAY} may leave out their alternatives"
        ));
    }
    if prose(text).any(|(_, line)| line.contains(DEBT)) {
        found.push(format!("carries the retired mark `{DEBT}`"));
    }
    found
}

/// Whether a heading starts with one of the words, as a whole word in any case.
fn speaks_of_a_proposal(heading: &str) -> bool {
    let heading = heading.to_lowercase();
    PROPOSAL_WORDS.iter().any(|word| {
        heading.strip_prefix(word).is_some_and(|rest| {
            !rest.chars().next().is_some_and(|next| next == '_' || next.is_alphanumeric())
        })
    })
}
